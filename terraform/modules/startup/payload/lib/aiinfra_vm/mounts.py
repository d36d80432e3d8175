"""Shared storage in /etc/fstab, so that systemd mounts it at each boot.

A mount is `{server, remote_path, local_mount, type, options}`; which product serves it, nobody
here knows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aiinfra_vm import configuration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BEGIN = "# aiinfra: begin, written at each boot"
_END = "# aiinfra: end"
# The VM boots, and can be reached, also when the storage cannot; it waits for the network.
_ALWAYS = ("_netdev", "nofail")


def line(mount: Mapping[str, str]) -> str:
    """The line of fstab for one mount."""
    server = mount["server"]
    source = f"{server}:{mount['remote_path']}" if server else mount["remote_path"]
    given = [option for option in mount["options"].split(",") if option]
    options = ",".join(given + [option for option in _ALWAYS if option not in given])
    return f"{_escaped(source)} {_escaped(mount['local_mount'])} {mount['type']} {options} 0 0"


def with_mounts(fstab: str, mounts: Iterable[Mapping[str, str]]) -> str:
    """The text of a fstab with these mounts in place of those of an earlier boot."""
    kept = []
    inside = False
    for text in fstab.splitlines():
        if text == _BEGIN:
            inside = True
        elif text == _END:
            inside = False
        elif not inside:
            kept.append(text)
    lines = [*kept, _BEGIN, *map(line, mounts), _END]
    return "".join(f"{text}\n" for text in lines)


def _escaped(field: str) -> str:
    # fstab has its own escapes, as blanks part its fields.
    for character in "\\ \t":
        field = field.replace(character, f"\\{ord(character):03o}")
    return field


def _rewrite(file: Path, mounts: Iterable[Mapping[str, str]]) -> None:
    before = file.read_text("utf-8") if file.exists() else ""
    after = with_mounts(before, mounts)
    if after == before:
        return
    # Whole or not at all: half a fstab is a VM that does not boot.
    draft = file.with_name(f"{file.name}.aiinfra")
    draft.write_text(after, "utf-8")
    draft.chmod(0o644)
    draft.replace(file)


def main() -> None:
    """`types` prints each mount's type, `points` where it goes; `fstab FILE` writes the file."""
    mounts = configuration.load()["mounts"]
    if sys.argv[1] == "fstab":
        _rewrite(Path(sys.argv[2]), mounts)
        return
    key = {"types": "type", "points": "local_mount"}[sys.argv[1]]
    sys.stdout.write("".join(f"{mount[key]}\n" for mount in mounts))


if __name__ == "__main__":
    main()
