"""Each online check passes, fails with what helps, and is a note where it could not be made."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest

from provision.catalogue import names
from provision.codes import Code
from provision.documents.checks import CheckState
from provision.errors import CheckError, StateError
from provision.kinds.gke import preflight as preflight_of_gke
from provision.kinds.vms import boot_image
from provision.preflight.table import CHECKS, SUBNETWORK
from provision.settings.choices import OnlineCheck
from tests.unit.preflight.stand_in import ID, IMAGES, PARENT, PROJECT, REGION, ZONE
from tests.unit.preflight.test_keys import KEY
from tests.unit.preflight.test_quotas import RECORD

if TYPE_CHECKING:
    from tests.unit.preflight.stand_in import Google

GKE = {"orchestrator_type": "gke", "disk_size_gb": "100"}
N1 = {"vm_type": "n1-standard-8", "gpu_count": "1", "accelerator_type": "nvidia-tesla-t4"}
NETWORK = names.NETWORK.at("np", "us-central1")
ROUTER = names.ROUTER.at("np", NETWORK, "us-central1", "10.0.0.0/16")

# What is gone; the setting that is named; words of what and why; words of the fix; settings
FAILS = f"""
{PROJECT}/billingInfo | PROJECT_ID | billing is not enabled | billing projects |
{ZONE} | ZONE | no zone us-central1-a | ZONE=us-central1-f |
{ZONE}/machineTypes/a2-highgpu-2g | ZONE | us-central1-f has it; zones of other regions that have\
 it, the same continent first: us-e | ZONE=us-central1-f |
{ZONE}/acceleratorTypes/nvidia-tesla-t4 | ZONE | us-central1-a has no nvidia-tesla-t4\
 | ZONE=us-central1-f | vm_type=n1-standard-8 gpu_count=1 accelerator_type=nvidia-tesla-t4
{IMAGES}/family/common-cu129-ubuntu-2404-nvidia-580 | IMAGE_FAMILY_NAME\
 | no image family common-cu129-ubuntu-2404-nvidia-580 | gcloud compute images list |
{ZONE}/diskTypes/pd-ssd | DISK_TYPE | no disks of the type pd-ssd | gcloud compute disk-types list |
{PROJECT}/global/networks/default | NETWORK_CONFIG | no network "default"\
 | NETWORK_CONFIG=new_network |
{REGION}/subnetworks/default | NETWORK_CONFIG | no subnetwork "default" in us-central1\
 | NETWORK_CONFIG=new_network |
b/my-data | GCS_MOUNT_LIST | gs://my-data does not exist | gcloud storage buckets create gs://my-data\
 | gcs_mount_list=my-data:/mnt/data
