"""NCCL in the simulated cluster: what the program's pods get, and pods that lack one thing."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from provision.kinds.gke.kubernetes import all_gather, bandwidth, jobs, nccl, rollout, torchrun
from provision.kinds.gke.kubernetes.objects import holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.kinds.gke.kubernetes.objects import Object
    from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

pytestmark = pytest.mark.loopback

MEGA: tuple[str, dict[str, str]] = ("gke-a3-mega", {})
HIGH = ("gke-a3-mega", {"VM_TYPE": "a3-highgpu-8g"})
ULTRA: tuple[str, dict[str, str]] = ("gke-a3-ultra-flex", {})
A4 = ("gke-a3-ultra-flex", {"VM_TYPE": "a4-highgpu-8g"})
LIBRARIES = "/usr/local/nvidia/lib64"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where systems have it
INTERFACES = "networking.gke.io/interfaces"


@pytest.fixture
def made(gke_of: Make) -> Make:
    """Makes a cluster, with all that Create brings into it."""

    def make(kind: tuple[str, dict[str, str]], **more: str) -> Gke:
        example, changes = kind
        cluster = gke_of(example, **{"ENABLE_KUEUE": "no", **changes, **more})
        cluster.create()
        return cluster

    return make


def _submit(cluster: Gke, spoil: Callable[[Object], None] = lambda _: None) -> Object:
    """The program's bandwidth test, with one thing changed in its pods; the first of these."""
    wanted = copy.deepcopy(all_gather.job_set(cluster.facts, jobs.main_pool(cluster.facts), 2))
    (job,) = wanted["spec"]["replicatedJobs"]
    spoil(job["template"]["spec"]["template"])
    del wanted["metadata"]["generateName"]
    wanted["metadata"]["name"] = "one"
    cluster.api.create(wanted)
    return _first(cluster)


def _first(cluster: Gke) -> Object:
    return cluster.pods("batch.kubernetes.io/job-completion-index=0")[0]


def _log(cluster: Gke, container: str = "nccl") -> str:
    return cluster.api.log("default", _first(cluster)["metadata"]["name"], container)


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


def _drop_variable(name: str) -> Callable[[Object], None]:
    return lambda pod: _without(_main(pod)["env"], "name", name)


def _drop_mount(path: str) -> Callable[[Object], None]:
    return lambda pod: _without(_main(pod)["volumeMounts"], "mountPath", path)


@pytest.mark.parametrize(
    ("kind", "network", "peak"),
    [(MEGA, "FasTrak", 188), (HIGH, "GPUDirectTCPX_v7", 72), (ULTRA, "gIB", 335), (A4, "gIB", 375)],
)
def test_pods_of_the_program_are_on_the_network_of_their_machines(
    made: Make, kind: Any, network: str, peak: float
) -> None:
    cluster = made(kind)
    pod = _submit(cluster)
    assert pod["status"]["phase"] == "Succeeded"
    measured = bandwidth.parse(_log(cluster))
    assert measured.networks == (network,)
    assert measured.peak_in_place == pytest.approx(peak, abs=1.5)


@pytest.mark.parametrize(("kind", "network"), [(MEGA, "FasTrak"), (HIGH, "GPUDirectTCPX_v7")])
def test_training_says_which_network_it_uses(made: Make, kind: Any, network: str) -> None:
    cluster = made(kind)
    thing = torchrun.job_set(cluster.facts, jobs.main_pool(cluster.facts), 2)
    cluster.api.create(thing)
    logs = [cluster.api.log("default", it["metadata"]["name"], "torchrun") for it in cluster.pods()]
    assert len(logs) == 2
    assert all(f"Using network {network}" in log for log in logs), logs


