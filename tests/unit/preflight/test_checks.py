"""Each online check passes, fails with what helps, and is a note where it could not be made."""

import dataclasses
import json
import re

import pytest

from provision.catalogue import names
from provision.codes import Code
from provision.documents.checks import CheckState
from provision.errors import CheckError, StateError
from provision.kinds.gke import preflight as preflight_of_gke
from provision.kinds.vms import preflight
from provision.preflight.table import CHECKS, SUBNETWORK
from provision.settings.choices import OnlineCheck
from tests.unit.preflight.stand_in import ID, IMAGES, PARENT, PROJECT, REGION, ZONE, Google
from tests.unit.preflight.test_keys import KEY
from tests.unit.preflight.test_quotas import RECORD
from tests.unit.table import Row, rows

GKE = {"orchestrator_type": "gke", "disk_size_gb": "100"}
ACCOUNT = "vms@my-project.iam.gserviceaccount.com"
NETWORK = names.NETWORK.at("np", "us-central1")
ROUTER = names.ROUTER.at("np", NETWORK, "us-central1", "10.0.0.0/16")

TABLE = """
@P/billingInfo = {} :: -> PROJECT_ID: billing is not enabled | billing projects
off iam, file, container :: nfs_fileshare_list=/mnt/nfs:BASIC_SSD:2560
    -> PROJECT_ID: gcloud services enable iam.googleapis.com file.googleapis.com --project

# Permissions, and the account that machines act as.
withheld compute.images.useReadOnly :: @MINE image_project=my-project
    -> PROJECT_ID: compute.images.useReadOnly | --role roles/compute.imageUser
withheld compute.images.useReadOnly :: @MINE image_project=debian-cloud -- PROJECT_ID
withheld container.clusters.connect, iam.serviceAccounts.setIamPolicy,
    resourcemanager.projects.setIamPolicy :: @GKE service_account=@ACCOUNT
    -> PROJECT_ID: container.clusters.connect, iam.serviceAccounts.setIamPolicy,
    resourcemanager.projects.setIamPolicy
@RAYS :: orchestrator_type=(ray|slurm)
    -> PROJECT_ID: compute.firewalls.create, compute.networks.updatePolicy
@RAYS :: orchestrator_type=ray service_account=default --
@RAYS :: --
withheld compute.instances.getGuestAttributes ::
    -> PROJECT_ID: compute.instances.getGuestAttributes | roles/compute.instanceAdmin.v1
withheld compute.instances.getGuestAttributes :: @GKE --
service_account=@ACCOUNT --
withheld iam.serviceAccounts.actAs :: service_account=@ACCOUNT
    -> SERVICE_ACCOUNT: may not let machines act as @ACCOUNT | --role roles/iam.serviceAccountUser
no @P/serviceAccounts/@ACCOUNT :: service_account=@ACCOUNT
    -> SERVICE_ACCOUNT: there is no service account @ACCOUNT
service_account=default (|@GKE) --
@DEFAULT = {"disabled": true} :: service_account=default (|@GKE)
    -> SERVICE_ACCOUNT: .gserviceaccount.com is disabled
    | SERVICE_ACCOUNT=dedicated | gcloud iam service-accounts enable 42-compute
no @DEFAULT :: service_account=default (|@GKE)
    -> SERVICE_ACCOUNT: is gone | SERVICE_ACCOUNT=dedicated
    | gcloud iam service-accounts undelete <NUMBER> --project my-project

# Zones, machines and disks.
no @Z :: -> ZONE: no zone us-central1-a | ZONE=us-central1-f
@Z = {"region": "https://x/v1/projects/p/regions/us-east1"} ::
    -> ZONE: is not in us-central1 | set ZONE to another zone
@Z = {"region": "https://x/v1/@R", "status": "DOWN"} :: -> ZONE: is down
no @Z/machineTypes/a2-highgpu-2g ::
    -> ZONE: us-central1-f has it; zones of other regions that have it, the same continent first:
    us-e | ZONE=us-central1-f
no @Z/acceleratorTypes/nvidia-tesla-t4 :: @N1
    -> ZONE: us-central1-a has no nvidia-tesla-t4 | ZONE=us-central1-f
@Z/acceleratorTypes/nvidia-tesla-t4 = {"maximumCardsPerInstance": 2} :: @N1 gpu_count=4
    -> GPU_COUNT: GPU_COUNT=2
@Z9 :: vm_type=z9-gpu-8g accelerator_type=nvidia-z gpu_count=4 -> GPU_COUNT: it has 8 x nvidia-z
@Z9 :: vm_type=z9-gpu-8g accelerator_type=nvidia-z gpu_count=8 --
no @Z/diskTypes/pd-ssd ::
    -> DISK_TYPE: no disks of the type pd-ssd | gcloud compute disk-types list
@Z/diskTypes/pd-ssd = {"validDiskSize": "10GB-1000GB"} :: -> DISK_SIZE_GB: DISK_SIZE_GB=1000
no @IMG/family/common-cu129-ubuntu-2404-nvidia-580 ::
    -> IMAGE_FAMILY_NAME: no image family common-cu129-ubuntu-2404-nvidia-580
    | gcloud compute images list
@IMG/mine = {"name": "mine", "diskSizeGb": "80", "architecture": "X86_64"} :: @MINE disk_size_gb=60
    -> DISK_SIZE_GB: DISK_SIZE_GB=80 or more
@IMG/mine = {"name": "mine", "diskSizeGb": "50", "architecture": "ARM64"} :: @MINE disk_size_gb=60
    -> IMAGE_NAME: ARM64

no @P/global/networks/default ::
    -> NETWORK_CONFIG: no network "default" | NETWORK_CONFIG=new_network
no @R/subnetworks/default ::
    -> NETWORK_CONFIG: no subnetwork "default" in us-central1 | NETWORK_CONFIG=new_network
no b/my-data :: gcs_mount_list=my-data:/mnt/data
    -> GCS_MOUNT_LIST: gs://my-data does not exist | gcloud storage buckets create gs://my-data
@SECRETS
    -> SECRETS: there is no projects/my-project/secrets/token
    | gcloud secrets create token --project my-project
projects/my-project/secrets/token = {"name": "it"} :: @SECRETS -- SECRETS

# Versions of GKE.
@GKE gke_version=1.34 -> GKE_VERSION: GKE_VERSION=1.33.5-gke.10
@OLD :: @GKE enable_flex_start=yes -> GKE_RELEASE_CHANNEL: GKE_RELEASE_CHANNEL=RAPID
@NEWER :: @GKE @G4
    -> GKE_RELEASE_CHANNEL: GKE 1.33.5-gke.1 does not support G4 | GKE_VERSION=1.34.1-gke.9
@NEWER :: @GKE @G4 gke_version=1.34.0
    -> GKE_VERSION: it needs GKE 1.34.0-gke.1662000 or newer
"""
CONFIG = f"{PROJECT}/locations/us-central1/serverConfig"
OLD = {"channel": "REGULAR", "defaultVersion": "1.31.1-gke.1"}
VERSIONS = ["1.34.1-gke.9", "1.34.0-gke.1", "1.33.5-gke.1"]
NEWER = {"channel": "REGULAR", "defaultVersion": "1.33.5-gke.1", "validVersions": VERSIONS}
Z_GPUS = {"guestAcceleratorType": "nvidia-z", "guestAcceleratorCount": 8}
PARTS = {
    "P": PROJECT,
    "Z": ZONE,
    "R": REGION,
    "IMG": IMAGES,
    "GKE": "orchestrator_type=gke disk_size_gb=100",
    "N1": "vm_type=n1-standard-8 gpu_count=1 accelerator_type=nvidia-tesla-t4",
    "MINE": "image_name=mine",
    "ACCOUNT": ACCOUNT,
    "DEFAULT": f"{PROJECT}/serviceAccounts/42-compute@developer.gserviceaccount.com",
    "RAYS": "withheld compute.firewalls.create, compute.networks.updatePolicy",
    "SECRETS": "startup_command=true secrets=A=projects/my-project/secrets/token",
    "Z9": f"{ZONE}/machineTypes/z9-gpu-8g = {json.dumps({'accelerators': [Z_GPUS]})}",
    "OLD": f"{CONFIG} = {json.dumps({'channels': [OLD]})}",
    "NEWER": f"{CONFIG} = {json.dumps({'channels': [NEWER]})}",
    "G4": "gke_node_pools=name=a,vm_type=g4-standard-48,accelerator_type=nvidia-rtx-pro-6000",
}


