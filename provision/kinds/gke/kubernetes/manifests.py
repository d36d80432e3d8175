"""Kueue's and JobSet's own manifests: they are part of the image, and are not in this repository.

Outside the image, as in most rehearsals, this package's own definitions of their kinds are used
instead: the kinds then exist, but a real cluster has no controllers for them. A simulated cluster
needs none: it does itself what Kueue and JobSet do.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import ClusterError, Problem
from provision.kinds.gke.kubernetes.objects import from_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.objects import Object

VARIABLE: Final = "AIINFRA_MANIFESTS"
"""The folder with the manifests; the image sets it."""

_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_STAND_INS: Final = "stand_ins"


@dataclass(frozen=True, kw_only=True)
class AddOn:
    """A program that is installed with one manifest.

    Attributes:
        name: Its name.
        version: Its version.
        sha256: The SHA-256 of the manifest.
    """

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The manifest's file name."""
        return f"{self.name.lower()}-v{self.version}.yaml"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The objects of an add-on.

    Attributes:
        definitions: Namespaces and custom resource definitions, which must exist first.
        rest: All other objects.
        note: A note for the user if only the definitions are installed; None for the add-on itself.
    """

    definitions: list[Object]
    rest: list[Object]
    note: Problem | None = None


KUEUE: Final = AddOn(
    name="Kueue",
    version="0.18.3",
    sha256="d605eec48cc2c557ba5f3f66111af1f1265368dab1497eacc2292a140b023737",
)
JOBSET: Final = AddOn(
    name="JobSet",
    version="0.12.0",
    sha256="a41aaf12dd0b7b0a3d626b8d6107f32c3dc889d7e7830adc46b8cdb77a8963bb",
)


def read(add_on: AddOn, environ: Mapping[str, str]) -> Manifest:
    """The manifest of an add-on; outside the image only the definitions of its kinds.

    Raises:
        ClusterError: The file is missing, or does not have the pinned SHA-256.
    """
    folder = environ.get(VARIABLE)
    if not folder:
        place = resources.files(__package__) / _STAND_INS / f"{add_on.name.lower()}.yaml"
        return _manifest(place.read_text(encoding="utf-8"), _note(add_on))
    path = Path(folder) / add_on.file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ClusterError(
            f"{add_on.name}'s manifest can't be read",
            code=Code.KUBERNETES_FAILED,
            why=str(error),
            fix=f"check {VARIABLE}",
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != add_on.sha256:
        raise ClusterError(
            f"{path} is not {add_on.name} {add_on.version}",
            code=Code.KUBERNETES_FAILED,
            why=f"its SHA-256 is {found}, not {add_on.sha256}",
            fix="use an unmodified image",
        )
    return _manifest(content.decode())


def _manifest(text: str, note: Problem | None = None) -> Manifest:
    things = from_yaml(text)
    return Manifest(
        definitions=[thing for thing in things if thing["kind"] in _FIRST],
        rest=[thing for thing in things if thing["kind"] not in _FIRST],
        note=note,
    )


def _note(add_on: AddOn) -> Problem:
    return Problem(
        code=Code.SIMULATED,
        what=f"Only the custom resources of {add_on.name} are installed, not {add_on.name} itself",
        why=f"{VARIABLE} is not set: its manifests are part of the image",
        fix="nothing to do in a rehearsal, where the simulated cluster does its work; in a real"
        " cluster no job would run, so use the image there",
    )
