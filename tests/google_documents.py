"""Google's own descriptions of its APIs, at the version of requirements/run.txt."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rehearsal.cloud import discovery

TREE: Final = Path(__file__).parents[1]

APIS: Final = (
    "cloudbilling.v1",
    "cloudkms.v1",
    "cloudresourcemanager.v1",
    "cloudresourcemanager.v3",
    "compute.v1",
    "container.v1",
    "file.v1",
    "iam.v1",
    "iamcredentials.v1",
    "monitoring.v1",
    "orgpolicy.v2",
    "secretmanager.v1",
    "serviceusage.v1",
    "serviceusage.v1beta1",
    "storage.v1",
)
"""The documents of the APIs that are called; Cloud Quotas has none in the package."""


@functools.cache
def document(api: str) -> Any:
    """Google's description of an API."""
    return json.loads((discovery.folder() / f"{api}.json").read_text(encoding="utf-8"))


def values(place: str) -> tuple[str, ...]:
    """The values of an enum, by its place: "compute.v1 Instance.status"."""
    api, _, where = place.partition(" ")
    schema, _, name = where.partition(".")
    found = document(api)["schemas"][schema]["properties"][name]
    return tuple(found.get("items", found)["enum"])


# ------------------------------------------------------------------ which of them we name


def said(*files: str) -> frozenset[str]:
    """Every text in files of ours that may be a value of an enum."""
    return frozenset(word for it in files for word in _words(TREE / it))


def _words(file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".tf":
        yield from re.findall(r'"([A-Z][A-Z0-9_]+)"', text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@dataclass(frozen=True, kw_only=True)
class Enum:
    """One of Google's enums, and what we do with each of its values."""

    place: str  # as `values` takes it
    ours: frozenset[str] = frozenset()  # a closed set of ours: all of it has to be Google's
    files: tuple[str, ...] = ()  # files of ours that tell some of the values apart
    # why nothing of ours names a value -> such values, with blanks between
    left: Mapping[str, str] = field(default_factory=dict, hash=False)
    others: frozenset[str] = frozenset()  # members of `ours` that are those of another enum

    @property
    def left_values(self) -> frozenset[str]:
        """The values that are left on purpose."""
        return frozenset(" ".join(self.left.values()).split())

    @property
    def handled(self) -> frozenset[str]:
        """Google's values that we name."""
        return (self.ours | said(*self.files)) & frozenset(values(self.place))

    @property
    def invented(self) -> set[str]:
        """Values that we name, or leave, and Google does not have."""
        return set(self.ours - self.others | self.left_values) - set(values(self.place))

    @property
    def unhandled(self) -> set[str]:
        """Google's values that we neither name nor leave, but for those that mean "not set"."""
        of_google = {it for it in values(self.place) if "UNSPECIFIED" not in it}
        return of_google - self.handled - self.left_values
