import dataclasses
import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from provision.catalogue import machines as catalogue
from provision.catalogue import names
from provision.errors import Problem
from provision.google.owner import MARKER, Owner
from provision.preflight import quotas
from provision.preflight.check import Answers
from provision.settings.model import Settings
from provision.spec.capacity import Mode
from provision.spec.pools import group
from provision.state.record import Record
from rehearsal.cloud.compute import quotas as simulated
from tests.unit.preflight.stand_in import ID, PROJECT, REGION, ZONE, Google
from tests.unit.table import Row, rows

METRICS = f"{PROJECT}/services/compute.googleapis.com/consumerQuotaMetrics/compute.googleapis.com"
ULTRA = {"vm_type": "a3-ultragpu-8g", "disk_type": "hyperdisk-balanced"}
RECORD = Record(
    kind="mig",
    cluster_id="0123456789ab",
    project_id="my-project",
    name_prefix="np",
    region="us-central1",
    zone="us-central1-a",
    tool_version="1",
    terraform_version="1.11.4",
)


def _metric(google: Google, name: str, *buckets: dict[str, Any]) -> None:
    limits = [{"quotaBuckets": list(buckets)}]
    google.documents[f"{METRICS}%2F{name}"] = {"consumerQuotaLimits": limits}


NEEDS = """
instance_count=3 | NVIDIA_A100_GPUS | 6
enable_spot=yes | PREEMPTIBLE_NVIDIA_A100_GPUS | 2
enable_flex_start=yes max_run_duration=1d | PREEMPTIBLE_NVIDIA_A100_GPUS | 2
instance_count=2 vm_type=n1-standard-8 | CPUS | 16
disk_size_gb=500 | SSD_TOTAL_GB | 500
instance_count=2 | IN_USE_ADDRESSES | 2
network_config=new_network | IN_USE_ADDRESSES | 1
instance_count=2 | INSTANCES | 2
"""


@pytest.mark.parametrize("case", NEEDS.strip().splitlines())
def test_a_quota_that_is_one_too_small_is_told_with_limit_usage_and_link(
    google: Google, case: str
) -> None:
    asked, metric, needed = case.split(" | ")
    settings = dict(one.split("=") for one in asked.split())
    _metric(google, "active_resize_requests", {"effectiveLimit": "100"})
    google.limit(metric, int(needed) + 5, usage=5)
    assert google.check(settings).problems == []
    google.limit(metric, int(needed) + 4, usage=5)

    (problem,) = google.check(settings).problems

    too_small = f"the quota {metric} in us-central1 is too small: this deployment needs {needed}"
    assert too_small in problem.what
    assert f"is {int(needed) + 4}, and 5 of it is used" in problem.why
    assert "console.cloud.google.com/iam-admin/quotas?project=my-project" in problem.fix


def test_fewer_machines_are_no_way_out_where_the_quota_has_no_room_at_all(google: Google) -> None:
    for limit, way in (
        (3, "or use fewer or smaller machines, or a region"),
        (2, "or use a region"),
    ):
        google.limit("NVIDIA_A100_GPUS", limit, usage=2)
        assert f"\n{way} that has quota" in google.check({}).problems[0].fix


def test_a_large_number_is_written_out(google: Google) -> None:
    google.limit("SSD_TOTAL_GB", 123_456_789, usage=123_456_788)
    why = google.check({}).problems[0].why
    assert why == "the limit of my-project is 123456789, and 123456788 of it is used"


