import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cloud import policies, vm_jobs
from rehearsal.cloud.compute.resources import INSTANCE, NETWORK
from rehearsal.cloud.facts import bandwidths
from rehearsal.cloud.storage import buckets
from rehearsal.cloud.store import Database
from tests.rehearsal.cloud.sending import NOW, States

FOLDER = "np-deployment/vms/"
CLOUD = "https://www.googleapis.com/compute/v1/"
NETWORKS = "projects/my-project/global/networks/"


class Bucket(States):
    """A bucket of states, and VMs that have started up, in a cloud as fast as ours."""

    def vm(self, name: str, **fields: Any) -> None:
        """A VM of A3 Mega that runs and has started up."""
        check = {"names": ["H100"] * 8, "driver": "580"}
        told = {"begins": NOW - 900, "pace": 1.0, "skipped": {}, "failing": None}
        told |= {"fabric": "tcpxo", "number": 1, "gpu_check": check}
        zone = "projects/my-project/zones/z"
        vm = {
            "name": name,
            "id": f"id-of-{name}",
            "machineType": f"{CLOUD}{zone}/machineTypes/a3-megagpu-8g",
            "networkInterfaces": [
                {"network": f"{CLOUD}{NETWORKS}net-{it}", "networkIP": f"10.0.{it}.2"}
                for it in range(9)
            ],
            "selfLink": f"{CLOUD}{zone}/instances/{name}",
            "_timeline": [[NOW - 1000, "RUNNING"]],
            "_startup": told | fields.pop("startup", {}),
        }
        with self.database.transaction() as store:
            store.put(INSTANCE.stored, f"{zone}/instances/{name}", vm | fields)

    def ask(self, kind: str, *vms: str, seconds: int = 300, **arguments: Any) -> None:
        ids = {name: f"id-of-{name}" for name in vms}
        task = {"id": "t1", "kind": kind, "arguments": arguments, "vms": ids, "seconds": seconds}
        assert self.write(f"{FOLDER}task.json", json.dumps(task).encode()) == 200

    def answer(self, vm: str, after: float) -> Any:
        """What a VM has answered so many seconds after it was asked; None for nothing."""
        self.now = NOW + after
        reply = self.read(f"{FOLDER}results/t1/{vm}.json")
        if reply.status != 200:
            return None
        assert isinstance(reply.body, bytes)
        return json.loads(reply.body)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    database = Database(tmp_path / "cloud.sqlite")
    made = Bucket(database, "my-project", rate=1.0)
    with database.transaction() as store:
        for number in range(9):
            mtu = 8244 if number else 8896
            store.put(NETWORK.stored, f"{NETWORKS}net-{number}", {"mtu": mtu})
    yield made
    database.close()


LATER = bandwidths.HEARING + bandwidths.CHECK
MEASURED = bandwidths.HEARING + bandwidths.MEASUREMENT
SIZE = 8 * 2**30


def test_a_vm_hears_begins_and_answers_in_its_time(bucket: Bucket) -> None:
    bucket.vm("a")
    bucket.ask("check", "a")
    assert bucket.answer("a", 1) is None
    assert bucket.answer("a", bandwidths.HEARING + 1)["state"] == "running"
    done = bucket.answer("a", LATER + 1)
    assert (done["state"], done["vm"], done["instance_id"]) == ("done", "a", "id-of-a")
    assert len(done["answer"]["gpus"]) == 8
    assert [it["mtu"] for it in done["answer"]["interfaces"]] == [8896, *[8244] * 8]
    assert (done["answer"]["local_ssd"]["disks"], done["answer"]["local_ssd"]["mounted"]) == (
        16,
        True,
    )


@pytest.mark.parametrize(
    "otherwise",
    [
        {"id": "made-again"},
        {"_timeline": [[NOW - 1000, "RUNNING"], [NOW - 10, "STOPPING"]]},
        {"startup": {"failing": "gpu"}},
        {"startup": {"begins": NOW - 5}},
        {"_accounts": {"np-nodes@my-project.iam.gserviceaccount.com": "12"}},
        {"_accounts": {"np-off@my-project.iam.gserviceaccount.com": "13"}},
    ],
    ids=["another", "stopping", "failed", "starting", "account deleted", "account disabled"],
)
def test_who_is_another_or_down_or_has_no_agent_or_account_says_nothing(
    bucket: Bucket, otherwise: dict[str, Any]
) -> None:
    off = "np-off@my-project.iam.gserviceaccount.com"
    account = {"email": off, "uniqueId": "13", "projectId": "my-project", "disabled": True}
    with bucket.database.transaction() as store:
        store.put(policies.ACCOUNTS, off, account)
    bucket.vm("a", **otherwise)
    bucket.ask("check", "a")
    assert bucket.answer("a", 10_000) is None


