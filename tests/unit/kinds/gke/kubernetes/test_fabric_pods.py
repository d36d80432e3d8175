"""Pods on GPU nodes: whether they have what the facts about their network say."""

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provision.catalogue import machines
from provision.catalogue.machines import GpuNetwork
from provision.kinds.gke.kubernetes import fabric_pods, jobs, nccl, objects, stages
from provision.kinds.gke.kubernetes.fabric_pods import Kind
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.kinds.gke.kubernetes.objects import Object
from provision.settings.pairs import Secret
from tests.kubernetes import samples
from tests.running import ran

MEGA = samples.facts(samples.MEGA, networks=samples.TCPXO)
HIGH = samples.facts(samples.HIGH, networks=samples.TCPX)
ULTRA = samples.FLEX_QUEUED_ULTRA
A4 = samples.facts(samples.A4, networks=samples.RDMA)
CLUSTERS = {
    "a3-high": HIGH,
    "a3-mega": MEGA,
    "a3-ultra": ULTRA,
    "a4": A4,
    "a4-by-gke": samples.BY_GKE,
    "a2": samples.facts(samples.A2),
    "t4": samples.TWO_QUEUED,
}
WITH_NETWORK = pytest.mark.parametrize("facts", [HIGH, MEGA, ULTRA, A4], ids=lambda it: it.name)
OWN = {"name": "own", "image": "an/image", "command": ["train"]}
EVERY = pytest.mark.parametrize("name", CLUSTERS)


def _pods(thing: Any) -> Iterator[Object]:
    """Every pod template in an object."""
    if isinstance(thing, dict):
        if "containers" in thing.get("spec", {}):
            yield thing
        for value in thing.values():
            yield from _pods(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from _pods(value)


def _rendered(facts: ClusterFacts) -> dict[str, Object]:
    """File of a job -> its pod on the GPUs."""
    found = {}
    for file, text in jobs.render(facts).items():
        (thing,) = objects.from_yaml(text)
        (found[file],) = (pod for pod in _pods(thing) if "nodeSelector" in pod["spec"])
    return found


def _whole(facts: ClusterFacts) -> dict[str, Object]:
    """The pods that have a node for themselves."""
    return {k: pod for k, pod in _rendered(facts).items() if not k.startswith("sample")}


def _containers(pod: Object) -> list[Object]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def _env(container: Object) -> dict[str, str]:
    return {it["name"]: it.get("value", "") for it in container.get("env", [])}


def _mounts(container: Object) -> dict[str, str]:
    return {it["mountPath"]: it["name"] for it in container.get("volumeMounts", [])}


def _daemon(pod: Object) -> Object:
    (found,) = (it for it in _containers(pod) if it.get("restartPolicy") == "Always")
    return found


def _stub(folder: Path, name: str, text: str) -> None:
    """Put a program into a folder of PATH."""
    (folder / name).write_text(f"#!/bin/bash\n{text}\n")
    (folder / name).chmod(0o755)


def _job(facts: ClusterFacts, command: list[str], kind: Kind = Kind.WHOLE) -> Object:
    """The container of a job of one's own."""
    pod = fabric_pods.template(facts, facts.pools[0], {**OWN, "command": command}, kind)
    own: Object = pod["spec"]["containers"][0]
    return own


@EVERY
def test_no_pod_is_privileged_and_each_mount_has_its_volume(name: str) -> None:
    for pod in _rendered(CLUSTERS[name]).values():
        for container in _containers(pod):
            assert "privileged" not in container.get("securityContext", {})
    for pod in _rendered(CLUSTERS[name]).values():
        volumes = [volume["name"] for volume in pod["spec"].get("volumes", [])]
        assert len(set(volumes)) == len(volumes)
        used = {at for container in _containers(pod) for at in _mounts(container).values()}
        assert used == set(volumes)
    facts = CLUSTERS[name]
    for file, pod in _whole(facts).items():
        (pool,) = (it for it in facts.pools if it.name in str(pod["spec"]["nodeSelector"]))
        (container,) = pod["spec"]["containers"]
        machine = machines.lookup(pool.machine_type)
        assert machine is not None
        asked, limits = (container["resources"][it] for it in ("requests", "limits"))
        assert asked["nvidia.com/gpu"] == limits["nvidia.com/gpu"] == str(pool.gpus)
        assert asked["memory"] == limits["memory"]
        assert "cpu" not in limits, file
        room = fabric_pods.room_on(pool.machine_type)
        assert room is not None
        assert machine.vcpus * 400 <= room.milli_cpus < machine.vcpus * 1000


@EVERY
def test_the_autoscaler_leaves_the_nodes_of_jobs_alone_and_their_last_words_stay(name: str) -> None:
    """Any pod of an example: on a node with other jobs, the head and the submitter of Ray."""
    for text in jobs.render(dataclasses.replace(CLUSTERS[name], ray_operator=True)).values():
        for pod in _pods(objects.from_yaml(text)):
            annotations = pod["metadata"]["annotations"]
            assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
            if "nodeSelector" in pod["spec"]:
                policies = {it.get("terminationMessagePolicy") for it in pod["spec"]["containers"]}
                assert policies == {"FallbackToLogsOnError"}


def test_a_pytorch_that_tcpx_is_too_old_for_ends_with_words(tmp_path: Path) -> None:
    too_new = "ImportError: libtorch_cuda.so: undefined symbol: ncclGroupSimulateEnd"
    for said in (too_new, "ModuleNotFoundError: No module named 'torch'", ""):
        _stub(tmp_path, "python3", f'[ -z "{said}" ] || {{ echo "{said}" >&2; exit 1; }}')
        ran = _run(_job(HIGH, ["true"])["command"], {}, tmp_path, "no script")
        assert ran.returncode == (said == too_new)
        assert ("take one of PyTorch 2.6 or older" in ran.stderr) == (said == too_new)


def test_pods_claim_the_interfaces_that_gke_manages_and_wait_for_its_gib() -> None:
    facts = samples.BY_GKE
    assert nccl.objects(facts) == []
    (template,) = stages.claims(facts)
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "mrdma.google.com",
        "allocationMode": "ExactCount",
        "count": 8,
    }
    pods = _whole(facts)
    assert len(pods) == 4
    for pod in pods.values():
        (claim,) = pod["spec"]["resourceClaims"]
        assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["claims"] == [{"name": claim["name"]}]
        assert "networking.gke.io/interfaces" not in pod["metadata"]["annotations"]
        gate = pod["spec"]["initContainers"][0]
        folders = {it["name"]: it["hostPath"]["path"] for it in _host_paths(pod)}
        (seen,) = gate["volumeMounts"]
        assert folders[seen["name"]] == "/home/kubernetes/bin/gib"
        assert f"until [ -e {seen['mountPath']}/scripts/set_nccl_env.sh ]" in gate["command"][-1]
        # The second gVNIC is the node's alone: nothing of a pod may name it.
        assert "eth1" not in json.dumps(pod["spec"])
    sample = _rendered(facts)["sample-job-demo-b200.yaml"]
    assert "resourceClaims" not in sample["spec"]


