"""A fortnight of a cluster of VMs and of one on GKE, as somebody on call reads it in Status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from provision.kinds.gke.kubernetes import kueue, nccl
from rehearsal.cloud import vm_jobs
from rehearsal.cloud.compute import fleet
from tests.runs import cluster_side, state_file
from tests.runs.fortnight import Diary, Incident

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Golden
    from tests.runs.conftest import Rehearse, Standing

SPOT: Final = {"ENABLE_SPOT": "yes", "VM_TYPE": "g2-standard-24", "INSTANCE_COUNT": "3"}
MEGA: Final = {
    "ORCHESTRATOR_TYPE": "gke",
    "VM_TYPE": "a3-megagpu-8g",
    "ENABLE_SPOT": "yes",
    "INSTANCE_COUNT": "2",
}
_ZONE: Final = "compute/v1/projects/my-project/zones/us-central1-a"
_GROUP: Final = f"{_ZONE}/instanceGroupManagers/np-mig"
_ACCOUNTS: Final = "iam/v1/projects/my-project/serviceAccounts"
_NODES: Final = "np-nodes@my-project.iam.gserviceaccount.com"
_CLUSTER: Final = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke"
_BUCKET: Final = "storage/v1/b/aiinfra-terraform-my-project/iam"
_RECORD: Final = "np-deployment/deployment.json"
_XID: Final = (
    "NVRM: Xid (PCI:0000:00:03): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)
_SXID: Final = "nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"


class Vms(Diary):
    """The VMs' fortnight."""

    def __init__(self, rehearse: Rehearse, patch: pytest.MonkeyPatch) -> None:
        rehearsal = rehearse(SPOT)
        rehearsal.settings |= SPOT
        super().__init__(rehearsal, re.compile(r"\bnp-vm-[a-z0-9]{4}\b"))
        self.silent: set[str] = set()
        self.faults: dict[str, list[str]] = {}
        self.disks: dict[str, list[str]] = {}
        self.before: Any = None
        works, complains, full = fleet.agent_works, vm_jobs.complaints, vm_jobs.full_disks
        patch.setattr(
            fleet, "agent_works", lambda *it: it[1]["name"] not in self.silent and works(*it)
        )
        patch.setattr(
            vm_jobs, "complaints", lambda scene, vm: self.faults.get(vm) or complains(scene, vm)
        )
        patch.setattr(
            vm_jobs, "full_disks", lambda scene, vm: self.disks.get(vm) or full(scene, vm)
        )
        self.as_google_does()

    @property
    def vms(self) -> list[str]:
        """Their names, in order."""
        there = self.rehearsal.google("GET", f"{_ZONE}/instances").get("items", [])
        return sorted(it["name"] for it in there)

    def event(self, vm: str) -> None:
        """What Google does at a preemption, or at maintenance."""
        self.rehearsal.google("POST", f"{_ZONE}/instances/{vm}/simulateMaintenanceEvent")
        self.later(0.02)

    def fault(self, text: str) -> None:
        """What is in the way of requests; no time passes between the tries."""
        self.at_once()
        assert self.rehearsal.cloud is not None
        self.rehearsal.cloud.faults.add(text)

    def no_faults(self) -> None:
        """Nothing is."""
        self.as_google_does()
        assert self.rehearsal.cloud is not None
        self.rehearsal.cloud.faults.end()

    def well(self) -> None:
        """All that was wrong with VMs is over."""
        self.silent.clear()
        self.faults.clear()
        self.disks.clear()
        self.scenario()
        self.later()

    def take_role(self) -> None:
        """Somebody tidies the bucket's policy."""
        self.before = self.rehearsal.google("GET", f"{_BUCKET}?optionsRequestedPolicyVersion=3")
        bindings = [it for it in self.before["bindings"] if "/vms/" not in json.dumps(it)]
        self.rehearsal.google("PUT", _BUCKET, {**self.before, "bindings": bindings})
        self.later(0.2)

    def give_role(self) -> None:
        """Somebody gives it back."""
        now = self.rehearsal.google("GET", f"{_BUCKET}?optionsRequestedPolicyVersion=3")
        bindings = self.before["bindings"]
        self.rehearsal.google("PUT", _BUCKET, {**now, "bindings": bindings})
        self.later()

    def lose_account(self) -> None:
        """Somebody deletes the account."""
        self.before = self.rehearsal.google("GET", f"{_ACCOUNTS}/{_NODES}")["uniqueId"]
        self.rehearsal.google("DELETE", f"{_ACCOUNTS}/{_NODES}")
        self.later(0.2)

    def undelete(self) -> None:
        """As Status says."""
        self.rehearsal.google("POST", f"{_ACCOUNTS}/{self.before}:undelete")
        self.later()

    def thrice(self) -> None:
        """The same VM is preempted three times."""
        for _ in range(3):
            self.event(self.vms[0])
            self.later(1)

    def rewritten(self, **change: Any) -> None:
        """Change the deployment's record."""
        with state_file.blob(self.rehearsal, _RECORD) as kept:
            self.before = kept.download_as_bytes()
            kept.upload_from_string(json.dumps(json.loads(self.before) | change))

    def record_back(self) -> None:
        """As it was."""
        with state_file.blob(self.rehearsal, _RECORD) as kept:
            kept.upload_from_string(self.before)
        self.later()

    def lose_state(self) -> None:
        """Somebody deletes Terraform's state."""
        with state_file.blob(self.rehearsal, state_file.STATE) as kept:
            kept.delete()

    def lock(self) -> None:
        """A run on a laptop that was closed has it."""
        info = {"ID": "1f0d9c5e", "Operation": "Create", "Who": "ann@laptop"}
        info |= {"Created": "2026-11-21T09:00:00Z", "Path": "np-deployment", "Version": "1.13.0"}
        with state_file.blob(self.rehearsal, state_file.LOCK) as kept:
            kept.upload_from_string(json.dumps(info))

    def unlock(self) -> None:
        """The lock is deleted."""
        with state_file.blob(self.rehearsal, state_file.LOCK) as kept:
            kept.delete()

    def start_up_fails(self) -> None:
        """A VM that is made again fails in its start-up."""
        self.scenario("startup-fails")
        self.rehearsal.google("DELETE", f"{_ZONE}/instances/{self.vms[0]}")
        self.later(1)


