"""From zone to zone, and from way to way, until one has all machines (ADR 67, 72).

Each step is the move that a user makes with another ZONE or way: one plan, which ends what there is
and makes it in the new zone or way (ADR 12). So a run that is killed on the way leaves what
the next Create finishes, and Destroy removes.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

from provision import words
from provision.catalogue import zones
from provision.codes import Code
from provision.deployment.deployment import SpecT
from provision.errors import CapacityError, CheckError, StillWaiting, TerraformError
from provision.files import private
from provision.google import refusals
from provision.google.refusals import Reach
from provision.lifecycle import apply, exclusive, ownership, phases
from provision.lifecycle.phases import Phase
from provision.spec.capacity import PREEMPTIBLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment
    from provision.deployment.kind import Kind
    from provision.errors import Problem, ProvisionError
    from provision.files.archive import Archive
    from provision.settings.candidates import Site

_FIRST_PAUSE: Final = 30.0
"""Seconds of cloud time after the first round through all zones; each pause is twice as long."""
_LONGEST_PAUSE: Final = 300.0
_LEAST_PATIENCE: Final = 300.0
"""The least seconds of cloud time that a zone is waited for, unless CAPACITY_TIMEOUT is less."""


@dataclass(frozen=True, kw_only=True)
class _Try:
    """A zone and way that did not have all machines."""

    site: Site  # the zone and way
    after: float  # when it was given up, in seconds of cloud time since the search began
    problems: tuple[Problem, ...]


class Search(Generic[SpecT]):
    """Makes a cluster in the first zone and way that have all its machines."""

    def __init__(
        self,
        context: Context,
        cloud: Cloud,
        kind: Kind[SpecT],
        target: Deployment[SpecT],
        archive: Archive | None,
    ) -> None:
        self._context, self._cloud, self._kind = context, cloud, kind
        self._target, self._archive = target, archive
        self._left = [it for it in target.spec.places if it != target.spec.site]
        self._tries: list[_Try] = []
        self._round = 0  # index of its first try
        self._pause = _FIRST_PAUSE
        self._deadline = context.progress.deadline(self._timeout, 0)

    def run(self, attempt: Callable[[Deployment[SpecT]], Applied[SpecT]]) -> Applied[SpecT]:
        """Make the cluster.

        Raises:
            CapacityError: Google refused machines, and no other zone or way would change that.
            StillWaiting: None of them has had all machines within CAPACITY_TIMEOUT.
        """
        if not self._target.spec.places:
            return attempt(self._target)
        while True:
            try:
                made = attempt(self._in_time())
            except (CapacityError, StillWaiting, TerraformError) as error:
                self._go_on(error)
            else:
                self._found(made)
                return made

    @property
    def _timeout(self) -> float:
        return float(self._target.spec.capacity_timeout)

    def _in_time(self) -> Deployment[SpecT]:
        """The deployment, with what is left of CAPACITY_TIMEOUT; of a queue's, its part of it.

        A zone that has no machines says so at once; a queue does not.
        """
        spec = self._target.spec
        left = self._timeout - self._deadline.passed
        if any(pool.mode.means.requested for pool in spec.pools):
            left = min(left, self._timeout / len(spec.places))
        left = max(left, min(_LEAST_PATIENCE, self._timeout))
        timed = dataclasses.replace(spec, capacity_timeout=int(left))
        return dataclasses.replace(self._target, spec=timed)

    def _go_on(self, error: ProvisionError) -> None:
        """Go to the next zone or way; after the last one, begin again after a pause.

        Each is tried once, however long the moves take.
        """
        self._give_up(error)
        while True:
            if not self._left:
                if self._deadline.is_over:
                    raise self._over() from error
                self._begin_again()
                return
            if self._move(self._left.pop(0)):
                return

    def _give_up(self, error: ProvisionError) -> None:
        """Keep why a zone did not have the machines, and what that rules out."""
        spec = self._target.spec
        reach = {refusals.reach(it.code, f"{it.what}\n{it.why}") for it in error.problems}
        if Reach.EVERYWHERE in reach:
            raise error
        self._keep(spec.site, error)
        if Reach.REGION in reach:
            self._left = [it for it in self._left if not self._is_alike(it, error)]

    def _is_alike(self, site: Site, error: ProvisionError) -> bool:
        """Whether what holds in the region that is given up holds at another zone and way."""
        spec = self._target.spec
        if zones.region_of(site.zone) != spec.region:
            return False
        # Spot and flex start have a quota of their own.
        others = (spec.way in PREEMPTIBLE) != (site.way in PREEMPTIBLE)
        return not (others and {it.code for it in error.problems} <= {Code.QUOTA_EXCEEDED})

    def _keep(self, site: Site, error: ProvisionError) -> None:
        self._tries.append(
            _Try(site=site, after=self._deadline.passed, problems=tuple(error.problems))
        )

    def _move(self, site: Site) -> bool:
        """Describe the deployment elsewhere; False if the online checks refuse it there."""
        old, why = self._tries[-1].site, self._tries[-1].problems[0].what
        self._context.console.progress(f"From {old} to {site}: {why}")
        ownership.require_standing(self._context, self._cloud)
        places = self._target.spec.places
        try:
            self._target = apply.settle(
                self._context,
                self._cloud,
                self._kind,
                self._archive,
                bucket=True,
                place=(site, places),
            )
        except (CheckError, StillWaiting) as error:
            self._keep(site, error)
            return False
        return True

    def _begin_again(self) -> None:
        """Wait a while, then try all of them again, from the one on where the group is."""
        this_round = self._tries[self._round :]
        problems = [problem for one in this_round for problem in one.problems]
        if not any(it.code is not None and it.code.is_retryable for it in problems):
            raise CapacityError.of(list(dict.fromkeys(problems)))
        self._round = len(self._tries)
        spec = self._target.spec
        pause = self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self._context.console.progress(
            f"{_none_of(spec.places)} all machines now: again in {words.duration(pause)},"
            f" from {spec.site} on"
        )
        with self._context.progress.waits("machines in one of the zones"):
            self._context.progress.deadline(pause, pause).pause()
        self._left = [it for it in spec.places if it != spec.site]

    def _over(self) -> StillWaiting:
        spec = self._target.spec
        mine: defaultdict[Site, list[_Try]] = defaultdict(list)
        for one in self._tries:
            mine[one.site].append(one)
        return StillWaiting(
            f"{_none_of(spec.places)} all machines after {words.duration(self._timeout)} and"
            f" {len(self._tries)} tries",
            why="\n".join(_history(site, tries) for site, tries in mine.items()),
            fix=f"everything is kept, in {spec.site}: run Create again to go on from there, or"
            " Destroy to give up; a higher CAPACITY_TIMEOUT tries longer",
            setting="CAPACITY_TIMEOUT",
        )

    def _found(self, made: Applied[Any]) -> None:
        """Write down that the machines have come: from now on they stay where they are.

        A failure is a note: until the next Create, the search counts as not over.
        """
        cloud = self._cloud
        with (
            phases.aside(self._context),
            phases.during(Phase.STANDING, cloud),
            private.folder() as folder,
            exclusive.alone(self._context, cloud, made.target.spec, folder),
        ):
            record = cloud.folder.record()
            if record is not None:
                cloud.folder.write_record(dataclasses.replace(record, searching=False))


def _none_of(places: tuple[Site, ...]) -> str:
    if len(places) == 1:
        return f"{places[0]} does not have"
    return f"None of {len(places)} zones{' and ways' if places[0].way else ''} has"


def _history(site: Site, tries: list[_Try]) -> str:
    """When and how often a zone and way were tried, and what Google said at last."""
    last = tries[-1]
    said = "; ".join(it.why.splitlines()[0] if it.why else it.what for it in last.problems)
    often = "once, given up" if len(tries) == 1 else f"{len(tries)} times, the last"
    return f"{site}, {often} after {words.duration(last.after)}: {said}"
