"""One deployment: what the settings mean for Terraform, and the folder that a run works in."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision import __version__
from provision.deployment.kind import Cluster, Findings, Kind
from provision.deployment.location import Location, locate
from provision.deployment.record import Record
from provision.kinds.gke import variables as gke
from provision.kinds.vms import variables as mig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Context
    from provision.deployment.kind import ResizeRequest
    from provision.settings import Settings

VARIABLES_FILE: Final = "deployment.tfvars.json"
_IMPORTS_FILE: Final = "imports.tf.json"
_BACKEND_FILE: Final = "backend.tf.json"
# A wheel has the Terraform tree in this package; a checkout and the image have it at their top.
_IN_A_WHEEL: Final = Path(__file__).resolve().with_name("roots")
_ROOTS: Final = (
    _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else Path(__file__).resolve().parents[2] / "terraform"
)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What a run is about; pure data, made of the settings and what the run has found out.

    Attributes:
        cluster: The kind's module.
        cluster_id: The value of the label `aiinfra-cluster` on all that is made.
        location: Where the state is.
        variables: The variables of the Terraform root.
        settings: The settings it was made of.
        findings: What the settings do not say.
    """

    cluster: Cluster
    cluster_id: str
    location: Location
    variables: dict[str, Any]
    settings: Settings = field(repr=False)
    findings: Findings

    @property
    def kind(self) -> Kind:
        """The kind of cluster."""
        return self.cluster.kind

    @property
    def masked_variables(self) -> dict[str, Any]:
        """The variables as they may be shown."""
        return self.cluster.masked(self.variables)

    def asking(self, requests: Mapping[str, ResizeRequest]) -> Deployment:
        """The same deployment with these requests for flex start VMs."""
        return make(self.settings, dataclasses.replace(self.findings, resize_requests=requests))

    def record(
        self, effective: Mapping[str, Any], terraform_version: str, image: Mapping[str, str | None]
    ) -> Record:
        """What `deployment.json` is to say.

        Args:
            effective: The settings as they may be shown.
            terraform_version: Of the Terraform that applies it.
            image: The image settled on, or {}.
        """
        return Record(
            kind=str(self.kind),
            cluster_id=self.cluster_id,
            project_id=self.settings.project_id,
            name_prefix=self.settings.name_prefix,
            region=self.settings.region,
            zone=self.settings.zone,
            tool_version=__version__,
            terraform_version=terraform_version,
            image=dict(image),
            gke_version=self.findings.version,
            settings=dict(effective),
        )


def show(context: Context, target: Deployment) -> Deployment:
    """Put a deployment into the report; gives it back."""
    context.report.tfvars = target.masked_variables
    context.report.backend = target.location.backend
    return target


def cluster_id(project_id: str, name_prefix: str) -> str:
    """The marker's value: the same at every run, different for every project and prefix."""
    return hashlib.sha256(f"{project_id}/{name_prefix}".encode()).hexdigest()[:12]


def make(settings: Settings, findings: Findings | None = None) -> Deployment:
    """Make the deployment that the settings describe.

    Args:
        settings: The checked settings.
        findings: What the settings do not say, as far as it is known.
    """
    cluster = _cluster(Kind.GKE if settings.orchestrator_type == "gke" else Kind.MIG)
    found = Findings() if findings is None else findings
    identity = cluster_id(settings.project_id, settings.name_prefix)
    place = locate(settings)
    return Deployment(
        cluster=cluster,
        cluster_id=identity,
        location=place,
        variables=cluster.variables(settings, identity, place, found),
        settings=settings,
        findings=found,
    )


def _cluster(kind: Kind) -> Cluster:
    match kind:
        case Kind.MIG:
            return mig
        case Kind.GKE:
            return gke


# ------------------------------------------------------------------ the run folder


@contextlib.contextmanager
def run_folder(deployment: Deployment, *, backend: bool) -> Iterator[Path]:
    """A private copy of the kind's root with this deployment's values, gone afterwards.

    Args:
        deployment: Gives root, values and backend.
        backend: Whether the state in the bucket is used; else a local one that is thrown away.
    """
    with tempfile.TemporaryDirectory(prefix="aiinfra-") as name:
        root = fill_folder(Path(name), deployment, deployment.variables, backend=backend)
        yield root


def fill_folder(
    folder: Path, deployment: Deployment, variables: Mapping[str, Any], *, backend: bool
) -> Path:
    """Copy the Terraform tree into a folder and write values and backend; returns the root."""
    shutil.copytree(
        _ROOTS,
        folder / "terraform",
        ignore=shutil.ignore_patterns(".terraform", "tests", "*.tfstate*"),
    )
    root = folder / "terraform" / deployment.kind
    if deployment.findings.files is not None:
        _place(deployment.findings.files.path, root)
    _write(root / VARIABLES_FILE, variables)
    if backend:
        _write_backend(root, deployment.location)
    return root


@contextlib.contextmanager
def removal_folder(kind: Kind, location: Location, record: Record) -> Iterator[Path]:
    """A root that declares nothing, so that a plan for it removes all that the state holds.

    It needs no variables, and no data source that may be gone can stand in the way.
    """
    with tempfile.TemporaryDirectory(prefix="aiinfra-") as name:
        root = Path(name)
        for file in ("versions.tf", ".terraform.lock.hcl"):
            shutil.copy(_ROOTS / kind / file, root / file)
        provider = {"project": record.project_id, "region": record.region, "zone": record.zone}
        _write(root / "provider.tf.json", {"provider": {"google": provider}})
        _write_backend(root, location)
        yield root


def write_variables(root: Path, deployment: Deployment) -> None:
    """Put a deployment's values into its root, over those that are there."""
    _write(root / VARIABLES_FILE, deployment.variables)


def detach(root: Path, state: Mapping[str, Any]) -> None:
    """Give an initialised root a state of its own to plan on; the one in the bucket stays as it is.

    The root has to be initialised again.
    """
    (root / _BACKEND_FILE).unlink()
    # Where Terraform remembers that there was a backend.
    (root / ".terraform" / "terraform.tfstate").unlink()
    _write(root / "terraform.tfstate", state)


def write_imports(root: Path, blocks: Mapping[str, Any]) -> None:
    """Put import blocks into a root."""
    _write(root / _IMPORTS_FILE, blocks)


def _place(archive: Path, root: Path) -> None:
    """Have a file in the root without a second copy of it, where the system can do that."""
    try:
        os.link(archive, root / archive.name)
    except OSError:
        shutil.copy(archive, root)


def _write_backend(root: Path, location: Location) -> None:
    _write(root / _BACKEND_FILE, {"terraform": {"backend": {"gcs": location.backend}}})


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n")
