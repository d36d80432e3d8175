"""Lines of this tool in files of the system, in one block that each boot rewrites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from pathlib import Path

_BEGIN = "# aiinfra: begin, written at each boot"
_END = "# aiinfra: end"


def with_block(text: str, lines: Sequence[str]) -> str:
    """A file's text with these lines at its end, in place of those of an earlier boot."""
    kept = []
    inside = False
    for line in text.splitlines():
        if line == _BEGIN:
            inside = True
        elif line == _END:
            inside = False
        elif not inside:
            kept.append(line)
    block = [_BEGIN, *lines, _END] if lines else []
    return "".join(f"{line}\n" for line in (*kept, *block))


def rewrite(file: Path, lines: Sequence[str]) -> bool:
    """Write these lines to a file, whole or not at all; returns whether that changed it."""
    before = file.read_text("utf-8") if file.exists() else ""
    return replace(file, before, with_block(before, lines))


def replace(file: Path, before: str, after: str) -> bool:
    """Write a text to a file, whole or not at all, if it is another; returns whether it is."""
    if after == before:
        return False
    # Half a fstab is a VM that does not boot.
    draft = file.with_name(f"{file.name}.aiinfra")
    draft.write_text(after, "utf-8")
    draft.chmod(0o644)
    draft.replace(file)
    return True
