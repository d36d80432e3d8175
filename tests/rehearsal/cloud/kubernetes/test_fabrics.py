"""NCCL in the simulated cluster: what the program's pods get, and pods that lack one thing."""

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest

from provision.kinds.gke.kubernetes import all_gather, jobs, nccl, stages
from provision.kinds.gke.kubernetes.objects import Object, holds
from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make
from tests.table import cases

MEGA: tuple[str, dict[str, str]] = ("gke-a3-mega", {})
HIGH = ("gke-a3-mega", {"VM_TYPE": "a3-highgpu-8g"})
ULTRA: tuple[str, dict[str, str]] = ("gke-a3-ultra-flex", {})
A4 = ("gke-a3-ultra-flex", {"VM_TYPE": "a4-highgpu-8g"})
# Of a version whose RDMA GKE manages.
BY_GKE = {"version": "1.36.4-gke.1082000"}
ULTRA_BY_GKE = ("gke-a3-ultra-flex", BY_GKE)
A4_BY_GKE = ("gke-a3-ultra-flex", {"VM_TYPE": "a4-highgpu-8g", **BY_GKE})

INTERFACES = "networking.gke.io/interfaces"
DEVICES = "devices.gke.io/container.tcpxo-daemon"
Spoil = Callable[["Object"], object]


@pytest.fixture
def made(gke_of: Make) -> Make:
    """Makes a cluster, with all that Create brings into it."""

    def make(kind: tuple[str, dict[str, str]], **more: str) -> Gke:
        example, changes = kind
        cluster = gke_of(example, **{"ENABLE_KUEUE": "no", **changes, **more})
        cluster.create()
        return cluster

    return make


def _submit(cluster: Gke, spoil: Spoil = lambda _: None) -> Object:
    """The program's bandwidth test, with one thing changed in its pods; the first of these."""
    wanted = copy.deepcopy(all_gather.job_set(cluster.facts, cluster.pool, 2))
    (job,) = wanted["spec"]["replicatedJobs"]
    spoil(job["template"]["spec"]["template"])
    del wanted["metadata"]["generateName"]
    wanted["metadata"]["name"] = "one"
    cluster.api.create(wanted)
    return _first(cluster)


def _first(cluster: Gke) -> Object:
    return cluster.pods("batch.kubernetes.io/job-completion-index=0")[0]


def _log(cluster: Gke, container: str = "nccl") -> str:
    return cluster.log(_first(cluster), container)


def _main(pod: Object) -> Any:
    return pod["spec"]["containers"][0]


def _daemon(pod: Object) -> Any:
    (found,) = (it for it in pod["spec"]["initContainers"] if it.get("restartPolicy") == "Always")
    return found


def _without(things: list[Any], key: str, value: str) -> None:
    there = [it for it in things if it[key] == value]
    assert there, value
    for it in there:
        things.remove(it)


@pytest.mark.parametrize(
    ("kind", "network", "peak"),
    [
        (MEGA, "FasTrak", 188),
        (HIGH, "GPUDirectTCPX_v7", 72),
        (ULTRA, "gIB", 335),
        (A4, "gIB", 375),
        (ULTRA_BY_GKE, "gIB", 335),
        (A4_BY_GKE, "gIB", 375),
    ],
)
def test_pods_of_the_program_are_on_the_network_of_their_machines(
    made: Make, kind: Any, network: str, peak: float
) -> None:
    cluster = made(kind)
    pod = _submit(cluster)
    assert pod["status"]["phase"] == "Succeeded"
    measured = all_gather.parse(_log(cluster))
    assert measured.networks == (network,)
    assert measured.peak_in_place == pytest.approx(peak, abs=1.5)


@pytest.mark.parametrize(("kind", "network"), [(MEGA, "FasTrak"), (HIGH, "GPUDirectTCPX_v7")])
def test_training_says_which_network_it_uses(made: Make, kind: Any, network: str) -> None:
    cluster = made(kind)
    cluster.api.create(jobs.torchrun(cluster.facts, cluster.pool, 2))
    logs = [cluster.log(it, "torchrun") for it in cluster.pods()]
    assert len(logs) == 2
    assert all(f"Using network {network}" in log for log in logs), logs


