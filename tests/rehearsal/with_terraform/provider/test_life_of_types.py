"""The life of resource types under real Terraform, the stand-in and the simulated cloud.

One root has them all, so that a life costs a few runs of Terraform: made, planned again, changed,
imported into an empty state, and destroyed.
"""

import json
import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision import terraform
from rehearsal import inventory, session
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.store import Database
from tests.rehearsal.recorded.conftest import PROVIDER_BLOCK
from tests.rehearsal.with_terraform.provider.test_terraform import Root

ROOT = """
resource "google_filestore_instance" "share" {
  name     = "share"
  location = "us-central1-a"
  tier     = "ZONAL"
  labels   = { team = "%(word)s" }
  file_shares {
    name        = "data"
    capacity_gb = 1024
    nfs_export_options {
      ip_ranges   = ["10.0.0.0/8"]
      squash_mode = "ROOT_SQUASH"
      anon_uid    = 1000
    }
  }
  networks {
    network = "default"
    modes   = ["MODE_IPV4"]
  }
  deletion_protection_enabled = false
}
resource "google_monitoring_dashboard" "gpus" {
  dashboard_json = jsonencode({
    displayName = "%(word)s"
    gridLayout = { columns = "2", widgets = [{ title = "notes", text = { content = "a < b" } }] }
  })
}
resource "google_compute_resource_policy" "close" {
  name = "close"
  group_placement_policy {
    vm_count    = 2
    collocation = "COLLOCATED"
  }
}
resource "google_compute_resource_policy" "work" {
  name = "work"
  workload_policy {
    type                  = "HIGH_THROUGHPUT"
    max_topology_distance = "BLOCK"
  }
}
resource "google_compute_instance_template" "flex" {
  name         = "flex"
  machine_type = "a3-ultragpu-8g"
  disk {
    source_image = "projects/debian-cloud/global/images/family/debian-12"
    boot         = true
    disk_type    = "hyperdisk-balanced"
  }
  network_interface {
    network = "default"
  }
  scheduling {
    provisioning_model          = "FLEX_START"
    on_host_maintenance         = "TERMINATE"
    automatic_restart           = false
    instance_termination_action = "DELETE"
    max_run_duration {
      seconds = 86400
    }
  }
  reservation_affinity {
    type = "NO_RESERVATION"
  }
}
resource "google_compute_instance_group_manager" "flex" {
  name               = "flex"
  base_instance_name = "flex"
  zone               = "us-central1-b"
  version {
    instance_template = google_compute_instance_template.flex.self_link
  }
  instance_lifecycle_policy {
    default_action_on_failure = "DO_NOTHING"
  }
  resource_policies {
    workload_policy = google_compute_resource_policy.work.id
  }
}
resource "google_compute_resize_request" "first" {
  name                   = "%(request)s"
  zone                   = "us-central1-b"
  instance_group_manager = google_compute_instance_group_manager.flex.name
  resize_by              = 2
  requested_run_duration {
    seconds = "86400"
  }
}
resource "google_storage_bucket_object" "file" {
  bucket  = "life-of-types"
  name    = "f/files/one.txt"
  content = "%(word)s"
}
resource "google_storage_bucket_iam_member" "reader" {
  bucket = "life-of-types"
  role   = "roles/storage.objectViewer"
  member = "user:a@example.com"
  condition {
    title      = "files"
    expression = "resource.name.startsWith('projects/_/buckets/life-of-types/objects/f/files/')"
  }
}
"""

AT = "projects/proj-a1"
IDS = {
    "google_filestore_instance.share": f"{AT}/locations/us-central1-a/instances/share",
    "google_compute_resource_policy.close": f"{AT}/regions/us-central1/resourcePolicies/close",
    "google_compute_resource_policy.work": f"{AT}/regions/us-central1/resourcePolicies/work",
    "google_compute_instance_template.flex": f"{AT}/global/instanceTemplates/flex",
    "google_compute_instance_group_manager.flex": (
        f"{AT}/zones/us-central1-b/instanceGroupManagers/flex"
    ),
    "google_compute_resize_request.first": (
        f"{AT}/zones/us-central1-b/instanceGroupManagers/flex/resizeRequests/second"
    ),
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "cloud.sqlite"


@pytest.fixture
def root(tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Root]:
    """An empty root in an environment that leads to a new cloud, where nothing takes time."""
    monkeypatch.setenv("CLOUD_CLOCK_RATE", "0")
    folder = tmp_path / "root"
    folder.mkdir()
    with Cloud(database=database) as cloud:
        access = {"uniformBucketLevelAccess": {"enabled": True}}
        bucket = {"name": "life-of-types", "iamConfiguration": access}
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{cloud.base_url}/storage/v1/b?project=proj-a1",
            json.dumps(bucket).encode(),
            {"Authorization": "Bearer token", "Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310 - loopback
        environment = session.environment(cloud.base_url, tmp_path, os.environ)
        yield Root(folder, [*terraform.find(os.environ).argv], environment, PROVIDER_BLOCK)


def _left(database: Path) -> list[str]:
    with Database(database).transaction() as store:
        return list(inventory.resources(store, 4e9))


@pytest.mark.slow(
    sibling="tests/rehearsal/with_terraform/provider/test_terraform.py"
    "::test_a_root_lives_through_create_update_replacement_and_destroy"
)
def test_types_are_made_changed_imported_and_destroyed(root: Root, database: Path) -> None:
    before = _left(database)
    root.write(ROOT % {"word": "one", "request": "first"})
    root.run("init")
    root.run("apply", "-auto-approve")
    root.run("plan", "-detailed-exitcode")

    now = ROOT % {"word": "two", "request": "second"}
    root.write(now)
    changed = root.run("apply", "-auto-approve")
    # A request of another name is another request.
    assert "1 added, 3 changed, 1 destroyed" in changed
    root.run("plan", "-detailed-exitcode")

    # A group can't lose its workload policy in place.
    root.write(re.sub(r"  resource_policies \{.*?\}\n", "", now, flags=re.DOTALL))
    planned = root.run("plan")
    assert "google_compute_instance_group_manager.flex must be replaced" in planned
    (forced,) = (line for line in planned.splitlines() if "# forces replacement" in line)
    assert "workload_policy" in forced

    for address in IDS:
        root.run("state", "rm", address)
    blocks = "".join(
        f'import {{\n  to = {address}\n  id = "{known}"\n}}\n' for address, known in IDS.items()
    )
    root.write(now + blocks)
    assert f"{len(IDS)} imported, 0 added, " in root.run("apply", "-auto-approve")
    root.run("plan", "-detailed-exitcode")

    root.run("destroy", "-auto-approve")
    left = (line for line in _left(database) if line not in before)
    assert [line for line in left if not inventory.stays(line)] == []
