"""What every kind of cluster is asked; the rest of the program never asks which kind it has.

A kind says where it differs from the others: what has a default here is what most of them do.
"""

from __future__ import annotations

import contextlib
import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol

from provision.deployment.deployment import NOTHING_HELD, Deployment, Left, RunInputs, SpecT
from provision.errors import ProvisionError
from provision.google.owner import Owner
from provision.settings import masking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from decimal import Decimal

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Held, OutOfDate
    from provision.deployment.workspace import Workspace
    from provision.documents.job import Job
    from provision.documents.plan import Contents, Kept
    from provision.documents.status import Status
    from provision.documents.topology import OwnImage
    from provision.errors import Problem
    from provision.files.archive import Archive
    from provision.preflight.check import OfKind
    from provision.settings.model import Settings
    from provision.spec.job import JobSpec
    from provision.spec.pools import Pool
    from provision.state.location import Place, StateLocation
    from provision.state.objects import Stored
    from provision.state.record import Record
    from provision.terraform.plan import Creation


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a job takes, in one sentence; `more` are USD an hour for machines that come for it."""

    words: str
    more: Decimal


@dataclass(frozen=True, kw_only=True)
class Stranded:
    """Machines that jobs have lost, and that do not come again where they were."""

    what: str  # how many there are, and why no more come
    left: int  # how many run of all that a move takes, which are billed
    own: int = 0  # how many of those one of these jobs can have, where some are of no use to it
    here: bool = False  # whether nothing asks Google for them, so that a Create does, here first
    # whether the job can't go on, whatever machines come: no restart is left to it
    final: bool = False


def shell(folder: str) -> tuple[str, ...]:
    """What opens a shell in a folder, in any image that has one."""
    return ("sh", "-c", f'cd {folder} && exec "$(command -v bash || echo sh)"')


@dataclass(frozen=True, kw_only=True)
class WayIn:
    """The way to where a rank of a job runs, by gcloud or kubectl of this machine.

    A line of shell that stands behind `tells` is done there.
    """

    where: str  # the VM or pod
    folder: str  # the job's, there
    tells: tuple[str, ...]
    opens: tuple[str, ...]  # the command of a shell for a person, in the job's container if any
    before: str = ""  # what has to be run once before them where this program does not run them
    lost: str = ""  # why what the program writes is not in that folder; "" where it is
    # a pod's: the command that brings a port of it here
    forwards: Callable[[int], str] = lambda _: ""
    # the variables by which this program runs them, as long as that goes on
    access: Callable[[], AbstractContextManager[Mapping[str, str]]] = lambda: (
        contextlib.nullcontext({})
    )


class Jobs(ABC):
    """The jobs of one cluster; a kind makes it."""

    def needs(self, spec: JobSpec) -> Needs | None:
        """What a job takes; None where no machine ever comes for one."""
        del spec
        return None

    @abstractmethod
    def submit(self, spec: JobSpec, archive: Archive | None) -> str:
        """Ask for a job, and send its folder unless it is there; returns its name."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last."""

    @abstractmethod
    def asked(self, name: str, *, again: bool = False) -> Mapping[str, Any] | None:
        """A job of Run as it was submitted; None for no job of Run.

        Raises:
            StateError: It is to be run `again`, and its folder is gone.
        """

    @abstractmethod
    def unfinished(self, *, every: bool = False) -> Sequence[str]:
        """The names of the jobs of Run that run or wait for their turn, in their order.

        Those whose Run destroys the cluster are not among them, unless `every` one is meant: who
        submitted one has agreed to its end.
        """

    def others(self) -> Sequence[Job]:
        """The jobs that people have begun by other means than Run, and that are not over."""
        return ()

    @abstractmethod
    def find(self, name: str) -> Job | None:
        """How far a job is; None if there is none of this name."""

    @abstractmethod
    def log(self, job: Job, attempt: int, rank: int, after: int) -> Iterator[tuple[int, bytes]]:
        """What a rank has said in an attempt: where in the log a piece begins, and the piece."""

    @abstractmethod
    def newest(self, job: Job) -> Mapping[tuple[int, int], int] | None:
        """Attempt and rank -> where the last piece of its log begins; None to ask each instead."""

    @abstractmethod
    def heard(self, job: Job) -> Job:
        """A job with for how long it has said nothing, where it runs."""

    def whole(self, job: Job) -> Job:
        """A job with all that is known of it, which is a look at each of its tasks."""
        return replace(self.heard(job), fetch=self.fetch(job))

    @abstractmethod
    def inside(self, job: Job) -> str:
        """The commands that show what its GPUs do."""

    def fetch(self, job: Job) -> str:
        """The command that brings the folder of rank 0 here; "" where nothing keeps it."""
        try:
            return "" if self.way_in(job, job.ranks[0]).lost else f"aiinfra Fetch {job.name}"
        except ProvisionError:
            return ""

    @abstractmethod
    def way_in(self, job: Job, rank: int) -> WayIn:
        """The way to where a rank of it runs, or has run.

        Raises:
            SettingsError: It has no such rank, or nothing of it runs anywhere yet.
            ClusterError: What it ran on is gone.
        """

    @abstractmethod
    def cancel(self, job: Job) -> None:
        """Ask for the end of a job; nothing if it is over."""

    def stranded(self, job: Job) -> Stranded | None:
        """What a job that is not over has lost; None while its machines are there, or may come."""
        del job
        return None