@pytest.mark.parametrize(
    ("kind", "network"), [(MEGA, "FasTrak"), (ULTRA, "gIB"), (ULTRA_BY_GKE, "gIB")]
)
def test_processes_of_a_ray_job_say_which_network_they_use(
    made: Make, kind: Any, network: str
) -> None:
    cluster = made(kind, ENABLE_RAY_OPERATOR="yes")
    thing = jobs.ray_job(cluster.facts, cluster.pool)
    thing["spec"]["entrypoint"] = "NCCL_DEBUG=INFO python -c 'init_process_group(\"nccl\")'"
    thing["spec"]["shutdownAfterJobFinishes"] = False
    cluster.api.create(thing)
    (submitter,) = (it for it in cluster.pods() if "job-name" in it["metadata"]["labels"])
    log = cluster.log(submitter, "ray-job-submitter")
    assert log.count(f"Using network {network}") == 2


def _interfaces(count: int) -> Spoil:
    def spoil(pod: Object) -> None:
        lines = pod["metadata"]["annotations"][INTERFACES].strip("[]\n").split(",\n")
        pod["metadata"]["annotations"][INTERFACES] = f"[{','.join(lines[:count])}]"

    return spoil


def _annotated(name: str, before: str, now: str) -> Spoil:
    """Another text in an annotation."""

    def spoil(pod: Object) -> None:
        text = pod["metadata"]["annotations"][name]
        assert before in text
        pod["metadata"]["annotations"][name] = text.replace(before, now)

    return spoil


def _another_daemon(pod: Object) -> None:
    daemon = _daemon(pod)
    daemon["image"] = daemon["image"].partition("@")[0].replace("v1.0.21", "v1.0.20")


def _other_sockets(pod: Object) -> None:
    for it in _main(pod)["env"]:
        if it["name"] == "NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX":
            it["value"] = "/run/other"


def _underscore(pod: Object) -> None:
    daemon = _daemon(pod)
    (entry,) = (it for it in daemon["env"] if it["name"] == "HEALTH_CHECK_LOG_FILE")
    entry["value"] = "/run/health_check"
    daemon["startupProbe"]["exec"]["command"] = ["cat", "/run/health_check"]


def _old_arguments(pod: Object) -> None:
    daemon = _daemon(pod)
    daemon["command"] = [it for it in daemon["command"] if it not in {"--gpu_nic_preset", "a3vm"}]


def _spoil(text: str) -> Spoil:
    """Change one thing in a pod, one of `ONE`, or take out one, its kind and its name."""
    kind, _, name = text.rpartition(" ")
    return ONE.get(text) or functools.partial(WAYS[kind], name)


WAYS: dict[str, Callable[[str, Object], None]] = {
    "variable": lambda name, pod: _without(_main(pod)["env"], "name", name),
    "mount": lambda name, pod: _without(_main(pod)["volumeMounts"], "mountPath", name),
    "daemon's mount": lambda name, pod: _without(_daemon(pod)["volumeMounts"], "mountPath", name),
    "daemon's capability": lambda name, pod: _daemon(pod)["securityContext"]["capabilities"][
        "add"
    ].remove(name),
}
ONE: dict[str, Spoil] = {
    "no daemon": lambda pod: pod["spec"]["initContainers"].remove(_daemon(pod)),
    "no probe": lambda pod: _daemon(pod).pop("startupProbe"),
    "no annotation": lambda pod: pod["metadata"]["annotations"].pop(INTERFACES),
    "no devices": lambda pod: pod["metadata"]["annotations"].pop(DEVICES),
    "another daemon": _another_daemon,
    "other sockets": _other_sockets,
    "underscore in the path": _underscore,
    "arguments of before": _old_arguments,
    "eight interfaces": _interfaces(8),
    "seven GPUs": _annotated(DEVICES, "- path: /dev/nvidia7\n", ""),
    "a network renamed": _annotated(INTERFACES, '"vpc8"', '"vpc9"'),
    "a network doubled": _annotated(INTERFACES, '"vpc8"', '"vpc7"'),
    "no default": _annotated("networking.gke.io/default-interface", "eth0", "eth9"),
}
KINDS = {"mega": MEGA, "high": HIGH, "ultra": ULTRA}


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        ("no daemon", "Failed to connect to buffer operation client"),
        ("no probe", "Failed to connect to buffer operation client"),
        ("variable NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY", "No LLCM device found for address"),
        ("mount /dev/aperture_devices", "No LLCM device found for address"),
    ],
)
def test_tcpxo_that_lacks_something_at_its_start_leaves_nccl_on_sockets(
    made: Make, lack: str, words: str
) -> None:
    cluster = made(MEGA)
    assert _submit(cluster, _spoil(lack))["status"]["phase"] == "Succeeded"
    log = _log(cluster)
    assert words in log
    measured = all_gather.parse(log)
    assert measured.networks == ("Socket",)
    assert measured.peak_in_place == pytest.approx(4, abs=0.1)


