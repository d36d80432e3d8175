import contextlib
import json
import shlex
from pathlib import Path
from typing import Any, cast

import pytest

from provision.codes import Code
from provision.documents.job import Job, JobState
from provision.errors import ProvisionError
from provision.kinds.gke.jobs import GkeJobs
from provision.kinds.gke.kubernetes.client import Cluster
from provision.kinds.vms.jobs import VmJobs
from tests.unit.kinds.cases import having, problem_of

ON_VMS = Path(__file__).parents[3] / "terraform/modules/startup/payload/lib/aiinfra_vm"
GCLOUD = "gcloud compute ssh vm-1 --project p --zone z"
IN_CONTAINER = "sudo docker exec -it aiinfra-job sh -c"


def _job(**changes: Any) -> Job:
    usual: dict[str, Any] = {"machines": ("vm-0", "vm-1"), "attempt": 1}
    usual |= {"state": JobState.RUNNING}
    return Job(name="a-1", submitted="", **{**usual, **changes})


def _on_vms(kind: str = "none", address: str | None = None, *, ours: bool = True) -> Any:
    record = having(project_id="p", zone="z", settings={"ORCHESTRATOR_TYPE": kind})
    told = [{"name": it, "external_ip": address} for it in ("vm-1", "-o ProxyCommand=x")]
    folder = having(record=lambda: record, read=lambda _: {"vms": told})
    asked: dict[str, Any] = {"a-1": {}} if ours else {}
    is_kind = kind.__eq__
    return having(_folder=folder, asked=asked.get, _is=is_kind, _of_task=lambda *_: "vm-1")


@pytest.mark.parametrize(
    ("kind", "address", "image", "opens"),
    [
        ("none", None, "", "cd /var/lib/aiinfra-job/a-1 && exec"),
        ("none", "192.0.2.1", "nvcr.io/x:1", IN_CONTAINER),
        ("ray", "192.0.2.1", "", ""),
        ("slurm", None, "", "sudo sh -c"),
    ],
)
def test_a_vm_is_reached_by_gcloud(kind: str, address: str | None, image: str, opens: str) -> None:
    way = VmJobs.way_in(_on_vms(kind, address), _job(image=image), 1)
    command = shlex.split(GCLOUD) + ([] if address else ["--tunnel-through-iap"])
    assert (way.where, way.folder) == ("vm-1", "/var/lib/aiinfra-job/a-1")
    assert list(way.tells) == [*command, "--quiet", "--command"]
    rest = list(way.opens[len(command) :])
    assert rest[:-1] == (["--ssh-flag=-t", "--command"] if opens else [])
    assert not opens or rest[-1].startswith(opens)
    assert not opens or f"cd {way.folder} && exec" in rest[-1]
    assert bool(way.lost) == (kind == "ray")


@pytest.mark.parametrize(
    ("about", "rank", "code", "word"),
    [
        ({"attempt": 0, "why": "b-1 is before it"}, 0, Code.INVALID_COMMAND_LINE, "not begun"),
        ({}, 2, Code.INVALID_COMMAND_LINE, "no rank 2: it has 2"),
        *(
            (it | {"state": JobState.CANCELLED}, 0, Code.MACHINES_GONE, "on no machine any more")
            for it in ({"attempt": 0}, {"machines": ()})
        ),
        ({}, 0, Code.MACHINES_GONE, "vm-0, the VM of rank 0 of a-1, is gone"),
        # What machines say of their names is taken for no more than a name.
        ({"machines": ("-o ProxyCommand=x",)}, 0, Code.MACHINES_GONE, "is gone"),
    ],
)
def test_why_there_is_no_way_to_a_vm(
    about: dict[str, Any], rank: int, code: Code, word: str
) -> None:
    problem = problem_of(ProvisionError, VmJobs.way_in, _on_vms(), _job(**about), rank)
    assert (problem.code, word in problem.what, bool(problem.fix)) == (code, True, True)


def test_what_others_run_is_left_alone() -> None:
    for jobs in (lambda: VmJobs.way_in(_on_vms(ours=False), _job(), 0), _of_others_on_gke):
        with pytest.raises(ProvisionError, match="is no job of Run"):
            jobs()


