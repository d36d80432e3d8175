"""The bandwidth between VMs that answer as told: what is measured, and who is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.documents.timeline import StageName
from provision.kinds.vms import agent, testing
from provision.kinds.vms.instances import Vm
from provision.time.clock import Clock
from provision.time.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.kinds.vms.testing import Measured
    from provision.state.folder import StateFolder

Answers = Callable[[dict[str, Any], str], dict[str, Any] | None]
WHERE = "np-mig --zone z --project p"
GOOD, HALF = 188.0, 94.0
MEGA = "a3-megagpu-8g"


class Folder:
    """A state folder that VMs answer in as soon as a task is there."""

    def __init__(self, answer: Answers) -> None:
        self._answer = answer
        self.asked: list[dict[str, Any]] = []  # the tasks that were written
        self.files: dict[str, str] = {}

    def write(self, name: str, text: str, _: str) -> None:
        task = json.loads(text)
        self.asked.append(task)
        self.files[name] = text
        for vm in task["vms"]:
            document = self._answer(task, vm)
            if document is not None:
                self.files[f"vms/results/{task['id']}/{vm}.json"] = json.dumps(document)

    def text(self, name: str) -> str | None:
        return self.files.get(name)

    def names(self, prefix: str) -> list[str]:
        return [name for name in self.files if name.startswith(prefix)]

    def remove(self, name: str) -> None:
        self.files.pop(name, None)


def made(count: int, machine: str = MEGA, interfaces: int = 9) -> list[Vm]:
    """VMs of a type that run."""
    usual = {"status": "RUNNING", "machineType": machine}
    usual["networkInterfaces"] = cast("Any", [{"networkIP": "10.0.0.1"}] * interfaces)
    names = ({"name": f"vm-{number}", "id": f"10{number}"} for number in range(count))
    return [Vm.of({**usual, **name}, Clock()) for name in names]


def _done(**answer: Any) -> dict[str, Any]:
    return {"state": "done", "detail": "", "answer": answer}


def _group(task: dict[str, Any], vm: str) -> list[str]:
    groups = ([it["name"] for it in group] for group in task["arguments"]["groups"])
    return next(group for group in groups if vm in group)


def _network(*slow: str, network: str = "FasTrak", **more: Any) -> Answers:
    """VMs of which some halve the bandwidth of all that they are measured with."""

    def answer(task: dict[str, Any], vm: str) -> dict[str, Any]:
        group, sizes = _group(task, vm), task["arguments"]["sizes"]
        found: dict[str, Any] = {"measured": True, "networks": [network], **more}
        if vm == group[0]:
            ranks = len(group) * task["arguments"]["gpus"]
            reached = HALF if set(slow) & set(group) else GOOD
            wrong = found.pop("wrong", 0)
            rows = [(size, size * (ranks - 1) / ranks / reached / 1e9) for size in sizes]
            found["nccl"] = "2.28.7"
            found["rows"] = [
                {"size": size, "out_of_place": seconds, "in_place": seconds, "wrong": wrong}
                for size, seconds in rows
            ]
        return _done(**found)

    return answer


def _but(name: str, document: dict[str, Any] | None) -> Answers:
    """A good network, in which one VM answers otherwise."""
    good = _network()
    return lambda task, vm: document if vm == name else good(task, vm)


def _measured(answer: Answers, vms: Sequence[Vm]) -> tuple[Measured, Folder]:
    plan, folder = testing.plan(vms), Folder(answer)
    assert plan is not None
    with Progress(Clock(1e-9), lambda _: None).stage(StageName.TEST) as stage:
        return testing.measure(cast("StateFolder", folder), plan, stage), folder


def _told(answer: Answers, vms: Sequence[Vm]) -> list[str]:
    """The problems, each with what fixes it."""
    measured, _ = _measured(answer, vms)
    return [f"{it.what} | {it.fix}" for it in testing.problems(measured, WHERE)]


def test_good_vms_are_measured_once_and_leave_nothing_in_the_folder() -> None:
    measured, folder = _measured(_network(), made(4))
    assert testing.problems(measured, WHERE) == []
    (task,) = folder.asked
    assert (task["kind"], task["seconds"]) == ("bandwidth", testing.SECONDS)
    assert task["vms"] == {"vm-0": "100", "vm-1": "101", "vm-2": "102", "vm-3": "103"}
    assert task["arguments"]["collective"] == "all_gather"
    assert task["arguments"]["sizes"] == [2**power for power in range(20, 34)]
    assert folder.files == {}
    document = measured.document
    assert (document.vms, document.gpus, document.nccl) == (4, 32, "2.28.7")
    assert document.bandwidth == pytest.approx(GOOD)
    assert document.expected == 188.90
    words = testing.passed({}, document)
    assert "all_gather reaches 188.0 GB/s, 100% of the 188.9 GB/s published for 2 (none" in words


def test_the_slow_vm_of_eight_is_named_with_what_mends_it() -> None:
    measured, folder = _measured(_network("vm-5"), made(8))
    (problem,) = testing.problems(measured, WHERE)
    assert problem.what == "vm-5 is at fault: 94.0 GB/s, 50% of the 188.9 GB/s published"
    assert problem.fix.endswith(f"recreate-instances {WHERE} --instances=vm-5")
    # All, halves, quarters, and each of the bad pair with a good one.
    groups = [[len(it) for it in task["arguments"]["groups"]] for task in folder.asked]
    assert groups == [[8], [4, 4], [2, 2], [2, 2]]
    assert measured.document.faulty == ("vm-5",)
    assert [one.passed for one in measured.document.tries][:3] == [False, True, False]


def _anybodys(task: dict[str, Any], vm: str) -> dict[str, Any] | None:
    if "vm-2" in _group(task, vm):
        return {"state": "failed", "detail": "process 17: exit code 1"}
    return _network()(task, vm)


LACKING = _done(measured=False, why="there is no libnccl.so.2 on this VM")


@pytest.mark.parametrize(
    ("answer", "count", "told"),
    [
        pytest.param(
            _network("vm-0", "vm-6"),
            8,
            [("vm-0 is at fault: ",), ("vm-6 is at fault: ",)],
            id="several slow ones",
        ),
        pytest.param(
            _network("vm-1"),
            2,
            [("between vm-0, vm-1: 94.0 GB/s", "--instances=vm-0,vm-1", "INSTANCE_COUNT")],
            id="of two neither is blamed",
        ),
        pytest.param(
            _network(network="Socket"),
            3,
            [("all 3 VMs: NCCL used Socket there instead of FasTrak", "step fabric")],
            id="sockets on all are no single one's fault",
        ),
        pytest.param(
            _anybodys,
            4,
            [("vm-2 is at fault: ", "failed: process 17: exit code 1")],
            id="a failure that may be anybody's is searched for",
        ),
        pytest.param(
            _network(wrong=1),
            2,
            [("NCCL computed 14 wrong values",)],
            id="wrong values fail whatever the bandwidth",
        ),
        pytest.param(
            lambda *_: LACKING,
            2,
            [("all 2 VMs: can't measure",)],
            id="no NCCL on machines with a fabric",
        ),
    ],
)
def test_who_is_at_fault_is_named_with_what_mends_it(
    answer: Answers, count: int, told: list[tuple[str, ...]]
) -> None:
    found = _told(answer, made(count))
    assert len(found) == len(told)
    for one, parts in zip(found, told, strict=True):
        assert all(part in one for part in parts), one


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "does not answer"),
        ({"state": "refused", "detail": "this VM knows peers"}, "does not know what"),
        ({"state": "cut-off", "detail": ""}, "was restarted meanwhile"),
        (LACKING, "can't measure: there is no libnccl.so.2 on this VM"),
        (_done(measured=True, networks=["Socket"]), "NCCL used Socket there instead of FasTrak"),
    ],
)
def test_who_fails_by_itself_is_named_and_the_others_are_measured_without_it(
    document: dict[str, Any] | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_BEGIN", 0.0)
    measured, folder = _measured(_but("vm-1", document), made(4))
    (problem,) = testing.problems(measured, WHERE)
    assert problem.what.startswith(f"vm-1: {words}")
    assert list(folder.asked[-1]["vms"]) == ["vm-0", "vm-2", "vm-3"]
    assert measured.document.faulty == ("vm-1",)


def test_a_vm_that_somebody_uses_is_left_out_and_never_at_fault() -> None:
    def answer(task: dict[str, Any], vm: str) -> dict[str, Any] | None:
        if vm == "vm-1":
            return _done(measured=False, users=["python3 (41)"], why="in use")
        if "vm-1" in _group(task, vm):
            return {"state": "failed", "detail": "rank 8 did not come", "answer": None}
        return _network()(task, vm)

    measured, _ = _measured(answer, made(3))
    assert testing.problems(measured, WHERE) == []
    assert (measured.busy, measured.document.vms) == (("vm-1",), 2)
    assert measured.document.bandwidth == pytest.approx(GOOD)


def test_another_nccl_than_the_plugins_is_told_with_what_makes_jobs_use_it() -> None:
    plugin = "/usr/local/gib/lib64/libnccl.so.2"
    measured, _ = _measured(_network(plugin=plugin, plugin_nccl="2.29.1"), made(2))
    (note,) = testing.notes(measured)
    assert "NCCL 2.28.7, and the network's plugin came with 2.29.1" in note.what
    assert f"LD_PRELOAD={plugin}" in note.fix
    assert testing.notes(_measured(_network(), made(2))[0]) == []


def test_without_nccl_on_machines_that_need_no_plugin_nothing_is_measured_and_that_is_a_note() -> (
    None
):
    measured, _ = _measured(lambda *_: LACKING, made(2, "g2-standard-24", 1))
    assert testing.problems(measured, WHERE) == []
    (note,) = testing.notes(measured)
    assert note.what.endswith(f"was not measured: can't measure: {LACKING['answer']['why']}")
    assert "libnccl2" in note.fix
    assert testing.passed({}, measured.document).endswith("bandwidth not measured")


def test_machines_without_a_published_figure_get_no_verdict() -> None:
    measured, folder = _measured(_network(network="Socket"), made(2, "a2-highgpu-8g", 1))
    assert testing.problems(measured, WHERE) == []
    assert folder.asked[0]["arguments"]["sizes"][-1] == 2**30
    assert "without a verdict" in testing.passed({}, measured.document)


@pytest.mark.parametrize(
    ("machine", "interfaces", "collective", "least"),
    [
        # TCPX can't be had on VMs: NCCL's sockets, and the figure for those.
        ("a3-highgpu-8g", 5, "all_reduce", 0.75 * 23.7),
        ("a3-megagpu-8g", 9, "all_gather", 0.9 * 188.90),
        ("a3-ultragpu-8g", 10, "all_gather", 0.9 * 335.67),
        ("a4-highgpu-8g", 10, "all_gather", 0.9 * 375.95),
        # Without the interfaces of its GPUs no figure is for it.
        ("a3-megagpu-8g", 1, "all_gather", None),
    ],
)
def test_each_machine_is_measured_and_judged_by_its_own_figures(
    machine: str, interfaces: int, collective: str, least: float | None
) -> None:
    plan = testing.plan(made(2, machine, interfaces))
    assert plan is not None
    assert str(plan.collective) == collective
    assert plan.least == (least if least is None else pytest.approx(least))


def test_between_one_vm_or_vms_without_gpus_there_is_nothing_to_measure() -> None:
    assert testing.plan(made(1)) is None
    assert testing.plan(made(2, "n1-standard-8", 1)) is None
