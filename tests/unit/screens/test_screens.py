"""What people see: every screen of the most used stories, on 80 and on 100 columns."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from provision.documents.connection import ClusterConnection, VmConnection, VmsConnection
from provision.documents.cost import Amount
from provision.documents.plan import Candidate, Change, Loss, Quota, SettingChange
from provision.kinds import connection
from provision.screens import amounts
from provision.screens import plan as plan_screen
from provision.screens.layout import Line
from tests.conftest import Golden
from tests.unit.screens import stories

GOLDENS = Path(__file__).parents[2] / "golden" / "screens"
WIDTHS = pytest.mark.parametrize("width", [80, 100])
_COPIED = re.compile(r"gcloud |kubectl |https?://|gs://")

_STATE: dict[str, Any] = {
    "state": "gs://aiinfra-terraform-my-project/my-cluster-deployment",
    "terraform_state": "gs://aiinfra-terraform-my-project/my-cluster-deployment/terraform/state",
    "billing_label": "aiinfra-cluster=c6cdf9b25eb7",
    "dashboard": None,
}


def _text(lines: Iterable[Line], width: int) -> str:
    shown = list(lines)
    for line in shown:
        assert len(line.text) <= width or _COPIED.search(line.text), line
        assert line.text == line.text.rstrip()
    return "\n".join(line.text for line in shown) + "\n"


@WIDTHS
@pytest.mark.parametrize("story", stories.STORIES)
def test_a_first_create_says_what_is_made_where_how_for_how_much_and_until_when(
    golden: Golden, story: str, width: int
) -> None:
    plan, cost = stories.first(story)
    shown = _text(plan_screen.lines(plan, cost, width), width)
    golden.check(GOLDENS / f"create-{story}-{width}.txt", shown)
    assert shown.count("\n") <= (20 if width == 100 else 24)


def test_the_end_of_nodes_of_a_queue_is_also_that_of_jobs_which_only_kubectl_knows() -> None:
    plan, cost = stories.first("gke-a3-ultra-flex-queued")
    machines = [
        it if it.is_system else dataclasses.replace(it, max_run_seconds=3600)
        for it in plan.topology.machines
    ]
    topology = dataclasses.replace(plan.topology, machines=tuple(machines))
    shown = _text(plan_screen.lines(dataclasses.replace(plan, topology=topology), cost, 100), 100)

    told = (
        "each GPU node 1 hour after it came (up to 7 days for jobs that you submit with kubectl);"
    )
    assert told in " ".join(shown.split())


@WIDTHS
def test_a_choice_of_zones_is_a_table_in_the_order_in_which_they_are_tried(
    golden: Golden, width: int
) -> None:
    plan, cost = stories.first("env")
    quota = Quota(metric="NVIDIA_A100_GPUS", limit=16, used=4, needed=2)
    many = [Candidate(zone=f"us-east{n}-b", per_hour=Decimal("9.1")) for n in range(1, 7)]
    candidates = (
        Candidate(zone="us-central1-a", per_hour=Decimal("7.82"), quotas=(quota,)),
        Candidate(zone="europe-west4-a", remarks=("gs://my-data is in us-central1",)),
        *many,
        Candidate(zone="asia-south1-b", against="the quota NVIDIA_A100_GPUS is too small"),
    )
    shown = _text(
        plan_screen.lines(dataclasses.replace(plan, candidates=candidates), cost, width), width
    )
    golden.check(GOLDENS / f"zones-{width}.txt", shown)
    refused = dataclasses.replace(plan, candidates=(candidates[0], candidates[-1]))
    assert "not tried: the quota" in _text(plan_screen.lines(refused, cost, width), width)
    both = [dataclasses.replace(candidates[0], way=way) for way in ("flex_start", "spot")]
    ways = _text(
        plan_screen.lines(dataclasses.replace(plan, candidates=tuple(both)), cost, width), width
    )
    assert "us-central1-a  flex start  $7.82/h" in ways
    assert "us-central1-a  spot        $7.82/h" in ways
    advised = dataclasses.replace(candidates[0], obtainability=0.9, uptime_seconds=3600)
    told = dataclasses.replace(plan, candidates=(advised, candidates[-1]))
    shown = _text(plan_screen.lines(told, cost, width), width)
    assert "Google: 90% likely, most run 1 h" in " ".join(shown.split())


@WIDTHS
@pytest.mark.parametrize(
    ("story", "settings"),
    [
        ("labels", {"LABELS": '{ team = "research" }'}),
        ("vm-type", {"LABELS": '{ team = "research" }', "VM_TYPE": "a2-highgpu-1g"}),
    ],
)
def test_a_change_says_what_changes_what_stays_and_what_new_vms_get(
    golden: Golden, story: str, settings: Mapping[str, str], width: int
) -> None:
    plan, cost = stories.change("env", 1, **settings)
    shown = _text(plan_screen.lines(plan, cost, width), width)
    golden.check(GOLDENS / f"change-{story}-{width}.txt", shown)


@pytest.mark.parametrize(
    ("example", "settings", "words"),
    [
        ("env", {"METADATA": "a=b"}, "run on, and get the change without a restart, but for what"),
        ("env", {"DISK_SIZE_GB": "500"}, "stay as they are, and are billed so, until they"),
        # Google changes nothing of these.
        ("flex-start-h100", {"LABELS": "a=b"}, "stay as they are until they end"),
        ("env", {"ENABLE_FLEX_START": "yes"}, "stay as they are until they are deleted"),
    ],
)
def test_vms_that_stay_are_told_of_as_google_treats_them(
    example: str, settings: Mapping[str, str], words: str
) -> None:
    plan, _ = stories.change(example, 2, **settings)
    assert f"2 VMs that run: {words}" in _text(plan_screen.lines(plan, None, 100), 100)


@WIDTHS
def test_a_move_says_what_ends_by_the_machines(golden: Golden, width: int) -> None:
    plan, cost = stories.change("env", 1, ZONE="us-central1-b")
    moved = Loss(
        address="module.gpu_mig.google_compute_instance_group_manager.gpu",
        noun="group",
        name="my-cluster-mig",
        words="1 VM in us-central1-a ends, 1 begins in us-central1-b",
        machines=1,
    )
    plan = dataclasses.replace(plan, losses=(moved, *plan.losses), kept=None)
    golden.check(
        GOLDENS / f"change-zone-{width}.txt", _text(plan_screen.lines(plan, cost, width), width)
    )


@WIDTHS
@pytest.mark.parametrize("story", ["flex-start-h100", "gke-t4-a100-queued", "ray-gcs-filestore"])
def test_a_destroy_says_what_ends_and_what_holds_data(
    golden: Golden, story: str, width: int
) -> None:
    found, cost = stories.ending(story)
    shown = _text(plan_screen.of_destroy(found, cost, width), width)
    golden.check(GOLDENS / f"destroy-{story}-{width}.txt", shown)


def _vm(number: int) -> VmConnection:
    name = f"my-cluster-vm-{number:04}"
    ssh = f"gcloud compute ssh {name} --project my-project --zone us-central1-a"
    none: dict[str, Any] = dict.fromkeys(("internal_ip", "external_ip", "notebook"))
    tunnel = f"{ssh} -- -L 8080:localhost:8080"
    known: dict[str, Any] = {"name": name, "rank": number, "ssh": ssh, "notebook_tunnel": tunnel}
    return VmConnection(status="RUNNING", **known, **none)


@WIDTHS
@pytest.mark.parametrize("count", [1, 200])
def test_the_end_of_a_create_of_vms_says_how_to_connect_and_what_it_costs(
    golden: Golden, count: int, width: int
) -> None:
    _, cost = stories.first("env")
    dashboard = "https://console.cloud.google.com/monitoring/dashboards/builder/454e5f61"
    vms = tuple(_vm(number) for number in range(count))
    ssds = {"local_ssd_path": "/mnt/localssd", "local_ssd_gb": 6000} if count > 1 else {}
    found = VmsConnection(**_STATE | {"dashboard": dashboard} | ssds, vms=vms, ray=None)
    rows = connection.rows(found, "gs://b/my-cluster-deployment/logs/20261122T1-create.log")
    shown = _text(plan_screen.ready(rows, width, seconds=271, amount=cost.most), width)
    golden.check(GOLDENS / f"ready-{count}-vms-{width}.txt", shown)
    assert shown.count("\n") <= 40 - 20


@WIDTHS
def test_the_end_of_a_create_of_a_ray_cluster_says_how_to_see_its_dashboard(
    golden: Golden, width: int
) -> None:
    _, cost = stories.first("ray-gcs-filestore")
    vms = tuple(_vm(number) for number in range(4))
    found = VmsConnection(**_STATE, vms=vms, ray=connection.ray(vms[0].ssh))
    shown = _text(
        plan_screen.ready(connection.rows(found), width, seconds=271, amount=cost.most), width
    )
    golden.check(GOLDENS / f"ready-ray-{width}.txt", shown)


@WIDTHS
@pytest.mark.parametrize("is_ready", [True, False])
def test_the_end_of_a_create_of_gke_says_how_to_connect(
    golden: Golden,
    is_ready: bool,  # noqa: FBT001 - a parameter
    width: int,
) -> None:
    _, cost = stories.first("gke-a3-ultra-flex-queued")
    credentials = "gcloud container clusters get-credentials ultra-queue-gke --location us-central1"
    jobs = {"sample.yaml": "gs://b/ultra-queue-deployment/jobs/sample.yaml"} if is_ready else {}
    rows = connection.rows(
        ClusterConnection(
            **_STATE,
            cluster="ultra-queue-gke",
            endpoint="https://gke-1.gke.goog",
            get_credentials=f"{credentials} --project my-project",
            node_pools=(),
            jobs=jobs,
        )
    )
    remark = "No GPU node is asked for, and none costs anything, until a job wants one."
    seconds = 710 if is_ready else None
    shown = _text(
        plan_screen.ready(rows, width, seconds=seconds, remark=remark, amount=cost.now), width
    )
    golden.check(GOLDENS / f"ready-gke{'' if is_ready else '-in-part'}-{width}.txt", shown)


def test_what_changes_nothing_says_so_and_counts_older_vms() -> None:
    plan = dataclasses.replace(stories.first("env")[0], change=Change.NOTHING)
    assert plan_screen.summary(plan).startswith("No changes: ")
    asked = (SettingChange(setting="KUEUE_QUEUES", words="unset -> team-a:8"),)
    beside = plan_screen.summary(dataclasses.replace(plan, settings=asked))
    assert "which makes nothing of what KUEUE_QUEUES asks for" in beside
    assert "2 VMs are older" in plan_screen.summary(plan, older=2)
    assert "Plan --full" not in _text(plan_screen.lines(plan, None, 100), 100)


@pytest.mark.parametrize(
    ("hour", "how", "words"),
    [
        ("7.8175", {}, "$7.82/h, $188/day"),
        ("7.8175", {"is_estimate": True}, "≈ $7.82/h, $188/day"),
        ("7.8175", {"unknown": ("disks",)}, "at least $7.82/h, $188/day"),
        ("0", {"unknown": ("machines",)}, "unknown"),
        ("0", {}, "nothing"),
        ("1640.4", {}, "$1,640/h, $39,370/day"),
    ],
)
def test_a_sum_is_marked_where_it_is_an_estimate_or_a_part_is_unknown(
    hour: str, how: dict[str, Any], words: str
) -> None:
    usual: dict[str, Any] = {"unknown": (), "is_estimate": False}
    amount = Amount(per_hour=Decimal(hour), per_day=24 * Decimal(hour), **usual | how)
    assert amounts.per_hour_and_day(amount) == words


def test_an_old_price_says_that_it_is_an_estimate_why_and_what_tells_the_new_one() -> None:
    plan, cost = stories.first("flex-start-h100")
    why = "new price since Nov 2026; PRICES=live asks"
    machines, *others = cost.parts
    old = dataclasses.replace(machines, is_estimate=True, outdated=why)
    shown = _text(
        plan_screen.lines(plan, dataclasses.replace(cost, parts=(old, *others)), 100), 100
    )
    assert "≈ $76.64/h" in shown
    assert f"estimate   {old.name}: new price since" in shown
    assert "PRICES=live" in shown


def test_parts_whose_price_is_unknown_are_named_and_nothing_is_said_without_prices() -> None:
    plan, cost = stories.first("env")
    amount = dataclasses.replace(cost.now, unknown=("1 x a9-huge, on demand",))
    cost = dataclasses.replace(cost, now=amount, most=amount)
    shown = _text(plan_screen.lines(plan, cost, 100), 100)
    assert "costs      at least $7.82/h" in shown
    assert "the price of 1 x a9-huge, on demand" in shown
    assert "$" not in _text(plan_screen.lines(plan, None, 100), 100)


def test_how_long_something_lasts_is_said_exactly_and_a_time_that_passed_like_a_clock() -> None:
    lasts = {604800: "7 days", 86400: "1 day", 43200: "12 hours", 5400: "90 minutes"}
    for seconds, words in (lasts | {61: "61 seconds"}).items():
        assert amounts.span(seconds) == words
    assert [amounts.clock(it) for it in (5, 271, 3871)] == ["0:05", "4:31", "1:04:31"]