class Later:
    """A method that is a function of a module which is loaded when it is first asked for.

    An action loads only what it needs: half of a start goes into imports.
    """

    def __init__(self, module: str, function: str) -> None:
        self.module, self.function = module, function

    def __get__(self, kind: object, _: object = None) -> Any:
        return self if kind is None else self.find()

    def find(self) -> Any:
        """The function."""
        return getattr(importlib.import_module(self.module), self.function)


class Images(Protocol):
    """Makes images of a cluster of one machine, and knows those that were made."""

    @property
    def instead(self) -> Mapping[str, str]:
        """Setting -> its value for that cluster, whatever the env.list says."""

    @property
    def without(self) -> Collection[str]:
        """The settings that mean nothing to that cluster."""

    def require_name(self, name: str) -> None:
        """See that this can be the name of an image."""

    def require_free(self, cloud: Cloud, project: str, name: str) -> None:
        """See that no image has this name."""

    def make(self, context: Context, cloud: Cloud, record: Record, name: str) -> OwnImage:
        """Make an image of the only machine, which is good for nothing else afterwards.

        Raises:
            ClusterError: There is none, or it is not what it should be.
        """

    def found(self, cloud: Cloud, project: str) -> Sequence[OwnImage]:
        """All images of a project that Bake has made, by name; none if they may not be listed."""


