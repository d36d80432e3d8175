import dataclasses
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from provision.catalogue import gke_versions
from provision.documents import plain
from provision.documents.cost import Amount, Cost, Origin, Part, PartKind
from provision.documents.gke_status import (
    ClusterNow,
    GkeCluster,
    JobState,
    Node,
    NodePool,
    NodeRequest,
    PodCounts,
    RequestState,
    Workload,
)
from provision.documents.status import (
    About,
    End,
    EndedBy,
    Filestore,
    LockHolder,
    Older,
    PoolMode,
    PoolNow,
    SoFar,
    Status,
    Trouble,
    Waiting,
)
from provision.documents.vm_status import (
    BootImage,
    Counts,
    Down,
    Interruption,
    ResizeRequest,
    Startup,
    StartupState,
    StartupStep,
    Vm,
    VmGroup,
)
from provision.kinds.gke.kubernetes import pods
from provision.screens import status
from provision.spec.capacity import Mode
from tests.conftest import Golden
from tests.unit.table import made

GOLDENS: Final = Path(__file__).parents[2] / "golden" / "status"
MOST: Final = 64 * 1024
SHARED: Final[dict[str, Any]] = {
    "name": "np",
    "project": "my-project",
    "cluster_id": "c6cdf9b25eb7",
    "zone": "us-central1-a",
    "resources": tuple(f"module.group.thing.number[{number}]" for number in range(6)),
    "links": {
        "VMs": "https://console.cloud.google.com/compute/instanceGroups/details/us-central1-a/np-mig"
        "?project=my-project",
        "Quotas": "https://console.cloud.google.com/iam-admin/quotas?project=my-project",
    },
    "last_log": "gs://aiinfra-terraform-my-project/np-deployment/logs/2026-11-22-create.log",
    "state": "gs://aiinfra-terraform-my-project/np-deployment",
}
IMAGE: Final = BootImage(
    project="ml-images", family=None, name="pytorch-2-9-cu129-ubuntu-2204-nvidia-580-v20260818"
)
STOCKOUT: Final = (
    "The zone 'projects/my-project/zones/us-central1-a' does not have enough resources available to"
    " fulfill the request. '(resource type:compute)'."
)
ADVICE: Final = (
    "Google has no such machines at the moment; the request stays in Google's queue: wait, or try"
    " another zone, region or machine type\n"
    "zones of us-central1 that have the machine type: us-central1-b, us-central1-c\n"
    "other regions that have it: us-east1, us-east4, us-west1, us-west4 and 11 more"
)
DONE: Final = Startup(state=StartupState.DONE, step=None, words="has started up")


FAILED: Final = StartupState.FAILED
SOON: Final = (
    "first=2026-11-27T20:00:00Z last=2026-11-27T20:00:00Z first_seconds=460000 last_seconds=460000"
)


def _vm(number: int, startup: Startup = DONE, **changes: Any) -> Vm:
    usual = f"name=np-vm-{number:04d} status=RUNNING machine_type=a2-highgpu-2g"
    times = "created=2026-11-22T08:00:00Z started=2026-11-22T08:00:00Z"
    return made(Vm, f"{usual} {times}", startup=startup, **changes)


def _group(vms: list[Vm], wanted: int, **changes: Any) -> VmGroup:
    """A group of VMs of which only those that are given exist."""
    ready = sum(vm.is_ready for vm in vms)
    running = sum(vm.status == "RUNNING" for vm in vms)
    failed = sum(vm.startup.state is StartupState.FAILED for vm in vms)
    silent = sum(bool(vm.silence) for vm in vms)
    pool = made(
        PoolNow,
        "name=np-mig machine_type=a2-highgpu-2g zone=us-central1-a gpus='2 x A100'"
        f" asked={wanted} there={len(vms)} ready={ready}",
        mode=changes.pop("mode", PoolMode.STANDARD),
    )
    counts = made(
        Counts,
        f"wanted={wanted} exist={len(vms)} running={running} ready={ready} failed={failed}"
        f" starting={running - ready - failed - silent} silent={silent} listed={len(vms)}",
        down=len(changes.get("down", ())),
        out_of_date=sum(group.count for group in changes.get("out_of_date", ())),
    )
    usual = SHARED | {"kind": "mig", "words": "VM group", "machines": (pool,), "image": IMAGE}
    usual |= {"wanted": wanted, "running": running, "counts": counts, "vms": tuple(vms)}
    return VmGroup(**usual | changes)


