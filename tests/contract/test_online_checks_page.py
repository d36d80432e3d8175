"""docs/reference/online-checks.md tells of each online check, and of what it asks Google."""

import re
from pathlib import Path

from provision.kinds.gke.preflight import VERSION
from provision.kinds.vms.preflight import IMAGE
from provision.preflight.table import CHECKS, SUBNETWORK
from provision.settings.choices import OnlineCheck
from provision.state.location import DEEPEST

PAGE = (Path(__file__).parents[2] / "docs/reference/online-checks.md").read_text("utf-8")


def test_the_page_has_each_check_with_its_calls_and_what_its_failure_means() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    calls = {it.name: list(it.calls) for it in (*CHECKS, IMAGE, SUBNETWORK, VERSION)}

    assert {name: re.findall(r"`([\w.]+)`", asked) for name, asked, _ in rows} == calls
    assert [name for name, _, _ in rows] == list(OnlineCheck)
    assert f"`<NAME_PREFIX>-deployment` with up to {DEEPEST} folders above it" in PAGE
