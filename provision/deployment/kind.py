"""What a kind of cluster is to everything that does not ask which kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from provision.deployment import deployment
from provision.deployment.deployment import Deployment, Findings, SpecT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Made
    from provision.deployment.workspace import Workspace
    from provision.preflight.case import OfKind
    from provision.settings.model import Settings
    from provision.state.location import Location
    from provision.state.record import Record
    from provision.terraform.plan import Creation


class Kind(Protocol[SpecT]):
    """A kind of cluster; `kinds.registry` says which one an ORCHESTRATOR_TYPE is.

    Attributes:
        name: As the record and Status call it.
        root: The name of its Terraform root, a folder of `terraform/`.
        takes_files: Whether it has VMs that a folder can be copied to.
    """

    name: str
    root: str
    takes_files: bool

    def spec(self, settings: Settings) -> SpecT:
        """What the settings ask for, every default resolved."""

    def variables(
        self, spec: SpecT, cluster_id: str, location: Location, findings: Findings
    ) -> dict[str, Any]:
        """Make the variables of the Terraform root.

        Args:
            spec: What is asked for.
            cluster_id: The marker's value.
            location: The deployment's folder.
            findings: What the settings do not say.
        """

    def masked(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The variables as they may be shown."""

    def preflight(self, spec: SpecT) -> OfKind:
        """What the online checks have to know of such a cluster, and its own checks."""

    def resolve(self, spec: SpecT, record: Record | None) -> SpecT:
        """What is left open after the online checks, by what an earlier run has settled on.

        Raises:
            CheckError: It can't be known without Google.
        """

    def recorded(self, target: Deployment[SpecT], outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the record keeps of such a cluster besides what it keeps of all.

        Args:
            target: The deployment.
            outputs: Terraform's; {} before there are any.
        """

    def prepare(
        self, cloud: Cloud, target: Deployment[SpecT], workspace: Workspace
    ) -> tuple[Deployment[SpecT], int]:
        """Do what comes before the plan, such as to find out what to ask of flex start.

        Returns:
            The deployment with what was found out, and how many machines are to be asked for
            later.

        Raises:
            SettingsError: There would have to be fewer machines than there are.
        """

    def unfinished(self, cloud: Cloud, replaced: Sequence[Creation]) -> Sequence[str]:
        """The addresses of what Terraform gave up on while Google goes on making it.

        Args:
            cloud: Google.
            replaced: What Terraform would make anew for it.
        """

    def capacity(self, context: Context, cloud: Cloud, made: Made[SpecT]) -> None:
        """Wait for the machines that were asked for.

        Raises:
            CapacityError: Google refused them.
            StillWaiting: They did not come in time; everything is kept.
            ClusterError: Google does not tell.
        """

    def finish(self, context: Context, cloud: Cloud, made: Made[SpecT]) -> None:
        """Bring up what runs on the machines, and say how to connect, whatever failed there.

        Raises:
            ClusterError: Something did not come up.
        """

    def explain(self, cloud: Cloud, target: Deployment[SpecT]) -> None:
        """Raise what lies behind an apply that failed, where Google knows more than Terraform.

        Raises:
            CapacityError: Google refused machines.
        """

    def status(self, context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
        """How its own part stands, as the JSON of Status has it."""

    def status_lines(self, found: Mapping[str, Any]) -> Iterator[str]:
        """The same for people; `found` is the whole JSON of Status."""

    def page(self, record: Record) -> tuple[str, str]:
        """What Google's console shows it as, and where below the console's address."""

    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        """Judge whether it is as whole and as fast as it should be; the verdict, in a sentence.

        Raises:
            StateError: No Create has come far enough.
            CapacityError: Google refused machines for the test.
            StillWaiting: They did not come in time.
            ClusterError: Something is not as it should be.
        """

    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        """Give up what would stand in the way of its removal, such as open requests."""


def deploy(
    kind: Kind[SpecT], spec: SpecT, location: Location, findings: Findings | None = None
) -> Deployment[SpecT]:
    """Make the deployment that a specification describes.

    Args:
        kind: Of cluster.
        spec: What is asked for.
        location: Where the state is.
        findings: What the settings do not say, as far as it is known.
    """
    found = Findings() if findings is None else findings
    identity = deployment.cluster_id(spec.project_id, spec.name_prefix)
    variables = kind.variables(spec, identity, location, found)
    return Deployment(
        kind=kind.name,
        root=kind.root,
        spec=spec,
        cluster_id=identity,
        location=location,
        findings=found,
        variables=variables,
        masked_variables=kind.masked(variables),
    )
