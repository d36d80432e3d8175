"""The programs that VMs get, imported as they are there: with their folder on the path."""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAMS = Path(__file__).parents[3] / "terraform/modules/startup/payload/lib"

if str(_PROGRAMS) not in sys.path:
    sys.path.append(str(_PROGRAMS))