def _delete_vm(it: Vms) -> None:
    it.rehearsal.google("DELETE", f"{_ZONE}/instances/{it.vms[1]}")
    it.later(1)


def _blow(scenario: str, hours: float) -> Callable[[Vms], None]:
    def happens(it: Vms) -> None:
        it.scenario(scenario)
        it.vms  # noqa: B018 - it is put on the agenda by a request
        it.later(0.02)
        it.vms  # noqa: B018
        it.later(hours)

    return happens


ON_VMS: Final = (
    Incident("nothing has happened", lambda _: None, lambda _: None),
    Incident(
        "the kernel of a VM hangs, and its agent with it",
        lambda it: (it.silent.add(it.vms[0]), it.later(0.2)),
        Vms.well,
    ),
    Incident(
        "nvidia-smi hangs in the kernel after an Xid",
        lambda it: it.faults.update(
            {it.vms[0]: [_XID, "the driver does not answer since 2026-11-28T03:12:00Z"]}
        ),
        Vms.well,
    ),
    Incident("a switch says an SXid", lambda it: it.faults.update({it.vms[1]: [_SXID]}), Vms.well),
    Incident("memory of a GPU counts errors", lambda it: it.scenario("bad-gpu"), Vms.well),
    Incident("a boot disk is full", lambda it: it.scenario("full-disk"), Vms.well),
    Incident(
        "an NFS server hangs, and a bucket is not mounted any more",
        lambda it: it.disks.update(
            {it.vms[2]: ["/mnt/share does not answer", "/mnt/data is not mounted any more"]}
        ),
        Vms.well,
    ),
    Incident("a Spot VM is preempted", lambda it: it.event(it.vms[0]), Vms.well),
    Incident("the next morning", lambda _: None, lambda it: it.later(48)),
    Incident("one VM is preempted three times in a day", Vms.thrice, lambda it: it.later(48)),
    Incident("a host is maintained", _blow("maintenance", 1.01), lambda it: it.later(48)),
    Incident("a host fails", _blow("host-error", 0), lambda it: it.later(48)),
    Incident("somebody deletes a VM", _delete_vm, lambda it: it.later(48)),
    Incident(
        "somebody deletes the group",
        lambda it: (it.rehearsal.google("DELETE", _GROUP), it.later(1)),
        Vms.create,
    ),
    Incident("somebody deletes the VMs' service account", Vms.lose_account, Vms.undelete),
    Incident("somebody takes its role in the bucket away", Vms.take_role, Vms.give_role),
    Incident(
        "Compute Engine answers 503",
        lambda it: it.fault("* /compute/**: refuse 503"),
        Vms.no_faults,
    ),
    Incident("IAM answers 503", lambda it: it.fault("* /iam/**: refuse 503"), Vms.no_faults),
    Incident(
        "a hotel wants its terms accepted",
        lambda it: it.fault("* /compute/**: portal"),
        Vms.no_faults,
    ),
    Incident("the token has expired", lambda it: it.scenario("expired"), Vms.well),
    Incident("the state object is lost", Vms.lose_state, Vms.create),
    Incident(
        "a newer version changed it",
        lambda it: it.rewritten(tool_version="99.0.0"),
        Vms.record_back,
    ),
    Incident(
        "a Destroy was killed half-way", lambda it: it.rewritten(removing=True), Vms.record_back
    ),
    Incident("a dead run holds the lock", Vms.lock, Vms.unlock),
    Incident("a start-up fails", Vms.start_up_fails, Vms.well),
    Incident(
        "a VM is preempted of a group with IDLE_TIMEOUT, which makes none again",
        lambda it: (it.create("--replace-vms", IDLE_TIMEOUT="200h"), it.event(it.vms[0])),
        Vms.create,
    ),
    Incident("the next Create has made it", lambda _: None, lambda _: None),
)