@WITH_NETWORK
def test_only_jobs_on_all_gpus_have_the_network_of_their_nodes(facts: ClusterFacts) -> None:
    (pool,) = facts.pools
    pods = _whole(facts)
    assert len(pods) == 4
    for pod in pods.values():
        asked = json.loads(pod["metadata"]["annotations"]["networking.gke.io/interfaces"])
        assert [it["interfaceName"] for it in asked] == [f"eth{n}" for n in range(pool.interfaces)]
        assert pod["spec"]["initContainers"][0]["name"] == nccl.GATE
    for pod in _whole(facts).values():
        (container,) = pod["spec"]["containers"]
        mounts = _mounts(container)
        folders = {it["name"]: it["hostPath"]["path"] for it in _host_paths(pod)}
        if "/usr/local/gib" in mounts:
            assert folders[mounts["/usr/local/gib"]] == "/home/kubernetes/bin/gib"
            assert folders[mounts["/usr/local/nvidia"]] == "/home/kubernetes/bin/nvidia"
        else:
            library = mounts["/usr/local/nvidia/lib64"]
            assert folders[library] == "/home/kubernetes/bin/nvidia/lib64"
    script = _whole(facts)["nccl-all-gather.yaml"]["spec"]["containers"][0]["command"][-1]
    build = "nccl-tests" if facts in {ULTRA, A4} else "nccl-tests-mpi"
    assert f"/third_party/{build}/build/all_gather_perf" in script
    assert "CUDA_VISIBLE_DEVICES" in script
    pod = _rendered(facts)[f"sample-job-{pool.name}.yaml"]
    assert "networking.gke.io/interfaces" not in pod.get("metadata", {}).get("annotations", {})
    assert "initContainers" not in pod["spec"]


