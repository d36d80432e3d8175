"""The ways out that a problem names, as somebody would write them to an env.list."""

import re
from collections.abc import Iterator, Mapping

from provision.errors import Problem, assignments


def ways(problem: Problem) -> Iterator[tuple[Mapping[str, str], tuple[str, ...]]]:
    """What a fix has somebody write or remove: what it begins with, and each "or"."""
    if problem.alternatives.settings:
        yield problem.alternatives.settings, ()
    first = re.match(r"remove ([A-Z][A-Z_]+), and (?:set )?", problem.fix)
    gone = (first[1],) if first else ()
    for clause in re.split(r"[,;]? or ", problem.fix[first.end() if first else 0 :]):
        written = assignments(clause)
        removed = re.match(r"remove ([A-Z][A-Z_]+)", clause)
        if removed:
            yield {}, (removed[1],)
        elif written and (gone or not problem.fix.startswith(clause)):
            yield written, gone
