"""An outage of Cloud Storage is no evidence against any VM: the agents' own classes, in their pace.

Each VM has a thread of its own in which it does one thing after the other, and waits for answers.
"""

import heapq
import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiinfra_vm import agent, members, roster, storage
from aiinfra_vm.members import Member
from aiinfra_vm.storage import Version

PACE = agent.Pace()
SETTLED = 600.0  # when all have their ranks
REFUSED, SILENT = 0.0, 20.0
"""What a request costs its VM in an outage: it is refused at once, or nobody answers."""


class Cloud:
    """The folder that VMs share, and the time of the one that is at it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.down = (float("inf"), float("inf"))
        self.cost = REFUSED
        self.gone: dict[str, float] = {}
        self._objects: dict[str, tuple[bytes, Version]] = {}
        self._count = 0

    def _ask(self) -> None:
        begins, ends = self.down
        if begins <= self.now < ends:
            self.now += self.cost
            raise OSError("503")

    def read(self, name: str, unless: int = 0) -> tuple[bytes, Version] | None:
        self._ask()
        found = self._objects.get(name)
        if found and unless and found[1].generation == unless:
            raise storage.Unchanged
        return found

    def write(self, name: str, document: Any, over: Version | None = None) -> Version | None:
        self._ask()
        found = self._objects.get(name)
        if over is not None and over != (found[1] if found else storage.NOTHING):
            return None
        self._count += 1
        made = Version(name, self._count, 1)
        self._objects[name] = storage.encoded(document), made
        return made

    def touch(
        self, version: Version, _notes: dict[str, str | None] | None = None
    ) -> Version | None:
        self._ask()
        found = self._objects.get(version.name)
        if found is None or found[1].generation != version.generation:
            return None
        made = version._replace(metageneration=found[1].metageneration + 1)
        self._objects[version.name] = found[0], made
        return made

    def remove(self, version: Version) -> None:
        self._ask()
        if self._objects.get(version.name, (b"", None))[1] == version:
            del self._objects[version.name]
            self.gone.setdefault(version.name, self.now)

    def list(self, prefix: str) -> Iterator[Version]:
        self._ask()
        return iter([it for name, (_, it) in self._objects.items() if name.startswith(prefix)])

    def roster(self) -> roster.Roster:
        return roster.parse(self._objects[roster.OBJECT][0])


class Vm:
    """What the agent of a VM does, in its order, as far as others hear of it."""

    def __init__(self, cloud: Cloud, number: int, dice: random.Random) -> None:
        folder = cast("storage.Folder", cloud)
        self.name = f"vm-{number}"
        self._cloud = cloud
        self._dice = dice
        self._heart = members.Heartbeat(folder, Member(self.name, "1", "10.0.0.2", ""))
        self._leader = agent.Leader(folder, Member(self.name, "1", "10.0.0.2", ""), PACE)
        self._due = [dice.uniform(0, PACE.beat)] * 3
        self.heard = 0.0

    def step(self) -> float:
        """Do what is due; when something is due again."""
        duties: list[Callable[[], float]] = [self._beat, self._leader.stand, self._rest]
        for number, duty in enumerate(duties):
            if self._due[number] <= self._cloud.now:
                try:
                    seconds = duty()
                except OSError:
                    seconds = PACE.idle
                self._due[number] = self._cloud.now + seconds * self._dice.uniform(0.8, 1.2)
        return max(self._cloud.now + 0.5, min(self._due))

    def hold_up(self, seconds: float) -> None:
        """Let the answer to what it asks as a leader take so long; it says that it lives later."""
        answered = self._cloud.now + seconds
        self._due = [answered + 0.4, answered, answered]

    @property
    def leads(self) -> bool:
        return self._leader.leads

    def _beat(self) -> float:
        self._heart.beat()
        self.heard = self._cloud.now
        return PACE.beat

    def _rest(self) -> float:
        """The roster, the task, the job: each has a moment of its own, but one thread."""
        for name in ("roster.json", "task.json", "job.json", "index.json"):
            try:
                self._cloud.read(name)
            except OSError:
                continue
        return PACE.idle


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A cloud by whose clock the agents go."""
    made = Cloud()
    clock = SimpleNamespace(monotonic=lambda: made.now)
    monkeypatch.setattr("aiinfra_vm.agent.time", clock)
    monkeypatch.setattr("aiinfra_vm.leadership.time", clock)
    return made