def _host_paths(pod: Object) -> list[Object]:
    return [volume for volume in pod["spec"]["volumes"] if "hostPath" in volume]


@pytest.mark.parametrize("facts", [HIGH, MEGA], ids=lambda it: it.pools[0].name)
def test_a_job_starts_when_the_daemon_listens(facts: ClusterFacts) -> None:
    pod = _whole(facts)["nccl-all-gather.yaml"]
    daemon = _daemon(pod)
    probe, command = daemon["startupProbe"], daemon["command"]
    # Google's own 30 seconds are what a healthy one takes.
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 60
    assert "_" not in _env(daemon)["HEALTH_CHECK_LOG_FILE"]
    if command[0] == "/bin/sh":
        assert probe["exec"]["command"] == ["cat", _env(daemon)["HEALTH_CHECK_LOG_FILE"]]
        return
    (job,) = pod["spec"]["containers"]
    socket = _env(job)["NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX"]
    assert command[command.index("--uds_path") + 1] == socket
    assert _mounts(job)[socket] == _mounts(daemon)[socket]
    assert socket in probe["exec"]["command"][2]


def test_the_daemon_of_tcpxo_gets_no_flag_that_it_has_dropped() -> None:
    line = _daemon(_whole(MEGA)["ray-job.yaml"])["command"][2].splitlines()[-1]
    assert line.startswith("exec ")
    assert [word for word in line.split() if word.startswith("--")] == ["--num_hops=2"]


KINDS = pytest.mark.parametrize("kind", [Kind.WHOLE, Kind.RAY])


def _told(
    facts: ClusterFacts, kind: Kind, names: tuple[str, ...], env: dict[str, str], tmp_path: Path
) -> list[str]:
    """What a program finds in variables, some of which the image or somebody has set."""
    (tmp_path / "python3").symlink_to("/bin/true")
    job = _job(facts, ["printenv", *names], kind)
    line = f"{' '.join(job['command'])} && printenv {' '.join(names)}"  # as KubeRay joins it
    command = ["/bin/bash", "-c", line] if kind is Kind.RAY else job["command"]
    network = facts.pools[0].gpu_network
    script = nccl.FABRICS[network].script if network else ""
    ran = _run(command, _env(job) | env, tmp_path, script or "no script")
    lines: list[str] = ran.stdout.splitlines()
    assert len(lines) == len(names), ran.stderr
    return lines


@KINDS
@pytest.mark.parametrize("own", ["/opt/lib", ""], ids=["of_its_image", "none"])
@EVERY
def test_a_program_finds_the_driver_and_what_its_image_has_set_stays(
    tmp_path: Path, name: str, own: str, kind: Kind
) -> None:
    (tmp_path / "profile.sh").touch()
    names = ("PATH", "LD_LIBRARY_PATH")
    env = {"LD_LIBRARY_PATH": own} if own else {}
    programs, libraries = _told(CLUSTERS[name], kind, names, env, tmp_path)
    assert programs.endswith(":/bin:/usr/local/nvidia/bin")
    parts = ["/usr/local/nvidia/lib64", *filter(None, [own])]
    # The NCCL of the node's network comes before an image's.
    has_network = CLUSTERS[name].pools[0].gpu_network is not None
    assert libraries.split(":") == (parts if has_network else parts[::-1])


@KINDS
@pytest.mark.parametrize("interfaces", ["eth0,eth1", "eth0"], ids=["ours", "a_users"])
def test_googles_script_has_not_the_last_word_on_what_is_b200s_own(
    tmp_path: Path, kind: Kind, interfaces: str
) -> None:
    names = ("NCCL_SOCKET_IFNAME", "NCCL_TUNER_CONFIG_PATH", "NCCL_IB_TC")
    (tmp_path / "profile.sh").write_text("".join(f"export {name}=script\n" for name in names))
    # What a job of Run sets takes the place of ours in its container.
    told = _told(A4, kind, names, {"NCCL_SOCKET_IFNAME": interfaces}, tmp_path)
    assert told == [interfaces, "/usr/local/gib/configs/tuner_config_a4.txtpb", "script"]


PROFILE = 'echo "lib=${NCCL_LIB_DIR:?}"\nexport NCCL_FROM_PROFILE=read\nfalse\n'
"""As TCPXO's script: without NCCL_LIB_DIR the shell ends; its last command says nothing."""


