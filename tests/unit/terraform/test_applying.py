from typing import Any

import pytest

from provision.documents.timeline import StageName, StageState
from provision.errors import Interrupted, TerraformError
from provision.terraform import applying
from provision.terraform.applying import Applying
from provision.time.clock import Clock
from provision.time.stages import Progress

# As Terraform 1.11 prints them with colours, in parts that end anywhere.
SAID = (
    b"\x1b[0m\x1b[1mmodule.network.google_compute_network.main: Creating...\x1b[0m\x1b[0m\n"
    b'google_compute_subnetwork.gpu["a: b"]: Creating...\n'
    b"google_compute_instance_template.gpu (deposed object 1a2b): Destroying... [id=x]\n"
    b'google_compute_subnetwork.gpu["a: b"]: Still creating... [00m10s elapsed]\n'
    b'google_compute_subnetwork.gpu["a: b"]: Creation complete after 12s [id=projects/p]\n'
    b"module.network.google_compute_network.main: Creation complete after 20s [id=projects/p]\n"
    b"google_compute_instance_template.gpu (deposed object 1a2b): Destruction complete after 2s\n"
    b"google_container_cluster.main: Modifying... [id=projects/p]\n"
    b"google_container_cluster.main: Modifications complete after 1m2s [id=projects/p]\n"
    b"\n"
    b"Apply complete! Resources: 2 added, 1 changed, 1 destroyed.\n"
)
NOTHING = ["no-op"]


def _plan(*changes: tuple[str, list[str]]) -> dict[str, Any]:
    return {
        "resource_changes": [
            {"type": type_, "change": {"actions": actions}} for type_, actions in changes
        ]
    }


PLAN = _plan(
    ("google_compute_network", ["create"]),
    ("google_compute_subnetwork", ["create"]),
    ("google_compute_instance_template", ["delete"]),
    ("google_container_cluster", ["update"]),
    ("google_compute_firewall", NOTHING),
)


def _ended(progress: Progress) -> list[tuple[str, str, str | None]]:
    return [(it.name, it.state, it.words) for it in progress.stages.timeline]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_parts_that_people_know_are_stages_inside_of_the_whole(size: int) -> None:
    progress = Progress(Clock(), lambda _: None)
    with Applying(progress, applying.work(PLAN)) as stages:
        for start in range(0, len(SAID), size):
            stages.feed(SAID[start : start + size])
    assert _ended(progress) == [
        (StageName.TERRAFORM, StageState.DONE, "4 of 4"),
        (StageName.NETWORKS, StageState.DONE, "2 of 2"),
        (StageName.CLUSTER, StageState.DONE, "1 of 1"),
    ]


def test_a_replacement_is_two_pieces_of_work() -> None:
    both = ("google_compute_instance_group_manager", ["delete", "create"])
    assert applying.work(_plan(both)) == {StageName.TERRAFORM: 2}


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Interrupted(2, "Interrupted"), StageState.INTERRUPTED),
        (TerraformError("It failed"), StageState.FAILED),
    ],
)
def test_what_is_not_done_ends_as_terraform_did(error: Exception, state: StageState) -> None:
    progress = Progress(Clock(), lambda _: None)
    stages = Applying(progress, applying.work(PLAN)).__enter__()
    stages.feed(SAID.partition(b"Still")[0])
    stages.__exit__(type(error), error, None)
    assert _ended(progress) == [
        (StageName.TERRAFORM, state, "0 of 4"),
        (StageName.NETWORKS, state, "0 of 2"),
    ]


def test_a_plan_without_changes_is_no_stage() -> None:
    progress = Progress(Clock(), lambda _: None)
    with Applying(progress, applying.work(_plan(("google_compute_network", NOTHING)))):
        pass
    assert _ended(progress) == []
