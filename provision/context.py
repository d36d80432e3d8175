"""The context of one run, which every action gets."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import functools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from provision.codes import Code
from provision.documents.events import MilestoneEvent, stamp
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Declined, Problem, ProvisionError, Unanswered
from provision.notify import Watch
from provision.settings.choices import Action
from provision.state.location import locate
from provision.time.stages import Progress, Stages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from provision.console import Console
    from provision.cost.skus import PriceBook
    from provision.documents.events import Milestone, WaitingEvent
    from provision.google.api import GoogleApi
    from provision.google.lists import Lists
    from provision.report import Report
    from provision.settings.model import Settings
    from provision.state.folder import StateFolder
    from provision.state.location import StateLocation
    from provision.terraform import Binary, Terraform
    from provision.terraform.log import Log
    from provision.time.clock import Clock

_FOLLOWS = (Action.RUN, Action.LOGS)
"""Actions that stay with a job until its end."""


@dataclass(kw_only=True)
class Move:
    """Why a cluster whose machines were lost may go on in another zone or way (Run --create)."""

    why: str  # what is lost, and why it does not come again where it was
    left: int  # how many machines run, which end by it
    # what the record said of the state then, or after this run's last step: another run may do it
    # meanwhile
    serial: int
    # whether that end is agreed to where nobody can be asked: this run made the cluster for its
    # job, or destroys it in the end
    own: bool
    lost: tuple[str, ...] = ()  # jobs of others that wait there, and go with its queue


@dataclass(frozen=True, kw_only=True)
class Context:
    """What every action needs to know about this run."""

    settings: Settings
    environ: MutableMapping[str, str]  # the process's environment
    clock: Clock  # the clock of Google Cloud
    console: Console  # where to print
    report: Report  # the run's report, which the action fills
    offline: bool = False  # whether requests to Google are forbidden (`--offline`)
    agreed: bool = False  # whether the user approved losses in advance (`--yes`)
    role: bool = False  # whether Validate or Plan is to print a custom role instead (`--role`)
    # whether to replace running VMs of an older template (`--replace-vms`)
    replace_vms: bool = False
    # the ID of a lock to release, whoever holds it (`--break-lock`); "" for none
    break_lock: str = ""
    # whether Terraform's own text, or everything of a Status, is shown (`--full`)
    full: bool = False
    lists: bool = False  # whether a Status is of all deployments, as the settings name none
    watch: bool = False  # whether to look until nothing is pending (`--watch`)
    # the folder to copy to the VMs (`--copy`); None for the default one, if it exists
    copy: Path | None = None
    create: bool = False  # whether Run makes the cluster if it is not there (`--create`)
    # whether the cluster is destroyed at the end, whatever happened (`--destroy-after`, and Bake)
    destroy_after: bool = False
    move: Move | None = None  # why this Create may leave where the cluster is; None for no reason
    detach: bool = False  # whether a job is not followed (`--detach`)
    follow: bool = False  # whether a log is followed to its end (`--follow`)
    again: str = ""  # the job that is run again (`--again`); "" for a new one
    ray: bool = False  # whether a job is one of Ray's on GKE (`--ray`)
    job: str = ""  # the job, VM or image that the command line names; "" for none
    # the jobs that it names behind that one; of Fetch, path and destination
    others: tuple[str, ...] = ()
    every: bool = False  # whether all jobs are meant (`--all`)
    command: tuple[str, ...] = ()  # the job's program and its arguments, which stand behind `--`
    # the job's variables on the command line (`--env`)
    env: Mapping[str, str] = field(default_factory=dict)
    # and its secrets there (`--secret`): variable -> what names the secret, "" for the same name
    secrets: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[str, ...] = ()  # the buckets that are mounted for it, as they are written
    guesses: tuple[Problem, ...] = ()  # notes from dated lists, to tell where Google is not asked
    # principals that may change states on purpose, by the file of TEAM_DEFAULTS
    state_writers: tuple[str, ...] = ()
    # where the configuration of ssh goes (`--config`), "" for the screen; None if none is asked for
    config: str | None = None
    page: Path | None = None  # the file to write the report's page to (`--report`); None for none
    certificates: str | None = None  # what CA_BUNDLE holds; None for none
    today: dt.date = field(default_factory=lambda: dt.datetime.now(tz=dt.UTC).date())
    # when the run began, by the clock of `time.monotonic`
    begun: float = field(default_factory=time.monotonic)

    def of(self, prefix: str) -> Context:
        """The same run, about the deployment with another NAME_PREFIX beside this one."""
        return self.but(settings=self.settings.model_copy(update={"name_prefix": prefix}))

    def but(self, **changes: Any) -> Context:
        """The same run with other fields."""
        other = dataclasses.replace(self, **changes)
        # Of these a run has one alone.
        vars(other).update({name: getattr(self, name) for name in ("stages", "progress")})
        return other

    @property
    def seconds(self) -> float:
        """The seconds since the run began, of the cloud's time where it waited for the cloud.

        Those of people's answers do not count.
        """
        return time.monotonic() - self.begun - self.console.asked + self.stages.ahead

    @property
    def location(self) -> StateLocation:
        """Where the deployment keeps its state."""
        return locate(self.settings)

    @functools.cached_property
    def stages(self) -> Stages:
        """The stages of the run; whoever made the context closes them."""
        return Stages(self.clock, self.console, beats=True, looks=self.look)

    @functools.cached_property
    def made(self) -> set[str]:
        """What this run has made, by its address in Terraform's root."""
        return set()

    @functools.cached_property
    def lookout(self) -> Watch:
        """What has been told of while the run waits."""
        return Watch()

    def look(self, waits: WaitingEvent | None = None) -> None:
        """Tell of what is due now; `waits`: what is waited for."""
        jobs = self.report.jobs or ()
        job = jobs[0] if len(jobs) == 1 and self.report.action in _FOLLOWS else None
        for milestone, told, fix in self.lookout.due(waits, job, self.clock):
            self.reached(milestone, told, fix)

    def reached(self, milestone: Milestone, told: str, fix: str = "") -> None:
        """Say what the run has come to, to programs and to whom NOTIFY names.

        `told`: what it is, in words that go on after the cluster's name; `fix`: what to do next.
        """
        settings, is_rehearsal = self.settings, self.report.rehearsal
        place = f"{settings.name_prefix} ({settings.project_id}, {settings.places.text})"
        text = f"{'Rehearsal: ' if is_rehearsal else ''}{place}: {told}"
        self.console.happened(
            MilestoneEvent(
                time=stamp(time.time()),
                milestone=milestone,
                text=f"{text}. Next: {fix.splitlines()[0]}" if fix else text,
                words=told,
                fix=fix,
                action=self.report.action,
                cluster=settings.name_prefix,
                project=settings.project_id,
                zone=settings.places.text,
                rehearsal=is_rehearsal,
            )
        )

    @functools.cached_property
    def progress(self) -> Progress:
        """The run's clock and progress output, for waits."""
        return Progress(self.clock, self.console.progress, self.stages)

    def note(self, notes: Sequence[Problem]) -> None:
        """Print notes, and add them to the report."""
        self.report.notes.extend(notes)
        # What the plan has a line for is told by that.
        has_line = self.report.action in {Action.PLAN, Action.CREATE} and not self.full
        self.console.notes(notes, but=Code.CHOSEN if has_line else None)

    def look_for_terraform(self) -> Future[Binary]:
        """Begin to look for Terraform, which takes a start of it; `terraform` waits for that."""
        return self._binary

    @functools.cached_property
    def _binary(self) -> Future[Binary]:
        from provision import background, terraform  # noqa: PLC0415 - not every action needs it

        return background.begin(lambda: terraform.find(self.environ))

    def terraform(self, root: Path, log: Log, cloud: Cloud | None = None) -> Terraform:
        """Terraform for a run folder, with its output going to a log.

        `cloud`: has the state folder, where Terraform may change the state.
        """
        from provision import terraform  # noqa: PLC0415 - not every action needs it

        voice = terraform.Voice(
            write=log.write,
            tell=self.console.progress,
            progress=self.progress,
            colours=log.colours and self.console.colours,
        )
        own = {"changed": cloud.folder.forget_state} if cloud else {}
        return terraform.Terraform(self.binary(), root, self.terraform_environ(), voice, **own)

    def binary(self) -> Binary:
        """The Terraform to run.

        Raises:
            TerraformError: There is none.
        """
        return self._binary.result()

    def terraform_environ(self) -> dict[str, str]:
        """The environment of Terraform: with this run's credentials, without its settings."""
        from provision import terraform  # noqa: PLC0415 - as above
        from provision.google import auth  # noqa: PLC0415 - as above
        from provision.settings import reading  # noqa: PLC0415 - as above

        # A proxy is Terraform's as well, whether it is a setting or the shell's own.
        own = {name.upper() for name in type(self.settings).model_fields} - reading.OF_PROGRAMS
        return terraform.environment(auth.for_terraform(self.environ), private=own)

    @contextlib.contextmanager
    def log(self, cloud: Cloud | None, action: str) -> Iterator[Log]:
        """Where Terraform's output goes: beside the state, even after a failure.

        `cloud`: has the state folder; None where there is no state to keep a log beside.
        """
        from provision.terraform.log import Log  # noqa: PLC0415 - as above

        log = Log(self.console.raw if self.full else None, self.console.veil)
        try:
            yield log
        except (Declined, Unanswered):
            raise  # nothing was done that a log would tell of
        except BaseException:
            self._keep(log, cloud, action)
            if self.report.log:
                self.console.progress(f"Terraform's output is in {self.report.log}")
            raise
        else:
            self._keep(log, cloud, action)

    def _keep(self, log: Log, cloud: Cloud | None, action: str) -> None:
        log.end()
        if not log.text or cloud is None:
            return
        name = log.name(action)
        try:
            cloud.folder.write(name, log.text, "text/plain")
        except ProvisionError as error:
            # Whoever may only read the state can still plan.
            self.note(
                [
                    Problem(
                        code=Code.NOT_KEPT,
                        what="Terraform's output could not be kept",
                        why=str(error),
                    )
                ]
            )
        else:
            self.report.log = f"{cloud.folder.location.url}/{name}"