TABLE = """
limit-all GPUS_ALL_REGIONS 1 :: -> VM_TYPE: GPUS_ALL_REGIONS in all regions
@REQUESTS = {"consumerQuotaLimits": [{"quotaBuckets": [{"effectiveLimit": "0"}]}]} ::
    enable_flex_start=yes max_run_duration=1d -> VM_TYPE: ACTIVE_RESIZE_REQUESTS
# Who has no preemptible CPUs uses the standard ones.
@N1; limit PREEMPTIBLE_CPUS 0; limit CPUS 4 :: @PLAIN enable_spot=yes -> VM_TYPE: the quota CPUS
@N1; limit PREEMPTIBLE_CPUS 24; limit CPUS 4 :: @PLAIN enable_spot=yes --
# Machines that include GPUs need the quota of these alone.
limit A2_CPUS 0; limit PREEMPTIBLE_CPUS 0; limit-all CPUS_ALL_REGIONS 1 :: --
@N1; limit-all CPUS_ALL_REGIONS 1 :: @PLAIN -> VM_TYPE: the quota CPUS_ALL_REGIONS
# A reservation has used the quota of its machines.
limit NVIDIA_A100_GPUS 0 :: reservation_name=mine skip_checks=reservation --
# The room to grow of a pool is worth a note alone.
limit NVIDIA_A100_GPUS 4 :: orchestrator_type=gke gke_min_node_count=1 gke_max_node_count=8
    ~> VM_TYPE: this deployment needs 2 now and up to 16
limit RESOURCE_POLICIES 3 3 :: enable_compact_placement=yes
    -> VM_TYPE: the quota RESOURCE_POLICIES in us-central1 is too small
limit RESOURCE_POLICIES 3 3 :: --
# Machines that end within seven days may use either quota.
limit NVIDIA_A100_GPUS 0 :: max_run_duration=7d --
limit NVIDIA_A100_GPUS 0 :: -> VM_TYPE: the quota NVIDIA_A100_GPUS
@N1; limit CPUS 0; limit PREEMPTIBLE_CPUS 24 :: @PLAIN max_run_duration=7d --
@N1; limit CPUS 0; limit PREEMPTIBLE_CPUS 24 :: @PLAIN -> VM_TYPE: the quota CPUS
limit NVIDIA_A100_GPUS 1; limit PREEMPTIBLE_NVIDIA_A100_GPUS 1 :: max_run_duration=7d
    -> VM_TYPE: the quota NVIDIA_A100_GPUS
    | needs 2, or of PREEMPTIBLE_NVIDIA_A100_GPUS in its place
# Local SSDs that a machine brings count against a quota of their own.
@MEGA; limit LOCAL_SSD_TOTAL_GB 11999 :: @A3_MEGA instance_count=2
    -> VM_TYPE: the quota LOCAL_SSD_TOTAL_GB in us-central1 is too small | needs 12000
@MEGA; limit PREEMPTIBLE_LOCAL_SSD_GB 5999; limit PREEMPTIBLE_NVIDIA_H100_MEGA_GPUS 1000 ::
    @A3_MEGA enable_spot=yes -> VM_TYPE: the quota PREEMPTIBLE_LOCAL_SSD_GB
# An A3 Mega needs nine networks of a project that may have five.
@MEGA; limit-all NETWORKS 5 1 :: @A3_MEGA network_config=multi_nic_network
    -> NETWORK_CONFIG: the quota NETWORKS in all regions | this deployment needs 9
    | the limit of my-project is 5, and 1 of it is used | NETWORK_CONFIG=default_network
@MEGA; limit-all NETWORKS 10 1 :: @A3_MEGA network_config=multi_nic_network --
"""
PLENTY = {"consumerQuotaLimits": [{"quotaBuckets": [{"effectiveLimit": "1024"}]}]}
MEGAS: dict[str, dict[str, Any]] = {
    f"{ZONE}/machineTypes/a3-megagpu-8g": {"guestCpus": 208},
    f"{METRICS}%2Fgpus_per_gpu_family": PLENTY,
}


@rows(
    TABLE,
    A3_MEGA="vm_type=a3-megagpu-8g disk_type=hyperdisk-balanced",
    MEGA="; ".join(f"{path} = {json.dumps(it)}" for path, it in MEGAS.items()),
    N1=f'{ZONE}/machineTypes/n1-standard-8 = {{"guestCpus": 8}}',
    PLAIN="vm_type=n1-standard-8",
    REQUESTS=f"{METRICS}%2Factive_resize_requests",
)
def test_what_is_made_fits_into_its_quotas_or_is_refused(google: Google, row: Row) -> None:
    google.have(row.world)

    found = google.check(row.environ)

    row.is_said_by(found.problems, found.notes)