def _run(
    command: list[str], env: dict[str, str], tmp_path: Path, path: str, place: Path | None = None
) -> Any:
    """Run a container's command, with what it has at a path at another place, a script's."""
    words = [word.replace(path, str(place or tmp_path / "profile.sh")) for word in command]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **env}
    return ran(words, env=environment)


def test_a_users_command_starts_in_the_environment_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "profile.sh").write_text(PROFILE)
    own = ["sh", "-c", 'echo "$NCCL_FROM_PROFILE $0 $1 $$"', "a b", 'c"d']
    job = _job(MEGA, own)
    ran = _run(job["command"], _env(job), tmp_path, nccl.FABRICS[GpuNetwork.TCPXO].script)
    first, second = ran.stdout.splitlines()
    assert first == "lib=/usr/local/nvidia/lib64"
    assert second.startswith('read a b c"d ')
    assert ran.returncode == 0


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (r"printf '0\n0\n0\n0\n0\n0\n0\n0\n'", ""),
        (r"printf '[N/A]\n0\n0\n0\n0\n0\n0\n0\n'", ""),
        (r"printf '0\n0\n0\n0\n0\n0\n0\n'", "fewer than the 8 GPUs"),
        (r"printf '0\n0\n0\n20\n0\n0\n0\n0\n'", "memory errors"),
        ("echo 'No devices were found'; exit 6", "does not answer: No devices were found"),
    ],
    ids=["well", "not-told", "one-lost", "memory", "no-driver"],
)
def test_a_pod_on_a_node_with_bad_gpus_ends_before_nccl_waits_for_them(
    tmp_path: Path, says: str, words: str
) -> None:
    (tmp_path / "profile.sh").touch()
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{says}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    job = _job(MEGA, ["echo", "runs"])
    script = nccl.FABRICS[GpuNetwork.TCPXO].script
    command = [word.replace(script, str(tmp_path / "profile.sh")) for word in job["command"]]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **_env(job)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == ((1, "") if words else (0, "runs\n"))
    assert words in ended.stderr


def test_what_a_user_gives_a_container_stays_and_arm_machines_get_no_plugin() -> None:
    container: dict[str, Any] = {
        "name": "own",
        "image": "an/image",
        "command": ["train"],
        "args": ["--fast"],
    }
    pod = fabric_pods.template(MEGA, samples.MEGA, container, Kind.WHOLE)
    made = pod["spec"]["containers"][0]
    assert made["command"][-2:] == ["train", "--fast"]
    assert "args" not in made
    assert container["args"] == ["--fast"]
    env = [{"name": "NCCL_NET", "value": "Socket"}]
    container = {"name": "own", "image": "an/image", "command": ["train"], "env": env}
    pod = fabric_pods.template(ULTRA, samples.ULTRA, container, Kind.WHOLE)
    (made,) = pod["spec"]["containers"]
    assert [it["value"] for it in made["env"] if it["name"] == "NCCL_NET"] == ["Socket"]
    container = {"name": "own", "image": "an/image"}
    with pytest.raises(ValueError, match="container own: no command"):
        fabric_pods.template(ULTRA, samples.ULTRA, container, Kind.WHOLE)
    pool = samples.pool_like(samples.A4, machine_type="a4x-highgpu-4g", gpus=4)
    facts = samples.facts(pool, networks=samples.RDMA)
    pod = fabric_pods.template(facts, facts.pools[0], dict(OWN), Kind.WHOLE)
    assert "networking.gke.io/interfaces" in pod["metadata"]["annotations"]
    assert "initContainers" not in pod["spec"]


def test_what_runs_on_a_node_without_its_plugin_ends_and_says_so(tmp_path: Path) -> None:
    job = _job(ULTRA, ["echo", "trains over sockets"])
    ran = _run(job["command"], _env(job), tmp_path, nccl.FABRICS[GpuNetwork.RDMA].script)
    assert ran.returncode == 1
    assert "profile.sh is missing" in ran.stderr
    assert ran.stdout == ""
    (container,) = _whole(MEGA)["ray-cluster.yaml"]["spec"]["containers"]
    script = nccl.FABRICS[GpuNetwork.TCPXO].script
    joined = f" {' '.join(container['command'])}  && echo ulimit; echo started"
    ran = _run(["/bin/bash", "-c", "--", joined], _env(container), tmp_path, script)
    assert ran.stdout == ""
    assert ran.returncode == 1