@dataclass(frozen=True)
class Cloud:
    """Google's APIs, with the run's credentials, and the deployment's state folder."""

    api: GoogleApi
    folder: StateFolder
    project_number: str
    lists: Lists | None = None  # those of a look, each of which is asked for once; None for none

    def looking(self, *, of_all: bool = False) -> Cloud:
        """It for one look, which sees everything as it is now; `of_all`: at all deployments."""
        from provision.google.lists import Lists  # noqa: PLC0415 - as above

        self.folder.look_again()
        return dataclasses.replace(self, lists=Lists(self.api, of_all=of_all))

    @functools.cached_property
    def price_book(self) -> PriceBook:
        """Google's own prices."""
        from provision.cost.skus import PriceBook  # noqa: PLC0415 - as above

        return PriceBook(self.api, self.folder, dt.datetime.now(tz=dt.UTC).date())

    def has_bucket(self) -> bool:
        """Whether the state's bucket exists; only the default bucket may be missing."""
        exists = self.folder.check_bucket(self.project_number)
        if not exists and not self.folder.location.is_default:
            raise self.folder.missing()
        return exists


def connect(context: Context, *, offers_login: bool = True) -> Cloud:
    """Find the credentials, and connect to the project and the state folder."""
    from provision import background, endpoints  # noqa: PLC0415 - as above

    moved = endpoints.announcement(context.environ)
    if moved:
        context.console.once(moved)
    from provision.google import auth  # noqa: PLC0415 - as above
    from provision.google.api import GoogleApi  # noqa: PLC0415 - as above
    from provision.state.folder import StateFolder  # noqa: PLC0415 - half of a start

    credentials = auth.credentials(context.environ, context.console.once, offers_login=offers_login)
    auth.hand_over(credentials, context.environ)
    # Only now: who has to log in first needs the terminal.
    with context.progress.stage(StageName.CONNECT, OnInterrupt.NOTHING):
        api = GoogleApi(credentials, context.environ, context.progress)
        # The client of Cloud Storage is the half of what there is to load: meanwhile Google
        # answers.
        number = background.begin(lambda: api.project_number(context.settings.project_id))
        folder = StateFolder(context.location, context.settings, credentials, context.environ)
        return Cloud(api, folder, number.result())
