#!/usr/bin/env python3
"""What can be done about a run that failed, from the document that it printed.

    decide.py RESULT [ZONE...]

prints one line for each thing that can be done, the best first; ZONE are those that were tried:

    again              run the same action again after a while: nothing has to change
    follow             the job is there and goes on: follow it instead, Logs JOB --follow
    zone ZONE          set ZONE to this one, and run it again
    setting NAME=VALUE set this, and run it again
    person             none of these: somebody has to read what it says

The codes of problems are in docs/reference/problems.md, the document's schema is beside it. This
needs nothing but Python.
"""

import json
import sys
from collections.abc import Iterator

OVER = ("succeeded", "failed", "cancelled")
"""The states of a job after which nothing follows."""


def read(path: str) -> dict:
    """The document in a file; one without problems if there is none."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as short as can be
            document = json.load(file)
    except (OSError, ValueError):
        return {"problems": []}
    return document if isinstance(document, dict) else {"problems": []}


def choices(document: dict, tried: list[str]) -> Iterator[str]:
    """What can be done, the best first."""
    problems = document["problems"]
    if problems and all(problem["retryable"] for problem in problems):
        goes_on = any(job["state"] not in OVER for job in document.get("jobs", []))
        yield "follow" if goes_on else "again"
    # Only what mends all problems is worth another run.
    if len(problems) == 1:
        (problem,) = problems
        if problem["setting"] == "ZONE":
            zones = problem["alternatives"]["zones"]
            yield from (f"zone {zone}" for zone in zones if zone not in tried)
        mended = problem["alternatives"]["settings"]
        yield from (f"setting {name}={value}" for name, value in mended.items())
    yield "person"


def main() -> None:
    """Print what can be done, and for people what is wrong."""
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    document = read(sys.argv[1])
    for problem in document["problems"]:
        said = [problem["what"], problem["why"], problem["fix"]]
        print(f"{problem['code']}:", "\n  ".join(filter(None, said)), file=sys.stderr)
    print("\n".join(choices(document, sys.argv[2:])))


if __name__ == "__main__":
    main()
