"""`python -m cot2lib` is `cot2`."""

import sys

from cot2lib.cli import main

sys.exit(main())