@cases("""
kind | lack | words
mega | variable NCCL_LIB_DIR | NCCL_LIB_DIR: Must set NCCL_LIB_DIR
mega | mount /usr/local/nvidia/lib64 | /usr/local/nvidia/lib64/nccl-env-profile.sh: No such file
mega | mount /dev/shm | failed to extend /dev/shm/nccl-
mega | another daemon | Got malformed response from buffer manager
high | variable NCCL_GPUDIRECTTCPX_SOCKET_IFNAME | Error: network GPUDirectTCPX_v7 not found
high | other sockets | Error: network GPUDirectTCPX_v7 not found
high | no daemon | Error: network GPUDirectTCPX_v7 not found
ultra | no annotation | NET/gIB : No device found
ultra | mount /usr/local/gib | set_nccl_env.sh: No such file
""")
def test_a_job_whose_pods_lack_something_fails_with_the_words_of_what_ended(
    made: Make, kind: str, lack: str, words: str
) -> None:
    cluster = made(KINDS[kind])
    assert _submit(cluster, _spoil(lack))["status"]["phase"] == "Failed"
    log = _log(cluster)
    assert words in log
    assert all_gather.parse(log).average is None
    (job_set,) = cluster.api.all("jobset.x-k8s.io/v1alpha2", "JobSet", "default")
    assert holds(job_set, "Failed")


@cases("""
kind | lack | words
mega | daemon's capability NET_ADMIN | Operation not permitted
high | daemon's capability NET_ADMIN | Operation not permitted
mega | daemon's mount /hostsysfs | PCI tree 0 is not equal to the actual number
mega | daemon's mount /hostprocsysfs | rp_filter: Read-only file system
mega | daemon's mount /usr/local/nvidia/lib64 | libcuda.so.1: cannot open shared object file
mega | eight interfaces | PCI tree 7 is not equal to the actual number of GPUs
mega | no devices | CUDA initialization failed
mega | seven GPUs | PCI tree 8 is not equal to the actual number of GPUs reported by
mega | underscore in the path | Startup probe failed
high | arguments of before | --gpu_nic_preset a3vm is not set
""")
def test_a_pod_whose_daemon_ends_does_not_start(
    made: Make, kind: str, lack: str, words: str
) -> None:
    cluster = made(KINDS[kind])
    pod = _submit(cluster, _spoil(lack))
    assert pod["status"]["phase"] == "Pending"
    daemon = _daemon(pod)["name"]
    assert words in _log(cluster, daemon)
    said = {it["name"]: it["state"] for it in pod["status"]["initContainerStatuses"]}
    assert said[daemon]["waiting"]["reason"] == "CrashLoopBackOff"


def test_a_daemon_without_the_injector_on_its_node_has_no_gpus(made: Make) -> None:
    cluster = made(MEGA)
    cluster.api.delete("apps/v1", "DaemonSet", "device-injector", "kube-system")
    assert _submit(cluster)["status"]["phase"] == "Pending"
    assert "CUDA initialization failed" in _log(cluster, "tcpxo-daemon")


def test_pods_on_nodes_without_the_plugin_fail_at_the_gate(made: Make) -> None:
    cluster = made(ULTRA)
    cluster.api.delete("apps/v1", "DaemonSet", "nccl-rdma-installer", "kube-system")
    assert _submit(cluster)["status"]["phase"] == "Failed"
    missing = "/run/aiinfra-nccl/nccl-rdma-installer-v1.1.1 is missing"
    assert missing in _log(cluster, "wait-for-nccl")
    # Without the gate the shell of such a pod finds no script.
    cluster.api.delete("jobset.x-k8s.io/v1alpha2", "JobSet", "one", "default")
    pod = _submit(cluster, lambda pod: pod["spec"].pop("initContainers"))
    assert pod["status"]["phase"] == "Failed"
    assert "set_nccl_env.sh: No such file or directory" in _log(cluster)


