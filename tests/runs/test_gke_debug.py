"""Debug of a GKE cluster has what Create would apply in Kubernetes, before and after a Create."""

import re
import shutil
from pathlib import Path

import pytest

from provision.kinds.gke.kubernetes.objects import from_yaml, title
from provision.terraform.plan import UNKNOWN
from tests.conftest import Golden
from tests.runs import cluster_side
from tests.runs.conftest import Ended, Rehearsal, Rehearse

GOLDEN = Path(__file__).parents[1] / "golden" / "debug" / "gke.txt"
SETTINGS = {
    "ORCHESTRATOR_TYPE": "gke",
    "NAME_PREFIX": "looked-at",
    "ZONE": "us-central1-b",
    "VM_TYPE": "a3-ultragpu-8g",
    "ENABLE_FLEX_START": "yes",
    "ENABLE_QUEUED_PROVISIONING": "yes",
    "ENABLE_RAY_OPERATOR": "yes",
    "GKE_MAX_NODE_COUNT": "4",
    "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD:2560",
}


def _debugged(rehearsal: Rehearsal) -> tuple[Ended, dict[str, str]]:
    """How Debug ended, and the files beside Terraform's of its folder."""
    rehearsal.environ["TMPDIR"] = str(rehearsal.folder)
    debugged = rehearsal.run("Debug")
    assert debugged.code == 0, debugged.said
    (folder,) = rehearsal.folder.glob(f"{SETTINGS['NAME_PREFIX']}-debug-*")
    files = [*(folder / "kubernetes").iterdir(), *(folder / "jobs").iterdir()]
    found = {str(path.relative_to(folder)): path.read_text() for path in sorted(files)}
    assert not list(folder.rglob("*.tfplan"))
    shutil.rmtree(folder)
    return debugged, found


def _contents(files: dict[str, str]) -> str:
    """A line for each file, and one for each object in it."""
    lines = []
    for name, text in files.items():
        lines.append(name)
        for thing in from_yaml(text):
            named = {"metadata": {"name": thing["metadata"].get("generateName", "")}}
            lines.append(f"  {title(thing if 'name' in thing['metadata'] else thing | named)}")
    return "\n".join([*lines, ""])


@pytest.mark.slow(
    sibling="::test_all_that_nodes_fetch_of_the_tool_is_in_one_list_and_comes_from_the_mirror"
)
def test_debug_writes_what_create_applies_and_the_jobs_that_it_writes(
    rehearse: Rehearse, golden: Golden
) -> None:
    rehearsal = rehearse(rate=0.002)
    rehearsal.settings |= SETTINGS
    debugged, before = _debugged(rehearsal)
    golden.check(GOLDEN, _contents(before))
    storage = "kubernetes/03-identity-priorities-and-storage.yaml"
    assert [name for name, text in before.items() if UNKNOWN in text] == [storage]
    told = [it["what"] for it in debugged.document["notes"]]
    assert f"{UNKNOWN} stands in {storage}" in told
    assert [line for line in rehearsal.resources() if "cluster" in line] == []

    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    _, after = _debugged(rehearsal)

    wanted = re.compile(r"\d+\.\d+\.\d+\.\d+".join(map(re.escape, before[storage].split(UNKNOWN))))
    assert wanted.fullmatch(after[storage])
    assert {**after, storage: before[storage]} == before
    connection = created.document["connection"]
    jobs = {
        f"jobs/{name}": cluster_side.kept(rehearsal, url).decode()
        for name, url in connection["jobs"].items()
    }
    # Only the cluster's own definitions tell whether its Ray takes a token.
    token = re.compile(r" +authOptions:\n +mode: token\n")
    assert {name: token.sub("", text) for name, text in jobs.items()} == {
        name: text for name, text in after.items() if name.startswith("jobs/")
    }
    cluster = cluster_side.kubectl(rehearsal, connection)
    for name, text in after.items():
        for thing in from_yaml(text) if name.startswith("kubernetes/") else ():
            metadata = thing["metadata"]
            place = metadata["name"], metadata.get("namespace", "")
            found = cluster.find(thing["apiVersion"], thing["kind"], *place)
            assert found is not None, title(thing)
            assert found.get("spec") == thing.get("spec"), title(thing)


def test_all_that_nodes_fetch_of_the_tool_is_in_one_list_and_comes_from_the_mirror(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(rate=0.002)
    rehearsal.settings |= SETTINGS | {"IMAGE_MIRROR": "mirror.example.com/all"}
    rehearsal.settings["NAME_PREFIX"] = "mirrored"
    rehearsal.environ["TMPDIR"] = str(rehearsal.folder)
    debugged = rehearsal.run("Debug")
    assert debugged.code == 0, debugged.said
    (folder,) = rehearsal.folder.glob("mirrored-debug-*")
    lines = [it.split() for it in (folder / "images.txt").read_text().splitlines()[1:]]
    assert {"nvcr.io", "us-docker.pkg.dev"} <= {name.partition("/")[0] for name, _ in lines}
    others = [place for name, place in lines if not name.startswith("gke.gcr.io/")]
    assert all(place.startswith("mirror.example.com/all/") for place in others)

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    cluster = cluster_side.kubectl(rehearsal, created.document["connection"])
    found = {
        container["image"]
        for api, kind in (("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"))
        for thing in cluster.all(api, kind)
        if thing["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") != "gke"
        for container in thing["spec"]["template"]["spec"]["containers"]
    }
    assert found
    assert found <= {place for _, place in lines}
    shutil.rmtree(folder)