def _of_family(google: Google, name: str, *rows: dict[str, Any]) -> None:
    """Have Cloud Quotas tell the limits of a quota of machine families."""
    google.apis.add("cloudquotas")
    path = f"{PROJECT}/locations/global/services/compute.googleapis.com/quotaInfos/{name}"
    google.documents[f"{path}-per-project-region"] = {"dimensionsInfos": list(rows)}


def _row(value: str, **dimensions: str) -> dict[str, Any]:
    details = {"value": value} if value else {}
    return {"dimensions": dimensions, "details": details, "applicableLocations": ["us-central1"]}


C4 = {"vm_type": "c4-standard-8", "disk_type": "hyperdisk-balanced"}


def test_vcpus_of_newer_families_have_a_quota_for_each_that_cloud_quotas_tells(
    google: Google,
) -> None:
    google.documents[f"{ZONE}/machineTypes/c4-standard-8"] = {"guestCpus": 8}
    (unknown,) = google.check(C4).notes
    assert "could not check whether the quota CPUS_PER_VM_FAMILY for C4" in unknown.what
    assert "gcloud services enable cloudquotas.googleapis.com" in unknown.fix

    quota = "CPUS-PER-VM-FAMILY"
    default, other = _row("8", vm_family="C4"), _row("1", vm_family="N4")
    _of_family(google, quota, default, other, _row(""))
    assert google.check(C4).problems == []
    # The region's own row counts before that of all regions.
    _of_family(google, quota, default, _row("7", vm_family="C4", region="us-central1"), _row(""))
    (problem,) = google.check(C4).problems
    assert "the quota CPUS_PER_VM_FAMILY for C4 in us-central1 is too small" in problem.what
    assert "filter by CPUS_PER_VM_FAMILY and vm_family C4 and us-central1" in problem.fix
    # Rows of other families, and those of none, say nothing of this one.
    _of_family(google, quota, other, _row(""))
    assert google.check(C4).problems == []


def test_local_ssds_count_against_the_quota_of_their_family_where_it_is_named(
    google: Google,
) -> None:
    google.have("; ".join(f"{path} = {json.dumps(it)}" for path, it in MEGAS.items()))
    google.limit("LOCAL_SSD_TOTAL_GB", 0)
    mega = {"vm_type": "a3-megagpu-8g", "disk_type": "hyperdisk-balanced"}
    quota = "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY"
    _of_family(google, quota, _row("9000", vm_family="Z3"), _row(""))
    (problem,) = google.check(mega).problems
    assert "the quota LOCAL_SSD_TOTAL_GB" in problem.what

    _of_family(google, quota, _row("6000", vm_family="A3"))
    assert google.check(mega).problems == []
    _of_family(google, quota, _row("5999", vm_family="A3"))
    (problem,) = google.check(mega).problems
    assert "LOCAL_SSD_TOTAL_STORAGE_PER_VM_FAMILY for A3" in problem.what


def test_newer_gpus_share_a_quota_that_service_usage_tells_by_family_and_region(
    google: Google,
) -> None:
    here = {"gpu_family": "NVIDIA_H200", "region": "us-central1"}
    elsewhere = {"gpu_family": "NVIDIA_H200", "region": "us-east1"}
    other = {"dimensions": elsewhere, "effectiveLimit": "800"}
    _metric(google, "gpus_per_gpu_family", {}, other, {"dimensions": here, "effectiveLimit": "4"})
    (problem,) = google.check(ULTRA).problems
    assert "GPUS_PER_GPU_FAMILY for NVIDIA_H200 in us-central1" in problem.what
    assert problem.why == "the limit of my-project is 4"
    # One that is left out of an answer is zero.
    _metric(google, "gpus_per_gpu_family", {})
    (problem,) = google.check(ULTRA).problems
    assert problem.why == "the limit of my-project is 0"
    _metric(google, "gpus_per_gpu_family", {"dimensions": here, "effectiveLimit": "-1"})
    assert google.check(ULTRA).problems == []


