"""VMs without addresses need a way out, on whatever network; a rehearsal has none either then."""

import pytest

from tests.runs.conftest import Rehearsal

CLOSED = {"ENABLE_EXTERNAL_IP": "no", "GCS_MOUNT_LIST": "my-data:/mnt/data"}
SUBNETWORK = "compute/v1/projects/my-project/regions/us-central1/subnetworks/default"


@pytest.fixture
def closed(rehearsal: Rehearsal) -> Rehearsal:
    """A project with a bucket to mount, and its default network as Google makes it."""
    bucket = {"name": "my-data", "location": "US-CENTRAL1"}
    rehearsal.google("POST", "storage/v1/b?project=my-project", bucket)
    return rehearsal


def test_the_default_network_without_a_way_out_is_said_before_anything_is_made(
    closed: Rehearsal,
) -> None:
    ended = closed.run("Create", **CLOSED)
    assert ended.code == 4, ended.said
    assert ended.problem["setting"] == "NETWORK_CONFIG"
    assert "no way out" in ended.problem["what"]
    assert "NETWORK_CONFIG=new_network" in ended.problem["fix"]
    assert closed.run("Validate", **CLOSED, NETWORK_CONFIG="new_network").code == 0
    closed.google("POST", f"{SUBNETWORK}/setPrivateIpGoogleAccess", {"privateIpGoogleAccess": True})
    noted = closed.run("Validate", **CLOSED)
    assert noted.code == 0, noted.said
    assert "default has no Cloud NAT" in noted.said


def test_who_skips_the_check_sees_start_up_fail_in_a_rehearsal_too(closed: Rehearsal) -> None:
    ended = closed.run("Create", **CLOSED, SKIP_CHECKS="network")
    assert ended.code == 8, ended.said
    assert "failed in the step mounts" in ended.said
    assert "no way out" in ended.said