@pytest.mark.parametrize(("kind", "network"), [(MEGA, "FasTrak"), (ULTRA, "gIB")])
def test_processes_of_a_ray_job_say_which_network_they_use(
    made: Make, kind: Any, network: str
) -> None:
    cluster = made(kind, ENABLE_RAY_OPERATOR="yes")
    thing = jobs.ray_job(cluster.facts, jobs.main_pool(cluster.facts))
    thing["spec"]["entrypoint"] = "NCCL_DEBUG=INFO python -c 'init_process_group(\"nccl\")'"
    thing["spec"]["shutdownAfterJobFinishes"] = False
    cluster.api.create(thing)
    (submitter,) = (it for it in cluster.pods() if "job-name" in it["metadata"]["labels"])
    log = cluster.api.log("default", submitter["metadata"]["name"], "ray-job-submitter")
    assert log.count(f"Using network {network}") == 2


def _interfaces(count: int) -> Callable[[Object], None]:
    def spoil(pod: Object) -> None:
        lines = pod["metadata"]["annotations"][INTERFACES].strip("[]\n").split(",\n")
        pod["metadata"]["annotations"][INTERFACES] = f"[{','.join(lines[:count])}]"

    return spoil


def _no_annotation(pod: Object) -> None:
    del pod["metadata"]["annotations"][INTERFACES]


def _no_daemon(pod: Object) -> None:
    pod["spec"]["initContainers"].remove(_daemon(pod))


def _no_probe(pod: Object) -> None:
    del _daemon(pod)["startupProbe"]


@pytest.mark.parametrize(
    ("kind", "spoil", "words"),
    [
        (MEGA, _no_daemon, "Failed to connect to buffer operation client"),
        (MEGA, _no_probe, "Failed to connect to buffer operation client"),
        (
            MEGA,
            _drop_variable("NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY"),
            "No LLCM device found for address",
        ),
        (MEGA, _drop_mount("/dev/aperture_devices"), "No LLCM device found for address"),
    ],
)
def test_tcpxo_that_lacks_something_at_its_start_leaves_nccl_on_sockets(
    made: Make, kind: Any, spoil: Callable[[Object], None], words: str
) -> None:
    cluster = made(kind)
    assert _submit(cluster, spoil)["status"]["phase"] == "Succeeded"
    log = _log(cluster)
    assert words in log
    measured = bandwidth.parse(log)
    assert measured.networks == ("Socket",)
    assert measured.peak_in_place == pytest.approx(4, abs=0.1)


def _another_daemon(pod: Object) -> None:
    daemon = _daemon(pod)
    daemon["image"] = daemon["image"].partition("@")[0].replace("v1.0.21", "v1.0.20")


def _other_sockets(pod: Object) -> None:
    for it in _main(pod)["env"]:
        if it["name"] == "NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX":
            it["value"] = "/run/other"


@pytest.mark.parametrize(
    ("kind", "spoil", "words"),
    [
        (MEGA, _drop_variable("NCCL_LIB_DIR"), "NCCL_LIB_DIR: Must set NCCL_LIB_DIR"),
        (MEGA, _drop_mount(LIBRARIES), f"{LIBRARIES}/nccl-env-profile.sh: No such file"),
        (MEGA, _drop_mount(SHARED_MEMORY), "failed to extend /dev/shm/nccl-"),
        (MEGA, _another_daemon, "Got malformed response from buffer manager"),
        (
            HIGH,
            _drop_variable("NCCL_GPUDIRECTTCPX_SOCKET_IFNAME"),
            "Error: network GPUDirectTCPX_v7 not found",
        ),
        (HIGH, _other_sockets, "Error: network GPUDirectTCPX_v7 not found"),
        (HIGH, _no_daemon, "Error: network GPUDirectTCPX_v7 not found"),
        (ULTRA, _no_annotation, "NET/gIB : No device found"),
        (ULTRA, _drop_mount("/usr/local/gib"), "set_nccl_env.sh: No such file"),
    ],
)
def test_a_job_whose_pods_lack_something_fails_with_the_words_of_what_ended(
    made: Make, kind: Any, spoil: Callable[[Object], None], words: str
) -> None:
    cluster = made(kind)
    assert _submit(cluster, spoil)["status"]["phase"] == "Failed"
    log = _log(cluster)
    assert words in log
    assert bandwidth.parse(log).average is None
    (job_set,) = cluster.api.all("jobset.x-k8s.io/v1alpha2", "JobSet", "default")
    assert holds(job_set, "Failed")