@rows(TABLE, **PARTS)
def test_what_is_missing_is_named_with_the_way_out(google: Google, row: Row) -> None:
    google.have(row.world)
    google.elsewhere = {"us-east1-b", "us-central1-f", "europe-west4-a"}

    found = google.check(row.environ)

    row.is_said_by(found.problems, found.notes)
    if row.arrow == "->":
        with pytest.raises(CheckError):
            found.require()


def test_a_project_that_has_everything_passes(google: Google) -> None:
    found = google.check(gcs_mount_list="my-data:/mnt/data", makes_bucket=True)

    assert found.problems == []
    assert found.notes == []
    assert found.require() == found.spec
    assert set(google.asked.values()) == {1}


def test_all_problems_are_told_together(google: Google) -> None:
    google.documents[f"{PROJECT}/billingInfo"] = {}
    google.apis.remove("iam")
    google.withheld = {"compute.disks.create"}
    google.limit("NVIDIA_A100_GPUS", 1)

    assert len(google.check().problems) == 4


def test_missing_permissions_are_told_with_the_roles_that_have_them(google: Google) -> None:
    google.withheld = {"compute.disks.create", "compute.instances.create", "storage.buckets.create"}

    (problem,) = google.check(makes_bucket=True).problems

    assert problem.why == ", ".join(sorted(google.withheld))
    roles = re.findall(r"--role (\S+)", problem.fix)
    assert roles == ["roles/compute.instanceAdmin.v1", "roles/storage.admin"]


