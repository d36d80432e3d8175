"""The rows of what the tool makes, against what `terraform/` says and what names there are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2
import pytest

from provision.catalogue import names
from provision.google import resources
from provision.google.owner import Owner
from provision.google.resources import Marker, Resource

SOURCES = Path(__file__).parents[2] / "terraform"
# What carries the marker where Google shows it as a label: the argument of Terraform's.
LABELS = {
    "google_container_cluster": "resource_labels",
    "google_filestore_instance": "labels",
    "google_monitoring_dashboard": "dashboard_json",
}

each_row = pytest.mark.parametrize("row", resources.ALL, ids=lambda row: row.type)


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, dict[str, Any]]]:
    """Type and arguments of every resource in `terraform/`."""
    return list(_blocks())


def _blocks() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in SOURCES.rglob("*.tf"):
        if ".terraform" not in file.parts:
            for block in hcl2.loads(file.read_text(encoding="utf-8")).get("resource", []):
                for kind, named in block.items():
                    yield from ((kind.strip('"'), body) for body in named.values())


def test_every_type_of_resource_has_its_row_and_no_row_is_without_one(
    blocks: list[tuple[str, dict[str, Any]]],
) -> None:
    made = {kind for kind, _ in blocks if not kind.startswith("terraform_")}

    assert made == set(resources.BY_TYPE)
    assert len(resources.ALL) == len(resources.BY_TYPE)


def test_terraform_writes_the_marker_where_it_is_looked_for(
    blocks: list[tuple[str, dict[str, Any]]],
) -> None:
    arguments = {
        row.type: "description" if row.look.marker is Marker.DESCRIPTION else LABELS[row.type]
        for row in resources.ALL
        if row.lookup is not None and not row.look.part
    }

    assert [kind for kind, body in blocks if arguments.get(kind, "") not in {"", *body}] == []


@each_row
def test_what_is_removed_with_another_is_so_before_it_or_in_it(row: Resource) -> None:
    if not row.part_of:
        assert row.lookup is not None or row is resources.OBJECT
        return
    whole = resources.BY_TYPE[row.part_of]

    assert whole in resources.SWEPT
    assert row not in resources.SWEPT


def test_what_is_swept_goes_before_what_it_uses() -> None:
    order = [row.type.removeprefix("google_") for row in resources.SWEPT]

    # A user, and what Google refuses to remove while it is there.
    for user, used in (
        ("compute_instance_group_manager", "compute_instance_template"),
        ("compute_instance_template", "compute_resource_policy"),
        ("compute_instance_template", "compute_subnetwork"),
        ("container_cluster", "compute_subnetwork"),
        ("filestore_instance", "compute_network"),
        ("compute_router", "compute_network"),
        ("compute_firewall", "compute_network"),
        ("compute_subnetwork", "compute_network"),
        ("compute_instance_template", "service_account"),
    ):
        assert order.index(user) < order.index(used), (user, used)


def test_every_name_of_ours_is_that_of_one_type() -> None:
    kept = [name for row in resources.ALL for name in row.names]
    known = {one for one in vars(names).values() if isinstance(one, names.DerivedName)}

    assert set(kept) == known
    assert len(kept) == len(known)


@each_row
def test_a_type_that_can_be_left_behind_says_what_it_takes_to_remove_it(row: Resource) -> None:
    if row in resources.SWEPT:
        verbs = row.permissions[max(row.permissions, key=lambda it: row.look.collection in it)]
        assert {"create", "delete", "get"} <= set(verbs.split())


@pytest.mark.parametrize(
    ("row", "document", "ours"),
    [
        (resources.NETWORK, {"description": "aiinfra-cluster=abc"}, True),
        (resources.NETWORK, {"description": "aiinfra-cluster=abcd"}, False),
        (resources.NETWORK, {"labels": {"aiinfra-cluster": "abc"}}, False),
        (resources.FILESTORE, {"labels": {"aiinfra-cluster": "abc"}}, True),
        (resources.FILESTORE, {"labels": {"aiinfra-cluster": "other"}}, False),
        (resources.FILESTORE, {}, False),
        (resources.CLUSTER, {"resourceLabels": {"aiinfra-cluster": "abc"}}, True),
        (resources.CLUSTER, {"labels": {"aiinfra-cluster": "abc"}}, False),
    ],
)
def test_the_marker_is_read_where_the_type_has_it(
    row: Resource, document: dict[str, Any], *, ours: bool
) -> None:
    assert row.look.is_of(document, Owner("abc")) is ours


@pytest.mark.parametrize(
    ("row", "path"),
    [
        (resources.NETWORK, "projects/p/global/networks"),
        (resources.GROUP, "projects/p/aggregated/instanceGroupManagers"),
        (resources.FILESTORE, "projects/p/locations/-/instances"),
        (resources.CLUSTER, "projects/p/locations/-/clusters"),
        (resources.DASHBOARD, "projects/p/dashboards"),
        (resources.SERVICE_ACCOUNT, "projects/p/serviceAccounts"),
    ],
)
def test_all_of_a_type_are_listed_wherever_they_are(row: Resource, path: str) -> None:
    assert row.look.list_path("p") == path


def test_a_type_that_can_not_be_left_behind_can_not_be_looked_for() -> None:
    with pytest.raises(LookupError, match="google_project_iam_member"):
        _ = resources.PROJECT_ROLE.look
