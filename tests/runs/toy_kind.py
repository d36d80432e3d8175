"""A kind of cluster that nothing knows of: VMs of one's own, on the Terraform root of VM groups."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from provision.catalogue import names
from provision.context import Cloud, Context
from provision.deployment.deployment import Applied, Deployment, RunInputs
from provision.deployment.kind import Images, Jobs, Kind
from provision.deployment.workspace import Workspace
from provision.documents.connection import VmsConnection
from provision.documents.plan import Contents
from provision.documents.status import Status
from provision.errors import SettingsError
from provision.google import resources
from provision.google.owner import Owner
from provision.kinds import connection
from provision.kinds.vms import variables
from provision.preflight.check import OfKind
from provision.settings.model import Settings
from provision.spec import cluster
from provision.spec.cluster import VmSpec
from provision.state.location import StateLocation
from provision.state.record import Record


@dataclass(frozen=True, kw_only=True)
class ToyStatus(Status):
    """What its Status has beside what each kind has."""

    toys: str


@dataclass
class Toy(Kind["VmSpec"]):
    """It keeps a diary of what it was asked."""

    name: str = "toy"
    called: str = "toy"
    member: str = "VM"
    root: str = "mig"
    takes_files: bool = False
    images: Images | None = None
    diary: list[str] = field(default_factory=list)

    def spec(self, settings: Settings) -> VmSpec:
        return cluster.vms(settings)

    def variables(
        self, spec: VmSpec, owner: Owner, location: StateLocation, inputs: RunInputs
    ) -> dict[str, Any]:
        return variables.variables(spec, owner, location, inputs)

    def jobs(self, context: Context, cloud: Cloud, record: Record) -> Jobs:
        del context, cloud, record
        raise SettingsError("toys run no jobs")

    def masked(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        return dict(variables)

    def preflight(self, spec: VmSpec) -> OfKind:
        del spec
        return OfKind(
            checks=(), apis=(), made=(resources.GROUP,), main=(resources.GROUP, names.GROUP)
        )

    def resolve(self, spec: VmSpec, record: Record | None) -> VmSpec:
        self.diary.append("resolve again" if record else "resolve")
        return spec

    def contents(self, spec: VmSpec) -> Contents:
        return Contents(words="toy", place=spec.zone, image=None, software=(), identities=())

    def instances(self, cloud: Cloud, spec: VmSpec) -> Sequence[Mapping[str, Any]]:
        del cloud, spec
        return ()

    def recorded(self, target: Deployment[VmSpec], outputs: Mapping[str, Any]) -> dict[str, Any]:
        del target, outputs
        return {}

    def prepare(
        self, cloud: Cloud, target: Deployment[VmSpec], workspace: Workspace
    ) -> tuple[Deployment[VmSpec], int]:
        del cloud
        self.diary.append("prepare" if workspace.live else "prepare a plan")
        return target, 0

    def beside_terraform(
        self, context: Context, target: Deployment[VmSpec], workspace: Workspace
    ) -> dict[str, str]:
        del context, target, workspace
        return {"toys/list.txt": "one toy\n"}

    def capacity(self, context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
        del context, cloud, made
        self.diary.append("capacity")

    def finish(self, context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
        self.diary.append("finish")
        connection.tell(context, cloud, made, functools.partial(VmsConnection, vms=(), ray=None))

    def explain(self, cloud: Cloud, target: Deployment[VmSpec]) -> None:
        del cloud, target
        self.diary.append("explain")

    def status(
        self, context: Context, cloud: Cloud, record: Record, before: Status | None
    ) -> ToyStatus:
        del context, cloud, before
        return ToyStatus(words="toys", toys=record.name_prefix)

    def page(self, record: Record) -> tuple[str, str]:
        return "Toys", f"toys/{record.name_prefix}"

    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        del context, cloud, record
        return "They play"

    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        del context, cloud
        self.diary.append(f"release {record.kind}")

    def sweep(self, context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
        del context, cloud, record
        self.diary.append(f"sweep, last: {last}")
        return 0