def test_a_quota_that_nobody_tells_is_a_note(google: Google) -> None:
    found = google.check(ULTRA)

    assert found.problems == []
    (note,) = found.notes
    assert "GPUS_PER_GPU_FAMILY for NVIDIA_H200" in note.what
    assert google.asked[REGION] == 1


def _vm(zone: str) -> dict[str, Any]:
    """A VM with two A100 as Google tells of it."""
    gpu = f"https://x/{zone}/acceleratorTypes/nvidia-tesla-a100"
    return {
        "zone": f"https://x/{zone}",
        "machineType": f"https://x/{zone}/machineTypes/a2-highgpu-2g",
        "guestAccelerators": [{"acceleratorType": gpu, "acceleratorCount": 2}],
        "disks": [{"diskSizeGb": "2000"}],
        "scheduling": {"provisioningModel": "STANDARD"},
        "networkInterfaces": [{"accessConfigs": [{}]}],
    }


def test_what_the_deployment_has_already_is_not_counted_twice(google: Google) -> None:
    google.limit("NVIDIA_A100_GPUS", 4, usage=4)
    google.instances = 2 * [_vm(ZONE)]

    assert google.check(record=RECORD, instance_count="2").problems == []
    (problem,) = google.check(record=RECORD, instance_count="3").problems
    assert "and 4 of it is used, 4 by this deployment" in problem.why
    # What a move leaves in another region makes no room in the new one.
    google.instances = 2 * [_vm("projects/my-project/zones/europe-west4-a")]
    (problem,) = google.check(record=RECORD, instance_count="2").problems
    assert "and 4 of it is used" in problem.why


def test_a_part_of_a_gpu_uses_the_quota_of_one() -> None:
    settings = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-b"}
    asked = Settings({**settings, "vm_type": "g4-standard-6", "enable_spot": "yes"})

    used = {
        metric.name: amount for metric, amount in quotas.of_machine(group(asked), 6, "my-project")
    }

    assert used["PREEMPTIBLE_NVIDIA_RTX_PRO_6000_GPUS"] == 1


@pytest.mark.parametrize("mode", [Mode.STANDARD, Mode.SPOT])
def test_the_simulated_cloud_has_the_same_quotas_of_gpus(mode: Mode) -> None:
    asked = Settings({"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"})
    for gpu in catalogue.GPUS:
        pool = dataclasses.replace(group(asked), gpu_type=gpu, gpu_count=1, mode=mode)
        theirs = simulated.of_gpu(gpu, "us-central1", model=mode.name)
        ours = next(metric for metric, _ in quotas.of_machine(pool, 12, "my-project"))
        assert {**ours.dimensions, "region": "us-central1"} == theirs.dimensions
        assert ours.name == theirs.metric


def _only(metric: str, problems: Sequence[Problem]) -> Problem:
    """The only problem with a quota of networks or the like."""
    (found,) = (it for it in problems if it.setting == "NETWORK_CONFIG")
    assert f"the quota {metric} in all regions" in found.what
    return found


@pytest.fixture
def mega(google: Google) -> Google:
    """A Google whose zone has A3 Mega machines, with enough of everything but what a test takes."""
    google.documents |= MEGAS
    return google


MEGA = "network_config=multi_nic_network vm_type=a3-megagpu-8g disk_type=hyperdisk-balanced"
NETWORKS = f"""
network_config=new_network | NETWORKS | 1
network_config=new_network | ROUTERS | 1
network_config=new_network | FIREWALLS | 2
{MEGA} | SUBNETWORKS | 9
{MEGA} | FIREWALLS | 10
network_config=new_network orchestrator_type=ray | FIREWALLS | 4
network_config=new_network orchestrator_type=slurm | FIREWALLS | 4
orchestrator_type=gke disk_size_gb=100 | NETWORKS | 1
"""


