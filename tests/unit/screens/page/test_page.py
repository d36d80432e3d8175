"""The report's page: whole, safe to send, and the same for those who see, hear or print it."""

import dataclasses
import re
from decimal import Decimal
from pathlib import Path

import pytest

from provision.documents.plan import Change, Loss
from provision.documents.timeline import StageState
from provision.errors import Problem
from provision.screens.page import html, page
from provision.settings.masking import Veil
from tests import pages
from tests.conftest import Golden
from tests.unit.screens.page.reading import Outline, Reader

GOLDENS = Path(__file__).parents[3] / "golden" / "report"
STYLE = Path(__file__).parents[4] / "provision" / "screens" / "page" / "page.css"
LOADING = frozenset({"script", "img", "iframe", "object", "embed", "audio", "video", "source", "a"})
HOSTILE = "<script>alert('x')</script>\"&\x00]]>"


@pytest.mark.parametrize("action", ["Plan", "Create"])
@pytest.mark.parametrize("name", pages.NAMES)
def test_a_page_is_well_formed_and_asks_nobody_for_more(name: str, action: str) -> None:
    text = page(pages.contents(name, action))
    found = Reader(text)
    assert not LOADING & {tag for tag, _ in found.elements}
    for tag, attributes in found.elements:
        assert not {"src", "srcset", "action", "onclick", "onload"} & attributes.keys(), tag
        assert attributes.get("href") in {None, "data:,"}
    assert not re.search(r"@import|url\(", text)
    policies = [it["content"] for it in found.of("meta") if "http-equiv" in it]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


@pytest.mark.parametrize("name", pages.NAMES)
def test_a_drawing_has_a_title_a_description_and_tables_that_say_the_same(name: str) -> None:
    it = pages.contents(name)
    found = Reader(page(it))
    identities = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    for drawing in found.of("svg"):
        assert drawing["role"] == "img"
        assert set((drawing["aria-labelledby"] or "").split()) <= set(identities)
    cells = [text for tag, text in found.texts if tag in {"td", "th"}]
    for pool in it.topology.machines:
        assert pool.name in cells
        assert pool.zone in cells
    for door in it.topology.doors:
        assert html.titled(door.name) in cells


def test_a_value_is_never_markup_wherever_it_stands() -> None:
    it = pages.contents("env.list", "Create")
    problem = Problem(setting=HOSTILE, what=HOSTILE, why=HOSTILE, fix=HOSTILE)
    loss = Loss(address="", noun=HOSTILE, name=HOSTILE, words=HOSTILE)
    assert it.plan is not None
    topology = dataclasses.replace(
        it.topology,
        name=HOSTILE,
        machines=tuple(
            dataclasses.replace(pool, name=HOSTILE, machine_type=HOSTILE, zone=HOSTILE)
            for pool in it.topology.machines
        ),
    )
    text = page(
        dataclasses.replace(
            it,
            topology=topology,
            problems=[problem],
            notes=[problem],
            plan=dataclasses.replace(it.plan, losses=(loss,)),
            connection={HOSTILE: HOSTILE},
            settings={HOSTILE: HOSTILE},
        )
    )
    found = Reader(text)
    assert found.of("script") == []
    assert "\x00" not in text
    assert found.text.count("<script>alert('x')</script>\"&\\x00]]>") >= 10


def test_what_looks_like_a_credential_or_is_known_as_one_is_hidden() -> None:
    veil = Veil()
    veil.learn(["train --password sesame-open-1234"], [{"api_token": "correct&horse<battery"}])
    hidden = "correct&horse<battery sesame-open-1234 ghp_0123456789abcdefghij"
    it = pages.contents("env.list", "Create", connection={"shell": hidden})
    it = dataclasses.replace(it, notes=[Problem(what=hidden, why=hidden, fix=hidden)])
    found = Reader(page(it, veil))
    for secret in ("horse", "sesame", "ghp_"):
        assert secret not in found.text
    assert "*** *** ***" in found.text