class Kind(ABC, Generic[SpecT]):
    """A kind of cluster; `kinds.registry` says which one is asked for."""

    name: str  # its name in the record and in Status
    called: str
    member: str  # what people call one of its machines
    root: str  # the name of its Terraform root, a folder of `terraform/`
    takes_files = False  # whether it has VMs that a folder can be copied to

    @property
    def images(self) -> Images | None:
        """The images of one's own that its machines can boot; None where they boot Google's."""
        return None

    @abstractmethod
    def spec(self, settings: Settings) -> SpecT:
        """Make the specification: what the settings ask for, with every default resolved."""

    @abstractmethod
    def variables(
        self, spec: SpecT, owner: Owner, location: StateLocation, inputs: RunInputs
    ) -> dict[str, Any]:
        """Make the variables for the Terraform root."""

    @abstractmethod
    def masked(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The variables with secrets masked, safe to print."""

    @abstractmethod
    def preflight(self, spec: SpecT) -> OfKind:
        """What the online checks need to know about this kind of cluster, and its own checks."""

    def missing(self, spec: SpecT, environ: Mapping[str, str]) -> Sequence[Problem]:
        """What a Create needs of this machine, beside Terraform, and does not find."""
        del spec, environ
        return ()

    @abstractmethod
    def resolve(self, spec: SpecT, record: Record | None) -> SpecT:
        """Resolve what the online checks left open, from the choices of an earlier run."""

    @abstractmethod
    def contents(self, spec: SpecT) -> Contents:
        """What the cluster has beside its machines and networks, for people."""

    def kept(
        self, cloud: Cloud, spec: SpecT, staying: int, changed: Collection[str]
    ) -> tuple[Kept | None, Sequence[tuple[Pool, int]]]:
        """What a change leaves as it is of machines that run; None if it leaves nothing.

        `staying`: how many machines stay of those that were asked for, one at least. Beside it, the
        machines that run and are not what the specification describes, and how many of each.
        """
        del cloud, spec, staying, changed
        return None, ()

    @abstractmethod
    def instances(self, cloud: Cloud, spec: SpecT) -> Sequence[Mapping[str, Any]]:
        """What Google says of each machine that it has to provide now, whether it has or not."""

    @abstractmethod
    def recorded(self, target: Deployment[SpecT], outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of the record that are specific to this kind of cluster."""

    def prepare(
        self, cloud: Cloud, target: Deployment[SpecT], workspace: Workspace
    ) -> tuple[Deployment[SpecT], int]:
        """Do what has to happen before the plan, such as deciding on resize requests.

        Returns the deployment, including what was found out, and the number of machines to request
        later.
        """
        del cloud, workspace
        return target, 0

    def beside_terraform(
        self, context: Context, target: Deployment[SpecT], workspace: Workspace
    ) -> Mapping[str, str]:
        """What a Create would make beside what Terraform makes, to be read before it exists.

        `workspace`: has the values, and whatever state there is; may be planned in, without a lock.
        Returns Path of a file, relative and in folders by what it is -> its text. Where only the
        apply tells a value, it has `terraform.plan.UNKNOWN`.

        Raises:
            TerraformError: The plan failed.
        """
        del context, target, workspace
        return {}

    def to_untaint(self, cloud: Cloud, replaced: Sequence[Creation]) -> Sequence[str]:
        """The addresses of tainted resources to keep, because Google is still creating them."""
        del cloud, replaced
        return ()

    def keeping_policy(
        self, cloud: Cloud, target: Deployment[SpecT]
    ) -> tuple[Deployment[SpecT], str] | None:
        """The deployment with the workload policy of machines that run, and what replaces those.

        None where there are none, or those of the settings can't come by it.
        """
        del cloud, target
        return None

    def require_replaceable(self, spec: SpecT) -> None:
        """See that running machines can be replaced (`--replace-vms`)."""
        del spec

    def listed(self, *, jobs: bool) -> Sequence[Stored[Any]]:
        """The objects in the state folder of which a look reads what a list says.

        `jobs`: whether those of jobs are among them.
        """
        del jobs
        return ()

    def out_of_date(self, cloud: Cloud, place: Place) -> Sequence[OutOfDate]:
        """The machines that exist and are older than their template."""
        del cloud, place
        return ()

    def held(self, cloud: Cloud, place: Place, *, older: bool = False) -> Held:
        """What the machines hold that exist, and may not be taken from them.

        `older`: whether only those count that are older than their template.
        """
        del cloud, place, older
        return NOTHING_HELD

    @abstractmethod
    def capacity(self, context: Context, cloud: Cloud, made: Applied[SpecT]) -> None:
        """Wait for the machines.

        Raises:
            CapacityError: Google refused machines.
            StillWaiting: The machines did not come in time; everything is kept.
            ClusterError: Google does not report the state of the machines.
        """

    @abstractmethod
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
        del cloud, target

    @abstractmethod
    def status(
        self, context: Context, cloud: Cloud, record: Record, before: Status | None
    ) -> Status:
        """Look at what is specific to this kind of cluster; the rest of the fields stay empty.

        `before`: what an earlier look of this run returned; None for the first one.
        """

    @abstractmethod
    def page(self, record: Record) -> tuple[str, str]:
        """The page of the Google Cloud console: its title, and its path below the console's URL."""

    @abstractmethod
    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        """Check that the cluster is complete and as fast as it should be.

        Raises:
            CapacityError: Google refused machines for the test.
            StillWaiting: The machines did not come in time.
            ClusterError: The test failed.
        """

    @abstractmethod
    def jobs(self, context: Context, cloud: Cloud, record: Record) -> Jobs:
        """The jobs of the cluster."""

    def data(self, context: Context, cloud: Cloud, record: Record) -> Sequence[str]:
        """What holds data, is in no state, and goes with the cluster: a few words each."""
        del context, cloud, record
        return ()

    @abstractmethod
    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        """Cancel what would block the removal of the cluster, such as open resize requests."""

    def sweep(self, context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
        """Remove what the cluster made itself and has left, once it is gone.

        `last`: whether nothing comes after this. Before that, what can't be removed yet is left.

        Raises:
            ClusterError: Something can't be removed; only if this is the last time.
        """
        del context, cloud, record, last
        return 0

    def left(self, cloud: Cloud, place: Place, networks: Collection[str]) -> Left:
        """What a cluster that is gone made itself and has left, where no state tells of it."""
        del cloud, place, networks
        return Left()

    def sweep_left(
        self, context: Context, cloud: Cloud, place: Place, networks: Collection[str]
    ) -> int:
        """Remove that, but for what holds data; returns how much it was.

        Raises:
            ClusterError: Something can't be removed.
        """
        del context, cloud, place, networks
        return 0


def deploy(
    kind: Kind[SpecT], spec: SpecT, location: StateLocation, inputs: RunInputs | None = None
) -> Deployment[SpecT]:
    """Make the deployment that a specification describes."""
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
