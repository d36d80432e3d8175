"""One task on this VM: FILE has its document, stdout gets its result as one JSON object.

What goes wrong stands on stderr. The agent starts this as a process of its own, with a limit, and
keeps what it prints as this VM's answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable

from aiinfra_vm.tasks import bandwidth, check

UNKNOWN = 64
"""The exit code for a kind that this version does not know."""

KINDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "bandwidth": bandwidth.run,
    "check": check.run,
}


def main() -> int:
    """Run the task of the file that the command line names.

    Returns:
        The exit code: 0 with a result.
    """
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    run = KINDS.get(task["kind"])
    if run is None:
        sys.stderr.write(
            f"this VM knows no task of the kind {task['kind']}: it is of an older"
            " version of the tool\n"
        )
        return UNKNOWN
    try:
        result = run(task["arguments"])
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
