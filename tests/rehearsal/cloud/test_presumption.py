"""What an env.list names is there before the program looks for it, and not under `missing`."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rehearsal import inventory
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.wire import Request
from rehearsal.presumption import named, things

pytestmark = pytest.mark.loopback

BASE = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-c"}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    # What is practised does not touch what is to be there before.
    scenario, environ = "expired,flaky,missing", {"CLOUD_CLOCK_RATE": "9"}
    with Cloud(database=tmp_path / "db", environ=environ, scenario=scenario) as made:
        yield made


def _presumed(
    cloud: Cloud, settings: Mapping[str, str], *, missing: bool = False
) -> things.Presumed:
    return things.make(cloud.arrange, named.of(BASE | dict(settings)), missing=missing)


def _ask(cloud: Cloud, method: str, path: str, body: bytes = b"", **query: str) -> Any:
    """The answer; {} for a refusal."""
    headers = {"authorization": "Bearer t"}
    request = Request(method=method, path=path, query=query, headers=headers, body=body)
    reply = cloud.arrange(request)
    assert isinstance(reply.body, dict)
    return reply.body if reply.status == 200 else {}


def _get(cloud: Cloud, path: str) -> Any:
    return _ask(cloud, "GET", path)


def test_settings_that_name_nothing_presume_nothing(cloud: Cloud) -> None:
    presumed = _presumed(cloud, {"VM_TYPE": "g2-standard-24", "SERVICE_ACCOUNT": "dedicated"})
    assert presumed.sentence == ""
    assert named.of({"GCS_MOUNT_LIST": "a-bucket:/a"}) == []


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east4-b, us-central1-a", "us-east4"),
        ("europe-west4-*", "europe-west4"),
        ("any", "asia-northeast1"),
    ],
)
def test_of_several_zones_it_is_in_the_first_that_has_machines(zone: str, region: str) -> None:
    (bucket,) = named.of(BASE | {"ZONE": zone, "GCS_MOUNT_LIST": "my-data:/mnt/data"})
    assert f"'location': '{region}'" in str(bucket)


def test_buckets_are_made_once_and_fit_to_hold_a_state(cloud: Cloud) -> None:
    settings = {
        "TERRAFORM_GCS_PATH": "gs://my-state/clusters",
        "GCS_MOUNT_LIST": "my-data:/mnt/data, my-state : /mnt/state",
    }
    assert _presumed(cloud, settings).sentence == (
        "It presumes what your settings name: the bucket gs://my-state, the bucket gs://my-data"
        " (--rehearse=missing leaves that out)."
    )
    made = _get(cloud, "/storage/v1/b/my-state")
    assert made["location"] == "US-CENTRAL1"
    assert made["versioning"] == {"enabled": True}
    assert made["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] is True
    # The next rehearsal finds it, and says so again.
    assert len(_presumed(cloud, settings).there) == 2
    assert _get(cloud, "/storage/v1/b/my-state") == made


@pytest.mark.parametrize("by_hand", [False, True])
def test_missing_takes_away_what_an_earlier_rehearsal_presumed_and_not_what_others_have_made(
    cloud: Cloud, *, by_hand: bool
) -> None:
    settings = {"GCS_MOUNT_LIST": "my-data:/mnt/data"}
    if by_hand:
        assert _ask(cloud, "POST", "/storage/v1/b", b'{"name": "my-data"}', project="my-project")
        assert _presumed(cloud, settings).sentence == ""
    else:
        assert _presumed(cloud, settings).there == ("the bucket gs://my-data",)
    assert _presumed(cloud, settings, missing=True).sentence == (
        "Still there, as used or made by hand: the bucket gs://my-data."
        if by_hand
        else "It leaves out what your settings name: the bucket gs://my-data."
    )
    assert bool(_get(cloud, "/storage/v1/b/my-data")) is by_hand


def test_a_service_account_may_read_the_secrets_which_have_the_versions_that_are_wanted(
    cloud: Cloud,
) -> None:
    email = "trainer@my-project.iam.gserviceaccount.com"
    secrets = "A=projects/my-project/secrets/a,B=projects/vault-one/secrets/b:3"
    presumed = _presumed(cloud, {"SERVICE_ACCOUNT": email, "SECRETS": secrets})
    secret = "the secret a of my-project", "the secret b of vault-one"
    assert presumed.there == (f"the service account {email}", *secret)
    assert _get(cloud, f"/iam/v1/projects/my-project/serviceAccounts/{email}")
    version = "/secretmanager/v1/projects/{}/secrets/{}/versions/{}:access"
    assert _get(cloud, version.format("my-project", "a", "latest"))
    assert _get(cloud, version.format("vault-one", "b", "3"))
    assert not _get(cloud, version.format("vault-one", "b", "4"))
    # Of the next env.list: a newer version.
    _presumed(cloud, {"SECRETS": "B=projects/vault-one/secrets/b:5"})
    assert _get(cloud, version.format("vault-one", "b", "5"))
    reader = {"role": "roles/secretmanager.secretAccessor", "members": [f"serviceAccount:{email}"]}
    policy = _ask(cloud, "POST", "/crm/v1/projects/vault-one:getIamPolicy")
    assert reader in policy["bindings"]


@pytest.mark.parametrize(
    "settings",
    [
        {"GCS_MOUNT_LIST": "No_Bucket!:/mnt/data"},
        {"SERVICE_ACCOUNT": "me@example.com"},
        {"SERVICE_ACCOUNT": "trainer@foreign-project.iam.gserviceaccount.com"},
        {"SECRETS": "A=projects/missing-project/secrets/a,B=nonsense"},
        {"SECRETS": "A=projects/my-project/secrets/a:9999999"},
        {"RESERVATION_NAME": "r", "VM_TYPE": "a4x-highgpu-4g", "ZONE": "us-west4-a"},
        {"IMAGE_PROJECT": "debian-cloud", "IMAGE_NAME": "mine"},
    ],
)
def test_what_cannot_be_made_is_left_to_the_program_to_refuse(
    cloud: Cloud, settings: dict[str, str]
) -> None:
    assert _presumed(cloud, settings).sentence == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "the reservation r of 1 a2-highgpu-2g in us-central1-c"),
        (
            {"RESERVATION_NAME": "projects/lab-owner/reservations/r", "INSTANCE_COUNT": "4"},
            "the reservation r of 4 a2-highgpu-2g in us-central1-c of lab-owner",
        ),
        (
            {
                "RESERVATION_NAME": "r/reservationBlocks/b-0001",
                "VM_TYPE": "a3-ultragpu-8g",
                "ORCHESTRATOR_TYPE": "gke",
                "GKE_MAX_NODE_COUNT": "8",
                "GKE_NODE_POOL_COUNT": "2",
            },
            "the reservation r of 16 a3-ultragpu-8g in us-central1-c",
        ),
        (
            {
                "ORCHESTRATOR_TYPE": "gke",
                "GKE_NODE_POOLS": "name=a,vm_type=a2-highgpu-1g,count=3;"
                "name=b,vm_type=a2-highgpu-1g,reservation=s,zone=us-central1-f,max=5;"
                "name=c,vm_type=a2-highgpu-1g",
            },
            (
                "the reservation r of 4 a2-highgpu-1g in us-central1-c,"
                " the reservation s of 5 a2-highgpu-1g in us-central1-f"
            ),
        ),
    ],
)
def test_reservations_are_as_large_as_what_is_to_come_from_them(
    settings: dict[str, str], words: str
) -> None:
    found = named.of(BASE | {"RESERVATION_NAME": "r"} | settings)
    assert ", ".join(thing.words for thing in found) == words


def test_a_reservation_follows_the_settings_and_goes_when_nothing_uses_it(cloud: Cloud) -> None:
    zone = "/compute/v1/projects/lab-owner/zones/us-central1-c/reservations/r"
    named_so = {
        "RESERVATION_NAME": "projects/lab-owner/reservations/r",
        "VM_TYPE": "a2-ultragpu-8g",
    }
    _presumed(cloud, named_so | {"INSTANCE_COUNT": "2"})
    made = _get(cloud, zone)
    assert made["specificReservationRequired"] is True
    assert made["specificReservation"]["count"] == "2"
    assert "my-project" in made["shareSettings"]["projectMap"]

    grown = _presumed(cloud, named_so | {"INSTANCE_COUNT": "3"})
    assert grown.there == ("the reservation r of 3 a2-ultragpu-8g in us-central1-c of lab-owner",)
    assert _get(cloud, zone)["specificReservation"]["count"] == "3"
    _presumed(cloud, named_so | {"VM_TYPE": "a2-highgpu-1g"})
    changed = _get(cloud, zone)["specificReservation"]
    now = changed["count"], changed["instanceProperties"]["machineType"]
    assert now == ("1", "a2-highgpu-1g")
    assert _presumed(cloud, named_so, missing=True).kept == ()
    assert not _get(cloud, zone)


def test_the_block_and_the_sub_block_that_are_named_are_there(cloud: Cloud) -> None:
    name = "r/reservationBlocks/row-7/reservationSubBlocks/rack-2"
    settings = {"RESERVATION_NAME": name, "VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b"}
    _presumed(cloud, settings)
    zone = "/compute/v1/projects/my-project/zones/us-central1-b/reservations"
    part = _get(cloud, f"{zone}/{name}")["resource"]
    assert (part["name"], part["count"]) == ("rack-2", 1)
    assert _get(cloud, f"{zone}/r")["deploymentType"] == "DENSE"

    _presumed(cloud, settings | {"RESERVATION_NAME": "r/reservationBlocks/row-8"})
    assert _get(cloud, f"{zone}/r/reservationBlocks/row-8")
    assert not _get(cloud, f"{zone}/r/reservationBlocks/row-7")


@pytest.mark.parametrize(
    ("settings", "path", "architecture"),
    [
        ({"IMAGE_NAME": "mine"}, "mine", "X86_64"),
        ({"IMAGE_FAMILY_NAME": "ours"}, "family/ours", "X86_64"),
        ({"IMAGE_FAMILY_NAME": "ours", "VM_TYPE": "a4x-highgpu-4g"}, "family/ours", "ARM64"),
    ],
)
def test_an_image_of_ones_own_is_there_without_the_disk_that_it_was_made_of(
    cloud: Cloud, settings: dict[str, str], path: str, architecture: str
) -> None:
    presumed = _presumed(cloud, settings | {"IMAGE_PROJECT": "lab-images"})
    assert len(presumed.there) == 1
    images = "/compute/v1/projects/lab-images/global/images"
    made = _get(cloud, f"{images}/{path}")
    assert made["architecture"] == architecture
    with cloud._database.transaction() as store:
        left = list(inventory.resources(store, time.time()))
    assert [line.split()[0] for line in left] == ["compute/images"]
