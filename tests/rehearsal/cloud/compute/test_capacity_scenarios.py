"""`stockout`, `quota` and `forbidden`, as a managed instance group shows them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.cloud import projects
from tests.rehearsal.cloud.compute.conftest import (
    GROUP,
    GROUPS,
    REGION,
    SPOT,
    STANDARD,
    Compute,
    group_body,
)
from tests.table import cases

Under = Callable[..., Compute]
NOTHING_LEFT = (
    "The zone 'projects/proj-a1/zones/us-central1-a' does not have enough resources available to"
    " fulfill the request.  '(resource type:compute)'."
)
NO_QUOTA = "Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 0.0 in region us-central1."


@pytest.fixture
def under(wired: Compute) -> Under:
    """Compute Engine under scenarios, with a group of GPU VMs made in it."""

    def make(*scenarios: str, **properties: Any) -> Compute:
        wired.scenarios = frozenset(scenarios)
        wired.template(**{"machineType": "a2-highgpu-2g", "scheduling": STANDARD} | properties)
        wired.group()
        return wired

    return make


@pytest.mark.parametrize(
    ("scenario", "code", "words"),
    [
        ("stockout", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", NOTHING_LEFT),
        ("quota", "QUOTA_EXCEEDED", NO_QUOTA),
    ],
)
def test_a_refused_vm_stays_in_creation_tells_why_and_comes_when_the_refusal_is_over(
    under: Under, scenario: str, code: str, words: str
) -> None:
    api = under(scenario)
    group = api.get_group()
    assert (group["status"]["isStable"], group["currentActions"]["creating"]) == (False, 2)
    api.now += 3600
    instances = api.managed()
    assert [it["currentAction"] for it in instances] == ["CREATING"] * 2
    assert all("instanceStatus" not in it and "id" not in it for it in instances)
    assert [(it["code"], it["message"]) for it in api.errors()] == [(code, words)] * 2
    errors = api.get(f"{GROUP}/listErrors")["items"]
    told = [(it["instanceActionDetails"]["instance"], it["error"]["message"]) for it in errors]
    assert told == [(it["instance"], words) for it in instances]
    assert api.vms() == []

    api.scenarios = frozenset()
    assert api.get_group()["status"]["isStable"]
    assert sorted(it["name"] for it in api.vms()) == [it["name"] for it in instances]
    assert [it["instanceStatus"] for it in api.managed()] == ["RUNNING"] * 2


def test_other_zones_have_machines_and_a_stockout_names_one(under: Under) -> None:
    api = under("stockout")
    other = GROUPS.replace("us-central1-a", "us-central1-c")
    api.post(other, group_body())
    (instance,) = api.post(f"{other}/grp/listManagedInstances")["managedInstances"]
    assert instance["instanceStatus"] == "RUNNING"
    details = api.errors()[0]["errorDetails"]
    (info,) = [it["errorInfo"]["metadatas"] for it in details if "errorInfo" in it]
    assert (info["zonesAvailable"], info["attachment"]) == ("us-central1-b", "nvidia-tesla-a100:2")


@cases(
    """
    metric                       | properties                          | dimensions
NVIDIA_A100_GPUS             | {}                                  | {}
NVIDIA_A100_80GB_GPUS        | {"machineType": "a2-ultragpu-1g"}   | {}
NVIDIA_L4_GPUS               | {"machineType": "g2-standard-4"}    | {}
GPUS_PER_GPU_FAMILY          | {"machineType": "a3-highgpu-8g"}    | {"gpu_family": "NVIDIA_H100"}
PREEMPTIBLE_NVIDIA_A100_GPUS | {"scheduling": @spot}               | {}
""",
    spot=json.dumps(SPOT),
)
def test_each_kind_of_gpu_has_its_quota(
    under: Under, properties: dict[str, Any], metric: str, dimensions: dict[str, str]
) -> None:
    (detail,) = under("quota", **properties).errors()[0]["errorDetails"]
    assert detail["quotaInfo"] == {
        "metricName": f"compute.googleapis.com/{metric.lower()}",
        "limitName": f"{metric.replace('_', '-')}-per-project-region",
        "limit": 0.0,
        "dimensions": {"region": "us-central1", **dimensions},
    }


def test_vms_without_gpus_need_no_quota_of_gpus(under: Under) -> None:
    assert len(under("quota", machineType="e2-standard-4").vms()) == 2


def test_a_region_shows_limit_and_usage(under: Under) -> None:
    api = under()

    def quota(metric: str) -> tuple[float, float]:
        (found,) = [it for it in api.get(REGION)["quotas"] if it["metric"] == metric]
        return found["limit"], found["usage"]

    limit, usage = quota("NVIDIA_A100_GPUS")
    assert limit > usage == 4
    assert quota("NVIDIA_T4_GPUS") == (limit, 0)
    api.scenarios = frozenset({"quota"})
    assert quota("NVIDIA_A100_GPUS") == (0, 4)


def test_a_smaller_size_gives_up_first_what_has_not_come(under: Under) -> None:
    api = under()
    running = {it["name"] for it in api.vms()}
    api.scenarios = frozenset({"quota"})
    for size in ("4", "3"):
        api.call("POST", f"{GROUP}/resize", None, size=size)
        assert len(api.managed()) == int(size)
    assert {it["name"] for it in api.vms()} == running
    api.call("POST", f"{GROUP}/resize", None, size="1")
    assert len(api.vms()) == 1
    assert api.get_group()["status"]["isStable"]


def test_a_group_that_waits_goes_with_what_it_waits_for(under: Under) -> None:
    api = under("stockout")
    api.rate = 1.0
    api.delete(GROUP)
    api.scenarios = frozenset()
    assert api.managed() == []
    api.now += 3600
    assert api.gone(GROUP)


def test_scenarios_of_different_things_combine(under: Under) -> None:
    assert {it["code"] for it in under("stockout", "quota").errors()} == {"QUOTA_EXCEEDED"}


def test_who_lacks_the_permission_makes_no_group(made: Compute) -> None:
    made.scenarios = frozenset({"forbidden"})
    refusal = made.refusal("POST", GROUPS, group_body())
    assert (refusal["code"], refusal["errors"][0]["reason"]) == (403, "forbidden")
    assert refusal["message"] == (
        f"Required 'compute.instanceGroupManagers.create' permission for '{GROUP}'"
    )
    assert made.network("other")["operationType"] == "insert"


def _iam(api: Compute, method: str, path: str, body: object = None) -> None:
    assert api("iam", method, f"projects/proj-a1/serviceAccounts{path}", body or {}).status == 200


def test_vms_do_not_come_with_a_default_account_that_was_deleted(
    wired: Compute, under: Under
) -> None:
    email = f"{projects.number('proj-a1')}-compute@developer.gserviceaccount.com"
    _iam(wired, "DELETE", f"/{email}")
    error, _ = under(serviceAccounts=[{"email": email, "scopes": []}]).errors()
    assert error["message"] == f"The resource '{email}' of type 'serviceAccount' was not found."


def test_vms_do_not_come_with_an_account_that_is_not_there(under: Under) -> None:
    email = "trainer@proj-a1.iam.gserviceaccount.com"
    api = under(serviceAccounts=[{"email": email, "scopes": []}])
    error, _ = api.errors()
    assert error["message"] == f"The resource '{email}' of type 'serviceAccount' was not found."
    _iam(api, "POST", "", {"accountId": "trainer"})
    assert [it["currentAction"] for it in api.managed()] == ["NONE"] * 2
