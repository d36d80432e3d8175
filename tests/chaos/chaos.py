"""Carry out a case: let the blow fall, mend what is left with the program alone, judge the end."""

from __future__ import annotations

import enum
import functools
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal import session
from tests.chaos.cases import ASKED, HERE, LOCKED, NOTHING_MADE, ZONES, Blow, Scene, Trouble
from tests.chaos.world import COUNT, Ended, World

if TYPE_CHECKING:
    from tests.chaos.cases import Case
    from tests.chaos.processes import Role


class Kind(enum.Enum):
    """What can be wrong in the end."""

    LEAK = "leaks"
    STATE = "corrupt states"
    EXIT_CODE = "wrong exit codes"
    FOREIGN = "foreign things touched"
    REACH = "VMs out of reach"


@dataclass(frozen=True)
class Fault:
    """Something that is wrong."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.what}"


@dataclass(frozen=True)
class Verdict:
    """How a case ended."""

    has_struck: bool  # whether the blow fell; the action may have ended before its moment
    faults: list[Fault]


class Chaos:
    """Cases and what they need: clouds with a cluster to begin with, and measured scenes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._profiles: dict[Scene, list[frozenset[Role]]] = {}
        self._clusters: dict[str, Path] = {}
        self._whole: dict[str, Counter[str]] = {}

    def profile(self, scene: Scene) -> list[frozenset[Role]]:
        """For each request of an undisturbed scene, who was alive when it came."""
        if scene not in self._profiles:
            with self._world(scene, "profile") as world:
                ended, alive = world.profile(scene.action)
            if ended.code != 0:
                raise RuntimeError(f"An undisturbed {scene} failed:\n{ended.said}")
            self._profiles[scene] = alive
        return self._profiles[scene]

    def carry_out(self, case: Case) -> Verdict:
        """Do what the case says."""
        with self._world(case.scene, "case") as world:
            before = world.resources()
            ended, has_struck = world.strike(case)
            if case.blow is Blow.KILL_STALE and not has_struck:
                # No run that lives has a storage that forgets what it has confirmed.
                return Verdict(has_struck, [])
            faults = list(_judge_blow(case, ended, has_struck=has_struck))
            faults += self._judge_words(case.scene, ended, before, world)
            faults += _out_of_reach(world, "after the blow")
            faults += [
                Fault(Kind.LEAK, f"the process {process} outlives its run")
                for process in world.left_processes()
            ]
            if why := world.state_fault():
                faults.append(Fault(Kind.STATE, f"after the blow, {why}"))
            faults += _make_worse(case, world)
            faults += self._mend(case, world)
        return Verdict(has_struck, faults)

    def _mend(self, case: Case, world: World) -> Iterable[Fault]:
        """Run the action that has to mend it all, and look at the cloud."""
        # Half a move needs a word to be finished, and so does another machine's.
        is_move = "Move" in case.scene.action + case.blow.second
        ended = world.run(case.then, *(("--yes",) if is_move else ()))
        # So does a Destroy of what nobody knows to be unprotected.
        asks = {LOCKED} | ({ASKED} if case.trouble is Trouble.LOST_RECORD else set())
        if ended.code in asks and "--yes" in ended.fixes:
            ended = world.run(case.then, "--yes")
        yield from _expect(0, ended, f"the {case.then} that has to mend it")
        whole = self._resources(case.scene) if case.then == "Create" else Counter[str]()
        yield from _differences(whole, world.resources())
        if case.then == "Create" and ended.code == 0:
            yield from self._again(world)
            yield from _differences(whole, world.resources())
        yield from _out_of_reach(world, f"after the {case.then} that has to mend it")

    def _judge_words(
        self, scene: Scene, ended: Sequence[Ended], before: Counter[str], world: World
    ) -> Iterable[Fault]:
        """Hold exit codes against the cloud: 0 is done, 4 made nothing, 5 changed nothing."""
        codes = {one.code for one in ended}
        done = [one.action for one in ended if one.code == 0]
        found = world.resources()
        if codes == {NOTHING_MADE}:
            for line in (_in_cloud(found) - _in_cloud(before)).elements():
                yield Fault(Kind.EXIT_CODE, f"{NOTHING_MADE}, which is nothing was made: {line}")
        if not done or codes - {0, LOCKED}:
            return
        worlds = [self._promised(scene, action) for action in done]
        if _in_cloud(found) not in worlds:
            said = " and ".join(f"{one.action}: {one.code}" for one in ended)
            rest = next(map(str, _differences(worlds[-1], _in_cloud(found))))
            yield Fault(Kind.EXIT_CODE, f"a false 0 of {said}: {rest}")
        elif _in_cloud(found) and not world.knows_group():
            yield Fault(Kind.STATE, f"lost, and {'; '.join(done)} said that all is well")

    def _promised(self, scene: Scene, action: str) -> Counter[str]:
        """What there is when an action has done what it is for."""
        if action == "Destroy":
            return Counter()
        if action == "Change":
            return _in_cloud(self._changed(scene.network))
        self._cluster(scene.network, ZONES[action])
        return _in_cloud(self._whole[f"{scene.network}-{ZONES[action]}"])

    def _changed(self, network: str) -> Counter[str]:
        """What there is when an undisturbed change has ended."""
        name = f"{network}-changed"
        if name not in self._whole:
            with self._world(Scene(action="Change", network=network, rate="0"), "change") as world:
                ended = world.run("Change")
                if ended.code != 0:
                    raise RuntimeError(f"An undisturbed change failed:\n{ended.said}")
                self._whole[name] = world.resources()
        return self._whole[name]

    def _again(self, world: World) -> Iterable[Fault]:
        ended = world.run("Create")
        yield from _expect(0, ended, "the Create after that")
        changes = ended.document.get("changes")
        if changes != {"add": 0, "change": 0, "destroy": 0}:
            yield Fault(Kind.STATE, f"a second Create makes changes: {changes}")
        vms = ended.document.get("connection", {}).get("vms", [])
        if len(vms) != COUNT:
            yield Fault(Kind.STATE, f"{len(vms)} VMs, not {COUNT}")

    def _resources(self, scene: Scene) -> Counter[str]:
        """What there is in a cloud in which a scene's Create has ended."""
        zone = ZONES[scene.action]
        self._cluster(scene.network, zone)
        return self._whole[f"{scene.network}-{zone}"]

    def _cluster(self, network: str, zone: str) -> Path:
        """The memory of a cloud in which a Create has ended; made once."""
        name = f"{network}-{zone}"
        if name not in self._clusters:
            # Short: a plugin's socket lies below it, whose path may have 107 characters.
            folder = self._fresh(f"c{len(self._clusters)}")
            with World(folder, "0", network, zone) as world:
                ended = world.run("Create")
                if ended.code != 0:
                    raise RuntimeError(f"An undisturbed Create failed:\n{ended.said}")
                self._whole[name] = world.resources()
            self._clusters[name] = folder / session.DATABASE
        return self._clusters[name]

    def _world(self, scene: Scene, name: str) -> World:
        folder = self._fresh(name)
        zone = ZONES[scene.action]
        if scene.action == "GoOn":
            return World(folder, scene.rate, scene.network, f"{HERE},{zone}")
        if scene.action != "Create":
            shutil.copy(self._cluster(scene.network, HERE), folder / session.DATABASE)
        return World(folder, scene.rate, scene.network, zone)

    def _fresh(self, name: str) -> Path:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def _make_worse(case: Case, world: World) -> Iterable[Fault]:
    """Let the case's trouble come."""
    match case.trouble:
        case Trouble.NONE:
            return
        case Trouble.LOST_RECORD:
            world.lose_record()
        case Trouble.SECOND_STATE:
            before = world.resources()
            ended, deletes = world.run_second("Destroy")
            # 0 where nothing was left, beside the first state's own files, that has these names.
            lives = any(not line.startswith("storage/") for line in before)
            wanted = {LOCKED} if lives else {0}
            if ended.code not in wanted:
                what = f"a second state's Destroy: {ended.code}: {ended.last_words}"
                yield Fault(Kind.EXIT_CODE, what)
            # What the killed run had asked for ends by itself meanwhile.
            gone = before - world.resources() if deletes else Counter[str]()
            for line in gone.elements():
                yield Fault(Kind.FOREIGN, line)


