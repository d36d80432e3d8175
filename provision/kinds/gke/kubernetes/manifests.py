"""Kueue's and JobSet's own manifests: `make manifests` and `make image` make them, in `manifests`.

`AIINFRA_MANIFESTS` names another folder. A manifest is the one whose SHA-256 is pinned here, or one
that the folder's own `SHA256SUMS` vouches for: one whose images come from a registry of one's own,
say. A rehearsal names a folder of its own in this way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision import in_tree
from provision.codes import Code
from provision.errors import ClusterError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.kinds.gke.kubernetes.objects import Object

VARIABLE: Final = "AIINFRA_MANIFESTS"
"""The folder with the manifests, where it is another one than the program came with."""

SUMS: Final = "SHA256SUMS"
"""The file of that folder that vouches for manifests, as `sha256sum` writes it."""

_FIRST: Final = ("Namespace", "CustomResourceDefinition")


@dataclass(frozen=True, kw_only=True)
class AddOn:
    """A program that is installed with one manifest."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The manifest's file name."""
        return f"{self.name.lower()}-v{self.version}.yaml"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The objects of an add-on."""

    definitions: list[Object]  # namespaces and custom resource definitions, which must exist first
    rest: list[Object]  # all other objects
    # a note for the user if the manifest is one of their own; None for the pinned one
    note: Problem | None = None


KUEUE: Final = AddOn(
    name="Kueue",
    version="0.19.2",
    sha256="88881eb50734eb920b67486ebc2aa978ed325e1b12d99b22fc51a6d7e9e4d370",
)
JOBSET: Final = AddOn(
    name="JobSet",
    version="0.12.0",
    sha256="a41aaf12dd0b7b0a3d626b8d6107f32c3dc889d7e7830adc46b8cdb77a8963bb",
)


def wanted(*, queue: bool) -> tuple[AddOn, ...]:
    """The add-ons of a cluster: the sample jobs of each are JobSets; Kueue is for a queue alone."""
    return (KUEUE, JOBSET) if queue else (JOBSET,)


def missing(add_ons: Sequence[AddOn], environ: Mapping[str, str]) -> list[Problem]:
    """What of the manifests is not at hand, or is not what it should be.

    A cluster without an add-on's controllers looks whole, and none of its jobs ever runs.
    """
    if (folder := _folder(environ)) is None:
        return [_unset(add_ons)]
    found = [_look(add_on, folder) for add_on in add_ons]
    return [it for it in found if isinstance(it, Problem)]


def read(add_on: AddOn, environ: Mapping[str, str]) -> Manifest:
    """The manifest of an add-on."""
    folder = _folder(environ)
    found = _look(add_on, folder) if folder else _unset([add_on])
    if isinstance(found, Problem):
        raise ClusterError.of([found])
    # Imported here: whoever only asks what is missing has no YAML to read.
    from provision.kinds.gke.kubernetes.objects import from_yaml  # noqa: PLC0415

    content, note = found
    things = from_yaml(content.decode())
    return Manifest(
        definitions=[thing for thing in things if thing["kind"] in _FIRST],
        rest=[thing for thing in things if thing["kind"] not in _FIRST],
        note=note,
    )


def _folder(environ: Mapping[str, str]) -> Path | None:
    """Where the manifests are; None if they came with neither the program nor the environment."""
    if named := environ.get(VARIABLE):
        return Path(named)
    carried = in_tree("manifests")
    return carried if carried.is_dir() else None


def _unset(add_ons: Sequence[AddOn]) -> Problem:
    names = " or ".join(add_on.name for add_on in add_ons)
    what = f"is not set: this machine has no manifest of {names}"
    why = "a clone has none until it is made, and without it no job of the cluster would ever run"
    return _lacking(what, why, add_ons)


def _look(add_on: AddOn, folder: Path) -> tuple[bytes, Problem | None] | Problem:
    """A manifest that may be used, with a note if it is not the pinned one; or why it may not."""
    path = folder / add_on.file
    try:
        content = path.read_bytes()
    except OSError as error:
        return _lacking(f"{add_on.name}'s manifest can't be read", str(error), [add_on])
    found = hashlib.sha256(content).hexdigest()
    if found == add_on.sha256:
        return content, None
    if found == _vouched(folder).get(add_on.file):
        note = Problem(
            code=Code.NOTE,
            what=f"{add_on.name} comes from {path}, and not from its release",
            why=f"{SUMS} beside it vouches for it",
        )
        return content, note
    vouch = f"let {folder / SUMS} vouch for it: sha256sum {add_on.file} >>{SUMS}"
    return _lacking(
        f"{path} is not the manifest of {add_on.name} {add_on.version}",
        f"its SHA-256 is {found}, not {add_on.sha256}",
        [add_on],
        f"; for one of your own, {vouch}",
    )


def _vouched(folder: Path) -> dict[str, str]:
    """File -> the SHA-256 that the folder itself names, if it does."""
    try:
        text = (folder / SUMS).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return {}
    parts = [line.split(maxsplit=1) for line in text.splitlines()]
    # An asterisk before the name says that the file was read as bytes, as all are.
    return {it[1].strip().removeprefix("*"): it[0].lower() for it in parts if len(it) > 1}


def _lacking(what: str, why: str, add_ons: Sequence[AddOn], more: str = "") -> Problem:
    """Why there is no manifest that may be used, and where to get those that may."""
    files = " and ".join(f"{it.file} (SHA-256 {it.sha256})" for it in add_ons)
    return Problem(
        code=Code.MANIFESTS_MISSING,
        setting=VARIABLE,
        what=what,
        why=why,
        fix=f"run make manifests in the clone, and install from it again; or run the image, which"
        f" has them; or set {VARIABLE} to a folder with {files}{more}",
    )