def _amount(per_hour: str, *unknown: str, is_estimate: bool = False) -> Amount:
    usd = Decimal(per_hour)
    return Amount(per_hour=usd, per_day=24 * usd, unknown=unknown, is_estimate=is_estimate)


def _cost(now: Amount, most: Amount) -> Cost:
    hourly: dict[str, Any] = {"now": now.per_hour, "most": most.per_hour}
    part = Part(kind=PartKind.MACHINES, name="machines", dated="2026-07-30", **hourly)
    return Cost(currency="USD", prices=Origin.LIST, parts=(part,), now=now, most=most)


def _healthy() -> Status:
    words = "MAX_RUN_DURATION=12h would end new ones after 12 hours"
    never = End(what="4 VMs", how=EndedBy.NEVER, words=words)
    lost = "event=host-error seconds_ago=7200 words='lost its host, which failed 2 h 0 min ago'"
    notebook = "https://3f2a-dot-us-central1.notebooks.example"
    vms = [
        _vm(1, maintenance_seconds=3000),
        _vm(2, interruption=made(Interruption, lost)),
        _vm(3),
        _vm(4, notebook=notebook),
    ]
    return _group(
        vms,
        4,
        ends=(never,),
        cost=_cost(_amount("31.28"), _amount("31.28")),
        so_far=made(SoFar, "usd=125.12 hours=4"),
        filestores=(made(Filestore, "name=np-nfs-1 path=/data ip=10.0.0.2"),),
    )


def _one_of_many() -> Status:
    detail = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'"
    failed = made(
        Startup, "step=command words='failed in the step command'", state=FAILED, detail=detail
    )
    vms = [_vm(42, failed), *(_vm(number) for number in range(200) if number != 42)]
    broken = made(
        Trouble,
        "about=start_up names=np-vm-0042",
        what="np-vm-0042 failed in the step command",
        why=tuple(failed.detail.splitlines()),
        fix="see the whole output in the VM's serial port 1, fix the cause, restart the VM, and run"
        " Create again; what restarts it:\n"
        "gcloud compute instances reset np-vm-0042 --zone us-central1-a --project my-project",
    )
    amount = _amount("1470.00", is_estimate=True)
    so_far = made(SoFar, "usd=5880 hours=4 is_estimate=true")
    return _group(vms, 200, trouble=(broken,), cost=_cost(amount, amount), so_far=so_far)


def _flex_start() -> Status:
    asked = "he request np-1 for 4 VMs is waiting in Google's queue"
    request = made(
        ResizeRequest,
        "name=np-1 count=4 run_seconds=43200 state=ACCEPTED age_seconds=4000",
        words=f"T{asked} (ACCEPTED)",
        reasons=(STOCKOUT,),
    )
    waits = made(
        Waiting,
        "about=request names=np-1 seconds=4000",
        what=f"t{asked} (ACCEPTED)",
        why=(STOCKOUT,),
        advice=ADVICE,
    )
    end = End(what="4 VMs to come", how=EndedBy.RUN, words="each 12 h 0 min after it came")
    return _group(
        [],
        4,
        mode=PoolMode.FLEX_START,
        waiting=(waits,),
        requests=(request,),
        ends=(end,),
        cost=_cost(_amount("0.45"), _amount("16.30", "4 x boot disk, 2,000 GiB pd-ssd")),
        so_far=made(SoFar, "usd=0.50 hours=1.1"),
    )


def _out_of_date() -> Status:
    differences = ("a2-highgpu-2g instead of a2-highgpu-1g", "labels team")
    older = made(Older, "count=2 names=np-vm-0001,np-vm-0002", differences=differences)
    held = "who=ann@laptop operation=OperationTypeApply since='2026-11-22 09:00:00 UTC' id=1-2"
    lock = made(LockHolder, held)
    changing = made(
        Waiting,
        "about=lock why=OperationTypeApply",
        what="ann@laptop is changing it since 2026-11-22 09:00:00 UTC",
        advice="if you are sure that this run is dead, run its action again with --break-lock 1-2",
    )
    room = "does not exist: its group makes it as soon as there is room"
    down = made(
        Down, "name=np-vm-0003 action=RECREATING", status=None, words=room, reasons=(STOCKOUT,)
    )
    gone = made(
        Trouble,
        "about=machines names=np-vm-0003 by_itself=true",
        what=f"np-vm-0003 was preempted; it {room}",
        why=(STOCKOUT,),
    )
    soon = made(
        End,
        "what='2 VMs' how=run_duration first=2026-11-22T20:00:00Z last=2026-11-22T21:30:00Z"
        " first_seconds=36000 last_seconds=41400",
    )
    return _group(
        [_vm(1, remaining_seconds=36_000), _vm(2, remaining_seconds=41_400)],
        3,
        mode=PoolMode.SPOT,
        out_of_date=(older,),
        trouble=(gone,),
        waiting=(changing,),
        lock=lock,
        locked_by=lock.who,
        down=(down,),
        ends=(soon,),
    )