def _of_others_on_gke() -> None:
    GkeJobs.way_in(having(asked=lambda _: None), _job(), 0)


def _pod(name: str, rank: int | None, phase: str = "Running", **more: Any) -> dict[str, Any]:
    labels = {} if rank is None else {"batch.kubernetes.io/job-completion-index": str(rank)}
    metadata = {"name": name, "labels": labels | more.pop("labels", {}), **more}
    spec = {"containers": [{"name": "program"}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def _on_gke(*found: dict[str, Any], ray: bool = False) -> Any:
    return having(
        asked=lambda _: {"ray": ray},
        _pods=lambda *_: found,
        _record=having(name_prefix="np", region="r", project_id="p"),
        _cluster=having(for_kubectl=lambda: contextlib.nullcontext({"KUBECONFIG": "own"})),
    )


HEAD: Any
WORKER: Any
HEAD, WORKER = ({"labels": {"ray.io/node-type": it}} for it in ("head", "worker"))


@pytest.mark.parametrize(
    ("found", "ray", "pod"),
    [
        ([_pod("old", 1, "Failed"), _pod("p", 1), _pod("q", 0)], False, "p"),
        ([_pod("p", 1, deletionTimestamp="now")], False, ""),
        ([_pod("p", 1, "Pending"), _pod("q", 0)], False, ""),
        ([_pod("worker", None, **WORKER)], True, ""),
        ([_pod("worker", None, **WORKER), _pod("head", None, **HEAD)], True, "head"),
    ],
)
def test_a_pod_that_runs_is_reached_by_kubectl(found: list[Any], *, ray: bool, pod: str) -> None:
    ours, rank = _on_gke(*found, ray=ray), int(not ray)
    if not pod:
        with pytest.raises(ProvisionError, match="does not run: the job is running"):
            GkeJobs.way_in(ours, _job(), rank)
        return
    way = GkeJobs.way_in(ours, _job(), rank)
    assert (way.where, way.folder) == (pod, "/run/aiinfra-job/folder")
    tells = f"kubectl exec {pod} --namespace default --container keep-log -- sh -c"
    assert list(way.tells) == tells.split()
    opens = f"kubectl exec -it {pod} --namespace default --container program -- sh -c"
    assert list(way.opens[:-1]) == opens.split()
    assert way.opens[-1].startswith(f"cd {way.folder} && exec ")
    assert way.before.startswith("gcloud container clusters get-credentials np-")
    with way.access() as variables:
        assert variables == {"KUBECONFIG": "own"}


@pytest.mark.parametrize("trusted", [None, "/etc/own.pem"])
def test_kubectl_gets_this_cluster_as_whoever_runs_this(trusted: str | None) -> None:
    asked: list[object] = []

    def token(url: str | None) -> str:
        asked.append(url)
        return "a-token"

    with Cluster("https://c.example", cast("Any", token), trusted).for_kubectl() as variables:
        file = Path(variables["KUBECONFIG"])
        assert file.parent.stat().st_mode & 0o077 == 0
        known = json.loads(file.read_text())
    assert not file.exists()
    assert asked == ["https://c.example"]
    name = known["current-context"]
    ((user,), (cluster,)) = (known[it] for it in ("users", "clusters"))
    assert user == {"name": name, "user": {"token": "a-token"}}
    assert cluster["name"] == name
    assert cluster["cluster"]["server"] == "https://c.example"
    assert cluster["cluster"].get("certificate-authority") == trusted
    assert known["contexts"] == [{"name": name, "context": {"cluster": name, "user": name}}]


def test_folder_and_container_are_those_that_vms_make() -> None:
    way = VmJobs.way_in(_on_vms(), _job(image="x"), 1)
    home = way.folder.removesuffix("/a-1")
    assert f'\nHOME = Path("{home}")\n' in (ON_VMS / "job.py").read_text()
    name = way.opens[-1].split()[4]
    assert f'\nNAME = "{name}"\n' in (ON_VMS / "containers.py").read_text()
