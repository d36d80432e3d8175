"""The cost in the report, the limit on it, unreadable prices, and calendar mode's advice."""

import dataclasses
import datetime as dt
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision import cli
from provision.catalogue import prices
from provision.context import Cloud, Context
from provision.cost import estimate
from provision.errors import Code, ProvisionError, SettingsError, StateError
from provision.google.api import GoogleApiError
from provision.kinds import registry
from provision.lifecycle import calendar, pricing
from provision.report import Report
from provision.settings.model import Settings
from provision.time.clock import Clock
from tests.unit.conftest import MANDATORY
from tests.unit.memory_folder import MemoryFolder


@pytest.fixture
def validated(capsys: pytest.CaptureFixture[str]) -> Any:
    """Validates settings offline; returns the exit code and the document."""

    def run(**environ: str) -> tuple[int, dict[str, Any]]:
        code = cli.main(["Validate", "--offline", "--output", "json"], MANDATORY | environ)
        return code, json.loads(capsys.readouterr().out)

    return run


def _codes(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(it["code"], it.get("setting", "")) for it in document["problems"]]


def test_the_cost_is_in_the_document_unless_nobody_wants_prices(validated: Any) -> None:
    code, document = validated()
    assert code == 0
    assert document["cost"]["prices"] == "list"
    assert document["cost"]["now"]["per_hour"] == pytest.approx(7.817523)
    # Offline, Google's own prices are not asked for.
    assert validated(PRICES="live")[1]["cost"] == document["cost"]
    assert "cost" not in validated(PRICES="off")[1]


def test_what_costs_more_than_the_limit_is_refused_with_its_cost(validated: Any) -> None:
    assert validated(MAX_HOURLY_COST="7.82")[0] == 0
    code, document = validated(MAX_HOURLY_COST="7.81")
    assert code == 2
    assert document["cost"]["most"]["per_hour"] > 7.81
    assert _codes(document) == [("cost-limit", "MAX_HOURLY_COST")]
    (problem,) = document["problems"]
    assert "$7.82 per hour, more than MAX_HOURLY_COST=7.81" in problem["what"]
    assert "$7.35 of it for 1 x a2-highgpu-2g, on demand" in problem["why"]
    assert "MAX_HOURLY_COST=8" in problem["fix"]
    # What can come counts: nothing runs yet.
    queued = {"ENABLE_FLEX_START": "yes", "VM_TYPE": "a3-highgpu-8g", "MAX_HOURLY_COST": "10"}
    assert validated(**queued)[0] == 2


def test_with_a_limit_an_unknown_price_is_a_problem_and_each_is_named(validated: Any) -> None:
    shares = "/mnt/x:ENTERPRISE:1024,/mnt/y:ENTERPRISE:1024"
    unknown = {"ENABLE_SPOT": "yes", "NFS_FILESHARE_LIST": shares}
    assert validated(**unknown)[0] == 0
    code, document = validated(**unknown, MAX_HOURLY_COST="1")
    assert code == 2
    assert [code for code, _ in _codes(document)] == [
        "cost-limit", "price-unknown", "price-unknown"
    ]  # fmt: skip
    named = " ".join(problem["what"] for problem in document["problems"])
    assert "/mnt/x" in named
    assert "/mnt/y" in named
    assert "PRICES=live" in document["problems"][1]["fix"]


def test_a_limit_of_the_whole_ends_vms_whose_end_was_open(validated: Any) -> None:
    vms = {"VM_TYPE": "a3-highgpu-8g", "ENABLE_FLEX_START": "yes", "MAX_COST": "500"}
    code, document = validated(**vms)
    assert code == 0
    seconds = document["settings"]["MAX_RUN_DURATION"]
    assert seconds == 12 * 3600
    assert 460 < document["cost"]["at_most_in_all"] <= 500
    (note,) = [it for it in document["notes"] if it["setting"] == "MAX_COST"]
    assert "delete each VM 12 h" in note["what"]
    # What the note says to write changes nothing.
    again = validated(**vms, MAX_RUN_DURATION=note["alternatives"]["settings"]["MAX_RUN_DURATION"])
    assert (again[0], again[1]["cost"]) == (0, document["cost"])
    assert "MAX_COST" not in {it["setting"] for it in again[1]["notes"]}
    # An end that nobody asked for is no longer than what Google allows.
    assert validated(MAX_COST="1000000")[1]["settings"]["MAX_RUN_DURATION"] == 7 * 86400


GKE = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-8"}