ENDS: dict[str, tuple[str, str | None, int, float]] = {
    "done": ("check", "command", 300, LATER + 1),
    "refused": ("shell", None, 300, 100),
    "late": ("check", None, 5, 10_000),
}


@pytest.mark.parametrize("state", ENDS)
def test_an_agent_outlives_a_command_and_refuses_what_is_unknown_or_late(
    bucket: Bucket, state: str
) -> None:
    kind, failing, seconds, after = ENDS[state]
    bucket.vm("a", startup={"failing": failing})
    bucket.ask(kind, "a", seconds=seconds)
    assert bucket.answer("a", after)["state"] == state


def _groups(*groups: str) -> dict[str, Any]:
    named = [[{"name": vm, "address": "10.0.0.2"} for vm in group] for group in groups]
    return {"groups": named, "gpus": 8, "collective": "all_gather", "sizes": [SIZE]}


def _reached(document: Any) -> float:
    (row,) = document["answer"]["rows"]
    return float(SIZE * 15 / 16 / row["in_place"] / 1e9)


def test_a_pair_measures_over_its_gpu_network_and_the_first_tells(bucket: Bucket) -> None:
    bucket.vm("a")
    bucket.vm("b")
    bucket.ask("bandwidth", "a", "b", **_groups("ab"))
    first, other = (bucket.answer(vm, MEASURED + 1) for vm in "ab")
    assert _reached(first) == pytest.approx(188.59, rel=0.01)
    told = {"measured": True, "networks": ["FasTrak"], "library": "libnccl.so.2"}
    assert other["answer"] == told


@pytest.mark.parametrize("fabric", ["", "tcp"])
def test_without_its_fabric_nccl_uses_sockets(bucket: Bucket, fabric: str) -> None:
    bucket.vm("a")
    bucket.vm("b", startup={"fabric": fabric})
    bucket.ask("bandwidth", "a", "b", **_groups("ab"))
    assert _reached(bucket.answer("a", MEASURED + 1)) == pytest.approx(4.0, rel=0.01)
    assert bucket.answer("b", MEASURED + 1)["answer"]["networks"] == ["Socket"]


def test_the_slow_vm_halves_the_bandwidth_of_its_group_alone(bucket: Bucket) -> None:
    bucket.scenarios = frozenset({"slow-vm"})
    for name in "abcd":
        bucket.vm(name)
    bucket.ask("bandwidth", *"abcd", **_groups("ab", "cd"))
    slow, fast = (_reached(bucket.answer(vm, MEASURED + 1)) for vm in "ac")
    assert slow == pytest.approx(fast / 2, rel=0.01)


def test_the_bad_gpu_is_one_of_one_vm(bucket: Bucket) -> None:
    bucket.scenarios = frozenset({"bad-gpu"})
    for name in "ab":
        bucket.vm(name)
    bucket.ask("check", "a", "b")
    errors = [
        [gpu["ecc_volatile"] for gpu in bucket.answer(vm, LATER + 1)["answer"]["gpus"]]
        for vm in "ab"
    ]
    assert errors == [[17, 0, 0, 0, 0, 0, 0, 0], [0] * 8]


def test_who_waits_for_a_vm_that_is_gone_fails(bucket: Bucket) -> None:
    bucket.vm("a")
    bucket.ask("bandwidth", "a", "b", **_groups("ab"))
    failed = bucket.answer("a", 1000)
    assert failed["state"] == "failed"
    assert "processes of b did not come" in failed["detail"]


