"""What machines with a GPU cost, and what an env.list has to have for one."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from provision import cli
from provision.catalogue import machines, prices
from provision.cost import estimate, offers
from provision.documents.cost import Offer, PartKind
from provision.intake import load
from provision.kinds import registry
from provision.screens import amounts

TODAY = dt.date(2026, 11, 29)
IDENTITY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np"}


def of(*gpus: str, seconds: int | None = None, at: str = "") -> tuple[Offer, ...]:
    return offers.of(gpus, prices.listed().by(TODAY), TODAY, seconds=seconds, at=at)


def one(found: tuple[Offer, ...], machine: str, way: str = "on-demand") -> Offer:
    (it,) = [it for it in found if (it.machine_type, it.way) == (machine, way)]
    return it


EVERY = [gpu.name for gpu in machines.GPUS.values() if not gpu.is_over(TODAY)]


@pytest.mark.parametrize("gpu", EVERY)
def test_what_an_offer_has_somebody_write_passes_and_costs_what_it_says(gpu: str) -> None:
    found = of(gpu)
    assert found
    for it in found:
        lines = {name: "r" if "<" in text else text for name, text in it.settings.items()}
        loaded = load(IDENTITY | {"ZONE": "us-central1-a"} | lines)
        assert loaded.problems == ()
        assert loaded.settings is not None
        if it.per_hour is None or it.way == "reservation in calendar mode":
            continue
        cost = estimate.of(registry.of(loaded.settings).spec(loaded.settings), prices.listed())
        (machine,) = [part for part in cost.parts if part.kind is PartKind.MACHINES]
        assert machine.most == it.per_hour


def test_the_cheapest_for_a_gpu_comes_first_and_what_has_no_price_last() -> None:
    per_gpu = [it.per_gpu_hour for it in of("nvidia-h100-80gb", "nvidia-h100-mega-80gb")]
    known = [round(it, 2) for it in per_gpu if it is not None]
    assert known == sorted(known)
    assert per_gpu[len(known) :] == [None] * (len(per_gpu) - len(known))
    assert None in per_gpu


def test_a_price_is_that_of_the_zone_that_is_asked_for_or_of_the_cheapest_region() -> None:
    cheap, here = of("nvidia-l4"), of("nvidia-l4", at="europe-west4-a", seconds=7200)
    first, same = one(cheap, "g2-standard-4"), one(here, "g2-standard-4")
    assert (same.region, same.settings["ZONE"]) == ("europe-west4", "europe-west4-a")
    assert first.per_hour is not None
    assert same.per_hour is not None
    assert first.per_hour < same.per_hour
    assert same.at_most == 2 * same.per_hour
    assert first.at_most is None
    # Where a zone has none, it is where there are some.
    assert one(of("nvidia-b200", at="me-west1-a"), "a4-highgpu-8g", "spot").region == "us-central1"


def test_a_part_of_a_gpu_and_several_that_are_attached_are_counted_as_what_they_are() -> None:
    part = one(of("nvidia-rtx-pro-6000"), "g4-standard-6")
    assert part.gpus == Decimal("0.125")
    assert part.per_hour is not None
    assert part.per_gpu_hour == 8 * part.per_hour
    (four,) = [it for it in of("nvidia-tesla-t4") if it.way == "spot" and it.gpus == 4]
    assert four.settings["GPU_COUNT"] == "4"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("L4", ("nvidia-l4",)),
        ("h100", ("nvidia-h100-80gb", "nvidia-h100-mega-80gb")),
        ("8xH200", ("nvidia-h200-141gb",)),
        ("a2-ultragpu-8g", ("nvidia-a100-80gb",)),
        ("nvidia-b200", ("nvidia-b200",)),
        ("whatever", ()),
    ],
)
def test_a_gpu_is_named_as_people_and_google_do(text: str, found: tuple[str, ...]) -> None:
    assert offers.gpus_of(text) == found


@pytest.mark.parametrize("seconds", [None, 4 * 3600])
@pytest.mark.parametrize("gpu", EVERY)
def test_the_table_fits_80_columns(gpu: str, seconds: int | None) -> None:
    lines = [line.text for line in amounts.offers(of(gpu, seconds=seconds), 80, seconds=seconds)]
    assert max(map(len, lines)) <= 80
    at = next(number for number, text in enumerate(lines) if text.startswith("machine"))
    assert ("$ in 4 h" in lines[at]) is (seconds is not None)
    assert lines[-1].startswith("  ZONE=")
    types = {it.machine_type for it in of(gpu) if it.per_hour is not None}
    rows = [text for text in lines if text.partition(" ")[0] in types and "are in" not in text]
    assert [text for text in lines[at:] if text.startswith("    ")] == []
    assert len(rows) >= len(types)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str, **environ: str) -> tuple[int, dict[str, Any]]:
        code = cli.main([*words, "--output", "json"], environ)
        return code, json.loads(capsys.readouterr().out)

    return run


def test_it_takes_neither_an_env_list_nor_a_login(said: Any) -> None:
    code, document = said("Offers", "L4")
    assert (code, document["problems"]) == (0, [])
    (note,) = document["notes"]
    assert "quota was not asked for: PROJECT_ID is not set" in note["what"]
    assert {it["gpu"] for it in document["offers"]} == {"nvidia-l4"}
    assert "at_most" not in document["offers"][0]
    code, document = said("Offers", MAX_RUN_DURATION="4h", GPUS="8", VM_TYPE="nonsense")
    assert (code, document["problems"], document["notes"]) == (0, [], [])
    assert {it["gpu"] for it in document["offers"]} == set(EVERY)
    assert document["offers"][0]["at_most"] == pytest.approx(
        4 * document["offers"][0]["per_hour"], abs=1e-5
    )
    assert said("Offers", "L4", MAX_RUN_DURATION="14d")[0] == 2


def test_a_name_of_none_gets_the_nearest_and_one_that_has_gone_is_told(said: Any) -> None:
    code, document = said("Offers", "H1000")
    (problem,) = document["problems"]
    assert (code, problem["code"]) == (2, "invalid-command-line")
    assert "did you mean H100" in problem["fix"]
    (problem,) = said("Offers", "P100")[1]["problems"]
    assert "ended on 2026-09-15" in problem["why"]


def test_all_gpus_have_a_line_each_in_80_columns() -> None:
    every = of(*EVERY)
    lines = [line.text for line in amounts.each_gpu(offers.cheapest(every), 80)]
    assert max(map(len, lines)) <= 80
    rows = lines[2 : 2 + len(EVERY)]
    assert {offers.gpus_of(row.split()[0])[0] for row in rows} == set(EVERY)