@pytest.mark.parametrize(
    ("settings", "what", "fix"),
    [
        ({"VM_TYPE": "a3-highgpu-8g", "MAX_RUN_DURATION": "2d"}, "up to $4,270.12 in all", "5h"),
        ({"VM_TYPE": "a3-highgpu-8g", "INSTANCE_COUNT": "64"}, "Nothing ends", ""),
        (GKE, "Nothing ends", "d"),
        (GKE | {"ENABLE_QUEUED_PROVISIONING": "yes", "GKE_MAX_NODE_COUNT": "9",
                "GKE_MIN_NODE_COUNT": "0"}, "in all", ""),
        ({"VM_TYPE": "a3-ultragpu-8g", "RESERVATION_NAME": "r"}, "costs is unknown", ""),
    ],
)  # fmt: skip
def test_what_costs_more_in_all_is_refused_with_the_longest_time_that_fits(
    validated: Any, settings: dict[str, str], what: str, fix: str
) -> None:
    code, document = validated(**settings, MAX_COST="500")
    (problem,) = document["problems"]
    assert (code, problem["setting"]) == (2, "MAX_COST")
    assert what in problem["what"]
    written = problem["alternatives"]["settings"]
    assert bool(written.get("MAX_RUN_DURATION")) is bool(fix)
    if fix:
        assert written["MAX_RUN_DURATION"].endswith(fix[-1]) or fix == "5h"
        assert validated(**settings | written, MAX_COST="500")[0] == 0


def test_what_is_billed_beside_the_machines_counts_as_long_as_they_run(validated: Any) -> None:
    vm = {"VM_TYPE": "g2-standard-8", "MAX_RUN_DURATION": "10h", "MAX_COST": "20"}
    assert validated(**vm)[0] == 0
    code, document = validated(**vm, NFS_FILESHARE_LIST="/mnt/x:BASIC_SSD")
    assert (code, _codes(document)) == (2, [("cost-limit", "MAX_COST")])


def test_both_limits_tell_of_an_unknown_price_once(validated: Any) -> None:
    lines = {"NFS_FILESHARE_LIST": "/mnt/x:ENTERPRISE:1024", "MAX_RUN_DURATION": "1h"}
    code, document = validated(**lines, MAX_COST="500", MAX_HOURLY_COST="50")
    assert (code, _codes(document)) == (2, [("price-unknown", "MAX_HOURLY_COST")])
    code, document = validated(MAX_COST="500", PRICES="off")
    assert (code, _codes(document)) == (2, [("conflicting-settings", "MAX_COST")])


def test_validate_says_what_it_costs(capsys: pytest.CaptureFixture[str]) -> None:
    ends = {"MAX_RUN_DURATION": "2d", "NFS_FILESHARE_LIST": "/mnt/x:ENTERPRISE:1024"}
    assert cli.main(["Validate", "--offline"], MANDATORY | ends) == 0
    said = capsys.readouterr().out
    assert "costs      at least $7.82/h, $188/day; at most $375 until they end" in said
    assert "unknown    the price of Filestore ENTERPRISE" in said
    cli.main(["Validate", "--offline"], MANDATORY | {"PRICES": "off"})
    assert "costs" not in capsys.readouterr().out


def test_a_spot_vm_with_its_address_is_within_a_limit(validated: Any) -> None:
    spot = {"VM_TYPE": "g2-standard-8", "ENABLE_SPOT": "yes", "MAX_HOURLY_COST": "2"}
    code, document = validated(**spot)
    assert (code, document["cost"]["most"]["unknown"]) == (0, [])


def test_a_limit_is_an_amount_in_dollars_and_without_prices_contradicts_itself(
    validated: Any,
) -> None:
    for text in ("0", "-1", "a lot", "1e3", "1,000", "", "100 EUR"):
        code, document = validated(MAX_HOURLY_COST=text)
        assert code == (2 if text else 0)
        assert [name for _, name in _codes(document)] == (["MAX_HOURLY_COST"] if text else [])
    code, document = validated(MAX_HOURLY_COST="$100", PRICES="off")
    assert code == 2
    assert _codes(document) == [("conflicting-settings", "MAX_HOURLY_COST")]


class Console:
    """Hears nothing."""

    def progress(self, text: str) -> None: ...

    def notes(self, notes: object, *, but: object) -> None: ...


def _context(**settings: str) -> Context:
    asked = {name.lower(): text for name, text in (MANDATORY | settings).items()}
    return Context(
        settings=Settings(asked),
        environ={},
        clock=Clock(0),
        console=cast("Any", Console()),
        report=Report(),
    )


def _cloud(error: ProvisionError) -> Cloud:
    def fail(*_: object, **__: object) -> None:
        raise error

    return cast("Cloud", SimpleNamespace(price_book=SimpleNamespace(prices=fail, keep=fail)))


