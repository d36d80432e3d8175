"""What a person reads at the end of a run that failed, without what differs from run to run."""

import re

# What differs from run to run or moves with the modules' text -> what stands for it.
_NORMAL = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(?:Z| \+0000 UTC)"), "<time>"),
    (re.compile(r"on \S+\.tf line \d+"), "on <file> line <number>"),
    (re.compile(r"^( +)\d+: resource", re.MULTILINE), r"\1<number>: resource"),
    (re.compile(r"for \d+ (?:s|min) in total"), "for <age> in total"),
    (re.compile(r"\bnp-vm-[a-z0-9]{4}\b"), "np-vm-<id>"),
)

# Notes, and the lines of a rehearsal about itself.
_BESIDE = re.compile(
    r"^Worth knowing:\n(?:  (?!done |\.\.\. ).*\n)+|^(?:This is a r|R)ehearsal.*\n", re.MULTILINE
)


def to_read(said: str) -> list[str]:
    """The lines that a person has to read of a run that went well, without notes."""
    return _BESIDE.sub("", said).splitlines()


def normal(said: str) -> str:
    """What a person reads from the heading of the problems on."""
    start = re.search(r"^(?:Create|Destroy|Test) .* \(exit code \d+\):$", said, re.MULTILINE)
    assert start is not None, said
    text = said[start.start() :]
    for pattern, stand_in in _NORMAL:
        text = pattern.sub(stand_in, text)
    return text