def _ray() -> Status:
    starting = Startup(state=StartupState.RUNNING, step="ray", words="is at the step ray")
    about = "about=start_up count=2 names=np-vm-0002,np-vm-0003 seconds=190"
    waits = made(Waiting, about, what="2 VMs: each is at the step ray")
    vms = [_vm(2, starting), _vm(3, starting), _vm(1)]
    return _group(vms, 3, words="Ray cluster", waiting=(waits,))


def _gke() -> GkeCluster:
    request = made(
        NodeRequest,
        "name=job-train-1a2b3-dws-prov-1 reason=ResourcePoolExhausted",
        state=RequestState.WAITING,
        message=STOCKOUT,
        advice=ADVICE,
    )
    waits = made(
        Waiting, "about=job names='Job train' seconds=4000", what="Job train waiting for nodes"
    )
    asks = made(
        Waiting,
        f"about=request names={request.name} seconds=3990 until=2026-11-22T16:00:00Z"
        " until_seconds=3210",
        what=f"the request {request.name} waits in Google's queue for machines in the zone",
        why=(f"{request.reason}: {request.message}",),
        advice=ADVICE,
        then="it gives up its place in Google's queue",
    )
    gone = made(
        Trouble,
        "about=pool names=gke-np-system-1 by_itself=true",
        what="1 node of np-system not ready",
        why=("gke-np-system-1 is not ready (NodeStatusUnknown): Kubelet stopped posting status.",),
    )
    system = made(
        PoolNow,
        "name=np-system machine_type=e2-standard-16 zone=us-central1-b mode=system least=2 most=10"
        " there=2 ready=1",
    )
    queued = made(
        PoolNow,
        "name=np-nodepool-1 machine_type=a3-ultragpu-8g zone=us-central1-a gpus='8 x H200 141 GB'"
        " least=0 most=16 there=2 ready=2",
        mode=PoolMode.FLEX_START_QUEUED,
    )
    pools = tuple(
        NodePool(
            name=pool.name,
            machine_type=pool.machine_type,
            mode=pool.mode or PoolMode.SYSTEM,
            status="RUNNING",
            min=pool.least,
            max=pool.most,
            nodes=pool.there,
            ready=pool.ready,
        )
        for pool in (queued, system)
    )
    runs_out = made(End, f"how=run_duration {SOON}", what="2 nodes of np-nodepool-1")
    version = "1.33.5-gke.2000000"
    tune = made(
        Workload,
        "name='RayJob tune' queue=dws-local-queue pools=np-nodepool-1 stops=2026-11-24T20:00:00Z"
        " stops_seconds=172800 nodes_end=2026-11-27T20:00:00Z nodes_end_seconds=460000",
        state=JobState.RUNNING,
        pods=PodCounts(ready=1),
        interruptions=("begun again once for what befell its pods", "Preempted 2 times"),
        log=pods.log_command("my-project", "np-gke", "us-central1", "RayJob", "tune"),
    )
    return GkeCluster(
        **SHARED | {"links": {"Cluster": "https://console.cloud.google.com/kubernetes/np-gke"}},
        kind="gke",
        words="GKE cluster",
        trouble=(gone,),
        waiting=(waits, asks),
        machines=(queued, system),
        ends=(runs_out, End(what="2 nodes", how=EndedBy.NEVER)),
        cost=_cost(
            _amount("82.10", "2 x boot disk", is_estimate=True),
            _amount("640.00", "16 x boot disk", is_estimate=True),
        ),
        so_far=made(SoFar, "usd=1893.20 hours=30 unknown='2 x boot disk' is_estimate=true"),
        cluster=made(
            ClusterNow,
            f"name=np-gke location=us-central1 status=RUNNING version={version}",
            supported_until=gke_versions.supported_until(version),
            support_is_over=True,
        ),
        node_pools=pools,
        jobs={"waiting for nodes": 1, "running": 1},
        workloads=(
            Workload(name="Job train", state=JobState.WAITING_FOR_NODES, message=STOCKOUT),
            tune,
        ),
        requests=(request,),
    )


