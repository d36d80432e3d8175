"""A Test of VMs that answer as told: who is asked, what is measured, and who is named."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.documents.checks import VmCheck
from provision.documents.timeline import StageName
from provision.documents.vm_status import StartupStep
from provision.errors import ClusterError, StillWaiting
from provision.kinds.vms import agent, bandwidth, health, testing
from provision.kinds.vms.instances import Vm
from provision.kinds.vms.startup import Startup
from provision.time.clock import Clock
from provision.time.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provision.context import Cloud
    from provision.errors import Problem
    from provision.kinds.vms.bandwidth import Measured
    from provision.state.folder import StateFolder
    from provision.state.record import Record

WHERE = "np-mig --zone z --project p"
GOOD, HALF = 188.0, 94.0


class Folder:
    """A state folder that VMs answer in as soon as a task is there.

    `asked`: The tasks that were written.
    """

    def __init__(self, answer: Callable[[dict[str, Any], str], dict[str, Any] | None]) -> None:
        self._answer = answer
        self.asked: list[dict[str, Any]] = []
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


def _vms(count: int, machine: str = "a3-megagpu-8g", interfaces: int = 9) -> list[Vm]:
    nics = [{"networkIP": "10.0.0.1"}] * interfaces
    return [
        Vm.of(
            {
                "name": f"vm-{number}",
                "id": f"10{number}",
                "status": "RUNNING",
                "machineType": machine,
                "networkInterfaces": nics,
            },
            Clock(),
        )
        for number in range(count)
    ]


def _done(answer: dict[str, Any]) -> dict[str, Any]:
    return {"state": "done", "detail": "", "answer": answer}


def _rows(task: dict[str, Any], group: Sequence[str], reached: float) -> list[dict[str, Any]]:
    ranks = len(group) * task["arguments"]["gpus"]
    seconds = [
        (size, size * (ranks - 1) / ranks / reached / 1e9) for size in task["arguments"]["sizes"]
    ]
    return [{"size": size, "out_of_place": it, "in_place": it, "wrong": 0} for size, it in seconds]


def _group(task: dict[str, Any], vm: str) -> list[str]:
    groups = ([it["name"] for it in group] for group in task["arguments"]["groups"])
    return next(group for group in groups if vm in group)


def _network(*slow: str, network: str = "FasTrak") -> Folder:
    """VMs of which some halve the bandwidth of all that they are measured with."""

    def answer(task: dict[str, Any], vm: str) -> dict[str, Any]:
        group = _group(task, vm)
        found: dict[str, Any] = {"measured": True, "networks": [network]}
        if vm == group[0]:
            reached = HALF if set(slow) & set(group) else GOOD
            found |= {"rows": _rows(task, group, reached), "nccl": "2.28.7"}
        return _done(found)

    return Folder(answer)


def _measured(folder: Folder, vms: Sequence[Vm]) -> Measured:
    plan = bandwidth.plan(vms)
    assert plan is not None
    progress = Progress(Clock(1e-9), lambda _: None)
    with progress.stage(StageName.TEST) as stage:
        return bandwidth.measure(cast("StateFolder", folder), plan, stage)


def _said(problems: Sequence[Problem]) -> str:
    return "\n".join(f"{it.what} | {it.why} | {it.fix}" for it in problems)


def test_good_vms_are_measured_once_and_leave_nothing_in_the_folder() -> None:
    folder = _network()
    measured = _measured(folder, _vms(4))
    assert bandwidth.problems(measured, WHERE) == []
    (task,) = folder.asked
    assert (task["kind"], task["seconds"]) == ("bandwidth", bandwidth.SECONDS)
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
    folder = _network("vm-5")
    measured = _measured(folder, _vms(8))
    (problem,) = bandwidth.problems(measured, WHERE)
    assert problem.what == "vm-5 is at fault: 94.0 GB/s, 50% of the 188.9 GB/s published"
    assert problem.fix.endswith(f"recreate-instances {WHERE} --instances=vm-5")
    # All, halves, quarters, and each of the bad pair with a good one.
    groups = [[len(it) for it in task["arguments"]["groups"]] for task in folder.asked]
    assert groups == [[8], [4, 4], [2, 2], [2, 2]]
    assert measured.document.faulty == ("vm-5",)
    assert [one.passed for one in measured.document.tries][:3] == [False, True, False]


def test_several_slow_vms_are_named_each() -> None:
    problems = bandwidth.problems(_measured(_network("vm-0", "vm-6"), _vms(8)), WHERE)
    assert [it.what.partition(" ")[0] for it in problems] == ["vm-0", "vm-6"]


def test_of_two_slow_vms_neither_is_blamed() -> None:
    (problem,) = bandwidth.problems(_measured(_network("vm-1"), _vms(2)), WHERE)
    assert problem.what.startswith("between vm-0, vm-1: 94.0 GB/s")
    assert "--instances=vm-0,vm-1" in problem.fix
    assert "INSTANCE_COUNT" in problem.fix


def test_sockets_on_all_vms_are_the_fabrics_fault_and_no_single_vms() -> None:
    folder = _network(network="Socket")
    (problem,) = bandwidth.problems(_measured(folder, _vms(3)), WHERE)
    assert problem.what == "all 3 VMs: NCCL used Socket there instead of FasTrak"
    assert "step fabric" in problem.fix
    assert len(folder.asked) == 1


def _one_is_otherwise(name: str, document: dict[str, Any] | None) -> Folder:
    good = _network()
    return Folder(lambda task, vm: document if vm == name else good._answer(task, vm))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "vm-1: does not answer"),
        ({"state": "refused", "detail": "this VM knows peers"}, "vm-1: does not know what"),
        ({"state": "cut-off", "detail": ""}, "vm-1: was restarted meanwhile"),
        (
            _done({"measured": False, "why": "there is no libnccl.so.2 on this VM"}),
            "vm-1: can't measure: there is no libnccl.so.2 on this VM",
        ),
        (
            _done({"measured": True, "networks": ["Socket"]}),
            "vm-1: NCCL used Socket there instead of FasTrak",
        ),
    ],
)
def test_who_fails_by_itself_is_named_and_the_others_are_measured_without_it(
    document: dict[str, Any] | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_BEGIN", 0.0)
    folder = _one_is_otherwise("vm-1", document)
    measured = _measured(folder, _vms(4))
    (problem,) = bandwidth.problems(measured, WHERE)
    assert problem.what.startswith(words)
    assert list(folder.asked[-1]["vms"]) == ["vm-0", "vm-2", "vm-3"]
    assert measured.document.faulty == ("vm-1",)


def test_a_failure_that_may_be_anybodys_is_searched_for() -> None:
    def answer(task: dict[str, Any], vm: str) -> dict[str, Any]:
        group = _group(task, vm)
        if "vm-2" in group:
            return {"state": "failed", "detail": "process 17: exit code 1"}
        return cast("dict[str, Any]", _network()._answer(task, vm))

    (problem,) = bandwidth.problems(_measured(Folder(answer), _vms(4)), WHERE)
    assert problem.what.startswith("vm-2 is at fault: ")
    assert "failed: process 17: exit code 1" in problem.what


def test_wrong_values_fail_whatever_the_bandwidth() -> None:
    def answer(task: dict[str, Any], vm: str) -> dict[str, Any]:
        document: dict[str, Any] = _network()._answer(task, vm) or {}
        for row in document["answer"].get("rows", []):
            row["wrong"] = 1
        return document

    (problem,) = bandwidth.problems(_measured(Folder(answer), _vms(2)), WHERE)
    assert "NCCL computed 14 wrong values" in problem.what


def test_a_vm_that_somebody_uses_is_left_out_and_never_at_fault() -> None:
    network = _network()

    def answer(task: dict[str, Any], vm: str) -> dict[str, Any] | None:
        if vm == "vm-1":
            return _done({"measured": False, "users": ["python3 (41)"], "why": "in use"})
        if "vm-1" in _group(task, vm):
            return {"state": "failed", "detail": "rank 8 did not come", "answer": None}
        return network._answer(task, vm)

    measured = _measured(Folder(answer), _vms(3))

    assert bandwidth.problems(measured, WHERE) == []
    assert (measured.busy, measured.document.vms) == (("vm-1",), 2)
    assert measured.document.bandwidth == pytest.approx(GOOD)
    note = testing.left_out({"vm-1": ("python3 (41)",)}, all_of_them=False)
    assert note.what == "not measured: the GPUs of vm-1 (python3 (41)) are in use"


def test_a_bad_vm_is_not_recreated_under_who_works_on_it() -> None:
    vms = _vms(1)
    used = VmCheck(faults=("7 GPUs instead of 8",), users=("python3 (41)",))
    (problem,) = testing.of_vms(vms, {"vm-0": used}, WHERE)
    assert problem.fix.startswith("end python3 (41), or let them end; then let Google recreate it")


def test_login_shells_that_are_not_as_jobs_are_one_problem_that_recreates_nothing() -> None:
    vms = _vms(2)
    found = health.judge(vms[0], {"login": ["NCCL_NET=gIB instead of nothing"]}).login
    (problem,) = testing.of_vms(vms, {vm.name: VmCheck(login=found) for vm in vms}, WHERE)
    assert problem.what == "a login shell on vm-0, vm-1 has NCCL_NET=gIB instead of nothing"
    assert "recreate" not in problem.fix


def test_another_nccl_than_the_plugins_is_told_with_what_makes_jobs_use_it() -> None:
    network = _network()

    def answer(task: dict[str, Any], vm: str) -> dict[str, Any] | None:
        found = network._answer(task, vm) or {}
        found["answer"] |= {"plugin": "/usr/local/gib/lib64/libnccl.so.2", "plugin_nccl": "2.29.1"}
        return found

    (note,) = bandwidth.notes(_measured(Folder(answer), _vms(2)))
    assert "NCCL 2.28.7, and the network's plugin came with 2.29.1" in note.what
    assert "LD_PRELOAD=/usr/local/gib/lib64/libnccl.so.2" in note.fix
    assert bandwidth.notes(_measured(network, _vms(2))) == []


def test_without_nccl_on_machines_that_need_no_plugin_nothing_is_measured_and_that_is_a_note() -> (
    None
):
    lacking = _done({"measured": False, "why": "there is no libnccl.so.2 on this VM"})
    measured = _measured(Folder(lambda *_: lacking), _vms(2, "g2-standard-24", 1))
    assert bandwidth.problems(measured, WHERE) == []
    (note,) = bandwidth.notes(measured)
    assert note.what.endswith(
        "was not measured: can't measure: there is no libnccl.so.2 on this VM"
    )
    assert "libnccl2" in note.fix
    assert testing.passed({}, measured.document).endswith("bandwidth not measured")


def test_without_nccl_on_machines_with_a_fabric_the_test_fails() -> None:
    lacking = _done({"measured": False, "why": "there is no libnccl.so.2 on this VM"})
    (problem,) = bandwidth.problems(_measured(Folder(lambda *_: lacking), _vms(2)), WHERE)
    assert problem.what.startswith("all 2 VMs: can't measure")


def test_machines_without_a_published_figure_get_no_verdict() -> None:
    folder = _network(network="Socket")
    measured = _measured(folder, _vms(2, "a2-highgpu-8g", 1))
    assert bandwidth.problems(measured, WHERE) == []
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
    plan = bandwidth.plan(_vms(2, machine, interfaces))
    assert plan is not None
    assert str(plan.collective) == collective
    assert plan.least == (least if least is None else pytest.approx(least))


def test_between_one_vm_or_vms_without_gpus_there_is_nothing_to_measure() -> None:
    assert bandwidth.plan(_vms(1)) is None
    assert bandwidth.plan(_vms(2, "n1-standard-8", 1)) is None


OLDER = "by a version of this tool whose VMs hear of nothing; run Create --replace-vms"
HEARS = Startup(state="done", steps={"agent": StartupStep(state="done")})
REPORTED = {"gpus": 8, "names": ["NVIDIA H100 80GB HBM3"] * 8, "driver": "580", "interfaces": 9}


@pytest.mark.parametrize(
    ("startup", "hears"),
    [
        (HEARS, True),
        # Nothing is known of it: guest attributes may be forbidden.
        (Startup(), True),
        (Startup(state="failed", step="command", steps=HEARS.steps), True),
        (Startup(state="failed", step="gpu", steps={"gpu": StartupStep(state="failed")}), False),
        (Startup(state="running", step="gpu"), False),
        (Startup(state="done"), False),
    ],
)
def test_only_who_can_hear_of_a_task_is_asked(startup: Startup, *, hears: bool) -> None:
    assert testing._hears(startup) is hears


@pytest.mark.parametrize(
    ("startup", "faults"),
    [
        (
            Startup(state="failed", step="gpu", gpu_check=REPORTED | {"gpus": 7}),
            ("7 GPUs instead of 8", "it can't be asked: it failed in the step gpu"),
        ),
        (
            Startup(state="running", step="mounts"),
            ("it can't be asked: it is at the step mounts",),
        ),
        (
            Startup(state="done"),
            (f"it can't be asked: it has started up, {OLDER}",),
        ),
    ],
)
def test_of_who_can_not_be_asked_its_start_up_tells(
    startup: Startup, faults: tuple[str, ...]
) -> None:
    (vm,) = _vms(1)
    assert testing._unasked(vm, startup).faults == faults


def test_many_bad_vms_are_named_and_a_handful_in_full() -> None:
    vms = _vms(9)
    checked = {vm.name: VmCheck(faults=("7 GPUs instead of 8",)) for vm in vms}
    problems = testing.of_vms(vms, checked, WHERE)
    assert len(problems) == 6
    assert problems[5].what == "4 more: vm-5, vm-6, vm-7, vm-8"


RECORD = cast(
    "Record",
    SimpleNamespace(project_id="p", zone="z", region="r", name_prefix="np", settings={}),
)
OPEN = {"name": "np-1", "state": "ACCEPTED", "resizeBy": 1}
GONE_BY = {"name": "np-1", "state": "SUCCEEDED", "resizeBy": 1}


def _with(*statuses: str) -> list[Vm]:
    about = {"machineType": "a2-highgpu-2g", "networkInterfaces": [{}]}
    return [
        Vm.of({"name": f"np-vm-{number}", "status": status, **about}, Clock(0))
        for number, status in enumerate(statuses)
    ]


def _cloud(group: dict[str, Any] | None, *requests: dict[str, Any]) -> Cloud:
    api = SimpleNamespace(find=lambda *_: group, resize_requests=lambda _: list(requests))
    folder = SimpleNamespace(outputs=lambda: {"group": {"size": 2}})
    return cast("Cloud", SimpleNamespace(api=api, folder=folder))


@pytest.mark.parametrize(
    ("cloud", "vms", "error", "code"),
    [
        (_cloud({"targetSize": 2}), _with("RUNNING"), StillWaiting, 75),
        (_cloud({"targetSize": 2}), [], StillWaiting, 75),
        (_cloud({"targetSize": 2}), _with("RUNNING", "STAGING"), StillWaiting, 75),
        (_cloud({"targetSize": 0}, OPEN), _with("RUNNING"), StillWaiting, 75),
        (_cloud({"targetSize": 1}, GONE_BY), _with("RUNNING"), ClusterError, 8),
        (_cloud({"targetSize": 0}), [], ClusterError, 8),
        (_cloud(None), [], ClusterError, 8),
        (_cloud({"targetSize": 3}), _with("RUNNING", "RUNNING", "RUNNING"), ClusterError, 8),
    ],
)
def test_row_6_a_part_of_the_vms_or_none_does_not_pass(
    cloud: Cloud, vms: list[Vm], error: type[StillWaiting | ClusterError], code: int
) -> None:
    with pytest.raises(error) as caught:
        testing.require_all(cloud, RECORD, vms)
    assert caught.value.exit_code == code
    running = sum(vm.status == "RUNNING" for vm in vms)
    assert f"{running} of 2 VMs of np-mig" in caught.value.problems[0].what


def test_all_of_them_are_tested() -> None:
    testing.require_all(_cloud({"targetSize": 2}), RECORD, _with("RUNNING", "RUNNING"))