def test_a_vm_on_which_a_job_runs_is_neither_diagnosed_nor_measured_with(bucket: Bucket) -> None:
    bucket.vm("a")
    bucket.vm("b")
    with bucket.database.transaction() as store:
        numbers = {vm["name"]: vm["id"] for _, vm in store.list(INSTANCE.stored)}
        course = {"state": "running", "nodes": [{"instance_id": numbers["a"]}]}
        where = {"bucket": "states", "folder": "np-deployment"}
        store.put(vm_jobs.COLLECTION, "states np-deployment", where | {"course": course})
    bucket.write("np-deployment/jobs/index.json", b'{"jobs": []}')

    bucket.ask("check", "a", "b")
    found = {name: bucket.answer(name, 300)["answer"] for name in ("a", "b")}
    assert [found[name]["users"] for name in ("a", "b")] == [["python3 (2204)"], []]
    assert found["a"]["diagnostic"]["error"] == "its GPUs are in use"

    bucket.ask("bandwidth", "a", "b", **_groups("ab"))
    assert bucket.answer("a", 900)["answer"]["measured"] is False


@pytest.mark.parametrize(
    ("deleted", "state"), [(300, "running"), (1000, "succeeded")], ids=["under-it", "after-it"]
)
def test_a_vm_that_came_again_while_nobody_looked_has_cost_the_job_under_way_an_attempt(
    bucket: Bucket, deleted: int, state: str
) -> None:
    account = {"email": "nodes@my-project.iam.gserviceaccount.com"}
    policy = {
        "role": "roles/storage.objectViewer",
        "members": [f"serviceAccount:{account['email']}"],
    }
    with bucket.database.transaction() as store:
        policies.replace(store, buckets.policy_resource("states"), {"bindings": [policy]}, {})
    shared = {"startup": {"shared": ["states", "np-deployment"]}, "serviceAccounts": [account]}
    seats = [{"name": name, "rank": rank} for rank, name in enumerate("ab")]
    for name in "ab":
        bucket.vm(name, **shared)
    spec = {"name": "j-1", "command": ["sleep", "600"], "nodes": 2, "restarts": 1, "files": ""}
    spec |= {"seconds": None, "image": "", "env": {}, "restart_on": ""}
    order = {"jobs": [{"name": "j-1", "cancelled": False}]}
    objects = {"vms/roster.json": {"nnodes": 2, "generation": 1, "members": seats}}
    for name, it in (objects | {"jobs/j-1.json": spec, "jobs/index.json": order}).items():
        assert bucket.write(f"np-deployment/{name}", json.dumps(it).encode()) == 200
    bucket.read(f"{FOLDER}job.json")

    life = [[NOW + deleted, "STOPPING"], [NOW + deleted + 60, "RUNNING"]]
    bucket.vm("b", id="another", _timeline=life, **shared)
    bucket.now += 2000
    found = bucket.read(f"{FOLDER}job.json").body
    assert isinstance(found, bytes)
    course = json.loads(found)
    assert (course["state"], len(course["events"])) == (state, int(state == "running"))
    if course["events"]:
        assert course["events"][0].startswith("attempt 1 failed: rank 1 (b), the VM b was lost")


def test_only_the_vm_of_a_cluster_for_an_image_is_sealed(bucket: Bucket) -> None:
    bucket.vm("np-vm-a")
    bucket.vm("np-bake-vm-a")
    bucket.ask("seal", "np-vm-a", "np-bake-vm-a", image="")
    done = bucket.answer("np-bake-vm-a", 290)
    assert (done["state"], done["answer"]["programs"]) == ("done", ["docker"])
    refused = bucket.answer("np-vm-a", 290)
    assert (refused["state"], "may be sealed" in refused["detail"]) == ("failed", True)
    with bucket.database.transaction() as store:
        sealed = {vm["name"]: vm.get("_sealed") for _, vm in store.list(INSTANCE.stored)}
    assert sealed == {"np-vm-a": None, "np-bake-vm-a": True}


def test_what_is_known_of_jobs_ends_with_the_folder_of_their_cluster(bucket: Bucket) -> None:
    def kept() -> list[str]:
        with bucket.database.transaction() as store:
            return [name for name, _ in store.list(vm_jobs.COLLECTION)]

    index = "np-deployment/jobs/index.json"
    assert bucket.write(index, b'{"jobs": [{"name": "j-1"}]}') == 200
    bucket.read(f"{FOLDER}job.json")
    assert kept() == ["states np-deployment"]
    assert bucket.delete(index) == 204
    bucket.read(f"{FOLDER}job.json")
    assert not kept()
