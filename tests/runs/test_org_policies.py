"""Policies of the organization, and quotas of what is no machine: found before, and survived."""

import pytest

from provision.codes import ExitCode
from tests.runs.conftest import Rehearsal, Rehearse

SLOW = pytest.mark.slow(sibling="::test_a_policy_in_force_is_found_before_anything_is_made")
MEGA = {"NETWORK_CONFIG": "multi_nic_network", "VM_TYPE": "a3-megagpu-8g"}


@pytest.mark.parametrize(
    ("scenario", "setting", "fix"),
    [
        ("policy-external-ip", "ENABLE_EXTERNAL_IP", "ENABLE_EXTERNAL_IP=no"),
        ("policy-shielded-vm", "SECURE_BOOT", "SECURE_BOOT=yes"),
        ("policy-guest-attributes", "ORCHESTRATOR_TYPE", "ORCHESTRATOR_TYPE=gke"),
        ("policy-accounts", "SERVICE_ACCOUNT", "SERVICE_ACCOUNT=<EMAIL>"),
        ("policy-images", "IMAGE_PROJECT", "IMAGE_PROJECT"),
        ("policy-locations", "ZONE", "set ZONE"),
    ],
)
def test_a_policy_in_force_is_found_before_anything_is_made(
    rehearse: Rehearse, scenario: str, setting: str, fix: str
) -> None:
    rehearsal = rehearse(scenario=scenario)

    ended = rehearsal.run("Create")

    assert ended.code == ExitCode.CHECK, ended.said
    assert ended.problem["setting"] == setting
    assert fix in ended.problem["fix"]
    assert rehearsal.writes() == []


@pytest.mark.parametrize(
    ("scenario", "code", "why", "fix"),
    [
        pytest.param(
            "policy-shielded-vm",
            ExitCode.CAPACITY,
            "compute.requireShieldedVm",
            "ORCHESTRATOR_TYPE=gke",
            marks=SLOW,
        ),
        pytest.param(
            "policy-images",
            ExitCode.CAPACITY,
            "compute.trustedImageProjects",
            "IMAGE_PROJECT",
            marks=SLOW,
        ),
        pytest.param(
            "policy-accounts",
            ExitCode.TERRAFORM,
            "Service account creation is not allowed",
            "SERVICE_ACCOUNT=<EMAIL>",
            marks=SLOW,
        ),
        pytest.param(
            "policy-guest-attributes",
            ExitCode.CLUSTER,
            "compute.disableGuestAttributesAccess",
            "ORCHESTRATOR_TYPE=gke",
            marks=SLOW,
        ),
        pytest.param(
            "policy-locations", ExitCode.STATE, "gcp.resourceLocations", "set ZONE", marks=SLOW
        ),
    ],
)
def test_a_policy_that_was_not_asked_for_ends_create_with_its_words_and_leaves_nothing(
    rehearse: Rehearse, scenario: str, code: ExitCode, why: str, fix: str
) -> None:
    rehearsal = rehearse(scenario=scenario)

    ended = rehearsal.run("Create", SKIP_CHECKS="policies", CAPACITY_TIMEOUT="7d")

    assert ended.code == code, ended.said
    assert why in ended.problem["why"]
    assert fix in ended.problem["fix"]
    assert rehearsal.run("Destroy").code == 0
    assert not [line for line in rehearsal.resources() if not line.startswith("storage/")]


@SLOW
def test_a_policy_against_keys_is_nothing_to_a_tool_that_makes_none(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="policy-keys")
    assert rehearsal.run("Create").code == 0
    assert not [one for one in rehearsal.requests() if one["path"].endswith("/keys")]


def test_an_a3_mega_is_refused_to_a_project_that_may_have_five_networks(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="small-quotas")

    share = {"NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD:2561"}
    ended = rehearsal.run("Create", DISK_SIZE_GB="100", **MEGA, **share)

    assert ended.code == ExitCode.CHECK, ended.said
    told = {one["what"].split()[2]: one for one in ended.document["problems"]}
    assert told["NETWORKS"]["what"].endswith("this deployment needs 9")
    assert "is 5, and 1 of it is used" in told["NETWORKS"]["why"]
    assert "2561 GiB of BASIC_SSD" in told["PremiumStorageGbPerRegion"]["what"]
    assert rehearsal.writes() == []


@pytest.mark.slow(sibling="::test_an_a3_mega_is_refused_to_a_project_that_may_have_five_networks")
def test_a_quota_of_networks_that_was_not_asked_for_ends_create_and_leaves_nothing(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(scenario="small-quotas")

    ended = rehearsal.run("Create", DISK_SIZE_GB="100", SKIP_CHECKS="quota", **MEGA)

    assert ended.code == ExitCode.CAPACITY, ended.said
    assert "Quota 'NETWORKS' exceeded.  Limit: 5.0 globally." in ended.problem["why"]
    assert "increase" in ended.problem["fix"]
    assert rehearsal.run("Destroy").code == 0
    assert not [line for line in rehearsal.resources() if not line.startswith("storage/")]


def test_vms_that_end_within_seven_days_come_where_only_preemptible_quota_is(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(scenario="no-on-demand-quota")

    refused = rehearsal.run("Create")
    ended = rehearsal.run("Create", MAX_RUN_DURATION="7d")

    assert refused.code == ExitCode.CHECK, refused.said
    assert "the quota NVIDIA_A100_GPUS in us-central1 is too small" in refused.problem["what"]
    assert ended.code == 0, ended.said


def test_create_promises_no_notebook_link_that_the_vms_account_could_not_write(
    rehearsal: Rehearsal,
) -> None:
    ended = rehearsal.run("Create")

    assert ended.code == 0, ended.said
    (vm,) = ended.document["connection"]["vms"]
    assert vm["notebook"] is None
    assert vm["notebook_tunnel"] == f"{vm['ssh']} -- -L 8080:localhost:8080"
    assert "notebooks have their URL" not in ended.said
    assert not [it for it in ended.document["notes"] if it["setting"] == "SHOW_PROXY_URL"]
    asked = [it for it in rehearsal.requests() if it["path"].endswith("/instances")]
    assert len(asked) <= 6


def test_secure_boot_is_what_its_policy_demands(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="policy-shielded-vm")
    made = rehearsal.run(
        "Create",
        SECURE_BOOT="yes",
        IMAGE_PROJECT="ubuntu-os-accelerator-images",
        IMAGE_FAMILY_NAME="ubuntu-accelerator-2404-amd64-with-nvidia-580",
        ENABLE_NOTEBOOK="no",
    )
    assert made.code == 0, made.said
