"""The folder that a run works in: a copy of the Terraform root, and Terraform running in it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import in_tree
from provision.documents import plain
from provision.files import private
from provision.state import terraform_state
from provision.terraform import configuration, moves
from provision.terraform.configuration import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from provision.deployment.deployment import Deployment
    from provision.spec.cluster import ClusterSpec
    from provision.state.location import StateLocation
    from provision.state.record import Record
    from provision.terraform import Terraform
    from provision.terraform.plan import Plan

VARIABLES_FILE: Final = "deployment.tfvars.json"
_IMPORTS_FILE: Final = "imports.tf.json"
_BACKEND_FILE: Final = "backend.tf.json"
_ROOTS: Final = in_tree("terraform")


@dataclass(frozen=True)
class Workspace:
    """A run folder with an initialized Terraform."""

    root: Path
    tool: Terraform  # Terraform, running in that folder
    # Whether the state in the bucket may be changed. Plan does not change it; where it has to edit
    # the state, it works on a copy.
    live: bool
    # the addresses of what each plan replaces, whatever Terraform sees
    replaces: tuple[str, ...] = ()

    def plan(self, tell: Callable[[str], None]) -> Plan:
        """Run `terraform plan`.

        A plan that Google would refuse, as something would be in its way, is made again with that
        replaced too.
        """
        replace = list(self.replaces)
        while True:
            found = self.tool.plan(var_file=VARIABLES_FILE, replace=replace)
            more = [address for address in found.replaced_too if address not in replace]
            if not more:
                return found
            tell(
                "Google takes these changes only if more is replaced, so here is another plan; the"
                f" last one counts. It also replaces {moves.in_words(more)}"
            )
            replace += more

    def keep(self, addresses: Sequence[str]) -> None:
        """Untaint resources, so that the next plan keeps them."""
        if self.live:
            for address in addresses:
                self.tool.untaint(address)
        else:
            self._work_on(terraform_state.untainted(self.tool.state(), addresses))

    def forget(self, addresses: Sequence[str]) -> None:
        """Take resources out of the state, so that the next plan leaves them alone."""
        if self.live:
            self.tool.forget(addresses)
        else:
            self._work_on(terraform_state.without(self.tool.state(), addresses))

    def _work_on(self, state: Mapping[str, Any]) -> None:
        """Go on with a state of this folder's own."""
        (self.root / _BACKEND_FILE).unlink(missing_ok=True)
        # The file in which Terraform remembers the backend.
        (self.root / ".terraform" / "terraform.tfstate").unlink(missing_ok=True)
        _write(self.root / "terraform.tfstate", state)
        self.tool.init()

    def adopt(self, imports: Mapping[str, Any]) -> None:
        """Make the next plan import resources that exist into the state."""
        _write(self.root / _IMPORTS_FILE, configuration.literal(imports))

    def tell(self, target: Deployment[ClusterSpec]) -> None:
        """Write a deployment's variables to the folder, replacing those that are there."""
        _write(self.root / VARIABLES_FILE, target.variables)


@contextlib.contextmanager
def run_folder(target: Deployment[ClusterSpec], *, backend: bool) -> Iterator[Path]:
    """A private copy of the kind's Terraform root with a deployment's values; deleted afterwards.

    `backend`: whether to use the state in the bucket; otherwise a local state that is discarded.
    """
    with private.folder() as folder:
        yield fill_folder(folder, target, target.variables, backend=backend)


def fill_folder(
    folder: Path,
    target: Deployment[ClusterSpec],
    variables: Mapping[str, Any],
    *,
    backend: bool,
) -> Path:
    """Copy the Terraform tree to a folder and write values and backend; returns the root's path."""
    root = folder / "terraform" / target.root
    with private.writing():
        shutil.copytree(
            _ROOTS,
            folder / "terraform",
            ignore=shutil.ignore_patterns(".terraform", "__pycache__", "tests", "*.tfstate*"),
        )
        if target.inputs.files is not None:
            _place(target.inputs.files.path, root)
    _write(root / VARIABLES_FILE, variables)
    if backend:
        _write_backend(root, target.location)
    return root


@contextlib.contextmanager
def removal_folder(root_name: str, location: StateLocation, record: Record) -> Iterator[Path]:
    """A root that declares no resources, so that its plan destroys everything in the state.

    It needs no variables, and it can't fail on a data source that no longer exists.
    """
    with private.folder() as root:
        with private.writing():
            for file in ("versions.tf", ".terraform.lock.hcl"):
                shutil.copy(_ROOTS / root_name / file, root / file)
        provider = {"project": record.project_id, "region": record.region, "zone": record.zone}
        document = configuration.literal({"provider": {"google": provider}})
        _write(root / "provider.tf.json", document)
        _write_backend(root, location)
        yield root


def providers() -> frozenset[str]:
    """The addresses of the providers that the roots use, as their lock files have them."""
    return frozenset(address for root in _ROOTS.iterdir() for address in locked(root))


@functools.cache
def declares() -> frozenset[str]:
    """The addresses of the resources that the roots declare, without the keys of instances."""
    return frozenset(
        address for root in _ROOTS.iterdir() for address in configuration.addresses(root)
    )


def _place(archive: Path, root: Path) -> None:
    """Put a file into the root, as a hard link where the file system allows it."""
    try:
        os.link(archive, root / archive.name)
    except OSError:
        shutil.copy(archive, root)


def _write_backend(root: Path, location: StateLocation) -> None:
    # Terraform takes a backend's texts as they are: it evaluates nothing there.
    _write(root / _BACKEND_FILE, {"terraform": {"backend": {"gcs": plain(location.backend)}}})


def _write(path: Path, document: Mapping[str, Any]) -> None:
    with private.writing():
        path.write_text(json.dumps(document, indent=2) + "\n")
