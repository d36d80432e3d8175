"""The protocol that every kind of cluster implements.

The rest of the program works through it and never asks which kind of cluster it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from provision.deployment.deployment import Deployment, RunInputs, SpecT
from provision.google.owner import Owner
from provision.settings import masking

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Held, Left, OutOfDate
    from provision.deployment.images import Images
    from provision.deployment.jobs import Jobs
    from provision.deployment.workspace import Workspace
    from provision.documents.plan import Contents, Kept
    from provision.documents.status import Status
    from provision.errors import Problem
    from provision.preflight.check import OfKind
    from provision.settings.model import Settings
    from provision.state.location import Place, StateLocation
    from provision.state.record import Record
    from provision.terraform.plan import Creation


class Kind(Protocol[SpecT]):
    """A kind of cluster; `kinds.registry` maps each ORCHESTRATOR_TYPE to one.

    Attributes:
        name: Its name in the record and in Status.
        called: What people call it.
        member: What people call one of its machines.
        root: The name of its Terraform root, a folder of `terraform/`.
        takes_files: Whether it has VMs that a folder can be copied to.
        images: The images of one's own that its machines can boot; None where they boot Google's.
    """

    name: str
    called: str
    member: str
    root: str
    takes_files: bool
    images: Images | None

    def spec(self, settings: Settings) -> SpecT:
        """Make the specification: what the settings ask for, with every default resolved."""

    def variables(
        self, spec: SpecT, owner: Owner, location: StateLocation, inputs: RunInputs
    ) -> dict[str, Any]:
        """Make the variables for the Terraform root.

        Args:
            spec: What the settings ask for.
            owner: The deployment, as its marker names it.
            location: Where the state folder is.
            inputs: What the run found out itself.
        """

    def masked(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The variables with secrets masked, safe to print."""

    def preflight(self, spec: SpecT) -> OfKind:
        """What the online checks need to know about this kind of cluster, and its own checks."""

    def missing(self, spec: SpecT, environ: Mapping[str, str]) -> Sequence[Problem]:
        """What a Create needs of this machine, beside Terraform, and does not find.

        Args:
            spec: What the settings ask for.
            environ: The environment of the process.
        """

    def resolve(self, spec: SpecT, record: Record | None) -> SpecT:
        """Resolve what the online checks left open, from the choices of an earlier run.

        Raises:
            CheckError: A value can't be resolved without asking Google.
        """

    def contents(self, spec: SpecT) -> Contents:
        """What the cluster has beside its machines and networks, for people."""

    def kept(
        self, cloud: Cloud, spec: SpecT, staying: int, changed: Collection[str]
    ) -> Kept | None:
        """What a change leaves as it is of machines that run; None if it leaves nothing.

        Args:
            cloud: Google, which knows what machines there are.
            spec: What the settings ask for.
            staying: How many machines stay of those that were asked for, one at least.
            changed: The settings that changed since the last Create.
        """

    def instances(self, cloud: Cloud, spec: SpecT) -> Sequence[Mapping[str, Any]]:
        """What Google says of each machine that it has to provide now, whether it has or not.

        Args:
            cloud: Google.
            spec: What was asked for, in the zone where it is.
        """

    def recorded(self, target: Deployment[SpecT], outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of the record that are specific to this kind of cluster.

        Args:
            target: The deployment.
            outputs: Terraform's outputs; {} before the first apply.
        """

    def prepare(
        self, cloud: Cloud, target: Deployment[SpecT], workspace: Workspace
    ) -> tuple[Deployment[SpecT], int]:
        """Do what has to happen before the plan, such as deciding on resize requests.

        Returns:
            The deployment, including what was found out, and the number of machines to request
            later.

        Raises:
            SettingsError: The settings ask for fewer machines than exist.
        """

    def beside_terraform(
        self, context: Context, target: Deployment[SpecT], workspace: Workspace
    ) -> Mapping[str, str]:
        """What a Create would make beside what Terraform makes, to be read before it exists.

        Args:
            context: The run.
            target: The deployment.
            workspace: Has the values, and whatever state there is; may be planned in, without a
                lock.

        Returns:
            Path of a file, relative and in folders by what it is -> its text. Where only the apply
            tells a value, it has `terraform.plan.UNKNOWN`.

        Raises:
            TerraformError: The plan failed.
        """

    def to_untaint(self, cloud: Cloud, replaced: Sequence[Creation]) -> Sequence[str]:
        """The addresses of tainted resources to keep, because Google is still creating them.

        Args:
            cloud: Google.
            replaced: The tainted resources that Terraform would replace.
        """

    def require_replaceable(self, spec: SpecT) -> None:
        """See that running machines can be replaced (`--replace-vms`).

        Raises:
            SettingsError: They can't.
        """

    def out_of_date(self, cloud: Cloud, place: Place) -> Sequence[OutOfDate]:
        """The machines that exist and are older than their template."""

    def held(self, cloud: Cloud, place: Place, *, older: bool = False) -> Held:
        """What the machines hold that exist, and may not be taken from them.

        Args:
            cloud: Google.
            place: Where they are.
            older: Whether only those count that are older than their template.
        """

    def capacity(self, context: Context, cloud: Cloud, made: Applied[SpecT]) -> None:
        """Wait for the machines.

        Raises:
            CapacityError: Google refused machines.
            StillWaiting: The machines did not come in time; everything is kept.
            ClusterError: Google does not report the state of the machines.
        """

    def finish(self, context: Context, cloud: Cloud, made: Applied[SpecT]) -> None:
        """Wait for what runs on the machines, and say how to connect even if some of it failed.

        Raises:
            ClusterError: Something on the machines failed to start.
        """

    def explain(self, cloud: Cloud, target: Deployment[SpecT]) -> None:
        """Raise the cause of a failed apply, where Google knows it and Terraform does not.

        Raises:
            CapacityError: Google refused machines.
        """

    def status(
        self, context: Context, cloud: Cloud, record: Record, before: Status | None
    ) -> Status:
        """Look at what is specific to this kind of cluster; the rest of the fields stay empty.

        Args:
            context: The run.
            cloud: Google and the state folder.
            record: The deployment.
            before: What an earlier look of this run returned; None for the first one.
        """

    def page(self, record: Record) -> tuple[str, str]:
        """The page of the Google Cloud console: its title, and its path below the console's URL."""

    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        """Check that the cluster is complete and as fast as it should be.

        Returns:
            The verdict, in one sentence.

        Raises:
            StateError: No Create has got far enough.
            CapacityError: Google refused machines for the test.
            StillWaiting: The machines did not come in time.
            ClusterError: The test failed.
        """

    def jobs(self, context: Context, cloud: Cloud, record: Record) -> Jobs:
        """The jobs of the cluster.

        Raises:
            SettingsError: This kind has none; says what to use instead.
            StateError: There is nothing yet that could run them.
        """

    def data(self, context: Context, cloud: Cloud, record: Record) -> Sequence[str]:
        """What holds data, is in no state, and goes with the cluster: a few words each."""

    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        """Cancel what would block the removal of the cluster, such as open resize requests."""

    def sweep(self, context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
        """Remove what the cluster made itself and has left, once it is gone.

        Args:
            context: The run.
            cloud: Google, and the state folder.
            record: The deployment.
            last: Whether nothing comes after this. Before that, what can't be removed yet is left.

        Returns:
            How much was removed.

        Raises:
            ClusterError: Something can't be removed; only if this is the last time.
        """

    def left(self, cloud: Cloud, place: Place, networks: Collection[str]) -> Left:
        """What a cluster that is gone made itself and has left, where no state tells of it.

        Args:
            cloud: Google.
            place: Where the deployment is.
            networks: The paths of the networks that carry its marker.
        """

    def sweep_left(
        self, context: Context, cloud: Cloud, place: Place, networks: Collection[str]
    ) -> int:
        """Remove that, but for what holds data; returns how much it was.

        Args:
            context: The run.
            cloud: Google.
            place: Where the deployment is.
            networks: As `left` has them.

        Raises:
            ClusterError: Something can't be removed.
        """


def deploy(
    kind: Kind[SpecT], spec: SpecT, location: StateLocation, inputs: RunInputs | None = None
) -> Deployment[SpecT]:
    """Make the deployment that a specification describes.

    Args:
        kind: The kind of cluster.
        spec: What the settings ask for.
        location: Where the state is.
        inputs: What the run found out itself so far.
    """
    found = RunInputs() if inputs is None else inputs
    owner = Owner.of(spec.project_id, spec.name_prefix, location.url)
    variables = kind.variables(spec, owner, location, found)
    return Deployment(
        kind=kind.name,
        root=kind.root,
        spec=spec,
        owner=owner,
        location=location,
        inputs=found,
        variables=variables,
        masked_variables=masking.mask_tree(kind.masked(variables)),
    )
