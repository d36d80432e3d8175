"""`stockout`, `quota` and `forbidden`, as a managed instance group shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud import iam, projects
from rehearsal.cloud.wire import Request
from tests.rehearsal.cloud.compute.conftest import PROJECT, REGION, ZONE, Compute

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP = f"{ZONE}/instanceGroupManagers/grp"
A100 = {"machineType": "a2-highgpu-2g", "scheduling": {"onHostMaintenance": "TERMINATE"}}
NOTHING_LEFT = (
    "The zone 'projects/proj-a1/zones/us-central1-a' does not have enough resources available to"
    " fulfill the request.  '(resource type:compute)'."
)
NO_QUOTA = "Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 0.0 in region us-central1."


@pytest.fixture
def under(wired: Compute) -> Callable[..., Compute]:
    """Compute Engine under scenarios, with a group of GPU VMs made in it."""

    def make(*scenarios: str, **properties: Any) -> Compute:
        wired.scenarios = frozenset(scenarios)
        wired.template(**A100 | properties)
        wired.group()
        return wired

    return make


def _managed(api: Compute, group: str = GROUP) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.post(f"{group}/listManagedInstances")["managedInstances"]
    return found


def _error(instance: dict[str, Any]) -> dict[str, Any]:
    (error,) = instance["lastAttempt"]["errors"]["errors"]
    assert isinstance(error, dict)
    return error


@pytest.mark.parametrize(
    ("scenario", "code", "words"),
    [
        ("stockout", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", NOTHING_LEFT),
        ("quota", "QUOTA_EXCEEDED", NO_QUOTA),
    ],
)
def test_a_refused_vm_stays_in_creation_and_tells_why(
    under: Callable[..., Compute], scenario: str, code: str, words: str
) -> None:
    api = under(scenario)
    api.now += 3600
    instances = _managed(api)
    assert [it["currentAction"] for it in instances] == ["CREATING"] * 2
    assert all("instanceStatus" not in it and "id" not in it for it in instances)
    assert {(_error(it)["code"], _error(it)["message"]) for it in instances} == {(code, words)}
    errors = api.get(f"{GROUP}/listErrors")["items"]
    assert [it["instanceActionDetails"]["instance"] for it in errors] == [
        it["instance"] for it in instances
    ]
    assert {it["error"]["message"] for it in errors} == {words}


@pytest.mark.parametrize("scenario", ["stockout", "quota"])
def test_a_group_that_waits_is_not_stable_and_has_no_vms(
    under: Callable[..., Compute], scenario: str
) -> None:
    api = under(scenario)
    group = api.get_group()
    assert not group["status"]["isStable"]
    assert group["currentActions"]["creating"] == 2
    assert api.vms() == []


@pytest.mark.parametrize("scenario", ["stockout", "quota"])
def test_the_vms_come_when_the_refusal_is_over(
    under: Callable[..., Compute], scenario: str
) -> None:
    api = under(scenario)
    waiting = [it["name"] for it in _managed(api)]
    api.scenarios = frozenset()
    assert api.get_group()["status"]["isStable"]
    assert sorted(it["name"] for it in api.vms()) == waiting
    assert [it["instanceStatus"] for it in _managed(api)] == ["RUNNING"] * 2


def test_other_zones_have_machines(under: Callable[..., Compute]) -> None:
    api = under("stockout")
    other = ZONE.replace("us-central1-a", "us-central1-c")
    body = {
        "name": "grp",
        "targetSize": 1,
        "versions": [{"instanceTemplate": f"{PROJECT}/global/instanceTemplates/tpl"}],
    }
    api.post(f"{other}/instanceGroupManagers", body)
    (instance,) = _managed(api, f"{other}/instanceGroupManagers/grp")
    assert instance["instanceStatus"] == "RUNNING"
    assert all("lastAttempt" in it for it in _managed(api))


def test_a_stockout_names_a_zone_that_has_machines(under: Callable[..., Compute]) -> None:
    details = _error(_managed(under("stockout"))[0])["errorDetails"]
    (info,) = [it["errorInfo"] for it in details if "errorInfo" in it]
    assert info["metadatas"]["zonesAvailable"] == "us-central1-b"
    assert info["metadatas"]["attachment"] == "nvidia-tesla-a100:2"


@pytest.mark.parametrize(
    ("properties", "metric", "dimensions"),
    [
        ({}, "NVIDIA_A100_GPUS", {}),
        ({"machineType": "a2-ultragpu-1g"}, "NVIDIA_A100_80GB_GPUS", {}),
        ({"machineType": "g2-standard-4"}, "NVIDIA_L4_GPUS", {}),
        (
            {"machineType": "a3-highgpu-8g"},
            "GPUS_PER_GPU_FAMILY",
            {"gpu_family": "NVIDIA_H100"},
        ),
        (
            {"scheduling": {"provisioningModel": "SPOT", "onHostMaintenance": "TERMINATE"}},
            "PREEMPTIBLE_NVIDIA_A100_GPUS",
            {},
        ),
    ],
)
def test_each_kind_of_gpu_has_its_quota(
    under: Callable[..., Compute],
    properties: dict[str, Any],
    metric: str,
    dimensions: dict[str, str],
) -> None:
    (detail,) = _error(_managed(under("quota", **properties))[0])["errorDetails"]
    assert detail["quotaInfo"] == {
        "metricName": f"compute.googleapis.com/{metric.lower()}",
        "limitName": f"{metric.replace('_', '-')}-per-project-region",
        "limit": 0.0,
        "dimensions": {"region": "us-central1", **dimensions},
    }


def test_vms_without_gpus_need_no_quota_of_gpus(under: Callable[..., Compute]) -> None:
    assert len(under("quota", machineType="e2-standard-4").vms()) == 2


def test_a_region_shows_limit_and_usage(under: Callable[..., Compute]) -> None:
    api = under()

    def quota(metric: str) -> tuple[float, float]:
        (found,) = [it for it in api.get(REGION)["quotas"] if it["metric"] == metric]
        return found["limit"], found["usage"]

    limit, usage = quota("NVIDIA_A100_GPUS")
    assert usage == 4
    assert limit > usage
    assert quota("NVIDIA_T4_GPUS") == (limit, 0)
    api.scenarios = frozenset({"quota"})
    assert quota("NVIDIA_A100_GPUS") == (0, 4)


def test_a_smaller_size_gives_up_first_what_has_not_come(under: Callable[..., Compute]) -> None:
    api = under()
    running = {it["name"] for it in api.vms()}
    api.scenarios = frozenset({"quota"})
    api.call("POST", f"{GROUP}/resize", None, size="4")
    assert len(_managed(api)) == 4
    api.call("POST", f"{GROUP}/resize", None, size="3")
    assert len(_managed(api)) == 3
    assert {it["name"] for it in api.vms()} == running
    api.call("POST", f"{GROUP}/resize", None, size="1")
    assert len(api.vms()) == 1
    assert api.get_group()["status"]["isStable"]


def test_a_group_that_waits_goes_with_what_it_waits_for(under: Callable[..., Compute]) -> None:
    api = under("stockout")
    api.rate = 1.0
    api.delete(GROUP)
    api.scenarios = frozenset()
    assert "managedInstances" not in api.post(f"{GROUP}/listManagedInstances")
    api.now += 3600
    assert api.refusal("GET", GROUP)["code"] == 404


def test_scenarios_of_different_things_combine(under: Callable[..., Compute]) -> None:
    api = under("stockout", "quota")
    assert {_error(it)["code"] for it in _managed(api)} == {"QUOTA_EXCEEDED"}


def test_who_lacks_the_permission_makes_no_group(wired: Compute) -> None:
    wired.template()
    wired.scenarios = frozenset({"forbidden"})
    body = {"name": "grp", "targetSize": 1, "versions": [{"instanceTemplate": "tpl"}]}
    refusal = wired.refusal("POST", f"{ZONE}/instanceGroupManagers", body)
    assert refusal["code"] == 403
    assert refusal["errors"][0]["reason"] == "forbidden"
    assert refusal["message"] == (
        "Required 'compute.instanceGroupManagers.create' permission for"
        f" '{ZONE}/instanceGroupManagers/grp'"
    )
    assert wired.network("other")["operationType"] == "insert"


def test_vms_do_not_come_with_a_default_account_that_was_deleted(
    wired: Compute, under: Callable[..., Compute]
) -> None:
    email = f"{projects.number('proj-a1')}-compute@developer.gserviceaccount.com"
    path = f"projects/proj-a1/serviceAccounts/{email}"
    with wired.database.transaction() as store:
        iam.service(Request(method="DELETE", path=path), store)
    error = _error(_managed(under(serviceAccounts=[{"email": email, "scopes": []}]))[0])
    assert error["message"] == f"The resource '{email}' of type 'serviceAccount' was not found."


def test_vms_do_not_come_with_an_account_that_is_not_there(under: Callable[..., Compute]) -> None:
    email = "trainer@proj-a1.iam.gserviceaccount.com"
    api = under(serviceAccounts=[{"email": email, "scopes": []}])
    error = _error(_managed(api)[0])
    assert error["message"] == f"The resource '{email}' of type 'serviceAccount' was not found."

    made = Request(
        method="POST",
        path="projects/proj-a1/serviceAccounts",
        body=json.dumps({"accountId": "trainer"}).encode(),
    )
    with api.database.transaction() as store:
        iam.service(made, store)
    assert [it["currentAction"] for it in _managed(api)] == ["NONE"] * 2
