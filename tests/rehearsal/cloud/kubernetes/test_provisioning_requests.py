"""ProvisioningRequests as GKE's autoscaler treats them: states, reasons, words, delays.

What is expected here is from the autoscaler's published source (2026-08-21). Numbers in comments
are those of a list of differences between that source and this simulation, of 2026-11-21.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from provision.kinds.gke.kubernetes import jobs, kueue
from provision.kinds.gke.kubernetes.objects import Object, build, conditions, holds
from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

EXAMPLE = "gke-ray-h200"
REQUESTS = "autoscaling.x-k8s.io/v1"
LABEL = "autoscaling.gke.io/provisioning-request"
GROUPS = "/compute/v1/projects/my-project/zones/us-central1-b/instanceGroupManagers"


class Requests:
    """A cluster with a queued pool, and requests that are made by hand, without Kueue."""

    def __init__(self, cluster: Gke, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.pool = cluster.pool

    def ask(
        self, name: str, nodes: int = 1, *, parameters: dict[str, str] | None = None, **pod: Any
    ) -> None:
        """Make a request for whole nodes."""
        spec = jobs.sample(self.cluster.facts, self.pool)["spec"]["template"]["spec"]
        wanted = {"nvidia.com/gpu": "8", **pod.pop("resources", {})}
        spec["containers"][0]["resources"] = {"requests": wanted, "limits": wanted}
        template = {"metadata": {"name": f"t-{name}", "namespace": "default"}}
        body = {**template, "template": {"spec": {**spec, **pod}}}
        self.cluster.api.create({"apiVersion": "v1", "kind": "PodTemplate", **body})
        self.make(name, [{"count": nodes, "podTemplateRef": {"name": f"t-{name}"}}], parameters)

    def make(self, name: str, sets: list[Object], parameters: dict[str, str] | None = None) -> None:
        """Make a request for pods of templates."""
        spec = {"provisioningClassName": "queued-provisioning.gke.io", "podSets": sets}
        metadata = {"name": name, "namespace": "default"}
        thing = {"apiVersion": REQUESTS, "kind": "ProvisioningRequest", "metadata": metadata}
        self.cluster.api.create({**thing, "spec": {**spec, "parameters": parameters or {}}})

    def find(self, name: str) -> Object:
        """The request; {} where there is none."""
        return self.cluster.api.find(REQUESTS, "ProvisioningRequest", name, "default") or {}

    def said(self, name: str) -> dict[str, tuple[str, str, str]]:
        """Condition -> status, reason and message."""
        found = conditions(self.find(name))
        return {
            key: (str(it["status"]), str(it["reason"]), str(it["message"]))
            for key, it in found.items()
        }

    def reason(self, name: str, condition: str) -> str:
        return self.said(name).get(condition, ("", "", ""))[1]

    def message(self, name: str, condition: str) -> str:
        return self.said(name).get(condition, ("", "", ""))[2]

    def after(self, seconds: float, name: str, condition: str) -> str:
        """The reason after some time."""
        self.clock.forward(seconds)
        return self.reason(name, condition)

    def provisioned(self, name: str, step: float = 10) -> None:
        """Let time pass until a request has its nodes."""
        for _ in range(60):
            if self.after(step, name, "Provisioned") == "Provisioned":
                return
        raise AssertionError(self.said(name))

    def group(self) -> Object:
        self.cluster.pods()  # the cluster goes on when somebody asks it
        found = self.cluster.google("GET", GROUPS).get("items", [])
        (group,) = (it for it in found if "nodepool" in it["name"])
        return dict(group)

    def resize_requests(self) -> list[str]:
        found = self.cluster.google("GET", f"{GROUPS}/{self.group()['name']}/resizeRequests")
        return [it["name"] for it in found.get("items", [])]


Asked = Callable[..., Requests]


@pytest.fixture
def requests_of(gke_of: Make, clock: Clock) -> Asked:
    def make(scenario: str = "", **changes: str) -> Requests:
        cluster = gke_of(EXAMPLE, scenario, "1", **changes)
        cluster.create()
        clock.forward(60)
        return Requests(cluster, clock)

    return make


@pytest.fixture
def plain(requests_of: Asked) -> Requests:
    return requests_of()


def test_a_request_is_pending_then_accepted_then_provisioned(plain: Requests) -> None:
    # 6, 7, 9
    plain.ask("one")
    pending = ("False", "NotAccepted", "Provisioning Request wasn't accepted.")
    assert plain.said("one") == {"Accepted": pending}
    assert "provisioningClassDetails" not in plain.find("one")["status"]
    assert plain.after(12, "one", "Accepted") == "NotAccepted"
    assert plain.find("one")["status"]["provisioningClassDetails"]  # before it is accepted
    plain.clock.forward(10)
    accepted = ("True", "SuccessfullyQueued", "Provisioning Request was successfully queued.")
    assert plain.said("one") == {"Accepted": accepted}
    plain.provisioned("one")
    words = "Provisioning Request was successfully provisioned."
    assert plain.said("one")["Provisioned"] == ("True", "Provisioned", words)
    found = plain.find("one")
    (observed,) = {it["observedGeneration"] for it in conditions(found).values()}
    assert observed == found["metadata"]["generation"]


def test_templates_that_are_missing_fail_the_request_after_two_minutes(plain: Requests) -> None:
    # 9, 12
    plain.make("one", [{"count": 1, "podTemplateRef": {"name": "gone"}}])
    first = conditions(plain.find("one"))["Accepted"]["lastTransitionTime"]
    assert plain.after(20, "one", "Accepted") == "MissingPodTemplates"
    # A change of the reason alone moves the moment.
    assert conditions(plain.find("one"))["Accepted"]["lastTransitionTime"] > first
    words = "missing pod templates, 1 pod templates were referenced, 1 templates were missing: gone"
    told = f"Provisioning Request will fail soon as it is {words}"
    assert plain.message("one", "Accepted") == told
    plain.clock.forward(120)
    told = f"Provisioning Request failed because there were {words}"
    assert plain.message("one", "Failed") == told


def test_the_details_and_the_name_of_the_resize_request(plain: Requests) -> None:
    # 10
    name = "a-request-of-a-long-name"
    plain.ask(name)
    plain.provisioned(name)
    details = plain.find(name)["status"]["provisioningClassDetails"]
    digest = hashlib.sha256(f"default/{name}".encode()).hexdigest()[:16]
    assert details == {
        "NodeGroupName": plain.group()["instanceGroup"],
        "ResizeRequestName": f"gke-default-a-request-of-a-long--{digest}",
        "NodePoolName": plain.pool.name,
        "AcceleratorType": "nvidia-h200-141gb",
        "SelectedZone": "us-central1-b",
        "NodePoolAutoProvisioned": "false",
        "PodTemplateName": f"t-{name}",
        "ProvisioningMode": "resize_request",
    }
    assert plain.resize_requests() == [details["ResizeRequestName"]]


def test_what_a_pool_has_no_room_for_fails_after_two_minutes(plain: Requests) -> None:
    # 1: it used to wait for ever; what is left of a pool is passed over in silence
    plain.ask("too-many", plain.pool.max_nodes + 1)
    assert plain.after(60, "too-many", "Accepted") == "NoQueuedNodepoolAvailable"
    assert plain.after(80, "too-many", "Failed") == "NodepoolSizeReached"
    plain.ask("all", plain.pool.max_nodes)
    assert plain.after(30, "all", "Accepted") == "SuccessfullyQueued"
    plain.ask("more")
    plain.clock.forward(110)
    full = f"Max nodepool size reached, affected nodepools: {plain.pool.name}"
    assert plain.said("more") == {"Accepted": ("False", "NodepoolSizeReached", full)}
    plain.clock.forward(20)
    assert plain.said("more")["Failed"] == ("True", "NodepoolSizeReached", full)
    assert plain.said("more")["Accepted"][0] == "False"


def test_accepted_requests_take_room(requests_of: Asked) -> None:
    # 11: two that are more than the pool used to be accepted both
    waiting = requests_of("never")
    most = waiting.pool.max_nodes
    waiting.ask("first", most - 1)
    waiting.clock.forward(30)
    assert waiting.group()["targetSize"] == most - 1
    waiting.ask("second", 2)
    assert waiting.after(140, "second", "Failed") == "NodepoolSizeReached"
    waiting.cluster.api.delete(REQUESTS, "ProvisioningRequest", "first", "default")
    waiting.clock.forward(20)
    assert waiting.group()["targetSize"] == 0
    waiting.ask("third", 2)
    assert waiting.after(30, "third", "Accepted") == "SuccessfullyQueued"


def test_the_booking_expires_while_the_pods_run_and_the_run_ends_by_the_clock(
    plain: Requests,
) -> None:
    # 2: the booking only expired where no pod ran, and nothing was revoked
    cluster = plain.cluster
    job = jobs.sample(cluster.facts, plain.pool)
    job["metadata"] |= {"name": "long", "annotations": {kueue.RUN_SECONDS: "1800"}}
    del job["metadata"]["generateName"]
    job["spec"]["template"]["spec"]["containers"][0]["args"] = ["7200s"]
    cluster.api.create(job)
    (name,) = (it.name for it in cluster.seen.requests)
    plain.provisioned(name)
    plain.clock.forward(60)
    assert cluster.phases() == ["Running"]
    plain.clock.forward(500)
    assert "BookingExpired" not in plain.said(name)
    plain.clock.forward(60)
    words = (
        "Capacity booking for the Provisioning Request has expired and the nodes are now"
        " candidates for scale down when underutilized."
    )
    assert plain.said(name)["BookingExpired"] == ("True", "BookingExpired", words)
    # Kueue ignores it, and Status takes the job's request for what it is (3).
    assert cluster.work.state == "running"
    (request,) = cluster.seen.requests
    assert (request.state, request.advice) == ("running", "")
    assert cluster.phases() == ["Running"]
    plain.clock.forward(1300)
    # Kueue gives the job up (4), and deletes the request with it.
    assert cluster.find(job)["spec"]["suspend"]
    assert cluster.work.state == "given up"
    assert "was reclaimed and is no longer available in the cluster" in cluster.work.message
    assert "maxRunDurationSeconds" in cluster.work.advice
    assert cluster.nodes() == 0


def test_a_request_of_nobody_is_revoked_when_its_run_is_over_and_deleted_a_week_later(
    plain: Requests,
) -> None:
    # 2, 12
    plain.ask("one", parameters={"maxRunDurationSeconds": "3600"})
    plain.provisioned("one")
    plain.clock.forward(3500)
    assert "CapacityRevoked" not in plain.said("one")
    assert [it.state for it in plain.cluster.seen.requests] == ["expired"]
    assert len(plain.resize_requests()) == 1
    plain.clock.forward(130)
    assert plain.resize_requests() == []  # an hour after it was provisioned
    assert plain.reason("one", "CapacityRevoked") == "CapacityRevoked"
    assert [it.state for it in plain.cluster.seen.requests] == ["ended"]
    plain.clock.forward(7 * 86_400)
    assert plain.find("one") == {}


def test_without_a_run_duration_nodes_run_for_seven_days_whatever_the_pool_says(
    requests_of: Asked,
) -> None:
    # 13
    asked = requests_of(MAX_RUN_DURATION="1d")
    asked.ask("one")
    asked.provisioned("one")
    asked.clock.forward(100)
    (node,) = asked.cluster.api.all("v1", "Node", selector=f"{LABEL}")
    end = node["metadata"]["annotations"]["node.gke.io/machine-termination-datetime"]
    assert end > node["metadata"]["creationTimestamp"][:8] + "25"


def test_the_example_jobs_ask_for_no_more_than_the_settings_allow(requests_of: Asked) -> None:
    # 13: the product's part
    asked = requests_of(MAX_RUN_DURATION="20m")
    asked.cluster.api.create(jobs.ray_job(asked.cluster.facts, asked.pool))
    (request,) = asked.cluster.api.all(REQUESTS, "ProvisioningRequest")
    assert request["spec"]["parameters"] == {
        "maxRunDurationSeconds": "1200",
        "ValidUntilSeconds": "43200",
    }


SHORT = "Specified maxRunDuration is too short. Minimum value is equal to 10 minutes."


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [("1h", "InvalidArgumentMaxRunDurationParseError", ""), ("60", "InvalidArgument", SHORT)],
)
def test_a_run_duration_that_google_does_not_take(
    plain: Requests, text: str, reason: str, words: str
) -> None:
    # 13: a word used to break the simulation
    plain.ask("one", parameters={"maxRunDurationSeconds": text})
    assert plain.after(30, "one", "Failed") == reason
    assert plain.message("one", "Failed") == words or not words
    # It is the request's own fault, so the pool does not rest.
    plain.ask("two")
    assert plain.after(30, "two", "Accepted") == "SuccessfullyQueued"


def test_a_request_that_google_does_not_queue_lets_its_pool_rest(requests_of: Asked) -> None:
    # 5, 14
    refused = requests_of("stockout")
    refused.ask("one")
    assert refused.after(30, "one", "Failed") == "QueuingInfeasibleNoCapacity"
    assert refused.message("one", "Failed") == (
        "Could not enqueue the Provisioning Request due to insufficient capacity in zone"
        " us-central1-b. Try different locations or hardware."
    )
    assert "Provisioned" not in refused.said("one")
    refused.ask("two")
    refused.clock.forward(60)
    rests = "Nodepool in backoff after failed scale-up, affected nodepools: " + refused.pool.name
    assert refused.said("two")["Accepted"] == ("False", "NodepoolInBackoff", rests)
    refused.clock.forward(70)
    assert refused.said("two")["Failed"] == ("True", "NodepoolInBackoff", rests)
    refused.clock.forward(200)  # five minutes after the failure
    refused.ask("three")
    assert refused.after(30, "three", "Failed") == "QueuingInfeasibleNoCapacity"
    refused.clock.forward(400)  # ten minutes this time
    refused.ask("four")
    assert refused.after(60, "four", "Accepted") == "NodepoolInBackoff"


def test_a_quota_is_refused_in_googles_words_with_both_their_blanks(requests_of: Asked) -> None:
    # 5, 14
    refused = requests_of("quota")
    refused.ask("one")
    refused.clock.forward(30)
    words = "Quota 'PREEMPTIBLE_NVIDIA_H200_GPUS' exceeded.  Limit: 0.0 in region us-central1."
    assert refused.said("one")["Failed"] == ("True", "QuotaExceeded", words)


@pytest.mark.parametrize(
    ("scenario", "reason", "words"),
    [
        ("never", "ResourcePoolExhausted", 'VMType: "a3-ultragpu-8g", Attachment: "nvidia-h200'),
        ("quota,never", "QuotaExceeded", "Quota 'PREEMPTIBLE_NVIDIA_H200_GPUS' exceeded.  Limit"),
    ],
)
def test_what_is_lacking_while_a_request_waits_is_told_and_is_no_failure(
    requests_of: Asked, scenario: str, reason: str, words: str
) -> None:
    # 5, 6, 7
    waiting = requests_of(scenario)
    waiting.ask("one")
    for seconds in (30, 86_400, 86_400):
        waiting.clock.forward(seconds)
        assert waiting.said("one").keys() == {"Accepted", "Provisioned"}
        assert waiting.said("one")["Provisioned"][:2] == ("False", reason)
        assert words in waiting.message("one", "Provisioned")
        assert "Expected time is indefinite" not in waiting.message("one", "Provisioned")


def test_provisioned_means_granted_and_not_that_nodes_are_ready(plain: Requests) -> None:
    # 8: it waited for all nodes of the pool
    plain.ask("one")
    plain.provisioned("one", step=5)
    nodes = plain.cluster.api.all("v1", "Node", selector=LABEL)
    assert not any(holds(node, "Ready") for node in nodes)


def test_a_resize_request_that_somebody_takes_away_fails_the_request_two_minutes_later(
    requests_of: Asked,
) -> None:
    # 6
    waiting = requests_of("never")
    waiting.ask("one")
    waiting.clock.forward(30)
    (name,) = waiting.resize_requests()
    path = f"{GROUPS}/{waiting.group()['name']}/resizeRequests/{name}/cancel"
    waiting.cluster.google("POST", path)
    waiting.clock.forward(10)
    assert "Failed" not in waiting.said("one")
    assert waiting.after(130, "one", "Failed") == "InternalErrorResizeRequestGotCancelled"
    words = "Provisioning Request failed because Resize Request got cancelled."
    assert waiting.message("one", "Failed") == words


def test_several_sets_of_pods_come_together(plain: Requests) -> None:
    # 12: two sets used to be refused
    plain.ask("one")
    sets = [{"count": count, "podTemplateRef": {"name": "t-one"}} for count in (1, 2)]
    plain.make("both", sets)
    plain.provisioned("both")
    assert plain.group()["targetSize"] == 4


def test_a_request_that_is_valid_for_a_while_fails_then(requests_of: Asked) -> None:
    # 12
    waiting = requests_of("never")
    waiting.ask("one", parameters={"ValidUntilSeconds": "3600"})
    waiting.clock.forward(3590)
    assert "Failed" not in waiting.said("one")
    assert waiting.after(20, "one", "Failed") == "WaitTimeExceeded"
    waiting.clock.forward(20)
    assert waiting.group()["targetSize"] == 0


def test_pods_run_on_the_nodes_of_their_own_request_alone(plain: Requests) -> None:
    # 15
    plain.ask("other")
    plain.provisioned("other")
    plain.clock.forward(60)
    plain.cluster.api.create(jobs.sample(plain.cluster.facts, plain.pool))
    plain.clock.forward(15)
    assert plain.cluster.pods() == []
    name = next(it.name for it in plain.cluster.seen.requests if it.name != "other")
    plain.provisioned(name)
    plain.clock.forward(60)
    (pod,) = plain.cluster.pods()
    digest = hashlib.sha256(f"default/{name}".encode()).hexdigest()[:16]
    own = f"gke-default-{name[:20]}-{digest}"
    assert pod["spec"]["nodeSelector"][LABEL] == own
    annotation = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    assert pod["metadata"]["annotations"][annotation] == "false"
    node = plain.cluster.api.find("v1", "Node", pod["spec"]["nodeName"])
    assert node is not None
    assert node["metadata"]["labels"][LABEL] == own
    assert node["metadata"]["labels"]["cloud.google.com/gke-provisioning"] == "flex-start"


UNFIT: dict[str, dict[str, Any]] = {
    "node(s) didn't match Pod's node affinity/selector": {"nodeSelector": {"team": "vision"}},
    "Insufficient cpu": {"resources": {"cpu": "225"}},
    "Insufficient memory": {"resources": {"memory": "4000Gi"}},
    # Nobody makes the claims of pods that are not there yet.
    "cannot allocate all claims, ResourceClaim not created yet": {
        "resourceClaims": [{"name": "rdma", "resourceClaimTemplateName": "aiinfra-rdma-8"}]
    },
}


@pytest.mark.parametrize("why", UNFIT)
def test_pods_that_no_node_would_run_are_not_accepted(plain: Requests, why: str) -> None:
    # 16: CPUs, memory and most labels were not looked at
    plain.ask("one", **UNFIT[why])
    reason = "ProvisioningRequestNotSchedulableInNodepool"
    assert plain.after(140, "one", "Failed") == reason
    assert plain.message("one", "Failed") == (
        "Provisioning Request's pods cannot be scheduled in the nodepool. Predicate checking"
        f" errors: {plain.pool.name} ({why})"
    )


def test_a_pod_whose_request_is_not_there_makes_no_pool_grow(plain: Requests) -> None:
    # 17
    cluster = plain.cluster
    pod = jobs.sample(cluster.facts, plain.pool)["spec"]["template"]["spec"]
    pod |= {"nodeSelector": {}, "restartPolicy": "Never"}
    pod["containers"][0]["resources"] = {}
    annotations = {"autoscaling.x-k8s.io/consume-provisioning-request": "nowhere"}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    spec = {"parallelism": 200, "completions": 200, "template": template}
    before = cluster.nodes("system")
    cluster.api.create(build("batch/v1", "Job", "lost", "default", spec=spec))
    plain.clock.forward(300)
    assert "MissingProvisioningRequest" in {it["reason"] for it in cluster.events()}
    assert cluster.nodes("system") == before
