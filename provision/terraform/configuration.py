"""What Terraform's configuration of a root declares and wants, and how a text in it means itself.

Terraform deletes whatever its state has and the root does not declare, so a state may name nothing
else. The text is read, as Terraform itself prints addresses of planned instances alone.

In JSON (`*.tf.json`) each text is a template. Values of variables (`*.tfvars.json`) and
settings of a backend are none, and must not be escaped: test_literals.py asks Terraform itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_RESOURCE: Final = re.compile(r'^resource "(\w+)" "(\w+)"', re.MULTILINE)
_MODULE: Final = re.compile(
    r'^module "(\w+)" \{.*?^ +source += +"([^"]+)"', re.MULTILINE | re.DOTALL
)
_FORMER: Final = re.compile(r"^(?:moved|removed) \{\s*from\s*=\s*(\S+)", re.MULTILINE)
_KEY: Final = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')
_LOCK_FILE: Final = ".terraform.lock.hcl"
_LOCKED: Final = re.compile(r'^provider "([^"]+)"', re.MULTILINE)
_TEMPLATE: Final = re.compile(r"([$%])(?=\{)")


def addresses(root: Path) -> Iterator[str]:
    """What the root, its modules, and its blocks for what it once declared, name."""
    for file in root.glob("*.tf"):
        text = file.read_text(encoding="utf-8")
        yield from (_KEY.sub("", it) for it in _FORMER.findall(text))
        yield from map(".".join, _RESOURCE.findall(text))
        for name, source in _MODULE.findall(text):
            yield from (f"module.{name}.{it}" for it in addresses(root / source))


def has(declared: Collection[str], address: str) -> bool:
    """Whether an address is one of these, or in a module that is."""
    parts = _KEY.sub("", address).split(".")
    return any(".".join(parts[:end]) in declared for end in range(len(parts) + 1))


def locked(root: Path) -> frozenset[str]:
    """The addresses of the providers; none where there is no lock file."""
    file = root / _LOCK_FILE
    return frozenset(_LOCKED.findall(file.read_text(encoding="utf-8")) if file.exists() else ())


def literal(document: Any) -> Any:
    """A configuration whose texts mean themselves, not templates (JSON Configuration Syntax)."""
    match document:
        case str():
            return _TEMPLATE.sub(r"\1\1", document)
        case Mapping():
            return {literal(key): literal(value) for key, value in document.items()}
        case list() | tuple():
            return [literal(one) for one in document]
        case _:
            return document