def _capability(name: str) -> Callable[[Object], None]:
    return lambda pod: _daemon(pod)["securityContext"]["capabilities"]["add"].remove(name)


def _daemon_without(path: str) -> Callable[[Object], None]:
    return lambda pod: _without(_daemon(pod)["volumeMounts"], "mountPath", path)


def _underscore(pod: Object) -> None:
    daemon = _daemon(pod)
    (entry,) = (it for it in daemon["env"] if it["name"] == "HEALTH_CHECK_LOG_FILE")
    entry["value"] = "/run/health_check"
    daemon["startupProbe"]["exec"]["command"] = ["cat", "/run/health_check"]


def _devices(pod: Object) -> None:
    del pod["metadata"]["annotations"]["devices.gke.io/container.tcpxo-daemon"]


def _seven_gpus(pod: Object) -> None:
    name = "devices.gke.io/container.tcpxo-daemon"
    text = pod["metadata"]["annotations"][name]
    pod["metadata"]["annotations"][name] = text.replace("- path: /dev/nvidia7\n", "")


def _old_arguments(pod: Object) -> None:
    daemon = _daemon(pod)
    daemon["command"] = [it for it in daemon["command"] if it not in {"--gpu_nic_preset", "a3vm"}]


@pytest.mark.parametrize(
    ("kind", "spoil", "words"),
    [
        (MEGA, _capability("NET_ADMIN"), "Operation not permitted"),
        (HIGH, _capability("NET_ADMIN"), "Operation not permitted"),
        (MEGA, _daemon_without("/hostsysfs"), "PCI tree 0 is not equal to the actual number"),
        (MEGA, _daemon_without("/hostprocsysfs"), "rp_filter: Read-only file system"),
        (MEGA, _daemon_without(LIBRARIES), "libcuda.so.1: cannot open shared object file"),
        (MEGA, _interfaces(8), "PCI tree 7 is not equal to the actual number of GPUs"),
        (MEGA, _devices, "CUDA initialization failed"),
        (MEGA, _seven_gpus, "PCI tree 8 is not equal to the actual number of GPUs reported by"),
        (MEGA, _underscore, "Startup probe failed"),
        (HIGH, _old_arguments, "--gpu_nic_preset a3vm is not set"),
    ],
)
def test_a_pod_whose_daemon_ends_does_not_start(
    made: Make, kind: Any, spoil: Callable[[Object], None], words: str
) -> None:
    cluster = made(kind)
    pod = _submit(cluster, spoil)
    assert pod["status"]["phase"] == "Pending"
    daemon = _daemon(pod)["name"]
    assert words in _log(cluster, daemon)
    said = {it["name"]: it["state"] for it in pod["status"]["initContainerStatuses"]}
    assert said[daemon]["waiting"]["reason"] == "CrashLoopBackOff"


def _daemon_sets(cluster: Gke, name: str) -> None:
    cluster.api.delete("apps/v1", "DaemonSet", name, "kube-system")


def test_a_daemon_without_the_injector_on_its_node_has_no_gpus(made: Make) -> None:
    cluster = made(MEGA)
    _daemon_sets(cluster, "device-injector")
    assert _submit(cluster)["status"]["phase"] == "Pending"
    assert "CUDA initialization failed" in _log(cluster, "tcpxo-daemon")


def test_pods_on_nodes_without_the_plugin_fail_at_the_gate(made: Make) -> None:
    cluster = made(ULTRA)
    _daemon_sets(cluster, "nccl-rdma-installer")
    pod = _submit(cluster)
    assert pod["status"]["phase"] == "Failed"
    assert "/run/aiinfra-nccl/nccl-rdma-installer-v1.1.1 is missing" in _log(
        cluster, "wait-for-nccl"
    )