@pytest.mark.parametrize(
    "error",
    [
        GoogleApiError(403, "Cloud Billing API has not been used in project 1 before", "https://x"),
        StateError("Cloud Storage failed to read prices.json", why="503"),
    ],
)
def test_prices_that_cannot_be_read_or_kept_are_a_note_and_the_list_counts(
    error: ProvisionError,
) -> None:
    context = _context(PRICES="live")
    listed = prices.listed().by(context.today)
    assert pricing.current(context, _cloud(error), bucket=True) == listed
    pricing.keep(context, _cloud(error))
    read, kept = context.report.notes
    assert (read.setting, kept.setting) == ("PRICES", "PRICES")
    assert {read.code, kept.code} == {Code.NOT_CHECKED}
    assert error.problems[0].what in read.why
    assert read.fix


@pytest.mark.parametrize(
    ("today", "changed"),
    [(dt.date(2026, 10, 31), False), (dt.date(2026, 11, 1), True), (dt.date(2027, 2, 1), True)],
)
def test_a_price_is_an_estimate_from_the_month_on_for_which_google_announced_another(
    today: dt.date, *, changed: bool
) -> None:
    flex = {"VM_TYPE": "g4-standard-48", "ENABLE_FLEX_START": "yes", "ZONE": "us-west1-a"}
    context = dataclasses.replace(_context(**flex), today=today)
    spec = registry.of(context.settings).spec(context.settings)

    pricing.tell(context, spec, pricing.offline(context))

    cost = context.report.cost
    assert cost is not None
    assert cost.most.is_estimate is changed
    machines, *others = cost.parts
    assert (machines.is_estimate, machines.outdated is not None) == (changed, changed)
    assert not any(it.is_estimate or it.outdated for it in others)
    if changed:
        assert "new price since Nov 2026; PRICES=live asks" in str(machines.outdated)


@pytest.mark.parametrize(
    ("hours", "most", "left"),
    [(0, 36, 240), (1, 36, 210), (1, 100, 240), (5, 36, None)],
    ids=["nothing", "a-part", "what-may-be-too-much-for-another-way", "too-much"],
)
def test_machines_that_come_a_second_time_have_what_max_cost_leaves(
    hours: int, most: int, left: int | None
) -> None:
    usual = _context(MAX_COST=str(most), INSTANCE_COUNT="1", MAX_RUN_DURATION="4h")
    context = dataclasses.replace(usual, clock=Clock())
    since = dt.datetime.now(dt.UTC) - dt.timedelta(hours=hours)
    own = {"version": "1", "who": "a@b", "ended": "done", "action": "Create", "hourly": "8"}
    line = own | {"at": since.isoformat()}
    folder = MemoryFolder({"history.json": json.dumps({"lines": [line]})})
    cloud = cast("Cloud", SimpleNamespace(folder=folder))
    spec = registry.of(context.settings).spec(context.settings)
    lost = cast("Cloud", SimpleNamespace(folder=MemoryFolder()))
    with pytest.raises(SettingsError, match="can't be kept by machines that come again"):
        pricing.of_the_rest(context, lost, spec)
    if left is None:
        with pytest.raises(SettingsError, match="leaves too little") as refused:
            pricing.of_the_rest(context, cloud, spec)
        assert "has cost at most $40.0" in refused.value.problems[0].why
        return
    found = pricing.of_the_rest(context, cloud, spec)
    assert found.max_run_duration == left * 60
    assert (found is context.settings) == (hours == 0)
    again = registry.of(found).spec(found)
    rest, _ = estimate.in_all(again, estimate.of(again, prices.listed().by(context.today)))
    assert rest is not None
    assert rest + 8 * hours <= most
    # By it, the ways and zones are judged that come after the first.
    assert found.max_cost == pytest.approx(most - 8 * hours, abs=0.1)


def test_google_is_asked_for_prices_only_where_the_settings_say_so() -> None:
    cloud = _cloud(StateError("asked"))
    listed = prices.listed().by(_context().today)
    assert pricing.current(_context(), cloud, bucket=True) == listed
    assert pricing.current(_context(PRICES="off"), cloud, bucket=True) is None
    context = _context()
    pricing.keep(context, cloud)
    assert context.report.notes == []


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(ANY, ANY)
def test_whatever_google_answers_is_advice_or_none(one: object, other: object) -> None:
    for recommended in (one, {"recommendationsPerSpec": {"vms": other}}):
        found = calendar.advised({"recommendations": [recommended]})
        assert found is None or all(found)


def test_the_first_recommendation_with_a_place_and_a_time_counts() -> None:
    there = {"location": "zones/us-east4-b", "startTime": "2026-12-24", "endTime": "2026-12-31"}
    specs = [{"vms": {"otherLocations": {}}}, {"vms": there}]
    answer = {"recommendations": [{"recommendationsPerSpec": it} for it in specs]}
    assert calendar.advised(answer) == ("us-east4-b", "2026-12-24", "2026-12-31")