@pytest.mark.slow(
    sibling="tests/unit/kinds/vms/test_status.py"
    "::test_those_that_failed_in_the_same_step_are_one_trouble_with_the_last_of_the_output"
)
def test_a_fortnight_on_vms_is_told_as_somebody_on_call_would_sign_it(
    standing: Rehearse, golden: Golden, goldens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = Vms(standing, monkeypatch)
    diary.known(diary.vms)
    for incident in ON_VMS:
        incident.happens(diary)
        diary.look(incident.name)
        incident.ends(diary)
    golden.check(goldens / "a-fortnight-on-vms.txt", diary.text())


class Gke(Diary):
    """The cluster's fortnight."""

    def __init__(self, rehearse: Rehearse, connection: dict[str, Any]) -> None:
        rehearsal = rehearse(MEGA)
        rehearsal.settings |= MEGA
        super().__init__(rehearsal, re.compile(r"\bgke-np-gke-[a-z0-9-]*[0-9a-f]{8}-\w{4}\b"))
        self.connection = connection
        self.cluster = cluster_side.kubectl(rehearsal, connection)
        self.before: Any = None
        self.later()

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes with GPUs, in order."""
        every = (it["metadata"]["name"] for it in self.cluster.all("v1", "Node"))
        return sorted(it for it in every if "nodepool-1" in it)

    def fault(self, text: str) -> None:
        """What is in the way of requests."""
        assert self.rehearsal.cloud is not None
        self.rehearsal.cloud.faults.add(text)

    def no_faults(self) -> None:
        """Nothing is."""
        assert self.rehearsal.cloud is not None
        self.rehearsal.cloud.faults.end()

    def cordon(self, *, is_so: bool) -> None:
        """Keep pods off a node, or let them come again."""
        change = {"spec": {"unschedulable": is_so or None}}
        self.cluster.merge("v1", "Node", self.nodes[0], change)

    def lose_installers(self) -> None:
        """Somebody tidies the namespace of the system."""
        for one in self.cluster.all("apps/v1", "DaemonSet", nccl.NAMESPACE):
            self.cluster.delete("apps/v1", "DaemonSet", one["metadata"]["name"], nccl.NAMESPACE)

    def replace(self) -> None:
        """Have the VMs of all nodes replaced, as Status says of one with a fault."""
        self.scenario()
        (url,) = self.rehearsal.google("GET", f"{_CLUSTER}/nodePools/np-nodepool-1")[
            "instanceGroupUrls"
        ]
        group = f"{_ZONE}/instanceGroupManagers/{url.rpartition('/')[2]}"
        instances = [f"zones/us-central1-a/instances/{it}" for it in self.nodes]
        self.rehearsal.google("POST", f"{group}/recreateInstances", {"instances": instances})
        self.later()
        # Kubernetes keeps events for an hour; its stand-in keeps them.
        for event in self.cluster.all("v1", "Event", "default"):
            self.cluster.delete("v1", "Event", event["metadata"]["name"], "default")

    def lose_account(self) -> None:
        """Somebody deletes the account."""
        self.before = self.rehearsal.google("GET", f"{_ACCOUNTS}/{_NODES}")["uniqueId"]
        self.rehearsal.google("DELETE", f"{_ACCOUNTS}/{_NODES}")

    def undelete(self) -> None:
        """As Status says."""
        self.rehearsal.google("POST", f"{_ACCOUNTS}/{self.before}:undelete")

    def submit(self, name: str) -> None:
        """Somebody submits an example job, for more nodes than there are."""
        thing = cluster_side.job(self.rehearsal, self.connection, name)
        self.cluster.create(thing)


_LARGE: Final = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "large", "namespace": "default"},
    "spec": {
        "parallelism": 3,
        "completions": 3,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "c",
                        "image": "sleep",
                        "args": ["1000000s"],
                        "resources": {"limits": {"nvidia.com/gpu": "8"}},
                    }
                ],
            }
        },
    },
}


ON_GKE: Final = (
    Incident("nothing has happened", lambda _: None, lambda _: None),
    Incident(
        "the API of Kubernetes answers 503",
        lambda it: it.fault("* /kubernetes/**: refuse 503"),
        Gke.no_faults,
    ),
    Incident(
        "Kubernetes Engine answers 503",
        lambda it: it.fault("* /container/**: refuse 503"),
        Gke.no_faults,
    ),
    Incident(
        "somebody deletes the ClusterQueue",
        lambda it: it.cluster.delete(kueue.API, "ClusterQueue", kueue.CLUSTER_QUEUE),
        lambda _: None,
    ),
    Incident(
        "and the LocalQueues",
        lambda it: [
            it.cluster.delete(kueue.API, "LocalQueue", one["metadata"]["name"], "default")
            for one in it.cluster.all(kueue.API, "LocalQueue")
        ],
        lambda _: None,
    ),
    Incident(
        "and the Deployments of Kueue and JobSet",
        lambda it: [
            it.cluster.delete("apps/v1", "Deployment", name, namespace)
            for namespace, name in (
                ("kueue-system", kueue.MANAGER),
                ("jobset-system", "jobset-controller-manager"),
            )
        ],
        Gke.create,
    ),
    Incident("the next day, after a Create", lambda _: None, lambda _: None),
    Incident(
        "somebody cordons a node",
        lambda it: it.cordon(is_so=True),
        lambda it: it.cordon(is_so=False),
    ),
    Incident(
        "a GPU of a node fails", lambda it: it.scenario("gpu-error"), lambda it: it.scenario()
    ),
    Incident("a GPU falls off its bus", lambda it: it.scenario("lost-gpu"), Gke.replace),
    Incident("somebody deletes what installs NCCL", Gke.lose_installers, Gke.create),
    Incident(
        "a job wants more nodes than there are",
        lambda it: (it.cluster.create(_LARGE), it.later(1)),
        lambda it: it.cluster.delete("batch/v1", "Job", "large", "default"),
    ),
    Incident(
        "the host of a node is preempted",
        lambda it: (
            it.rehearsal.google(
                "POST", f"{_ZONE}/instances/{it.nodes[1]}/simulateMaintenanceEvent"
            ),
            it.later(0.02),
        ),
        lambda it: it.later(),
    ),
    Incident("somebody deletes the nodes' account", Gke.lose_account, Gke.undelete),
    Incident(
        "somebody deletes the pool",
        lambda it: it.rehearsal.google("DELETE", f"{_CLUSTER}/nodePools/np-nodepool-1"),
        Gke.create,
    ),
    Incident(
        "somebody deletes the cluster",
        lambda it: (it.rehearsal.google("DELETE", _CLUSTER), it.later(1)),
        lambda _: None,
    ),
)


@pytest.mark.slow(
    sibling="tests/unit/kinds/gke/test_trouble.py::test_what_is_broken_and_what_is_only_under_way"
)
def test_a_fortnight_on_gke_is_told_as_somebody_on_call_would_sign_it(
    standing: Rehearse,
    made_once: Callable[..., Standing],
    golden: Golden,
    goldens: Path,
) -> None:
    diary = Gke(standing, made_once(MEGA).created.document["connection"])
    for incident in ON_GKE:
        incident.happens(diary)
        diary.look(incident.name)
        incident.ends(diary)
    golden.check(goldens / "a-fortnight-on-gke.txt", diary.text())