def _gke_health() -> GkeCluster:
    """A node with a broken GPU, one whose host is to be maintained, and jobs in no queue."""
    loose = made(
        Waiting,
        "about=job names='Job by-hand' seconds=600",
        what="Job by-hand waits for nodes, in no queue",
        why=("0/4 nodes are available: 2 node(s) had untolerated taint {gke-queued: true}.",),
        advice="nodes of queued pools are for jobs of the queue: give the job the label"
        " kueue.x-k8s.io/queue-name: dws-local-queue",
    )
    broken = made(
        Trouble,
        "about=pool names=gke-np-gpu-1 why=gke-np-gpu-1",
        what="1 node of np-nodepool-1 with a fault: a GPU is broken (XID 79); 7 of 8 GPUs usable",
        fix="keep new pods off it; the jobs on it end with its VM, and lose what is not saved:\n"
        "kubectl cordon gke-np-gpu-1\n"
        "then have its VM replaced:\n"
        "gcloud compute instance-groups managed delete-instances gke-np-grp --zone us-central1-a"
        " --project my-project --instances=gke-np-gpu-1",
    )
    maintained = made(
        End,
        "how=maintenance first=2026-11-23T08:00:00Z last=2026-11-23T08:00:00Z first_seconds=60800"
        " last_seconds=60800 words='Google maintains the host, which ends the pods on it'",
        what="1 node of np-nodepool-1 (gke-np-gpu-0)",
    )
    gpus = "pool=np-nodepool-1 ready=true gpus=8 ends=2026-11-27T20:00:00Z remaining_seconds=460000"
    faults = ("a GPU is broken (XID 79)", "7 of 8 GPUs usable")
    later = "maintenance=2026-11-23T08:00:00Z maintenance_seconds=60800"
    found = _gke()
    return dataclasses.replace(
        found,
        trouble=(broken,),
        waiting=(loose,),
        ends=(*found.ends, maintained),
        jobs={"running": 1},
        nodes=(
            made(Node, f"name=gke-np-gpu-1 usable_gpus=7 cordoned=true {gpus}", faults=faults),
            made(Node, f"name=gke-np-gpu-0 usable_gpus=8 {later} {gpus}"),
            made(Node, "name=gke-np-system-0 pool=np-system ready=true"),
            made(Node, "name=gke-np-system-1 pool=np-system ready=false"),
        ),
        outside=(
            Workload(name="Job by-hand", state=JobState.PENDING),
            made(
                Workload,
                "name='Pod debug in team-a' pools=np-nodepool-1",
                state=JobState.RUNNING,
                pods=PodCounts(ready=1),
            ),
        ),
    )


def _nothing() -> Status:
    return Status(state="gs://aiinfra-terraform-my-project/np-deployment")


STORIES: Final = {
    "healthy": _healthy,
    "one-of-200": _one_of_many,
    "flex-start": _flex_start,
    "gke-queue": _gke,
    "gke-health": _gke_health,
    "ray": _ray,
    "out-of-date": _out_of_date,
    "nothing": _nothing,
}


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("story", STORIES)
def test_status_is_read_at_a_glance_with_the_broken_first(
    story: str, width: int, golden: Golden
) -> None:
    found = STORIES[story]()
    shown = list(status.lines(found.short(), width))
    for line in shown:
        # What has to be copied stays whole.
        copied = any(part in line.text for part in ("gs://", "https://", "gcloud "))
        assert copied or len(line.text) <= width, line.text
    assert len(shown) <= 40
    golden.check(GOLDENS / f"{story}-{width}.txt", "".join(f"{line.text}\n" for line in shown))


@pytest.mark.parametrize("known", [True, False])
def test_what_is_not_known_is_called_so_and_neither_broken_nor_none(*, known: bool) -> None:
    what = "it is not known what runs in the cluster: Kubernetes could not be asked"
    silent = Trouble(about=About.KUBERNETES, what=what, by_itself=True)
    pools = [
        dataclasses.replace(it, there=it.there if known else None, ready=None)
        for it in _gke().machines
    ]
    found = dataclasses.replace(_gke(), trouble=(silent,), waiting=(), machines=tuple(pools))
    title, *rest = [line.text for line in status.lines(found, 120)]
    whole = " ".join(" ".join(rest).split())

    assert title.endswith("not known")
    assert f"unknown {what}" in whole
    assert "broken" not in whole
    assert "ready," not in whole
    counted = "4 nodes run, and how many are ready is not known"
    assert (counted if known else "how many nodes there are is not known") in whole
    assert ("np-nodepool-1 2 run" if known else "np-nodepool-1 not known") in whole
    # What is broken beside it stands first.
    silent = Trouble(about=About.KUBERNETES, what="it is not known what runs in the cluster")
    found = dataclasses.replace(_gke(), trouble=(*_gke().trouble, silent))
    title, *rest = [line.text for line in status.lines(found, 120)]
    assert title.endswith("not in order")
    labels = [line.split()[0] for line in rest if line.startswith(("  broken", "  unknown"))]
    assert labels == ["broken", "unknown"]


