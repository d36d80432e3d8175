"""The root `gke`: valid, marked, named as Python says, and held to the same floors."""

import re
from pathlib import Path
from typing import Any

import pytest

from provision.catalogue import gke_versions, names
from tests.terraform.conftest import Terraform

SOURCES = Path(__file__).parents[2] / "terraform"
PREFIX = "train"
MARKER = "aiinfra-cluster"
# Neither labels nor description: a pool is found by its cluster, a NAT by its router, a role by
# its member.
BY_PARENT = {
    "google_compute_router_nat",
    "google_container_node_pool",
    "google_project_iam_member",
    "google_service_account_iam_member",
    "google_storage_bucket_iam_member",
}
# Names that no other root has; what both have is in `names.ALL`.
SHARED = {
    names.NETWORK,
    names.SUBNETWORK,
    names.ROUTER,
    names.NAT,
    names.FIREWALL_INTERNAL,
    names.FIREWALL_SSH,
    names.GPU_NETWORK,
    names.GPU_SUBNETWORK,
    names.FIREWALL_GPU,
    names.SERVICE_ACCOUNT,
    names.CLUSTER,
}
OWN = {names.WORKLOAD_ACCOUNT, names.SYSTEM_POOL, names.EQUAL_POOL}


@pytest.fixture(scope="session")
def cluster(terraform: Terraform) -> dict[str, Any]:
    """State and provider's schemas of an A3 Ultra cluster."""
    messages = terraform.test("gke", "cluster.tftest.hcl")
    (state,) = [
        message["test_state"]
        for message in messages
        if message["type"] == "test_state"
        and message["@testrun"] == "a_cluster_of_a3_ultra_tells_its_networks_in_order"
    ]
    found: dict[str, Any] = state
    return found


@pytest.fixture(scope="session")
def made(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """The resources of the cluster, of all modules."""
    return [
        resource
        for module in cluster["root_module"]["child_modules"]
        for resource in module.get("resources", [])
        if resource["mode"] == "managed"
    ]


def test_the_root_is_valid(terraform: Terraform) -> None:
    terraform.init("gke")
    done = terraform.run("gke", "validate", "-no-color")

    assert done.returncode == 0, done.stderr


def test_terraform_and_python_give_the_same_names(made: list[dict[str, Any]]) -> None:
    found = {
        resource["values"].get("account_id") or resource["values"]["name"]
        for resource in made
        if not resource["type"].endswith("_iam_member")
    }
    place = "-" + 8 * "x"
    masked = {
        re.sub(r"(-gpu-[a-z]+)-\d-", r"\1-x-", re.sub(r"-[0-9a-f]{8}$", place, name))
        for name in found
    }

    assert masked - {f"{PREFIX}-nodepool-1"} == {
        name.of(PREFIX) + (place if name.bound else "")
        for name in (SHARED | OWN) - {names.EQUAL_POOL}
    }


def test_everything_carries_the_marker_or_hangs_on_something_that_does(
    cluster: dict[str, Any], made: list[dict[str, Any]]
) -> None:
    (provider,) = cluster["provider_schemas"].values()
    without = set()
    for resource in made:
        attributes = provider["resource_schemas"][resource["type"]]["block"]["attributes"]
        values = resource["values"]
        labels = values.get("labels") or values.get("resource_labels") or {}
        described = values.get("description") == f"{MARKER}=3f9c2a71"
        if not described and labels.get(MARKER) != "3f9c2a71":
            assert not {"description", "labels", "resource_labels"} & set(attributes)
            without.add(resource["type"])

    assert without == BY_PARENT


def test_no_account_has_a_role_in_all_buckets_where_the_state_is_too(
    made: list[dict[str, Any]],
) -> None:
    roles = {it["values"]["role"] for it in made if it["type"] == "google_project_iam_member"}

    assert roles
    assert not {role for role in roles if "storage" in role}


def test_nodes_are_labelled_with_the_marker(made: list[dict[str, Any]]) -> None:
    pools = [it["values"] for it in made if it["type"] == "google_container_node_pool"]

    assert len(pools) == 2
    assert all(pool["node_config"][0]["resource_labels"][MARKER] == "3f9c2a71" for pool in pools)


@pytest.mark.parametrize(
    ("module", "floors"),
    [
        ("gke-nodepool/pool.tf", {gke_versions.FLEX_START, gke_versions.QUEUED}),
        ("gke-cluster/locals.tf", {gke_versions.RAY_OPERATOR}),
    ],
)
def test_terraform_and_python_have_the_same_floors(
    module: str, floors: set[gke_versions.Floor]
) -> None:
    text = (SOURCES / "modules" / module).read_text(encoding="utf-8")
    (line,) = re.findall(r"^ +_floor += (.*)$", text, re.MULTILINE)

    assert set(re.findall(r"\d[\w.-]+", line)) == {floor.version for floor in floors}


@pytest.mark.parametrize("file", ["versions.tf", ".terraform.lock.hcl"])
def test_what_is_not_about_the_product_is_the_same_in_both_roots(file: str) -> None:
    assert (SOURCES / "gke" / file).read_text() == (SOURCES / "mig" / file).read_text()


def test_variables_of_one_name_have_one_type_in_both_roots() -> None:
    def types(root: str) -> dict[str, str]:
        text = (SOURCES / root / "variables.tf").read_text(encoding="utf-8")
        found = re.findall(
            r'^variable "(\w+)" \{.*?^  type +=(.*?)(?=^  (?:default|nullable)|^\})',
            text,
            re.MULTILINE | re.DOTALL,
        )
        return {name: " ".join(kind.split()) for name, kind in found}

    mig, gke = types("mig"), types("gke")
    both = mig.keys() & gke.keys()

    assert {"gcs_mounts", "filestores", "gpu_networks", "service_account", "labels"} <= both
    assert {name: gke[name] for name in both} == {name: mig[name] for name in both}