@pytest.mark.parametrize("facts", [MEGA, ULTRA], ids=lambda it: it.pools[0].name)
def test_ray_starts_in_the_environment_of_the_network(facts: ClusterFacts, tmp_path: Path) -> None:
    (tmp_path / "profile.sh").write_text("export NCCL_FROM_PROFILE=read\nfalse\n")
    # An image without what the plugin needs, as the folder that is to bring it is empty.
    _stub(tmp_path, "python3", "exit 1")
    (container,) = _whole(facts)["ray-cluster.yaml"]["spec"]["containers"]
    network = facts.pools[0].gpu_network
    assert network is not None
    # As KubeRay joins it: a container's command, then its own.
    joined = f" {' '.join(container['command'])}  && echo ulimit; echo started $NCCL_FROM_PROFILE"
    script = nccl.FABRICS[network].script
    ran = _run(["/bin/bash", "-c", "--", joined], _env(container), tmp_path, script)
    assert ran.stdout.splitlines() == ["ulimit", "started read"]
    # gIB's libraries are looked for; that they are missing is said, and Ray starts.
    assert ("libnl-3.so.200" in ran.stderr) == (network is GpuNetwork.RDMA)


@pytest.mark.parametrize("own", [True, False], ids=["of_its_image", "of_the_plugins_image"])
def test_rays_workers_have_the_libraries_of_rdma(tmp_path: Path, *, own: bool) -> None:
    pod = _whole(ULTRA)["ray-cluster.yaml"]["spec"]
    (container,) = pod["containers"]
    command = " ".join(container["command"])
    assert "apt-get" not in command
    assert "sudo" not in command
    # The init container copies them out of the image that the node has for the installer.
    (bring,) = [it for it in pod["initContainers"] if it["name"] == "rdma-libraries"]
    (gate,) = [it for it in pod["initContainers"] if it["name"] == "wait-for-nccl"]
    assert bring["image"] == gate["image"]
    (mount,) = bring["volumeMounts"]
    assert {"name": mount["name"], "emptyDir": {}} in pod["volumes"]
    assert mount["name"] in {it["name"] for it in container["volumeMounts"]}
    image, folder = tmp_path / "image", tmp_path / "folder"
    for place in (image, folder):
        place.mkdir()
    for name in ("libnl-3.so.200", "libnl-route-3.so.200"):
        (image / f"{name}.26.0").write_text(name)
        (image / name).symlink_to(f"{name}.26.0")
    script = bring["command"][-1].replace(mount["mountPath"], str(folder))
    script = script.replace("/usr/lib /lib/ /usr/local/lib", str(image))
    subprocess.run(["/bin/sh", "-c", script], check=True)
    assert (folder / "libnl-route-3.so.200").read_text() == "libnl-route-3.so.200"
    assert not (folder / "libnl-3.so.200").is_symlink()
    # The worker takes its own, if it has some.
    (tmp_path / "profile.sh").touch()
    added = f'case "$LD_LIBRARY_PATH" in *{mount["mountPath"]}) ;; *) exit 1 ;; esac'
    there = "exit 0" if own else added
    _stub(tmp_path, "python3", there)
    joined = f"{command} && echo $LD_LIBRARY_PATH"
    shell = nccl.FABRICS[GpuNetwork.RDMA].script
    ran = _run(["/bin/bash", "-c", "--", joined], _env(container), tmp_path, shell)
    assert ran.stdout.strip().endswith(mount["mountPath"]) is not own
    assert ran.stderr == ""


def test_shared_memory_is_by_what_the_pod_has_and_left_to_kuberay_on_rays_workers() -> None:
    sizes = {
        name: fabric_pods.room_on(name)
        for name in ("a3-highgpu-8g", "a2-highgpu-1g", "n1-standard-2", "n1-highcpu-2")
    }
    shared = {name: room.shared_memory for name, room in sizes.items() if room}
    assert shared == {
        "a3-highgpu-8g": "250Gi",
        "a2-highgpu-1g": "37Gi",
        "n1-standard-2": "2Gi",
        "n1-highcpu-2": "300Mi",
    }
    pool = samples.pool_like(samples.A2, machine_type="z9-megagpu-8g")
    pod = fabric_pods.template(samples.facts(pool), pool, dict(OWN), Kind.WHOLE)
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "8"}
    assert pod["spec"]["volumes"][-1]["emptyDir"] == {"medium": "Memory"}
    pod = _whole(ULTRA)["ray-cluster.yaml"]
    assert "/dev/shm" not in _mounts(pod["spec"]["containers"][0])  # noqa: S108 - where the system has it