@functools.cache
def of_process(folder: Path) -> Chaos:
    """This process's own below a folder: two may not share a world."""
    own = folder / str(os.getpid())
    own.mkdir()
    return Chaos(own)


def verdict_in(folder: Path, case: Case) -> Verdict:
    """Do what the case says with what this process has in a folder."""
    return of_process(folder).carry_out(case)


def _judge_blow(case: Case, ended: Sequence[Ended], *, has_struck: bool) -> Iterable[Fault]:
    wanted = case.blow.codes if has_struck else {0}
    for one in ended:
        if one.code not in wanted:
            expected = " or ".join(map(str, sorted(wanted)))
            what = f"{one.action}: {one.code}, not {expected}: {one.last_words}"
            yield Fault(Kind.EXIT_CODE, what)
        yield from _in_order(one, f"the {one.action} at the blow")


def _in_cloud(lines: Counter[str]) -> Counter[str]:
    """Resources without what is kept in buckets."""
    return Counter({line: n for line, n in lines.items() if not line.startswith("storage/")})


def _out_of_reach(world: World, when: str) -> Iterable[Fault]:
    for what in world.unreachable():
        yield Fault(Kind.REACH, f"{when}, {what}")


def _expect(code: int, ended: Ended, who: str) -> Iterable[Fault]:
    if ended.code != code:
        yield Fault(Kind.EXIT_CODE, f"{who}: {ended.code}, not {code}: {ended.last_words}")
    yield from _in_order(ended, who)


def _in_order(ended: Ended, who: str) -> Iterable[Fault]:
    """A run that was not killed itself says in its document how it ended, and shows no bug."""
    if ended.code is None or ended.code < 0:
        return
    if "Traceback" in ended.said:
        yield Fault(Kind.EXIT_CODE, f"{who}: a traceback: {ended.last_words}")
    if ended.document.get("exit_code") != ended.code:
        yield Fault(Kind.EXIT_CODE, f"{who}: {ended.code}, and no document that says so")


def _differences(wanted: Counter[str], found: Counter[str]) -> Iterable[Fault]:
    for line in (found - wanted).elements():
        yield Fault(Kind.LEAK, f"left, or there twice: {line}")
    for line in (wanted - found).elements():
        yield Fault(Kind.STATE, f"missing: {line}")
