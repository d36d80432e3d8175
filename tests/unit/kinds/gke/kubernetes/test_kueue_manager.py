from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from provision.kinds.gke.kubernetes import kueue_manager
from provision.kinds.gke.kubernetes.kueue_manager import configured

# Of upstream's manifest (v0.18.3), what is of interest here.
UPSTREAM: list[dict[str, Any]] = [
    {
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {
            "controller_manager_config.yaml": yaml.safe_dump(
                {"kind": "Configuration", "clientConnection": {"qps": 50}}
            )
        },
    },
    {
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "kueue"}]}}},
    },
    {"kind": "Service", "metadata": {"name": "kueue-webhook-service"}},
]


def _settings(things: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(things[0]["data"]["controller_manager_config.yaml"])
    return found


def _template(things: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = things[1]["spec"]["template"]
    return found


def test_a_job_that_lost_a_pod_is_queued_again_and_what_upstream_says_stays() -> None:
    found = _settings(configured(UPSTREAM, 4))
    assert found["waitForPodsReady"]["recoveryTimeout"] == "10m"
    # And not for ever: each time the nodes that do come are billed.
    assert found["waitForPodsReady"]["requeuingStrategy"]["backoffLimitCount"] == 20
    assert found["clientConnection"] == {"qps": 50}


@pytest.mark.parametrize(
    ("nodes", "memory", "processors"),
    [(4, "4096Mi", "2000m"), (128, "4096Mi", "2000m"), (1000, "32000Mi", "4000m")],
)
def test_the_manager_grows_with_the_cluster(nodes: int, memory: str, processors: str) -> None:
    (container,) = _template(configured(UPSTREAM, nodes))["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": processors, "memory": memory}
    assert container["image"] == "kueue"


def test_other_settings_start_another_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _template(configured(UPSTREAM, 4))["metadata"]["annotations"]
    assert before == _template(configured(UPSTREAM, 4))["metadata"]["annotations"]
    monkeypatch.setitem(kueue_manager.WAIT_FOR_PODS_READY, "timeout", "1h")
    assert before != _template(configured(UPSTREAM, 4))["metadata"]["annotations"]


def test_the_manifest_itself_is_not_changed() -> None:
    kept = copy.deepcopy(UPSTREAM)
    configured(UPSTREAM, 4)
    assert kept == UPSTREAM
