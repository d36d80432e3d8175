"""What Terraform names is what `provision.names` says, in both directions."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.catalogue import fabrics, machines, names
from provision.preflight import made
from provision.spec.ranges import Ranges

PREFIX = "train"
SOURCES = Path(__file__).parents[2] / "terraform"
# A role is who, what and where; an object is named by its content, a request by Python, a
# dashboard by Google.
WITHOUT_A_NAME_OF_OURS = {
    "google_compute_resize_request",
    "google_monitoring_dashboard",
    "google_project_iam_member",
    "google_storage_bucket_iam_member",
    "google_storage_bucket_object",
}
RAY = (names.FIREWALL_RAY_ALLOW, names.FIREWALL_RAY_DENY)
# The root `mig` makes no GKE cluster.
OF_OTHER_ROOTS = {names.CLUSTER}


def _names(resources: list[dict[str, Any]]) -> set[str]:
    found = set()
    for resource in resources:
        values = resource["values"]
        if resource["type"] in WITHOUT_A_NAME_OF_OURS:
            continue
        name = (
            values["account_id"] if resource["type"] == "google_service_account" else values["name"]
        )
        name = re.sub(r"-[0-9a-f]{8}$", "-" + 8 * "x", name)
        found.add(re.sub(r"(-gpu-[a-z]+)-\d-", r"\1-x-", name))
        if resource["type"] == "google_compute_instance_group_manager":
            found.add(values["base_instance_name"])
    return found


def test_terraform_and_python_give_the_same_names(resources: list[dict[str, Any]]) -> None:
    place = "-" + 8 * "x"
    wanted = {
        name.of(PREFIX) + (place if name.bound else "")
        for name in names.ALL
        if name not in OF_OTHER_ROOTS
    }

    assert _names(resources) == wanted


def test_python_looks_for_what_is_bound_to_a_place_by_the_name_that_terraform_gives_it(
    resources: list[dict[str, Any]],
) -> None:
    given = {resource["values"].get("name") for resource in resources}
    network = names.NETWORK.at(PREFIX, "us-central1")
    place = (network, "us-central1", str(Ranges().first(is_cut=False)))

    assert given >= {
        network,
        names.SUBNETWORK.at(PREFIX, *place),
        names.ROUTER.at(PREFIX, *place),
        names.FIREWALL_INTERNAL.at(PREFIX, network),
        names.FIREWALL_SSH.at(PREFIX, network),
        *(name.at(PREFIX, network) for name in RAY),
    }


def test_python_counts_against_quotas_what_terraform_makes(resources: list[dict[str, Any]]) -> None:
    spec = SimpleNamespace(
        name_prefix=PREFIX,
        region="us-central1",
        zone="us-central1-a",
        makes_network=True,
        gpu_networks=fabrics.beside_the_first(machines.lookup("a3-ultragpu-8g")),
        more_gpu_networks={},
        ranges=Ranges(),
        first_range=Ranges().first(is_cut=True),
    )
    asked = SimpleNamespace(spec=spec, of_kind=SimpleNamespace(policies=(), rules=RAY))
    wanted = {(one.row.type, one.name) for one in made.counted(cast("Any", asked))}
    kinds = {kind for kind, _ in wanted}

    assert wanted == {
        (resource["type"], resource["values"]["name"])
        for resource in resources
        if resource["type"] in kinds
    }


def test_every_name_that_terraform_gives_is_known_for_ours(resources: list[dict[str, Any]]) -> None:
    given = {
        resource["values"]["name"]
        for resource in resources
        if resource["type"] not in {*WITHOUT_A_NAME_OF_OURS, "google_service_account"}
    }
    patterns = [name.pattern(PREFIX) for name in names.ALL]

    assert [one for one in given if not any(it.fullmatch(one) for it in patterns)] == []


@pytest.mark.parametrize(
    ("root", "limit"),
    [("mig", names.TIGHTEST.longest_prefix), ("gke", names.TIGHTEST_OF_GKE.longest_prefix)],
)
def test_a_name_prefix_may_be_as_long_as_the_tightest_name_allows(root: str, limit: int) -> None:
    text = (SOURCES / root / "tests/validations.tfvars").read_text(encoding="utf-8")
    refused, accepted = re.findall(
        r'name_prefix_of_(\d+)_characters += \{ name_prefix = "(\w+)"', text
    )

    assert (int(refused[0]), len(refused[1])) == (limit + 1, limit + 1)
    assert (int(accepted[0]), len(accepted[1])) == (limit, limit)
