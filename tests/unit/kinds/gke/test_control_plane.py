"""What a cluster's state says, and that what lies beside it decides neither who gets the token
nor what pods are made of.
"""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.oauth2.credentials import Credentials

from provision.codes import Code
from provision.errors import ClusterError, StateError
from provision.google.api import GoogleApi
from provision.kinds.gke import control_plane
from provision.kinds.gke.control_plane import State
from provision.time.clock import Clock
from provision.time.progress import Progress
from tests.kubernetes import samples
from tests.unit.memory_folder import MemoryFolder
from tests.unit.state.test_record import WHOLE

RECORD = dataclasses.replace(
    WHOLE,
    settings={
        "IMAGE_MIRROR": ["us-docker.pkg.dev/my-project/mirror"],
        "GCS_MOUNT_LIST": [{"bucket": "data", "path": "/mnt/data"}],
        "SECRETS": [
            {"name": "HF", "project": "my-project", "secret": "hf-token", "version": "latest"}
        ],
    },
)
KEPT = json.loads(samples.FLEX_QUEUED_ULTRA.document())


def _folder(**changes: Any) -> Any:
    return MemoryFolder({"cluster.json": json.dumps(KEPT | changes)})


@pytest.mark.parametrize(
    "endpoint",
    ["evil.example.com", "127.0.0.1:19443/x", "x@evil.example.com", "evil.example.com\\.gke.goog"],
)
def test_no_control_plane_but_googles_gets_the_token(endpoint: str) -> None:
    api = GoogleApi(Credentials("token"), {}, Progress(Clock(0), lambda _: None))
    document = {"controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": endpoint}}}

    with pytest.raises(ClusterError, match=r"would get the access token") as caught:
        control_plane.reach(document, api, {}).all("v1", "Node")

    assert caught.value.problems[0].code is Code.UNSAFE_ENDPOINT


def test_who_the_cluster_is_and_what_its_pods_fetch_is_what_the_record_says() -> None:
    changed = _folder(
        project="other-project",
        name="other",
        location="europe-west4",
        workload_account="other@my-project.iam.gserviceaccount.com",
        image_mirrors=["evil.example.com/x"],
        secrets=[{"name": "LD_PRELOAD", "project": "evil-project", "secret": "x"}],
        buckets=[{"bucket": "evil", "path": "/usr/lib"}],
        endpoint="evil.example.com",
    )

    found = control_plane.kept(changed, RECORD)

    assert found is not None
    assert (found.project, found.name, found.location) == ("my-project", "np-gke", "us-central1")
    assert found.workload_account == "np-workload@my-project.iam.gserviceaccount.com"
    assert found.image_mirrors == ("us-docker.pkg.dev/my-project/mirror",)
    assert [(it.name, it.path) for it in found.secrets] == [
        ("HF", "projects/my-project/secrets/hf-token")
    ]
    assert [(it.bucket, it.path) for it in found.buckets] == [("data", "/mnt/data")]
    assert found.pools == samples.FLEX_QUEUED_ULTRA.pools


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pools", [{**KEPT["pools"][0], "name": "x\n  image: evil"}]),
        ("pools", [{**KEPT["pools"][0], "mode": "free"}]),
        ("shares", [{**KEPT["shares"][0], "server": "evil.example.com"}]),
        ("networks", [{**KEPT["networks"][0], "kubernetes_name": '"}]'}]),
        ("ray_version", "2.60.0@sha256:0"),
        ("version", "1.33; rm"),
        ("queues", [{"name": "a b", "gpus": 1}]),
        ("gpu_quota", -1),
    ],
)
def test_what_breaks_the_rule_of_its_setting_is_refused(name: str, value: object) -> None:
    with pytest.raises(StateError, match=r"cluster\.json can't be read") as caught:
        control_plane.kept(_folder(**{name: value}), RECORD)

    (problem,) = caught.value.problems
    assert problem.code is Code.STATE_UNREADABLE
    assert problem.fix == "run Create again: it rewrites that file"


def test_without_the_settings_no_pod_is_made() -> None:
    control_plane.require_settings(_folder(), RECORD)

    with pytest.raises(StateError, match="not known where pods get their images"):
        control_plane.require_settings(_folder(), dataclasses.replace(RECORD, settings={}))


def test_a_cluster_that_is_gone_is_told() -> None:
    asked: list[str] = []
    api = SimpleNamespace(find=lambda _, path: asked.append(path))

    assert control_plane.find(cast("GoogleApi", api), RECORD) is None
    with pytest.raises(ClusterError, match="The cluster does not exist"):
        control_plane.reach(None, cast("GoogleApi", api), {})

    assert asked == ["projects/my-project/locations/us-central1/clusters/np-gke"]


# ------------------------------------------------------------------ the states of its parts


def _cluster(status: str = "RUNNING", **pools: str) -> dict[str, object]:
    return {
        "status": status,
        "nodePools": [{"name": name, "status": pool} for name, pool in pools.items()],
    }


def test_a_cluster_and_pools_that_run_are_worth_no_word() -> None:
    assert control_plane.require(_cluster(one="RUNNING", two="RUNNING"), ["one", "two"]) == []


def test_a_pool_that_is_gone_and_one_that_failed_are_told_together() -> None:
    cluster = _cluster(one="RUNNING")
    cluster["nodePools"] = [{"name": "two", "status": "ERROR", "statusMessage": "no subnetwork"}]

    with pytest.raises(ClusterError) as caught:
        control_plane.require(cluster, ["one", "two"])

    gone, failed = caught.value.problems
    assert gone.what == "The node pool one does not exist"
    assert failed.why == "its state is ERROR: no subnetwork"


@pytest.mark.parametrize(
    ("cluster", "what"),
    [
        (_cluster("STOPPING"), "The cluster is not in order"),
        (_cluster("ERROR"), "The cluster is not in order"),
        ({}, "The cluster does not exist"),
    ],
)
def test_a_cluster_that_goes_failed_or_does_not_exist_is_not_done(
    cluster: dict[str, object], what: str
) -> None:
    with pytest.raises(ClusterError, match=what):
        control_plane.require(cluster, [])


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ("RUNNING_WITH_ERROR", "The node pool one is not in order"),
        ("RECONCILING", "The node pool one is being changed by GKE"),
        ("A_STATE_OF_NEXT_YEAR", "The node pool one is not in order"),
    ],
)
def test_what_runs_but_not_in_order_is_a_note(state: str, what: str) -> None:
    (note,) = control_plane.require(_cluster(one=state), ["one"])
    assert note.what == what
    assert state in note.why


def test_a_state_that_nobody_knows_yet_is_none() -> None:
    assert State.of({"status": "A_STATE_OF_NEXT_YEAR"}) is State.UNSPECIFIED