def test_a_run_that_failed_says_so_first_and_shows_how_far_it_came() -> None:
    problem = Problem(what="in us-central1-a are none", fix="ZONE=us-central1-b")
    it = pages.contents(
        "env.list", "Create", problems=[problem], timeline=pages.timeline(StageState.FAILED)
    )
    text = Reader(page(it)).text
    assert "Create did not get to its end. In us-central1-a are none" in text
    assert "Fix: ZONE=us-central1-b" in text
    assert "Ready" not in text
    assert "Ready" in Reader(page(pages.contents("env.list", "Create"))).text


def test_what_is_lost_stands_before_the_drawing_and_a_plan_of_nothing_says_so() -> None:
    it = pages.contents("env.list")
    loss = Loss(address="a", noun="group", name="np-mig", words="2 VMs end")
    assert it.plan is not None
    lossy = dataclasses.replace(it.plan, losses=(loss,))
    text = Reader(page(dataclasses.replace(it, plan=lossy))).text
    assert 0 < text.index("2 VMs end") < text.index("What it consists of")
    nothing = dataclasses.replace(it.plan, change=Change.NOTHING, counts=())
    text = Reader(page(dataclasses.replace(it, plan=nothing))).text
    assert "What exists is what the settings describe." in text
    assert "this is what Create would do" not in text


def test_a_price_that_is_not_known_is_no_zero() -> None:
    it = pages.contents("env.list")
    assert it.cost is not None
    first = it.cost.parts[0]
    parts = (dataclasses.replace(first, now=None, most=None), *it.cost.parts[1:])
    now = dataclasses.replace(it.cost.now, unknown=(first.name,), per_hour=Decimal("0.5"))
    cost = dataclasses.replace(it.cost, parts=parts, now=now, most=now)
    text = Reader(page(dataclasses.replace(it, cost=cost))).text
    assert "unknown" in text
    assert "at least $0.50/h" in text
    assert f"as the price is not known: {first.name}" in text


def test_a_large_cluster_stays_a_small_page() -> None:
    it = pages.contents("gke-a3-mega.env.list")
    pool = dataclasses.replace(it.topology.machines[0], first=0, most=1000)
    many = tuple(dataclasses.replace(pool, name=f"pool-{number}") for number in range(50))
    topology = dataclasses.replace(it.topology, machines=many)
    text = page(dataclasses.replace(it, topology=topology))
    found = Reader(text)
    assert len(text) < 400_000
    assert "45 more pools" in found.text
    assert "and 984 more" in found.text
    assert all(f"pool-{number}" in found.text for number in range(50))


@pytest.mark.parametrize(
    "name", ["env.list", "gke-a3-ultra-flex-queued.env.list", "ray-gcs-filestore.env.list"]
)
@pytest.mark.parametrize("action", ["Plan", "Create"])
def test_what_can_be_read_on_a_page(name: str, action: str, golden: Golden) -> None:
    it = pages.contents(name, action, settings={"PROJECT_ID": "my-project", "LABELS": None})
    lines = Outline(page(it)).lines
    kept = f"{name.removesuffix('env.list').rstrip('.') or 'smallest'}-{action.lower()}.txt"
    golden.check(GOLDENS / kept, "\n".join(lines) + "\n")


# ------------------------------------------------------------------ colours

_GROUNDS = {
    "ink": ("ground", "card", "soft"),
    "quiet": ("ground", "card"),
    "blue": ("card", "on-blue"),
    "green": ("card", "on-green"),
    "amber": ("card", "on-amber"),
    "red": ("card", "on-red"),
    "violet": ("card", "on-violet"),
}


def _colours() -> list[dict[str, str]]:
    """The light colours and the dark ones."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE.read_text(), re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def _luminance(colour: str) -> float:
    """As WCAG 2.2 defines it."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_can_be_read_on_its_ground_light_and_dark() -> None:
    light, dark = _colours()
    assert light.keys() == dark.keys()
    for colours in (light, dark):
        for ink, grounds in _GROUNDS.items():
            for ground in grounds:
                lighter, darker = sorted(
                    (_luminance(colours[ink]), _luminance(colours[ground])), reverse=True
                )
                assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (ink, ground)