"""


def test_a_project_that_has_everything_passes(google: Google) -> None:
    found = google.check(gcs_mount_list="my-data:/mnt/data", makes_bucket=True)

    assert found.problems == []
    assert found.notes == []
    assert found.require() == found.spec
    assert set(google.asked.values()) == {1}


@pytest.mark.parametrize("case", FAILS.strip().splitlines())
def test_what_is_missing_is_named_with_the_way_out(google: Google, case: str) -> None:
    path, setting, words, fix, settings = (part.strip() for part in case.split("|"))
    google.documents.pop(path)
    if path.endswith("billingInfo"):
        google.documents[path] = {}
    google.elsewhere = {"us-east1-b", "us-central1-f", "europe-west4-a"}

    found = google.check(dict(one.split("=") for one in settings.split()))

    (problem,) = found.problems
    assert problem.setting == setting
    assert words in f"{problem.what} {problem.why}"
    assert fix in problem.fix
    with pytest.raises(CheckError):
        found.require()


def test_all_problems_are_told_together(google: Google) -> None:
    google.documents[f"{PROJECT}/billingInfo"] = {}
    google.apis.remove("iam")
    google.withheld = {"compute.disks.create"}
    google.limit("NVIDIA_A100_GPUS", 1)

    assert len(google.check().problems) == 4


def test_apis_that_are_off_are_enabled_by_one_command(google: Google) -> None:
    google.apis -= {"iam", "file", "container"}

    (problem,) = google.check(nfs_fileshare_list="/mnt/nfs:BASIC_SSD:2560").problems

    assert "gcloud services enable iam.googleapis.com file.googleapis.com " in problem.fix
    assert "container" not in problem.fix


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


@pytest.mark.parametrize(("project", "lacking"), [("my-project", True), ("debian-cloud", False)])
def test_an_image_of_ones_own_takes_a_permission_and_a_public_one_none(
    google: Google, project: str, *, lacking: bool
) -> None:
    google.withheld = {"compute.images.useReadOnly"}

    found = google.check(image_project=project, image_name="mine").problems

    refused = [it for it in found if it.code is Code.PERMISSION_MISSING]
    assert [it.why for it in refused] == ["compute.images.useReadOnly"] * lacking
    assert all("--role roles/compute.imageUser" in it.fix for it in refused)


ACCOUNT = "vms@my-project.iam.gserviceaccount.com"
ONE = f"{PROJECT}/serviceAccounts/{ACCOUNT}"
DEFAULT = f"{PROJECT}/serviceAccounts/42-compute@developer.gserviceaccount.com"


def test_an_account_that_is_given_has_to_be_there_and_usable(google: Google) -> None:
    given = {"service_account": ACCOUNT}
    assert google.check(given).problems == []
    google.withheld = {"iam.serviceAccounts.actAs"}
    (lacking,) = google.check(given).problems
    google.refusals[ONE] = 404
    (gone,) = google.check(given).problems

    assert lacking.setting == gone.setting == "SERVICE_ACCOUNT"
    assert f"may not let machines act as {ACCOUNT}" in lacking.what
    assert "--role roles/iam.serviceAccountUser" in lacking.fix
    assert gone.what == f"there is no service account {ACCOUNT}"
    google.refusals = {f"{ONE}:": 403}
    found = google.check(given)
    assert found.problems == []
    assert [note.what for note in found.unmade] == ["could not be checked: permissions"]


def test_an_account_that_may_be_used_and_not_read_is_no_problem(google: Google) -> None:
    others = "vms@p.example.com.iam.gserviceaccount.com"
    google.refusals = {f"projects/example.com:p/serviceAccounts/{others}$": 403}
    assert google.check({"service_account": others}).problems == []
    assert google.asked[f"projects/example.com:p/serviceAccounts/{others}:testIamPermissions"] == 1


@pytest.mark.parametrize("kind", [{}, GKE])
def test_a_default_account_that_is_gone_is_told_with_both_ways_out(
    google: Google, kind: dict[str, str]
) -> None:
    settings = kind | {"service_account": "default"}
    assert google.check(settings).problems == []
    google.documents[DEFAULT] = {"disabled": True}
    (disabled,) = google.check(settings).problems
    del google.documents[DEFAULT]
    (gone,) = google.check(settings).problems
    assert disabled.what.endswith("42-compute@developer.gserviceaccount.com is disabled")
    assert "gcloud iam service-accounts enable 42-compute@dev" in disabled.fix
    assert "gcloud iam service-accounts undelete <NUMBER> --project my-project" in gone.fix
    for problem in (disabled, gone):
        assert (problem.code, problem.setting) == (Code.ACCOUNT_GONE, "SERVICE_ACCOUNT")
        assert problem.fix.startswith("SERVICE_ACCOUNT=dedicated")


def test_a_gke_cluster_with_an_account_for_its_nodes_grants_roles_to_that_of_its_pods(
    google: Google,
) -> None:
    google.withheld = {
        "container.clusters.connect",
        "iam.serviceAccounts.setIamPolicy",
        "resourcemanager.projects.setIamPolicy",
    }
    (problem,) = google.check(GKE | {"service_account": ACCOUNT}).problems
    assert problem.why == ", ".join(sorted(google.withheld))


def test_ray_in_the_default_network_takes_the_right_to_its_firewall_rules(google: Google) -> None:
    google.withheld = {"compute.firewalls.create", "compute.networks.updatePolicy"}
    ray = {"orchestrator_type": "ray"}

    (problem,) = google.check(ray).problems

    assert problem.why == "compute.firewalls.create, compute.networks.updatePolicy"
    assert google.check(ray | {"service_account": "default"}).problems == []
    assert google.check().problems == []


def test_vms_that_tell_of_their_start_up_are_to_be_heard(google: Google) -> None:
    google.withheld = {"compute.instances.getGuestAttributes"}
    (problem,) = google.check().problems
    assert problem.why == "compute.instances.getGuestAttributes"
    assert "roles/compute.instanceAdmin.v1" in problem.fix
    assert google.check(GKE).problems == []


def test_a_zone_in_another_region_and_one_that_is_down_are_refused(google: Google) -> None:
    google.documents[ZONE] = {"region": "https://x/v1/projects/p/regions/us-east1"}
    (moved,) = google.check().problems
    google.documents[ZONE] = {"region": f"https://x/v1/{REGION}", "status": "DOWN"}
    (down,) = google.check().problems

    assert moved.fix.startswith("REGION=us-east1")
    assert "is down" in down.what


def test_a_machine_type_that_no_zone_has_for_this_project_says_so(google: Google) -> None:
    google.documents.pop(f"{ZONE}/machineTypes/a2-highgpu-2g")

    (problem,) = google.check().problems

    assert problem.setting == "VM_TYPE"
    assert "no zone that this project may use has it" in problem.why


def test_google_has_the_last_word_on_the_gpus_of_a_machine_type(google: Google) -> None:
    google.documents[f"{ZONE}/machineTypes/z9-gpu-8g"] = {
        "accelerators": [{"guestAcceleratorType": "nvidia-z", "guestAcceleratorCount": 8}]
    }
    given = {"vm_type": "z9-gpu-8g", "accelerator_type": "nvidia-z"}

    (problem,) = google.check(given, gpu_count="4").problems

    assert problem.setting == "GPU_COUNT"
    assert "it has 8 x nvidia-z" in problem.why
    assert google.check(given, gpu_count="8").problems == []


def test_more_gpus_than_one_machine_can_have_are_refused(google: Google) -> None:
    google.documents[f"{ZONE}/acceleratorTypes/nvidia-tesla-t4"] = {"maximumCardsPerInstance": 2}

    (problem,) = google.check(N1 | {"gpu_count": "4"}).problems

    assert problem.fix.startswith("GPU_COUNT=2")


def test_an_image_larger_than_the_boot_disk_or_for_other_processors_is_refused(
    google: Google,
) -> None:
    google.documents[f"{IMAGES}/mine"] = {
        "name": "mine",
        "diskSizeGb": "80",
        "architecture": "ARM64",
    }

    found = google.check(image_name="mine", disk_size_gb="60")

    assert [problem.setting for problem in found.problems] == ["DISK_SIZE_GB", "IMAGE_NAME"]
    assert found.problems[0].fix == "DISK_SIZE_GB=80 or more"


def test_a_disk_outside_the_sizes_of_its_type_is_refused(google: Google) -> None:
    google.documents[f"{ZONE}/diskTypes/pd-ssd"] = {"validDiskSize": "10GB-1000GB"}

    (problem,) = google.check().problems

    assert problem.fix == "DISK_SIZE_GB=1000"


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


def test_a_channel_whose_usual_version_lacks_flex_start_is_refused(google: Google) -> None:
    config = {"channel": "REGULAR", "defaultVersion": "1.31.1-gke.1"}
    google.documents[f"{PROJECT}/locations/us-central1/serverConfig"] = {"channels": [config]}
    google.documents[f"{PROJECT}/services/compute.googleapis.com/consumerQuotaMetrics"] = {}

    found = google.check(GKE, enable_flex_start="yes")

    (problem,) = found.problems
    assert problem.setting == "GKE_RELEASE_CHANNEL"
    assert problem.fix == "GKE_RELEASE_CHANNEL=RAPID"


def test_a_version_without_a_machine_type_is_refused_with_one_that_has_it(google: Google) -> None:
    versions = ["1.34.1-gke.9", "1.34.0-gke.1", "1.33.5-gke.1"]
    config = {"channel": "REGULAR", "defaultVersion": versions[-1], "validVersions": versions}
    google.documents[f"{PROJECT}/locations/us-central1/serverConfig"] = {"channels": [config]}
    google.documents[f"{PROJECT}/services/compute.googleapis.com/consumerQuotaMetrics"] = {}
    pools = "name=a,vm_type=g4-standard-48,accelerator_type=nvidia-rtx-pro-6000"

    found = google.check(GKE, gke_node_pools=pools).problems
    (problem,) = [it for it in found if it.setting == "GKE_RELEASE_CHANNEL"]
    assert problem.what == "GKE 1.33.5-gke.1 does not support G4"
    assert problem.fix == "GKE_VERSION=1.34.1-gke.9"
    found = google.check(GKE, gke_node_pools=pools, gke_version="1.34.0").problems
    (problem,) = [it for it in found if it.setting == "GKE_VERSION"]
    assert problem.why == "it needs GKE 1.34.0-gke.1662000 or newer"


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


def test_a_secret_that_does_not_exist_is_said_with_the_command_that_makes_it(
    google: Google,
) -> None:
    found = google.check(SECRETS)

    problems = {problem.setting: problem for problem in found.problems}
    assert "there is no projects/my-project/secrets/token" in problems["SECRETS"].what
    assert "gcloud secrets create token --project my-project" in problems["SECRETS"].fix
    google.documents["projects/my-project/secrets/token"] = {"name": "it"}
    assert "SECRETS" not in {problem.setting for problem in google.check(SECRETS).problems}


@pytest.mark.parametrize("name", OnlineCheck)
def test_a_check_that_could_not_be_made_is_a_note_and_can_be_skipped(
    google: Google, name: OnlineCheck
) -> None:
    settings = {"gcs_mount_list": "my-data:/mnt/data"}
    settings |= GKE if name is OnlineCheck.GKE_VERSION else {}
    settings |= SECRETS if name is OnlineCheck.SECRETS else {}
    settings |= {"kms_key": KEY} if name is OnlineCheck.KMS_KEY else {}
    settings |= EXISTING if name is OnlineCheck.SUBNETWORK else {}
    settings |= {"reservation_name": "r"} if name is OnlineCheck.RESERVATION else {}
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
    own = (boot_image.IMAGE, SUBNETWORK, preflight_of_gke.VERSION)
    assert sorted(check.name for check in (*CHECKS, *own)) == sorted(OnlineCheck)
