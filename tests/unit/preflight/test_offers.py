"""The online checks of places, against what the simulated cloud answers over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
from google.oauth2.credentials import Credentials

from provision.google.api import GoogleApi
from provision.google.owner import Owner
from provision.kinds import registry
from provision.preflight import zones
from provision.preflight.answers import Answers
from provision.preflight.check import CheckContext
from provision.settings.model import Settings
from provision.time.clock import Clock
from provision.time.progress import Progress
from rehearsal.cloud.server import Cloud

if TYPE_CHECKING:
    from pathlib import Path

    from provision.errors import Problem

pytestmark = pytest.mark.loopback

N1 = {"vm_type": "n1-standard-8", "gpu_count": "1"}


class Check(Protocol):
    """What the checks of places find for these settings."""

    def __call__(self, scenario: str = "", **settings: str) -> list[Problem]: ...


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def run(scenario: str = "", **settings: str) -> list[Problem]:
        asked = Settings({"project_id": "my-project", "name_prefix": "np", **settings})
        kind = registry.of(asked)
        spec = kind.spec(asked)
        database, clock = tmp_path / "cloud.sqlite", {"CLOUD_CLOCK_RATE": "0"}
        with Cloud(database=database, environ=clock, scenario=scenario) as cloud:
            environ = {"GOOGLE_COMPUTE_CUSTOM_ENDPOINT": f"{cloud.base_url}/compute/v1/"}
            api = GoogleApi(Credentials("token"), environ, Progress(Clock(0), lambda _: None))
            ctx = CheckContext(
                spec=spec,
                of_kind=kind.preflight(spec),
                answers=Answers(api),
                owner=Owner(""),
                in_state=(),
                record=None,
                makes_bucket=False,
            )
            checks = (zones.zone, zones.machine_type, zones.accelerator)
            found = [finding for each in checks for finding in each(ctx)]
        problems = [finding.problem for finding in found if finding.problem]
        assert all(finding.stops for finding in found)
        return problems

    return run


def test_h200_in_europe_north1_is_refused_with_the_nearest_zones(check: Check) -> None:
    (problem,) = check(zone="europe-north1-a", vm_type="a3-ultragpu-8g", enable_spot="yes")

    assert (problem.setting, problem.what) == ("ZONE", "europe-north1-a has no a3-ultragpu-8g")
    assert problem.why.startswith(
        "no zone of europe-north1 has it; zones of other regions that have it, the same continent"
        " first: europe-west1-b, europe-west4-a, asia-south1-b, "
    )
    assert problem.fix == "ZONE=europe-west1-b"
    assert not check("everywhere", zone="europe-north1-a", vm_type="a3-ultragpu-8g")


def test_zones_of_the_region_are_told_apart_and_first(check: Check) -> None:
    (problem,) = check(zone="us-central1-a", vm_type="a3-ultragpu-8g", enable_spot="yes")

    assert problem.why.startswith("in us-central1, us-central1-b has it; zones of other regions")
    assert "us-east4-b, us-east5-a, us-south1-b, us-west1-c, asia-south1-b" in problem.why
    assert problem.fix == "ZONE=us-central1-b"


def test_a_gpu_that_is_shut_down_is_refused_though_the_list_still_has_it(check: Check) -> None:
    gone = {**N1, "accelerator_type": "nvidia-tesla-p100"}

    (problem,) = check(zone="us-central1-c", **gone)

    assert problem.what == "us-central1-c has no nvidia-tesla-p100"
    assert problem.why == "no zone that this project may use has it"


@pytest.mark.parametrize("vm_type", ["a2-higgpu-2g", "a9-new-8g"])
def test_a_type_that_the_program_does_not_know_is_decided_by_google(
    check: Check, vm_type: str
) -> None:
    (problem,) = check(zone="us-central1-a", vm_type=vm_type)

    assert problem.what == f"us-central1-a has no {vm_type}"


@pytest.mark.parametrize("vm_type", ["g4-standard-6", "g4-standard-24", "a3-ultragpu-8g-nolssd"])
def test_a_type_that_was_refused_as_no_machine_type_passes(check: Check, vm_type: str) -> None:
    assert not check(zone="us-central1-b", vm_type=vm_type, enable_spot="yes")


def test_a_region_that_the_program_does_not_know_is_decided_by_google(check: Check) -> None:
    (new,) = check(zone="us-west8-a", vm_type="g2-standard-4")
    (misspelt,) = check(zone="us-cental1-a", vm_type="g2-standard-4")

    assert new.what == "there is no zone us-west8-a"
    assert "did you mean" not in new.why
    assert misspelt.why.endswith("did you mean us-central1-a?")


def test_an_ai_zone_is_refused_with_the_command_that_turns_it_on(check: Check) -> None:
    zone = "europe-west4-ai1a"

    (problem,) = check(zone=zone, vm_type="g4-standard-48")

    assert problem.what == f"there is no zone {zone}"
    assert "ai-zones-visibility" in problem.fix
    assert not check("ai-zones", zone=zone, vm_type="g4-standard-48")


def test_a_zone_that_there_is_not_is_answered_with_those_that_have_the_gpus(check: Check) -> None:
    (problem,) = check(zone="us-central1-z", vm_type="a2-highgpu-2g")

    assert problem.what == "there is no zone us-central1-z"
    assert "a2-highgpu-2g is in us-central1-a, us-central1-b, " in problem.why
    assert problem.fix == "ZONE=us-central1-a"


def test_gpus_to_attach_count_for_the_zone_to_move_to(check: Check) -> None:
    (problem,) = check(zone="us-central1-z", accelerator_type="nvidia-tesla-p4", **N1)

    assert "nvidia-tesla-p4 is in us-central1-a, us-central1-c" in problem.why


def test_h200_where_there_are_none_is_refused_with_the_nearest_place(check: Check) -> None:
    (problem,) = check(zone="europe-north1-a", vm_type="a3-ultragpu-8g", enable_spot="yes")

    assert problem.what == "europe-north1-a has no a3-ultragpu-8g"
    assert problem.fix == "ZONE=europe-west1-b"


def test_a_size_that_there_is_not_is_refused_with_those_next_to_it(check: Check) -> None:
    (problem,) = check(zone="us-central1-a", vm_type="a2-highgpu-3g")

    assert problem.why.endswith("did you mean a2-highgpu-2g or a2-highgpu-4g?")
    assert problem.fix == "VM_TYPE=a2-highgpu-2g"
