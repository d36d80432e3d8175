"""A real Kubernetes with a real Kueue, JobSet and Ray's operator, and nodes that are none."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from provision.kinds.gke.kubernetes.objects import Object, from_yaml
from tests.kubernetes import processes, programs
from tests.kubernetes.world import World

# Building takes minutes, starting takes seconds.
_TIMEOUT = 3600

# Module of `definitions` -> where its definitions are. Ray's operator watches all of its own.
_SOURCES = {
    "github.com/GoogleCloudPlatform/gke-networking-api": "config/crds/*network*.yaml",
    "k8s.io/autoscaler/cluster-autoscaler/apis": "config/crd/*.yaml",
    "sigs.k8s.io/jobset": "config/components/crd/bases/*.yaml",
    "github.com/ray-project/kuberay/ray-operator": "config/crd/bases/ray.io_*.yaml",
}
_KUEUE_OVERLAY = {
    "apiVersion": "kustomize.config.k8s.io/v1beta1",
    "kind": "Kustomization",
    "images": [
        {
            "name": "us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue",
            "newName": "registry.k8s.io/kueue/kueue",
            "newTag": f"v{programs.KUEUE.version}",
        }
    ],
}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """This layer runs where it is asked for by name: its first run builds Kubernetes."""
    del collection_path
    asked = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    own = programs.MODULES.parent
    return None if any(path == own or own in path.parents for path in asked) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test waits for the build."""
    for item in items:
        if item.path.parent == programs.MODULES.parent:
            item.add_marker(pytest.mark.timeout(_TIMEOUT))


@pytest.fixture(scope="session")
def go() -> str:
    """The Go command, without which this layer can't run."""
    command = programs.go()
    if command is None:
        pytest.skip("THE LAYER kubernetes DID NOT RUN: there is no Go to build Kubernetes with")
    return command


@pytest.fixture(scope="session")
def manifest(go: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kueue's manifest, made of its sources as its release is."""
    folder = tmp_path_factory.mktemp("manifests")
    kustomize = programs.build(go)["kustomize"]
    source = programs.source(go, "programs", "sigs.k8s.io/kueue") / "config" / "default"
    # Kustomize takes no absolute paths.
    relative = "/".join([".."] * (len(folder.resolve().parts) - 1)) + str(source)
    overlay = _KUEUE_OVERLAY | {"resources": [relative]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    made = subprocess.run(
        [str(kustomize), "build", str(folder)], capture_output=True, check=True, cwd=folder
    )
    path = folder / programs.KUEUE.file
    path.write_bytes(made.stdout)
    return path


@pytest.fixture(scope="session")
def world(go: str, manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A running cluster with all kinds, and Kueue at work."""
    folder = tmp_path_factory.mktemp("control-plane")
    with processes.running(programs.build(go), folder) as plane:
        world = World(plane.cluster())
        for thing in _definitions(go):
            world.cluster.apply(thing)
        kueue = from_yaml(manifest.read_text())
        world.install(processes.on_loopback(kueue, plane.ports["webhook"]))
        # JobSet first: Kueue looks for its kinds, and the API calls both for each set.
        authority = plane.start_jobset()
        for webhook in _jobset_webhooks(go, plane.ports["jobset-webhook"], authority):
            world.cluster.apply(webhook)
        plane.start_kueue()
        plane.start_ray_operator()
        plane.start_nodes(_stages(go, folder))
        yield world


def _definitions(go: str) -> list[Object]:
    found = []
    for module, pattern in _SOURCES.items():
        source = programs.source(go, "definitions", module)
        for path in sorted(source.glob(pattern)):
            found += from_yaml(path.read_text())
    return found


def _jobset_webhooks(go: str, port: int, authority: str) -> list[Object]:
    """The webhooks for sets; those for pods are for placements that nothing here asks for."""
    source = programs.source(go, "programs", "sigs.k8s.io/jobset") / "config/components/webhook"
    found = from_yaml((source / "manifests.yaml").read_text())
    for thing in found:
        thing["metadata"]["name"] = f"jobset-{thing['metadata']['name']}"
        thing["webhooks"] = [it for it in thing["webhooks"] if "jobset" in it["name"]]
    return processes.called_directly(found, port, authority)


def _stages(go: str, folder: Path) -> Path:
    """What kwok does with nodes and pods: its own usual stages."""
    source = programs.source(go, "kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
    parts = ("node/fast", "node/heartbeat", "pod/fast")
    found = [
        stage
        for part in parts
        for path in sorted((source / part).glob("*.yaml"))
        if path.name != "kustomization.yaml"
        for stage in from_yaml(path.read_text())
    ]
    for stage in found:
        if stage["metadata"]["name"] == "pod-complete":
            # A job that lasts: else each pod of a Job ends at once.
            key = f'.metadata.annotations["{processes.STAYS}"]'
            selector = stage["spec"]["selector"]
            selector["matchExpressions"].append({"key": key, "operator": "DoesNotExist"})
    stages = folder / "stages.yaml"
    stages.write_text(yaml.safe_dump_all(found))
    return stages
