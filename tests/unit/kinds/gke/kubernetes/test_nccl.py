"""What Create brings to nodes for NCCL, and what pods wait for: their scripts are run here."""

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.kinds.gke.kubernetes import nccl
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from tests.kubernetes import samples
from tests.running import ran
from tests.table import cases

A4X = samples.pool_like(
    samples.A4, machine_type="a4x-highgpu-4g", accelerator="nvidia-gb200", gpus=4
)
POOLS = {
    it.machine_type: it
    for it in (samples.HIGH, samples.MEGA, samples.ULTRA, samples.A4, samples.A2, A4X)
}


def _facts(*machines: str, version: str = "1.35.6-gke.1250000") -> ClusterFacts:
    made = samples.facts(*(POOLS[machine] for machine in machines))
    return dataclasses.replace(made, version=version)


def _sets(facts: ClusterFacts) -> dict[str, Any]:
    return {it["metadata"]["name"]: it for it in nccl.objects(facts)}


def _gate(facts: ClusterFacts) -> Any:
    software = nccl.software(facts, facts.pools[0])
    return nccl.gate(*software) if software else None


def _nodes(daemon_set: Any) -> list[str]:
    affinity = daemon_set["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return list(terms[0]["matchExpressions"][0]["values"])


@cases("""
machine        | names
a3-highgpu-8g  | [nccl-tcpx-installer, device-injector]
a3-megagpu-8g  | [nccl-tcpxo-installer, device-injector]
a3-ultragpu-8g | [nccl-rdma-installer]
a4-highgpu-8g  | [nccl-rdma-installer]
a4x-highgpu-4g | []
a2-highgpu-8g  | []
""")
def test_each_machine_gets_its_installer_and_injector(machine: str, names: list[str]) -> None:
    found = _sets(_facts(machine))
    assert set(found) == set(names)
    for it in found.values():
        assert _nodes(it) == [POOLS[machine].accelerator]
        assert it["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "100%"}


def test_one_installer_serves_all_pools_of_its_kind_by_its_digest_and_others_have_no_gate() -> None:
    found = _sets(_facts("a3-ultragpu-8g", "a4-highgpu-8g", "a3-highgpu-8g", "a3-megagpu-8g"))
    assert _nodes(found["nccl-rdma-installer"]) == ["nvidia-h200-141gb", "nvidia-b200"]
    assert _nodes(found["device-injector"]) == ["nvidia-h100-80gb", "nvidia-h100-mega-80gb"]
    found = _sets(_facts("a3-megagpu-8g"))
    for name in ("nccl-tcpxo-installer", "device-injector"):
        pod = found[name]["spec"]["template"]["spec"]
        for it in [*pod.get("initContainers", []), *pod["containers"]]:
            assert "@sha256:" in it["image"]
    assert [_gate(_facts(it)) for it in ("a2-highgpu-8g", "a4x-highgpu-4g")] == [None, None]


@cases("""
version            | plugin
1.33.5-gke.1125000 | v3.1.9
1.34.0-gke.100     | v3.1.12
1.100.1-gke.1      | v3.1.12
-                  | v3.1.12
""")
def test_the_plugin_of_a3_high_fits_the_kernel_of_nodes(version: str, plugin: str) -> None:
    facts = _facts("a3-highgpu-8g", version=version)
    pod = _sets(facts)["nccl-tcpx-installer"]["spec"]["template"]["spec"]
    assert {it["image"].rpartition(":")[2] for it in pod["initContainers"]} == {plugin}
    assert _gate(facts)["image"].endswith(f":{plugin}")


def _script(container: Any, root: Path, **changes: str) -> str:
    """A container's script, with a folder of the test for the node's."""
    text = str(container["command"][-1])
    for before, after in {nccl.READY: f"{root}/ready", **changes}.items():
        assert before in text
        text = text.replace(before, after)
    return text


def _run(script: str) -> subprocess.CompletedProcess[str]:
    return ran(
        ["/bin/sh", "-c", script], timeout=20, env={"NODE": "node-1", "PATH": "/usr/bin:/bin"}
    )


@pytest.fixture
def node(tmp_path: Path) -> Path:
    (tmp_path / "ready").mkdir()
    return tmp_path


def test_pods_wait_until_their_node_is_ready_and_say_what_is_missing(node: Path) -> None:
    waiting = _gate(_facts("a3-ultragpu-8g"))
    (node / "ready" / "nccl-rdma-installer-v1.1.0").touch()
    at_once = _script(waiting, node, **{"-ge 900": "-ge 0"})
    late = _run(at_once)
    assert late.returncode == 1
    assert "NCCL is not installed on the node node-1" in late.stderr
    assert f"{node}/ready/nccl-rdma-installer-v1.1.1 is missing" in late.stderr
    assert "found: nccl-rdma-installer-v1.1.0" in late.stderr
    assert "get pods --selector k8s-app=nccl-rdma-installer" in late.stderr
    (node / "ready" / "nccl-rdma-installer-v1.1.1").touch()
    assert _run(at_once).returncode == 0


def _installation(node: Path, *machines: str, unpack: str) -> str:
    (installed,) = nccl.objects(_facts(*machines))
    container = installed["spec"]["template"]["spec"]["initContainers"][-1]
    (node / "unpacked" / "lib64").mkdir(parents=True, exist_ok=True)
    return _script(
        container,
        node,
        **{
            "/usr/local": f"{node}/usr/local",
            "/var/lib/gib": f"{node}/unpacked",
            "/scripts/container_entry.sh install": unpack,
        },
    )


def test_an_installer_says_that_it_is_done_and_leaves_what_is_installed_alone(node: Path) -> None:
    (node / "ready" / "nccl-rdma-installer-v1.0.0").touch()
    unpack = f"echo x >>{node}/unpacked/lib64/libnccl.so"
    script = _installation(node, "a3-ultragpu-8g", unpack=unpack)
    assert _run(script).returncode == 0
    installed = node / "usr/local/home/kubernetes/bin"
    assert (installed / "nvidia/lib64/libnccl.so").read_text() == "x\n"
    assert (installed / "gib/lib64/libnccl.so").read_text() == "x\n"
    assert [it.name for it in (node / "ready").iterdir()] == ["nccl-rdma-installer-v1.1.1"]
    # Its pod is made anew while a job runs.
    assert _run(script).returncode == 0
    assert (installed / "nvidia/lib64/libnccl.so").read_text() == "x\n"


def test_another_version_waits_until_no_program_of_the_node_uses_the_one_before(node: Path) -> None:
    script = _installation(node, "a3-ultragpu-8g", unpack="true")
    (node / "unpacked/lib64/libnccl.so").touch()
    maps = node / "proc/7/maps"
    maps.parent.mkdir(parents=True)
    maps.write_text("7f0 r-xp /usr/local/nvidia/lib64/libnccl.so.2\n")
    script = script.replace("/proc/", f"{node}/proc/").replace("sleep 30", f"rm {maps}")
    ran = _run(script)
    assert (ran.returncode, ran.stdout.count("waiting until no program")) == (0, 1)
    assert (node / "ready/nccl-rdma-installer-v1.1.1").exists()


@pytest.mark.parametrize("fails", ["unpack", "copy"])
def test_an_installer_that_fails_opens_no_gate(node: Path, fails: str) -> None:
    unpack = "false" if fails == "unpack" else f"rm -r {node}/unpacked/lib64"
    script = _installation(node, "a3-ultragpu-8g", unpack=unpack)
    assert _run(script).returncode != 0
    assert list((node / "ready").iterdir()) == []
