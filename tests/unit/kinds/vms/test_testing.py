"""A Test of VMs: all of them, who is asked, and what is said of single ones."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from provision.documents.checks import VmCheck
from provision.documents.timeline import StageName
from provision.documents.vm_status import GpuCheck, StartupStep
from provision.errors import ClusterError, StillWaiting
from provision.kinds.vms import agent, instances, testing
from provision.kinds.vms.instances import Vm
from provision.kinds.vms.startup import Startup
from provision.kinds.vms.testing import Measured
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.table import cases
from tests.unit.kinds.cases import having
from tests.unit.memory_folder import MemoryFolder

SEVEN = "7 GPUs instead of 8"


def test_a_bad_vm_is_not_recreated_under_who_works_and_of_many_a_handful_is_named_in_full() -> None:
    used = VmCheck(faults=(SEVEN,), users=("python3 (41)",))
    (problem,) = testing.of_vms(made(1), {"vm-0": used}, WHERE)
    assert problem.fix.startswith("end python3 (41), or let them end; then let Google recreate it")
    note = testing.left_out({"vm-0": used.users}, all_of_them=False)
    assert note.what == "not measured: the GPUs of vm-0 (python3 (41)) are in use"
    vms = made(2)
    found = instances.judge(vms[0], {"login": ["NCCL_NET=gIB instead of nothing"]}).login
    (problem,) = testing.of_vms(vms, {vm.name: VmCheck(login=found) for vm in vms}, WHERE)
    assert problem.what == "a login shell on vm-0, vm-1 has NCCL_NET=gIB instead of nothing"
    assert "recreate" not in problem.fix
    bound = [dataclasses.replace(vm, bound=True) for vm in made(1)]
    (problem,) = testing.of_vms(bound, {"vm-0": VmCheck(faults=(SEVEN,))}, WHERE)
    assert problem.fix.endswith("--fault-reasons=behavior=CHIP_ERROR")
    vms = made(9)
    problems = [*testing.of_vms(vms, {vm.name: VmCheck(faults=(SEVEN,)) for vm in vms}, WHERE)]
    assert len(problems) == 6
    assert problems[5].what == "4 more: vm-5, vm-6, vm-7, vm-8"


OLDER = "by a version of this tool whose VMs hear of nothing; run Create --replace-vms"
REPORTED = GpuCheck(
    gpus=8, names=("NVIDIA H100 80GB HBM3",) * 8, driver="580", ecc_errors=0, interfaces=9
)


@cases("""
told | hears
{state: done, steps: {agent: {state: done}}}                   | true
# Nothing is known of it: guest attributes may be forbidden.
{}                                                             | true
{state: failed, step: command, steps: {agent: {state: done}}}  | true
{state: failed, step: gpu, steps: {gpu: {state: failed}}}      | false
{state: running, step: gpu}                                    | false
{state: done}                                                  | false
""")
def test_only_who_can_hear_of_a_task_is_asked(told: dict[str, Any], *, hears: bool) -> None:
    steps = {name: StartupStep(**step) for name, step in told.get("steps", {}).items()}
    assert testing._hears(Startup(**told | {"steps": steps})) is hears


@cases(f"""
told                          | gpus | faults
{{state: failed, step: gpu}}    | 7    | it failed in the step gpu
{{state: running, step: mounts}} | null | it is at the step mounts
{{state: done}}                 | null | it has started up, {OLDER}
""")
def test_of_who_can_not_be_asked_its_start_up_tells(
    told: dict[str, Any], gpus: int | None, faults: str
) -> None:
    checked = replace(REPORTED, gpus=gpus) if gpus else None
    found = testing._judged(made(1)[0], Startup(**told, gpu_check=checked), None).faults
    assert found == (*[SEVEN] * (gpus == 7), f"it can't be asked: {faults}")


RECORD = having(project_id="p", zone="z", region="r", name_prefix="np", settings={})


def _with(*statuses: str) -> list[Vm]:
    about = {"machineType": "a2-highgpu-2g", "networkInterfaces": [{}]}
    return [
        Vm.of({"name": f"np-vm-{number}", "status": status, **about}, Clock(0))
        for number, status in enumerate(statuses)
    ]


def _cloud(group: dict[str, Any] | None, *requests: dict[str, Any]) -> Any:
    api = having(find=lambda *_: group, resize_requests=lambda _: list(requests))
    folder = having(outputs=lambda: {"group": {"size": 2}})
    return having(api=api, folder=folder)


@cases("""
group           | requests  | vms                     | code
{targetSize: 2} |           | RUNNING                 | 75
{targetSize: 2} |           | -                       | 75
{targetSize: 2} |           | RUNNING STAGING         | 75
{targetSize: 0} | ACCEPTED  | RUNNING                 | 75
{targetSize: 1} | SUCCEEDED | RUNNING                 | 8
{targetSize: 0} |           | -                       | 8
null            |           | -                       | 8
{targetSize: 3} |           | RUNNING RUNNING RUNNING | 8
""")
def test_row_6_a_part_of_the_vms_or_none_does_not_pass(
    group: dict[str, Any] | None, requests: str, vms: str, code: int
) -> None:
    asked = [{"name": "np-1", "state": it, "resizeBy": 1} for it in requests.split()]
    error = StillWaiting if code == 75 else ClusterError
    with pytest.raises(error) as caught:
        testing.require_all(_cloud(group, *asked), RECORD, _with(*vms.split()))
    assert caught.value.exit_code == code
    assert f"{vms.count('RUNNING')} of 2 VMs of np-mig" in caught.value.problems[0].what
    testing.require_all(_cloud({"targetSize": 2}), RECORD, _with("RUNNING", "RUNNING"))


H100 = "NVIDIA H100 80GB HBM3"
MEGA_MTU = 8244


def _vm(machine: str = "a3-megagpu-8g", interfaces: int = 9, **fields: Any) -> Vm:
    document = {"name": "vm", "status": "RUNNING", "machineType": machine}
    return Vm.of(document | {"networkInterfaces": [{}] * interfaces} | fields, Clock())


def _gpu(**fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"uuid": "GPU-1", "name": H100, "driver": "580.95.05"}
    usual |= dict.fromkeys(("ecc_volatile", "ecc_aggregate"), 0)
    return usual | {"repair_pending": False, "repair_failed": False} | fields


def _interfaces(count: int = 9, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"eth{n}", "mtu": MEGA_MTU, "up": True} | fields for n in range(count)]


def _found(**fields: Any) -> dict[str, Any]:
    usual = {
        "error": "",
        "gpus": [_gpu() for _ in range(8)],
        "diagnostic": {"ran": True, "error": "", "failures": []},
        "interfaces": _interfaces(),
        "local_ssd": {"disks": 16, "expected": 16, "mounted": True, "bytes": 6 * 10**12},
        "fabric": {"kind": "tcpxo", "faults": []},
    }
    return usual | fields


def test_a_vm_as_it_should_be_or_with_a_part_of_a_gpu_has_no_faults() -> None:
    check = instances.judge(_vm(), _found())
    assert check.faults == ()
    assert (check.gpus, check.driver, check.ecc_errors) == (8, "580.95.05", 0)
    assert (check.diagnostic, check.interfaces, check.local_ssds) == ("passed", 9, 16)
    part = GpuCheck(gpus=1, names=("NVIDIA RTX Pro 6000 Blackwell DC-12Q",), interfaces=1)
    assert instances.reported(_vm("g4-standard-6", 1), part).faults == ()
    assert instances.reported(_vm("g4-standard-96", 1), part).faults != ()


EIGHT = [_gpu() for _ in range(8)]


FAILED: dict[str, Any] = {"ran": True, "failures": ["software of GPU 5: Row remap failure"]}
DOWN = {"name": "eth8", "mtu": MEGA_MTU, "up": False}
SLOW = [*_interfaces(2, mtu=1460), *_interfaces(7)]
UNMOUNTED = {"disks": 16, "mounted": False}
NO_PLUGIN = {"kind": "tcpxo", "faults": ["no libnccl-net.so"]}


def _with_gpu(**fields: Any) -> dict[str, Any]:
    return {"gpus": [*EIGHT[:7], _gpu(**fields)]}


NAMED: dict[str, dict[str, Any]] = {
    "7 GPUs instead of 8": {"gpus": EIGHT[:7]},
    "nvidia-smi did not end": {"gpus": [], "error": "nvidia-smi did not end"},
    "NVIDIA L4 instead of H100": _with_gpu(name="NVIDIA L4"),
    "3 uncorrected memory (ECC) errors since its boot, on GPU 7": _with_gpu(ecc_volatile=3),
    "GPU 7 can't repair its memory any more": _with_gpu(repair_failed=True),
    "GPU 7 waits for a restart to repair its memory": _with_gpu(repair_pending=True),
    f"DCGM's diagnostic failed: {FAILED['failures'][0]}": {"diagnostic": FAILED},
    "8 network interfaces instead of 9": {"interfaces": _interfaces(8)},
    "no link on eth8": {"interfaces": [*_interfaces(8), DOWN]},
    "7 interfaces have the MTU 8244 instead of the 8 of its GPUs": {"interfaces": SLOW},
    "15 local SSDs instead of 16": {"local_ssd": {"disks": 15, "mounted": True}},
    "its local SSDs are not mounted at /mnt/localssd": {"local_ssd": UNMOUNTED},
    "the fabric tcpxo: no libnccl-net.so": {"fabric": NO_PLUGIN},
}


@pytest.mark.parametrize("fault", NAMED)
def test_what_is_not_as_it_should_be_is_named(fault: str) -> None:
    assert fault in instances.judge(_vm(), _found(**NAMED[fault])).faults


def test_what_was_repaired_or_can_not_be_counted_or_run_is_no_fault() -> None:
    gpus = [_gpu(ecc_aggregate=12), *EIGHT[1:]]
    assert instances.judge(_vm(), _found(gpus=gpus)).faults == ()
    found = _found(diagnostic={"ran": False, "error": "there is no dcgmi", "failures": []})
    check = instances.judge(_vm(), found)
    assert (check.diagnostic, check.faults) == ("not run", ())
    one = _found(interfaces=_interfaces(1, mtu=1460))
    assert instances.judge(_vm(interfaces=1), one).faults == ()
    t4 = {"acceleratorType": "zones/z/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 1}
    vm = _vm("n1-standard-8", 1, guestAccelerators=[t4])
    gpu = _gpu(name="Tesla T4", ecc_volatile=None, ecc_aggregate=None)
    check = instances.judge(vm, _found(gpus=[gpu], interfaces=_interfaces(1)))
    assert (check.ecc_errors, check.faults) == (None, ())
    found = _found(
        error="there is no nvidia-smi", gpus=[], interfaces=_interfaces(1), local_ssd={"disks": 0}
    )
    assert instances.judge(_vm("n1-standard-8", 1), found).faults == ()


@cases("""
nonsense
{gpus: many, diagnostic: [], interfaces: null, local_ssd: 7, fabric: x}
{}
""")
def test_nonsense_is_a_fault_and_no_crash(nonsense: dict[str, Any]) -> None:
    assert "0 GPUs instead of 8" in instances.judge(_vm(), nonsense).faults


@cases("""
change                | fault
{}                    | -
{gpus: 7}             | 7 GPUs instead of 8
{names: [Tesla T4]}   | Tesla T4 instead of H100
{ecc_errors: 3}       | 3 uncorrected memory (ECC) errors
{interfaces: 1}       | 1 network interfaces instead of 9
""")
def test_what_a_vm_reported_is_judged_likewise(change: dict[str, Any], fault: str) -> None:
    assert instances.reported(_vm(), replace(REPORTED, **change)).faults == (
        (fault,) if fault else ()
    )


Answers = Callable[[dict[str, Any], str], dict[str, Any] | None]
WHERE = "np-mig --zone z --project p"
GOOD, HALF = 188.0, 94.0
MEGA = "a3-megagpu-8g"


class Folder(MemoryFolder):
    """A state folder that VMs answer in as soon as a task is there."""

    def __init__(self, answer: Answers) -> None:
        super().__init__()
        self._answer = answer
        self.asked: list[dict[str, Any]] = []  # the tasks that were written

    def write(self, name: str, text: str, _: str) -> None:
        task = json.loads(text)
        self.asked.append(task)
        self.files[name] = text
        for vm in task["vms"]:
            document = self._answer(task, vm)
            if document is not None:
                self.files[f"vms/results/{task['id']}/{vm}.json"] = json.dumps(document)


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
    plan = testing.plan(vms)
    folder: Any = Folder(answer)
    assert plan is not None
    with Progress(Clock(1e-9), lambda _: None).stage(StageName.TEST) as stage:
        return testing.measure(folder, plan, stage), folder


def _told(answer: Answers, vms: Sequence[Vm]) -> list[str]:
    """The problems, each with what fixes it."""
    measured, _ = _measured(answer, vms)
    return [f"{it.what} | {it.fix}" for it in testing.problems(measured, WHERE)]


def test_good_vms_are_measured_once_and_of_eight_the_slow_one_is_named() -> None:
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
BOTH = "--instances=vm-0,vm-1"
SOCKETS = "NCCL used Socket there instead of FasTrak"


@pytest.mark.parametrize(
    ("answer", "count", "told"),
    [
        (_network("vm-0", "vm-6"), 8, "vm-0 is at fault: \nvm-6 is at fault: "),
        # Of two neither is blamed.
        (_network("vm-1"), 2, f"between vm-0, vm-1: 94.0 GB/s | INSTANCE_COUNT | {BOTH}"),
        # Sockets on all are no single one's fault.
        (_network(network="Socket"), 3, f"all 3 VMs: {SOCKETS} | step fabric"),
        # A failure that may be anybody's is searched for.
        (_anybodys, 4, "vm-2 is at fault: | failed: process 17: exit code 1"),
        # Wrong values fail whatever the bandwidth.
        (_network(wrong=1), 2, "NCCL computed 14 wrong values"),
        # There is no NCCL on machines with a fabric.
        (lambda *_: LACKING, 2, "all 2 VMs: can't measure"),
    ],
)
def test_who_is_at_fault_is_named_with_what_mends_it(
    answer: Answers, count: int, told: str
) -> None:
    for one, parts in zip(_told(answer, made(count)), told.splitlines(), strict=True):
        assert all(part in one for part in parts.split(" | ")), one


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


def test_what_is_used_has_another_nccl_or_no_figure_is_no_fault() -> None:
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
    plugin = "/usr/local/gib/lib64/libnccl.so.2"
    measured, _ = _measured(_network(plugin=plugin, plugin_nccl="2.29.1"), made(2))
    (note,) = testing.notes(measured)
    assert "NCCL 2.28.7, and the network's plugin came with 2.29.1" in note.what
    assert f"LD_PRELOAD={plugin}" in note.fix
    assert not list(testing.notes(_measured(_network(), made(2))[0]))
    measured, _ = _measured(lambda *_: LACKING, made(2, "g2-standard-24", 1))
    assert testing.problems(measured, WHERE) == []
    (note,) = testing.notes(measured)
    assert note.what.endswith(f"was not measured: can't measure: {LACKING['answer']['why']}")
    assert "libnccl2" in note.fix
    assert testing.passed({}, measured.document).endswith("bandwidth not measured")
    measured, folder = _measured(_network(network="Socket"), made(2, "a2-highgpu-8g", 1))
    assert testing.problems(measured, WHERE) == []
    assert folder.asked[0]["arguments"]["sizes"][-1] == 2**30
    assert "without a verdict" in testing.passed({}, measured.document)
    assert testing.plan(made(1)) is None
    assert testing.plan(made(2, "n1-standard-8", 1)) is None


@cases("""
machine        | interfaces | collective | figure
# TCPX can't be had on VMs: NCCL's sockets, and the figure for those.
a3-highgpu-8g  | 5          | all_reduce | [0.75, 23.7]
a3-megagpu-8g  | 9          | all_gather | [0.9, 188.90]
a3-ultragpu-8g | 10         | all_gather | [0.9, 335.67]
a4-highgpu-8g  | 10         | all_gather | [0.9, 375.95]
# Without the interfaces of its GPUs no figure is for it.
a3-megagpu-8g  | 1          | all_gather | null
""")
def test_each_machine_is_measured_and_judged_by_its_own_figures(
    machine: str, interfaces: int, collective: str, figure: list[float] | None
) -> None:
    plan = testing.plan(made(2, machine, interfaces))
    assert plan is not None
    assert str(plan.collective) == collective
    assert plan.least == (figure and pytest.approx(figure[0] * figure[1]))