def test_only_permissions_that_this_env_list_needs_are_asked_for(google: Google) -> None:
    needed = {
        "network_config=new_network": "compute.networks.create",
        "enable_compact_placement=yes": "compute.resourcePolicies.create",
        "nfs_fileshare_list=/mnt/nfs:BASIC_SSD:2560": "file.instances.create",
        "service_account=dedicated": "iam.serviceAccounts.create",
        "disable_ops_agent=no": "monitoring.dashboards.create",
    }
    google.withheld = {*needed.values(), "container.clusters.create", "storage.buckets.create"}
    plain = {"service_account": "default", "disable_ops_agent": "yes"}

    assert google.check(plain).problems == []
    for more, permission in needed.items():
        setting, _, value = more.partition("=")
        (problem,) = google.check(plain | {setting: value}).problems
        assert permission in problem.why


def test_an_account_that_may_not_be_looked_at_leaves_the_check_unmade(google: Google) -> None:
    google.refusals = {f"{PROJECT}/serviceAccounts/{ACCOUNT}:": 403}
    found = google.check({"service_account": ACCOUNT})
    assert found.problems == []
    assert [note.what for note in found.unmade] == ["could not be checked: permissions"]


def test_an_account_that_may_be_used_and_not_read_is_no_problem(google: Google) -> None:
    others = "vms@p.example.com.iam.gserviceaccount.com"
    google.refusals = {f"projects/example.com:p/serviceAccounts/{others}$": 403}
    assert google.check({"service_account": others}).problems == []
    assert google.asked[f"projects/example.com:p/serviceAccounts/{others}:testIamPermissions"] == 1