TOKEN = Secret(name="HF_TOKEN", project="my-project", secret="hf-token", version="3")  # noqa: S106 - names one
WITH_SECRETS = {
    name: dataclasses.replace(facts, secrets=(TOKEN,))
    for name, facts in CLUSTERS.items()
    if name != "t4"
}


def _reader(pod: Object) -> Object:
    (found,) = (it for it in _containers(pod) if it["name"] == fabric_pods.READS_SECRETS)
    return found


@pytest.mark.parametrize("name", WITH_SECRETS)
def test_secrets_are_read_after_the_gate_and_before_a_daemon_starts(name: str) -> None:
    for file, pod in _whole(WITH_SECRETS[name]).items():
        order = [it["name"] for it in pod["spec"].get("initContainers", [])]
        if file == "nccl-all-gather.yaml":
            assert fabric_pods.READS_SECRETS not in order
            continue
        daemons = ["tcpx-daemon", "tcpxo-daemon"]
        wanted = [nccl.GATE, "rdma-libraries", fabric_pods.READS_SECRETS, *daemons]
        assert order == [it for it in wanted if it in order]
        assert fabric_pods.READS_SECRETS in order
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        used = _mounts(_reader(pod))[fabric_pods.SECRETS]
        assert volumes[used]["emptyDir"]["medium"] == "Memory"


def test_pools_of_one_node_get_no_job_for_several_nor_samples_with_one_gpu_a_secret() -> None:
    pod = _rendered(WITH_SECRETS["a3-ultra"])["sample-job-demo-h200.yaml"]
    assert "initContainers" not in pod["spec"]
    assert not [file for file in jobs.render(samples.TWO_QUEUED) if "torchrun" in file]
    thing = jobs.ray_job(dataclasses.replace(ULTRA, kueue=False), samples.ULTRA)
    assert thing["spec"]["activeDeadlineSeconds"] > 0
    assert thing["spec"]["shutdownAfterJobFinishes"] is True
    # KubeRay would keep the cluster, with its nodes, for as long.
    assert "ttlSecondsAfterFinished" not in thing["spec"]


def _read(pod: Object, tmp_path: Path, gcloud: str) -> Any:
    """Run the container that reads secrets, with another gcloud and without pauses."""
    _stub(tmp_path, "gcloud", gcloud)
    _stub(tmp_path, "sleep", "exit 0")
    command = _reader(pod)["command"]
    return _run(command, {}, tmp_path, fabric_pods.SECRETS, place=tmp_path / "secrets")


@pytest.mark.parametrize("file", ["torchrun-demo-a100-8g.yaml", "ray-cluster.yaml"])
def test_a_job_has_the_value_of_a_secret_in_its_environment(file: str, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    pod = _whole(WITH_SECRETS["a2"])[file]
    asked = 'echo "$@" >&2; file="${!#}"; printf "%s\\n" "a  b\'c" >"${file#--out-file=}"'
    read = _read(pod, tmp_path, asked)
    assert read.returncode == 0
    assert "versions access 3 --project=my-project --secret=hf-token" in read.stderr
    (container,) = pod["spec"]["containers"]
    if "ray" in file:
        command = ["bash", "-c", f'{container["command"][0]} && echo "$HF_TOKEN"']
    else:
        own = container["command"].index("bash", 1) + 1
        command = [*container["command"][:own], "sh", "-c", 'echo "$HF_TOKEN"']
    ran = _run(command, {}, tmp_path, fabric_pods.SECRETS, place=tmp_path / "secrets")
    assert ran.stdout == "a  b'c\n"


def test_a_secret_that_cannot_be_read_ends_the_pod_and_names_the_account(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    pod = _whole(WITH_SECRETS["a2"])["ray-cluster.yaml"]
    read = _read(pod, tmp_path, f"echo again >>{tmp_path}/asked; exit 1")
    assert read.returncode == 1
    assert "projects/my-project/secrets/hf-token:3 for HF_TOKEN" in read.stderr
    assert "demo-workload@my-project.iam.gserviceaccount.com" in read.stderr
    assert len((tmp_path / "asked").read_text().splitlines()) == 6
