"""The programs that VMs get, imported as they are there: with their folder on the path."""

import sys
from pathlib import Path

_PROGRAMS = Path(__file__).parents[3] / "terraform/modules/startup/payload/lib"

if str(_PROGRAMS) not in sys.path:
    sys.path.append(str(_PROGRAMS))
