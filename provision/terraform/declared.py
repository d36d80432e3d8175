"""The resources that a root declares, by their addresses without the keys of instances.

Terraform deletes whatever its state has and the root does not declare, so a state may name nothing
else. The text is read, as Terraform itself prints addresses of planned instances alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_RESOURCE: Final = re.compile(r'^resource "(\w+)" "(\w+)"', re.MULTILINE)
_MODULE: Final = re.compile(
    r'^module "(\w+)" \{.*?^ +source += +"([^"]+)"', re.MULTILINE | re.DOTALL
)
_FORMER: Final = re.compile(r"^(?:moved|removed) \{\s*from\s*=\s*(\S+)", re.MULTILINE)
_KEY: Final = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')


def addresses(root: Path) -> Iterator[str]:
    """What the root, its modules, and its blocks for what it once declared, name."""
    for file in root.glob("*.tf"):
        text = file.read_text(encoding="utf-8")
        yield from map(_general, _FORMER.findall(text))
        yield from map(".".join, _RESOURCE.findall(text))
        for name, source in _MODULE.findall(text):
            yield from (f"module.{name}.{it}" for it in addresses(root / source))


def has(declared: Collection[str], address: str) -> bool:
    """Whether an address is one of these, or in a module that is."""
    parts = _general(address).split(".")
    return any(".".join(parts[:end]) in declared for end in range(len(parts) + 1))


def _general(address: str) -> str:
    return _KEY.sub("", address)
