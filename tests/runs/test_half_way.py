"""A Destroy that stops half-way says what is left and what that costs, and is remembered."""

import re
from collections.abc import Callable

from tests.runs.conftest import Rehearsal


def test_a_destroy_that_stops_half_way_names_the_rest_and_status_blames_nobody_for_it(
    standing: Callable[..., Rehearsal],
) -> None:
    rehearsal = standing({"NETWORK_CONFIG": "new_network"})
    assert rehearsal.cloud is not None
    rehearsal.cloud.faults.add("DELETE /compute/**/subnetworks/**: refuse 403")

    ended = rehearsal.run("Destroy")

    assert ended.code == 8, ended.said
    what, why = ended.problem["what"], ended.problem["why"]
    assert what == "Destroy stopped half-way: 2 resources of the state are left"
    assert re.match(r"left: network np-net-\w+, subnetwork np-primary-subnet-\w+\nnothing", why), (
        why
    )
    assert "403" in why
    assert "run Destroy again" in ended.problem["fix"]

    status = rehearsal.run("Status")
    assert "somebody deleted it" not in status.said
    (trouble,) = status.document["status"]["trouble"]
    assert trouble["what"] == "a Destroy began and stopped half-way"

    rehearsal.cloud.faults.end()
    assert rehearsal.run("Destroy").code == 0


def test_what_is_billed_is_said_and_a_create_after_it_forgets_the_destroy(
    standing: Callable[..., Rehearsal],
) -> None:
    rehearsal = standing()
    assert rehearsal.cloud is not None
    rehearsal.cloud.faults.add("DELETE /compute/**/instanceGroupManagers/**: refuse 403")

    ended = rehearsal.run("Destroy")

    assert ended.code == 8, ended.said
    assert "billed until it is removed, for at most $" in ended.problem["why"]
    assert "/h: group np-mig" in ended.problem["why"]

    rehearsal.cloud.faults.end()
    assert rehearsal.run("Create", "--yes").code == 0
    assert rehearsal.run("Status").code == 0
    assert rehearsal.run("Destroy").code == 0
