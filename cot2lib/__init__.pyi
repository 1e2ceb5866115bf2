from .model import GPT2Stack as GPT2Stack
from .runs import curves as curves
from .runs import load as load
from .runs import run as run
from .specs import GRPOSpec as GRPOSpec
from .specs import Run as Run
from .specs import RunSpec as RunSpec
from .specs.profiles import grpo as grpo
from .specs.profiles import spec as spec
from .supervision import hindsight_targets as hindsight_targets
from .targets import Shown as Shown
from .targets import Targets as Targets
from .targets import Visits as Visits
from .tasks import MNNS as MNNS
from .tasks import ProntoQA as ProntoQA
from .tasks import ProsQA as ProsQA
from .tasks import Task as Task
from .thoughts import MTS as MTS
from .thoughts import Base as Base
from .thoughts import Dirichlet as Dirichlet
from .thoughts import Discrete as Discrete
from .thoughts import Rule as Rule
from .thoughts import Sampled as Sampled
from .thoughts import State as State
from .thoughts import Thought as Thought

__version__: str
