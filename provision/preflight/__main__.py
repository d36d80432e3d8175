"""Writes the reference page of the checks: `python -m provision.preflight FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from provision.preflight import table

for name in sys.argv[1:]:
    Path(name).write_text(table.markdown(), encoding="utf-8")