def test_without_the_gate_the_shell_of_such_a_pod_finds_no_script(made: Make) -> None:
    cluster = made(ULTRA)
    _daemon_sets(cluster, "nccl-rdma-installer")
    pod = _submit(cluster, lambda pod: pod["spec"].pop("initContainers"))
    assert pod["status"]["phase"] == "Failed"
    assert "set_nccl_env.sh: No such file or directory" in _log(cluster)


def test_pods_wait_until_their_new_node_has_the_plugin(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-a3-mega", rate="1", ENABLE_KUEUE="no")
    clock.forward(100)
    cluster.create()
    pod = _submit(cluster)
    assert pod["status"]["phase"] == "Pending"
    assert "waiting for /run/aiinfra-nccl/nccl-tcpxo-installer-v1.0.15" in _log(
        cluster, "wait-for-nccl"
    )
    clock.forward(25)
    pod = _first(cluster)
    assert pod["status"]["phase"] == "Pending"
    daemon = pod["status"]["initContainerStatuses"][-1]
    assert (daemon["name"], daemon["state"]["waiting"]["reason"]) == (
        "tcpxo-daemon",
        "PodInitializing",
    )
    clock.forward(31)
    assert _first(cluster)["status"]["phase"] == "Running"


def test_an_image_that_its_registry_lacks_is_never_installed(made: Make) -> None:
    cluster = made(MEGA)
    name = "nccl-tcpxo-installer"
    thing = next(it for it in nccl.objects(cluster.facts) if it["metadata"]["name"] == name)
    for it in thing["spec"]["template"]["spec"]["initContainers"]:
        it["image"] = it["image"].replace("v1.0.15", "v9.9.9")
    cluster.api.apply(thing)
    (note,) = rollout.wait(cluster.api, cluster.facts, progress=cluster.progress)
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
    assert bandwidth.parse(_log(cluster)).networks == ("GPUDirectTCPX_v7",)


def test_a_test_without_mpi_measures_sixteen_single_gpus(made: Make) -> None:
    cluster = made(MEGA)

    def spoil(pod: Object) -> None:
        command = _main(pod)["command"]
        command[-1] = command[-1].replace("nccl-tests-mpi", "nccl-tests")

    assert _submit(cluster, spoil)["status"]["phase"] == "Succeeded"
    log = _log(cluster)
    assert log.count("# Avg bus bandwidth    : 0") == 16


def test_half_of_the_rdma_interfaces_carry_half(made: Make) -> None:
    cluster = made(ULTRA)
    assert _submit(cluster, _interfaces(6))["status"]["phase"] == "Succeeded"
    measured = bandwidth.parse(_log(cluster))
    assert measured.networks == ("gIB",)
    assert measured.peak_in_place == pytest.approx(335 / 2, abs=2)


def _renamed(pod: Object) -> None:
    annotations = pod["metadata"]["annotations"]
    annotations[INTERFACES] = annotations[INTERFACES].replace('"vpc8"', '"vpc9"')


def _doubled(pod: Object) -> None:
    annotations = pod["metadata"]["annotations"]
    annotations[INTERFACES] = annotations[INTERFACES].replace('"vpc8"', '"vpc7"')


def _no_default(pod: Object) -> None:
    pod["metadata"]["annotations"]["networking.gke.io/default-interface"] = "eth9"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_renamed, 'network "vpc9" not found, or not ready'),
        (_doubled, "a network is named twice"),
        (_no_default, 'default interface "eth9" is not among'),
    ],
)
def test_a_pod_with_wrong_interfaces_gets_no_sandbox(
    made: Make, spoil: Callable[[Object], None], words: str
) -> None:
    cluster = made(MEGA)
    pod = _submit(cluster, spoil)
    assert pod["status"]["phase"] == "Pending"
    events = cluster.api.all("v1", "Event", "default")
    said = [it["message"] for it in events if it["reason"] == "FailedCreatePodSandBox"]
    assert any(words in it for it in said)
