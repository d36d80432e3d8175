"""Runs one kind of task: its arguments on standard input, its answer on standard output."""

from __future__ import annotations

import importlib
import json
import sys

from aiinfra_vm.tasks import KINDS

REFUSED = 2
"""The exit code for arguments that the kind does not take."""


def main() -> int:
    """`KIND`."""
    kind = importlib.import_module(KINDS[sys.argv[1]])
    try:
        answer = kind.run(json.load(sys.stdin))
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