def test_what_is_listed_short_is_listed_whole_with_full() -> None:
    whole = [line.text for line in status.lines(_one_of_many(), 100, full=True)]
    assert sum("has started up" in line for line in whole) == 199
    assert "200 of 200 listed, 1 failed" in "\n".join(whole)
    assert _healthy().short() == _healthy(), "a small one is not shortened"


def test_a_vm_that_is_not_heard_of_is_listed_as_that_and_is_not_ready() -> None:
    found = _group([_vm(0), _vm(1, silence="has not been heard of for 12 min")], 2)
    text = "\n".join(line.text for line in status.lines(found, 100))
    assert "1 of 2 VMs ready, 1 not heard of" in text
    assert "np-vm-0001  has started up; has not been heard of for 12 min" in text


def test_every_way_to_get_machines_has_its_words() -> None:
    assert {mode.value for mode in Mode} == {mode.value for mode in PoolMode} - {"system"}


def _size(found: Status) -> int:
    return len(json.dumps(plain(found), indent=2, ensure_ascii=False).encode())


LONG: Final = " ".join(
    ["Google says much about what it does not give to anybody at all today"] * 40
)


def test_the_json_of_a_thousand_vms_stays_small_whatever_befalls_them() -> None:
    failed = Startup(
        state=StartupState.FAILED,
        step="command",
        words="failed in the step command",
        detail="\n".join([LONG] * 20),
        steps={f"step-{number}": StartupStep(state="failed", detail=LONG) for number in range(12)},
    )
    names = tuple(f"np-vm-{number:04d}" for number in range(1000))
    troubles = tuple(
        Trouble(about=About.START_UP, what="1,000 VMs", count=1000, names=names, why=(LONG,) * 20)
        for _ in range(50)
    )
    down = tuple(
        Down(name=name, status=None, action="CREATING", words="is gone", reasons=(LONG,) * 5)
        for name in names
    )
    found = _group(
        [_vm(number, failed) for number in range(1000)],
        1000,
        down=down,
        trouble=troubles,
        waiting=tuple(
            Waiting(about=About.START_UP, what="wait", names=names, why=(LONG,) * 20)
            for _ in range(50)
        ),
        out_of_date=tuple(
            Older(differences=(f"metadata {number}",), count=1000, names=names)
            for number in range(50)
        ),
    )
    assert _size(found) > 20 * MOST
    short = found.short()
    assert _size(short) < MOST
    assert (short.shortened, found.shortened) == (True, False)
    assert isinstance(short, VmGroup)
    assert (short.counts.exist, short.counts.failed, short.counts.down) == (1000, 1000, 1000)
    assert short.counts.listed == len(short.vms) < 1000


def test_the_json_of_a_cluster_with_a_thousand_nodes_and_jobs_stays_small() -> None:
    found = _gke_health()
    lines = tuple(f"gke-node-{number:04d} is not ready: {LONG}" for number in range(1000))
    jobs = tuple(
        Workload(name=f"Job {number}", state=JobState.PENDING, message=LONG, advice=ADVICE)
        for number in range(1000)
    )
    big = dataclasses.replace(
        found,
        node_pools=tuple(
            dataclasses.replace(pool, unready=lines) for pool in found.node_pools for _ in range(5)
        ),
        workloads=jobs,
        outside=jobs,
        nodes=found.nodes * 250,
        requests=found.requests * 1000,
    )
    assert _size(big) > 20 * MOST
    assert _size(big.short()) < MOST


@pytest.mark.parametrize("width", [80, 100])
def test_all_nodes_are_listed_where_everything_is(width: int, golden: Golden) -> None:
    shown = list(status.lines(_gke_health(), width, full=True))
    text = "".join(f"{line.text}\n" for line in shown)
    golden.check(GOLDENS / f"gke-health-full-{width}.txt", text)