@pytest.mark.parametrize("case", NETWORKS.strip().splitlines())
def test_the_quotas_of_what_networks_consist_of_are_looked_at(mega: Google, case: str) -> None:
    asked, metric, needed = case.split(" | ")
    settings = dict(one.split("=") for one in asked.split())
    mega.limit_everywhere(metric, int(needed) + 3, usage=3)
    assert mega.check(settings).problems == []
    mega.limit_everywhere(metric, int(needed) + 2, usage=3)
    assert f"needs {needed}" in _only(metric, mega.check(settings).problems).what
    if "orchestrator_type" not in settings:
        assert mega.check(settings, network_config="default_network").problems == []


def _own_network(google: Google, name: str) -> None:
    marked = {"name": name, "description": Owner(ID).text}
    google.documents[f"{PROJECT}/global/networks/{name}"] = marked


def test_a_network_that_stays_is_not_counted_twice_and_one_that_moves_is(google: Google) -> None:
    here = names.NETWORK.at("np", "us-central1")
    _own_network(google, here)
    google.limit_everywhere("NETWORKS", 2, usage=2)
    settings = {"network_config": "new_network"}

    assert google.check(settings, record=RECORD).problems == []

    # The record's network is in another region: the new one is made beside it.
    google.documents.pop(f"{PROJECT}/global/networks/{here}")
    _own_network(google, names.NETWORK.at("np", "europe-west4"))
    moved = dataclasses.replace(RECORD, region="europe-west4", zone="europe-west4-a")
    problem = _only("NETWORKS", google.check(settings, record=moved).problems)
    assert "a move makes the new ones before the old ones go" in problem.fix


SHARES = {"nfs_fileshare_list": "/mnt/a:BASIC_SSD:2560,/mnt/b:BASIC_SSD:2560"}
PREMIUM = "services/file.googleapis.com/quotaInfos/PremiumStorageGbPerRegion"


def _share(location: str, size: int, tier: str = "PREMIUM", owner: str = "") -> dict[str, Any]:
    return {
        "name": f"{PROJECT}/locations/{location}/instances/s{size}",
        "tier": tier,
        "fileShares": [{"capacityGb": str(size)}],
        **({"labels": {MARKER: owner}} if owner else {}),
    }


def test_the_quota_of_filestore_is_compared_tier_by_tier(google: Google) -> None:
    google.apis.add("cloudquotas")
    info = {"details": {"value": "7680"}, "applicableLocations": ["us-central1", "us-east1"]}
    google.documents[f"{PROJECT}/locations/global/{PREMIUM}"] = {"dimensionsInfos": [info]}
    google.shares = [
        _share("us-central1-a", 2560),
        _share("us-central1-a", 9000, tier="BASIC_HDD"),
        _share("us-east1-b", 9000),
    ]
    assert google.check(SHARES).problems == []

    google.shares.append(_share("us-central1-b", 1))
    (problem,) = google.check(SHARES).problems
    assert "PremiumStorageGbPerRegion in us-central1 is too small" in problem.what
    assert "needs 5120 GiB of BASIC_SSD" in problem.what
    assert problem.why == "the limit of my-project is 7680 GiB, and 2561 of it is used"

    google.shares[-1] = _share("us-central1-b", 2560, owner=ID)
    assert google.check(SHARES).problems == []


def test_filestores_quota_is_a_note_where_no_api_tells_it(google: Google) -> None:
    found = google.check(SHARES)
    assert found.problems == []
    (note,) = found.notes
    assert "could not check whether Filestore's quota" in note.what
    assert "gcloud services enable cloudquotas.googleapis.com" in note.fix
    assert google.asked[f"{PROJECT}/locations/-/instances"] == 0


@pytest.mark.parametrize(
    ("preemptible", "found"), [(False, ("NVIDIA_L4_GPUS", 8, 3)), (True, None)]
)
def test_the_quota_of_a_gpu_is_told_without_a_cluster(
    google: Google, *, preemptible: bool, found: tuple[str, int, int] | None
) -> None:
    google.limit("NVIDIA_L4_GPUS", 8, usage=3)
    place = quotas.Region(Answers(cast("Any", google)), "my-project", REGION.rpartition("/")[2])
    told = quotas.of_gpus(place, catalogue.GPUS["nvidia-l4"], 2, preemptible=preemptible)
    assert (told and (told.metric, told.limit, told.used)) == found