def test_pods_wait_until_their_new_node_has_the_plugin(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-a3-mega", rate="1", ENABLE_KUEUE="no")
    clock.forward(100)
    cluster.create()
    assert _submit(cluster)["status"]["phase"] == "Pending"
    waiting = "waiting for /run/aiinfra-nccl/nccl-tcpxo-installer-v1.0.15"
    assert waiting in _log(cluster, "wait-for-nccl")
    clock.forward(25)
    pod = _first(cluster)
    assert pod["status"]["phase"] == "Pending"
    daemon = pod["status"]["initContainerStatuses"][-1]
    told = daemon["name"], daemon["state"]["waiting"]["reason"]
    assert told == ("tcpxo-daemon", "PodInitializing")
    clock.forward(31)
    assert _first(cluster)["status"]["phase"] == "Running"


def test_an_image_that_its_registry_lacks_is_never_installed(made: Make) -> None:
    cluster = made(MEGA)
    name = "nccl-tcpxo-installer"
    thing = next(it for it in nccl.objects(cluster.facts) if it["metadata"]["name"] == name)
    for it in thing["spec"]["template"]["spec"]["initContainers"]:
        it["image"] = it["image"].replace("v1.0.15", "v9.9.9")
    cluster.api.apply(thing)
    (note,) = stages.wait(cluster.api, cluster.facts, progress=cluster.progress)
    assert "nccl-tcpxo-installer is ready on 0 of 2 GPU nodes" in note.what
    assert _submit(cluster)["status"]["phase"] == "Failed"


def test_the_old_plugin_of_tcpx_ends_when_its_cluster_is_upgraded(made: Make) -> None:
    cluster = made(HIGH, version="1.33.13-gke.1101000")
    where = "/container/v1/projects/my-project/locations/us-central1/clusters/demo-gke"
    update = {"desiredMasterVersion": "1.34.9-gke.1655001"}
    cluster.google("PUT", where, {"update": update})
    assert _submit(cluster)["status"]["phase"] == "Failed"
    assert "ioctl get dma_buf frags: Inappropriate ioctl for device" in _log(cluster)

    # Create finds the new version, and brings the plugin that fits it.
    cluster.api.delete("jobset.x-k8s.io/v1alpha2", "JobSet", "one", "default")
    cluster.facts = dataclasses.replace(cluster.facts, version="1.34.9-gke.1655001")
    assert cluster.create() > 0
    assert _submit(cluster)["status"]["phase"] == "Succeeded"
    assert all_gather.parse(_log(cluster)).networks == ("GPUDirectTCPX_v7",)


def test_a_test_without_mpi_measures_sixteen_single_gpus(made: Make) -> None:
    cluster = made(MEGA)

    def spoil(pod: Object) -> None:
        command = _main(pod)["command"]
        command[-1] = command[-1].replace("nccl-tests-mpi", "nccl-tests")

    assert _submit(cluster, spoil)["status"]["phase"] == "Succeeded"
    assert _log(cluster).count("# Avg bus bandwidth    : 0") == 16


def test_half_of_the_rdma_interfaces_carry_half(made: Make) -> None:
    cluster = made(ULTRA)
    assert _submit(cluster, _interfaces(6))["status"]["phase"] == "Succeeded"
    measured = all_gather.parse(_log(cluster))
    assert measured.networks == ("gIB",)
    assert measured.peak_in_place == pytest.approx(335 / 2, abs=2)


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        ("a network renamed", 'network "vpc9" not found, or not ready'),
        ("a network doubled", "a network is named twice"),
        ("no default", 'default interface "eth9" is not among'),
    ],
)
def test_a_pod_with_wrong_interfaces_gets_no_sandbox(made: Make, lack: str, words: str) -> None:
    cluster = made(MEGA)
    assert _submit(cluster, _spoil(lack))["status"]["phase"] == "Pending"
    said = [it["message"] for it in cluster.events() if it["reason"] == "FailedCreatePodSandBox"]
    assert any(words in it for it in said)
