"""The time that a VM's start-up may take, and the time that Create waits for it."""

import re
from pathlib import Path

from provision.kinds.vms import startup

_SCRIPT = Path(__file__).parents[2] / "terraform/modules/startup/startup.sh"
_BOOT = 300
"""Seconds that a VM may take until the script begins: firmware, kernel, network, guest agent."""


def _together() -> int:
    """What the script gives all steps before the command together, in seconds."""
    found = re.search(r"^readonly START_UP=(\d+)$", _SCRIPT.read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def test_create_waits_for_as_long_as_steps_may_take_together() -> None:
    assert _together() + _BOOT <= startup.AT_MOST


def test_no_step_has_a_limit_that_it_can_never_use() -> None:
    listed = re.search(r"^readonly STEPS=\((.*?)^\)", _SCRIPT.read_text(), re.MULTILINE | re.DOTALL)
    assert listed
    limits = re.findall(r"\d+", listed[1])
    assert limits
    assert all(int(limit) <= _together() for limit in limits)