def test_a_machine_type_that_no_zone_has_for_this_project_says_so(google: Google) -> None:
    google.documents.pop(f"{ZONE}/machineTypes/a2-highgpu-2g")

    (problem,) = google.check().problems

    assert problem.setting == "VM_TYPE"
    assert "no zone that this project may use has it" in problem.why


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        (f"{ZONE}/instanceGroupManagers/np-mig", {}),
        (f"{PROJECT}/serviceAccounts/np-nodes@my-project.iam.gserviceaccount.com", {}),
        (f"{PROJECT}/global/networks/{NETWORK}", {"network_config": "new_network"}),
        (f"{REGION}/routers/{ROUTER}", {"network_config": "new_network"}),
        (f"{PROJECT}/locations/us-central1/clusters/np-gke", GKE),
    ],
)
def test_a_name_is_taken_by_what_carries_no_marker_of_ours(
    google: Google, path: str, settings: dict[str, str]
) -> None:
    google.documents[path] = {"name": path.rpartition("/")[2], "description": "somebody's"}
    found = google.check(settings)
    (problem,) = found.foreign
    with pytest.raises(StateError):
        found.require()
    google.documents[path] |= {"resourceLabels": {"aiinfra-cluster": ID}}
    if "clusters" not in path:
        google.documents[path] = {"description": f"aiinfra-cluster={ID}"}

    assert problem.setting == "NAME_PREFIX"
    assert problem.what.startswith(path)
    google.check(settings).require()


def test_a_foreign_subnetwork_in_our_network_may_not_take_our_ranges(google: Google) -> None:
    other = f"{REGION}/subnetworks/other"
    google.documents[f"{PROJECT}/global/networks/{NETWORK}"] = {
        "description": f"aiinfra-cluster={ID}",
        "subnetworks": [f"https://x/compute/v1/{other}"],
    }
    google.documents[other] = {"name": "other", "ipCidrRange": "10.16.4.0/24"}

    assert google.check(network_config="new_network").problems == []
    (problem,) = google.check(GKE).problems
    assert f"10.16.0.0/12 is taken in the network {NETWORK}" in problem.what


def test_a_beginning_of_a_gke_version_is_settled_and_an_unknown_one_refused(google: Google) -> None:
    assert google.check(GKE, gke_version="1.33").spec.version == "1.33.5-gke.10"
    assert google.check(GKE).spec.version is None
    (problem,) = google.check(GKE, gke_version="1.34").problems
    assert problem.fix.startswith("GKE_VERSION=1.33.5-gke.10")
    unchanneled = GKE | {"gke_release_channel": "UNSPECIFIED"}
    assert google.check(unchanneled, gke_version="1.34").spec.version == "1.34.1-gke.1"
    assert google.asked[f"{PROJECT}/locations/us-central1/serverConfig"] == 4


def test_a_version_that_gke_has_given_up_is_noted_as_its_nodes_are_not_left_alone_any_more(
    google: Google,
) -> None:
    record = dataclasses.replace(RECORD, kind="gke", gke_version="1.32.9-gke.1")
    (note,) = [
        it for it in google.check(GKE, record=record, gke_version="1.32").notes if it.setting
    ]
    assert note.setting == "GKE_VERSION"
    assert "the end of its standard support, 2026-04-11," in str(note.why)
    assert note.fix.startswith("GKE_VERSION=1.33.")
    record = dataclasses.replace(record, gke_version="1.33.1-gke.1")
    assert not [
        it for it in google.check(GKE, record=record, gke_version="1.33").notes if it.setting
    ]


