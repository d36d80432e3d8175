"""docs/reference/online-checks.md tells of each online check what it asks Google, and why."""

from pathlib import Path

from provision.preflight import check, table
from provision.settings.choices import OnlineCheck
from provision.state.location import DEEPEST

ROOT = Path(__file__).parents[2]


def test_each_check_has_its_row_in_the_order_of_their_names() -> None:
    assert list(check.rows()) == list(OnlineCheck)
    says = check.rows()[OnlineCheck.BUCKETS][1]
    assert f"`<NAME_PREFIX>-deployment` with up to {DEEPEST} folders above it" in says


def test_the_page_is_made_from_the_checks() -> None:
    kept = (ROOT / "docs/reference/online-checks.md").read_text(encoding="utf-8")
    assert kept == table.markdown(), "renew it: make docs"