class Fleet:
    """VMs, which live until they are stopped."""

    def __init__(self, cloud: Cloud, size: int) -> None:
        dice = random.Random(size)  # noqa: S311 - no secret
        cloud.write(roster.GROUP, {"instance_count": size})
        self.vms = [Vm(cloud, number, dice) for number in range(size)]
        self._cloud = cloud
        self._due = [(0.0, number) for number in range(size)]
        self._dead: set[int] = set()
        self.live(SETTLED)
        assert cloud.roster().complete
        assert not cloud.gone

    def stop(self, *vms: Vm) -> None:
        self._dead.update(self.vms.index(vm) for vm in vms)

    def live(self, until: float) -> None:
        while self._due[0][0] < until:
            self._cloud.now, number = self._due[0]
            if number in self._dead:
                heapq.heappop(self._due)
                continue
            heapq.heapreplace(self._due, (self.vms[number].step(), number))


def _survives(cloud: Cloud, size: int, minutes: float, cost: float) -> None:
    fleet = Fleet(cloud, size)
    cloud.down, cloud.cost = (SETTLED, SETTLED + minutes * 60), cost
    fleet.live(cloud.down[1] + 900)
    assert not cloud.gone
    assert cloud.roster().complete


@pytest.mark.parametrize("cost", [REFUSED, SILENT], ids=["refused", "silent"])
@pytest.mark.parametrize("minutes", [1, 2, 2.5, 3, 4, 10, 480])
@pytest.mark.parametrize("size", [1, 2, 16])
def test_no_vm_is_taken_for_gone_as_nobody_could_look(
    cloud: Cloud, size: int, minutes: float, cost: float
) -> None:
    _survives(cloud, size, minutes, cost)


@pytest.mark.slow(sibling="::test_no_vm_is_taken_for_gone_as_nobody_could_look")
@pytest.mark.parametrize("minutes", [2.5, 10, 480])
def test_no_vm_of_two_hundred_is_taken_for_gone_as_nobody_could_look(
    cloud: Cloud, minutes: float
) -> None:
    _survives(cloud, 200, minutes, SILENT)


@pytest.mark.parametrize("size", [2, 3, 16])
def test_a_vm_that_stops_is_found_as_soon_as_its_time_is_over(cloud: Cloud, size: int) -> None:
    fleet = Fleet(cloud, size)
    stopped = next(vm for vm in fleet.vms if not vm.leads)
    fleet.stop(stopped)

    fleet.live(SETTLED + 300)

    assert list(cloud.gone) == [f"members/{stopped.name}.json"]
    assert PACE.gone < cloud.gone.popitem()[1] - stopped.heard < PACE.gone + 2 * PACE.lead


def test_half_of_all_at_once_are_given_half_as_much_time_again(cloud: Cloud) -> None:
    fleet = Fleet(cloud, 16)
    stopped = [vm for vm in fleet.vms if not vm.leads][:8]
    fleet.stop(*stopped)

    fleet.live(SETTLED + 450)

    assert len(cloud.gone) == 8
    # Once few are left, those are no longer half of all.
    first = min(cloud.gone.values())
    assert first - min(vm.heard for vm in stopped) > 1.5 * PACE.gone


def test_a_leader_that_was_held_up_does_not_take_itself_for_gone(cloud: Cloud) -> None:
    fleet = Fleet(cloud, 1)
    fleet.vms[0].hold_up(PACE.gone + 1)

    fleet.live(SETTLED + 600)

    assert not cloud.gone
