"""What a run is: frozen data that names everything a trained model depends on."""

from cot2lib.specs.spec import *  # noqa: F403
