"""Where Google offers what, in which ways, and until when: what is said before it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.conftest import Given

GKE = {"ORCHESTRATOR_TYPE": "gke"}
BOUND = {"RESERVATION_NAME": "r"}


def test_a_zone_whose_region_the_list_does_not_have_is_a_note_with_the_nearest_first(
    given: Given,
) -> None:
    case = given(ZONE="us-west2-a", VM_TYPE="a3-ultragpu-8g", ENABLE_SPOT="yes")

    assert not case.loaded.problems
    note = case.note("ZONE")
    assert "a zone where a3-ultragpu-8g was not offered on 2026-08-17" in note.what
    assert "it in us-central1, us-east4, us-east5, us-south1, us-west1, asia-south1," in note.why
    assert "the online check decides" in note.why


def test_h200_in_europe_north1_is_noted(given: Given) -> None:
    case = given(ZONE="europe-north1-a", VM_TYPE="a3-ultragpu-8g", ENABLE_SPOT="yes")

    assert "europe-west1, europe-west4, asia-south1" in case.note("ZONE").why


def test_a_gpu_to_attach_has_a_list_of_its_own(given: Given) -> None:
    n1 = {"VM_TYPE": "n1-standard-8", "GPU_COUNT": "1"}
    there = given(ZONE="us-west2-b", ACCELERATOR_TYPE="nvidia-tesla-t4", **n1)
    elsewhere = given(ZONE="us-east5-a", ACCELERATOR_TYPE="nvidia-tesla-v100", **n1)

    assert "ZONE" not in there.noted
    assert "nvidia-tesla-v100 was not offered on 2026-08-10" in elsewhere.note("ZONE").what


def test_a_pool_of_its_own_zone_is_noted_by_that_zone(given: Given) -> None:
    pools = "name=a,vm_type=a2-megagpu-16g;name=b,vm_type=g2-standard-4,zone=us-east4-b"
    case = given(**GKE, ZONE="us-east4-a", GKE_NODE_POOLS=pools)

    assert "has a pool in us-east4-a, where a2-megagpu-16g" in case.note("GKE_NODE_POOLS").what


def test_a_type_without_gpus_of_its_own_is_everywhere(given: Given) -> None:
    assert not given(ZONE="africa-south1-a", VM_TYPE="c3-standard-4").noted & {"ZONE"}


@pytest.mark.parametrize("zone", ["us-west8-a", "us-east7-b", "europe-west15-c"])
def test_a_region_that_is_not_in_the_list_is_a_note_without_a_wrong_guess(
    given: Given, zone: str
) -> None:
    case = given(ZONE=zone, VM_TYPE="c3-standard-4")

    assert not case.loaded.problems
    assert case["REGION"] == zone[:-2]
    note = case.note("ZONE")
    assert "a region that is not in this tool's list" in note.what
    assert "2026-04-27" in note.why
    assert not note.fix


def test_a_misspelt_region_is_a_note_with_what_was_meant(given: Given) -> None:
    case = given(ZONE="us-cental1-b")

    assert not case.loaded.problems
    notes = [it for it in case.loaded.notes if it.setting == "ZONE"]
    assert "did you mean us-central1-b?" in [it.fix for it in notes]


@pytest.mark.parametrize("zone", ["us-central1-ai1a", "us-south1-ai1b", "europe-west4-ai1a"])
def test_an_ai_zone_must_be_turned_on(given: Given, zone: str) -> None:
    case = given(ZONE=zone, VM_TYPE="g4-standard-48")

    assert not case.loaded.problems
    assert "turned AI zones on" in case.note("ZONE").what
    assert "ai-zones-visibility" in case.note("ZONE").fix


@pytest.mark.parametrize(
    ("vm_type", "meant"),
    [
        ("a2-higgpu-2g", "a2-highgpu-2g"),
        ("a2-highgpu-3g", "a2-highgpu-2g or a2-highgpu-4g"),
        ("a9-new-8g", ""),
    ],
)
def test_a_type_that_is_not_known_is_a_note_with_what_was_meant(
    given: Given, vm_type: str, meant: str
) -> None:
    case = given(VM_TYPE=vm_type)

    assert not case.loaded.problems
    assert case.note("VM_TYPE").fix == (f"did you mean {meant}?" if meant else "")
    pool = given(**GKE, VM_TYPE=vm_type).problem("ACCELERATOR_TYPE")
    assert (f"did you mean {meant}?" in pool.why) is bool(meant)


@pytest.mark.parametrize(
    ("vm_type", "environ"),
    [
        ("g4-standard-6", {}),
        ("g4-standard-12", {"ENABLE_SPOT": "yes"}),
        ("g4-standard-24", {"ENABLE_FLEX_START": "yes"}),
        ("a3-ultragpu-8g-nolssd", {"ENABLE_SPOT": "yes"}),
        ("a3-edgegpu-8g", {"ENABLE_SPOT": "yes"}),
        ("a3-edgegpu-8g-nolssd", BOUND),
        ("a4x-maxgpu-4g-metal", BOUND),
    ],
)
def test_a_type_that_exists_is_known(given: Given, vm_type: str, environ: dict[str, str]) -> None:
    case = given(VM_TYPE=vm_type, ZONE="us-central1-b", **environ)

    assert not case.loaded.problems
    assert case["GPU_COUNT"]
    assert not [it for it in case.loaded.notes if "does not know" in it.what]


@pytest.mark.parametrize(
    ("vm_type", "part"),
    [("g4-standard-6", "1/8"), ("g4-standard-12", "1/4"), ("g4-standard-24", "1/2")],
)
def test_a_part_of_a_gpu_counts_as_one_and_needs_its_own_driver(
    given: Given, vm_type: str, part: str
) -> None:
    case = given(VM_TYPE=vm_type, ZONE="us-central1-b")

    assert case["GPU_COUNT"] == 1
    assert f"has {part} of a GPU, which counts as one GPU" in case.note("VM_TYPE").what
    assert "vGPU driver" in case.note("VM_TYPE").why


def test_a_part_of_a_gpu_needs_a_new_gke_and_is_no_advice_for_one_gpu(given: Given) -> None:
    old = given(**GKE, VM_TYPE="g4-standard-6", ZONE="us-central1-b", GKE_VERSION="1.33.")
    assert "1.34.5-gke.1153000" in old.problem("GKE_VERSION").why

    wrong = given(VM_TYPE="g4-standard-96", ZONE="us-central1-b", GPU_COUNT="1")
    assert "VM_TYPE=g4-standard-48" in wrong.problem("GPU_COUNT").fix


@pytest.mark.parametrize(
    ("vm_type", "environ", "setting"),
    [
        ("a4-highgpu-8g", {}, "VM_TYPE"),
        ("a4x-highgpu-4g", {}, "VM_TYPE"),
        ("a4x-highgpu-4g", {"ENABLE_SPOT": "yes"}, "ENABLE_SPOT"),
        ("a4x-highgpu-4g", {"ENABLE_FLEX_START": "yes"}, "ENABLE_FLEX_START"),
        ("a4x-maxgpu-4g-metal", {"ENABLE_SPOT": "yes"}, "ENABLE_SPOT"),
    ],
)
def test_what_google_never_gives_in_that_way_is_refused(
    given: Given, vm_type: str, environ: dict[str, str], setting: str
) -> None:
    case = given(VM_TYPE=vm_type, ZONE="us-central1-b", **environ)

    problem = case.problem(setting)
    assert "is not available" in problem.what
    assert "future reservation of AI Hypercomputer" in problem.why
    assert problem.fix.endswith("RESERVATION_NAME=<your reservation>")
    assert not given(VM_TYPE=vm_type, ZONE="us-central1-b", **BOUND).refused


def test_what_the_sources_disagree_about_is_a_note(given: Given) -> None:
    case = given(VM_TYPE="a3-ultragpu-8g", ZONE="us-central1-b")

    assert not case.loaded.problems
    note = next(it for it in case.loaded.notes if "available" in it.what)
    assert "may not be available on demand" in note.what
    assert "spot, flex start, reservation in calendar mode or future reservation" in note.why


def test_pools_go_by_the_same_table(given: Given) -> None:
    ultra = {**GKE, "VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b"}
    doubtful = given(**ultra)
    never = given(**ultra | {"VM_TYPE": "a4-highgpu-8g"})

    assert not doubtful.loaded.problems
    assert any("may not get a3-ultragpu-8g nodes" in it.what for it in doubtful.loaded.notes)
    assert "can't get a4-highgpu-8g nodes" in never.problem("VM_TYPE").what


@pytest.mark.parametrize(
    ("gpu", "day"), [("p100", "2026-09-15"), ("t4", "2027-08-01"), ("p4", "2027-08-01")]
)
def test_the_end_of_support_of_a_gpu_is_a_note(given: Given, gpu: str, day: str) -> None:
    n1 = {"VM_TYPE": "n1-standard-8", "GPU_COUNT": "1"}
    case = given(ACCELERATOR_TYPE=f"nvidia-tesla-{gpu}", IMAGE_NAME="with-its-driver", **n1)

    assert not case.loaded.problems
    assert f"supports until {day}" in case.note("ACCELERATOR_TYPE").what
