"""The dated lists, renewed from what the simulated cloud answers over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.oauth2.credentials import Credentials

from provision.catalogue import machines, prices, zones
from provision.catalogue.machines import Consumption
from provision.documents.cost import Origin
from provision.errors import SettingsError
from provision.google import auth
from provision.google.api import GoogleApi
from provision.preflight import facts
from provision.time.clock import Clock
from provision.time.stages import Progress
from rehearsal.cloud.server import Cloud

pytestmark = pytest.mark.loopback

DATE = "2026-11-22"


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which Compute Engine is simulated."""
    with Cloud(database=tmp_path / "cloud.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}) as cloud:
        yield {
            "GOOGLE_COMPUTE_CUSTOM_ENDPOINT": f"{cloud.base_url}/compute/v1/",
            "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT": f"{cloud.base_url}/cloudbilling/v1/",
        }


@pytest.fixture
def api(environ: dict[str, str]) -> GoogleApi:
    return GoogleApi(Credentials("token"), environ, Progress(Clock(0), lambda _: None))


def test_the_lists_are_those_of_google_by_zone_and_come_back_from_the_file(api: GoogleApi) -> None:
    found = facts.read(api, "my-project", DATE, facts.with_gpus(api, "my-project"))

    assert zones.read_offers(zones.write_offers(found)) == found
    assert found.machine_types.places["a3-ultragpu-8g"] == (
        "asia-south1-b", "asia-south2-c", "europe-west1-b", "europe-west4-a", "us-central1-b",
        "us-east4-b", "us-east5-a", "us-south1-b", "us-west1-c",
    )  # fmt: skip
    assert not found.machine_types.lacks("a3-ultragpu-8g", "us-central1-b")
    assert found.machine_types.lacks("a3-ultragpu-8g", "us-central1-a")
    # Types without GPUs are everywhere, and in no row; a GPU that is gone has an empty one.
    assert not found.machine_types.lacks("e2-standard-4", "us-central1-a")
    assert found.accelerators.places["nvidia-tesla-p100"] == ()
    assert found.zones.places["us-central1"] == ("a", "b", "c", "f")
    assert {it.date for it in vars(found).values()} == {DATE}


def test_a_file_is_written_with_todays_lists_and_what_has_changed_is_said(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "credentials", lambda _: Credentials("token"))
    file = tmp_path / "offers.json"

    said = facts.main(["facts", "my-project", str(file)], environ)

    written = zones.read_offers(file.read_text("utf-8"))
    assert written.machine_types.source == "Compute Engine, machineTypes.aggregatedList"
    assert written.zones.date > "2026-08-17"
    told = said.splitlines()
    assert "europe-west4: gone ai1a" in told
    assert any(it.startswith("nvidia-tesla-p100: gone asia-east1, ") for it in told)
    # That zones are known now, where there were only regions, is no change.
    assert not [it for it in told if it.startswith("a2-")]

    renewed = prices.read((tmp_path / "prices.json").read_text("utf-8"), Origin.LIST)
    machine = prices.machine("a2-highgpu-1g")
    assert (tmp_path / "sizes.json").read_bytes() == machines.SIZES_FILE.read_bytes()
    # What Google has is of today, what it has not is as old as it was; both keep their dates.
    new = renewed.find(machine, "us-central1", Consumption.SPOT)
    kept = renewed.find(machine, "us-west4", Consumption.SPOT)
    assert new is not None
    assert kept is not None
    assert (new.source.date, kept.source.date) == (written.zones.date, "2026-07-30")
    assert kept == prices.listed().find(machine, "us-west4", Consumption.SPOT)
    assert "machine a2-highgpu-1g, spot: other us-central1, us-east1, us-west1" in told
    assert "Filestore BASIC_SSD, on-demand: new us-east1, us-west1" in told
    # One price that holds everywhere takes the place of all.
    assert not [it for it in told if it.startswith("control plane")]


def test_how_large_machines_are_is_what_google_says_and_what_it_does_not_say_stays(
    api: GoogleApi,
) -> None:
    seen = facts.with_gpus(api, "my-project")
    assert facts.write_sizes(facts.sizes(seen)) == machines.SIZES_FILE.read_text("utf-8")

    new = {
        "name": "a5-highgpu-8g",
        "guestCpus": 256,
        "memoryMb": 4194816,
        "accelerators": [{"guestAcceleratorType": "nvidia-r100", "guestAcceleratorCount": 8}],
        "bundledLocalSsds": {"defaultInterface": "NVME", "partitionCount": 32},
    }
    smaller = {**new, "name": "a5-highgpu-4g", "guestCpus": 128, "bundledLocalSsds": {}}
    tpu = {"guestAcceleratorType": "ct6e", "guestAcceleratorCount": 4}
    silent = {
        **next(it for it in seen if it["name"] == "a2-ultragpu-1g"),
        "memoryMb": 1024,
        "bundledLocalSsds": {},
    }
    found = facts.sizes([new, smaller, silent, {**new, "name": "ct6e-4t", "accelerators": [tpu]}])
    assert list(found)[-2:] == ["a5-highgpu-4g", "a5-highgpu-8g"]
    assert found["a5-highgpu-8g"] == {"vcpus": 256, "gib": 4096.5, "gpus": 8, "local_ssds": 32}
    assert "local_ssds" not in found["a5-highgpu-4g"]
    assert found["a2-ultragpu-1g"] == {"vcpus": 12, "gib": 1, "gpus": 1, "local_ssds": 1}
    assert "ct6e-4t" not in found


def test_the_catalogue_is_not_written_from_a_simulation() -> None:
    environ = {"GOOGLE_COMPUTE_CUSTOM_ENDPOINT": "http://127.0.0.1:1/compute/v1/"}
    before = [it.read_bytes() for it in (zones.FILE, machines.SIZES_FILE)]

    with pytest.raises(SettingsError, match="simulated"):
        facts.main(["facts", "my-project"], environ)
    with pytest.raises(SettingsError, match="PROJECT_ID is missing"):
        facts.main(["facts"], {})

    assert [it.read_bytes() for it in (zones.FILE, machines.SIZES_FILE)] == before