BEGINNINGS = {
    OnlineCheck.BILLING: f"{PROJECT}/billingInfo",
    OnlineCheck.APIS: f"{PROJECT}/services",
    OnlineCheck.PERMISSIONS: f"{PROJECT}:testIamPermissions",
    OnlineCheck.POLICIES: PARENT,
    OnlineCheck.ZONE: f"{PROJECT}/zones",
    OnlineCheck.MACHINE_TYPE: f"{ZONE}/machineTypes",
    OnlineCheck.ACCELERATOR: f"{ZONE}/machineTypes",
    OnlineCheck.IMAGE: IMAGES,
    OnlineCheck.RESERVATION: f"{ZONE}/reservations",
    OnlineCheck.DISK: f"{ZONE}/diskTypes",
    OnlineCheck.QUOTA: REGION,
    OnlineCheck.NETWORK: f"{PROJECT}/global/networks",
    OnlineCheck.SUBNETWORK: f"{REGION}/subnetworks/gpus",
    OnlineCheck.BUCKETS: "b/",
    OnlineCheck.SECRETS: "projects/my-project/secrets/token",
    OnlineCheck.KMS_KEY: KEY,
    OnlineCheck.NAMES: f"{ZONE}/instanceGroupManagers",
    OnlineCheck.GKE_VERSION: f"{PROJECT}/locations/us-central1/serverConfig",
}


SHARING = {
    OnlineCheck.ZONE,
    OnlineCheck.MACHINE_TYPE,
    OnlineCheck.ACCELERATOR,
    OnlineCheck.IMAGE,
    OnlineCheck.DISK,
    OnlineCheck.NETWORK,
    OnlineCheck.NAMES,
}


EXISTING = {"network_config": "existing", "network": "my-vpc", "subnetwork": "gpus"}
SECRETS = {"startup_command": "true", "secrets": "A=projects/my-project/secrets/token"}
BUCKET = {"gcs_mount_list": "my-data:/mnt/data"}
ASKING = {
    OnlineCheck.GKE_VERSION: BUCKET | GKE,
    OnlineCheck.SECRETS: BUCKET | SECRETS,
    OnlineCheck.KMS_KEY: BUCKET | {"kms_key": KEY},
    OnlineCheck.SUBNETWORK: BUCKET | EXISTING,
    OnlineCheck.RESERVATION: BUCKET | {"reservation_name": "r"},
}
"""What a check is made for; others are made for each cluster, or one with a bucket."""


@pytest.mark.parametrize("name", OnlineCheck)
def test_a_check_that_could_not_be_made_is_a_note_and_can_be_skipped(
    google: Google, name: OnlineCheck
) -> None:
    settings = ASKING.get(name, BUCKET)
    google.refusals[BEGINNINGS[name]] = 403

    found = google.check(settings)

    assert found.problems == []
    told = " ".join(f"{note.what} {note.why}" for note in found.remarks(is_gate=False))
    assert f"{BEGINNINGS[name]} is off limits" in told
    in_part = (OnlineCheck.BUCKETS, OnlineCheck.SECRETS, OnlineCheck.KMS_KEY)
    assert name in told or name in in_part
    # Some ask for the same, or for what is below it.
    skipped = ",".join({name, *SHARING})
    assert google.check(settings, skip_checks=skipped).remarks(is_gate=False) == []


@pytest.mark.parametrize("kept_back", ["b/my-data", "b/my-data/o"])
def test_what_its_owner_keeps_back_leaves_a_check_passed_in_part(
    google: Google, kept_back: str
) -> None:
    google.refusals[kept_back] = 403

    found = google.check(gcs_mount_list="my-data:/mnt/data")

    (note,) = found.remarks(is_gate=True)
    assert note.code is Code.NOT_CHECKED
    assert found.states[OnlineCheck.BUCKETS] is CheckState.PARTLY
    assert found.require(is_gate=True) == found.spec


def test_checks_that_fail_for_one_reason_are_one_note(google: Google) -> None:
    google.refusals[ZONE] = 403

    (note,) = google.check().unmade

    assert note.what == "could not be checked: zone, machine-type, accelerator, image, disk, names"


def test_every_check_is_in_the_table_once() -> None:
    own = (preflight.IMAGE, SUBNETWORK, preflight_of_gke.VERSION)
    assert sorted(check.name for check in (*CHECKS, *own)) == sorted(OnlineCheck)
