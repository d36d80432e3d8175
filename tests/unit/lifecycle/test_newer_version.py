"""What an older version of the program leaves of a newer one's."""

from typing import Any

import pytest

from provision.documents.plan import Change
from provision.lifecycle import apply, consent
from provision.state.record import Record
from tests.unit.kinds.cases import having

TEXTS: dict[str, Any] = dict.fromkeys(("cluster_id", "terraform_version", "region"), "x")


@pytest.mark.parametrize(("version", "kept"), [("99.0", {"NEW_ONE": 1}), ("0.0.1", {})])
def test_settings_of_a_newer_version_are_kept_and_those_of_an_older_one_are_not(
    version: str, kept: dict[str, int]
) -> None:
    settings = {"NEW_ONE": 1, "PROTECT": False}
    made = Record(
        kind="mig",
        project_id="my-project",
        name_prefix="np",
        zone="us-central1-a",
        tool_version=version,
        settings=settings,
        **TEXTS,
    )
    assert apply._unknown_settings(made) == kept
    assert apply._unknown_settings(None) == {}


def test_a_change_of_what_a_newer_version_made_is_asked_about() -> None:
    plan = having(change=Change.CHANGE, newer_tool="99.0")
    assert "version 99.0 of this program made it" in consent._newer(plan)
    assert consent.way([consent.Stake.NEWER], terminal=True) is consent.Way.ASKS
    assert consent.way([consent.Stake.NEWER], terminal=False) is consent.Way.REFUSES
    assert consent._newer(having(newer_tool=None)) == ""
