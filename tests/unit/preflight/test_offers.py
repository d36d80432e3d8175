"""The online checks of places, against what the simulated cloud answers over HTTP."""

from pathlib import Path

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
from provision.time.stages import Progress
from rehearsal.cloud.server import Cloud
from tests.unit.table import Row, rows

pytestmark = pytest.mark.loopback

TABLE = """
zone=europe-north1-a vm_type=a3-ultragpu-8g enable_spot=yes
    -> ZONE: europe-north1-a has no a3-ultragpu-8g | no zone of europe-north1 has it; zones of
    other regions that have it, the same continent first: europe-west1-b, europe-west4-a,
    asia-south1-b, | ZONE=europe-west1-b
zone=europe-north1-a vm_type=a3-ultragpu-8g scenario=everywhere --
zone=us-central1-a vm_type=a3-ultragpu-8g enable_spot=yes
    -> ZONE: in us-central1, us-central1-b has it; zones of other regions
    | us-east4-b, us-east5-a, us-south1-b, us-west1-c, asia-south1-b | ZONE=us-central1-b
# A GPU that is shut down, though the list still has it.
zone=us-central1-c @N1 accelerator_type=nvidia-tesla-p100
    -> VM_TYPE: us-central1-c has no nvidia-tesla-p100 | no zone that this project may use has it

# What the program does not know is decided by Google, and what it refused as no type passes.
zone=us-central1-a vm_type=a2-higgpu-2g -> VM_TYPE: us-central1-a has no a2-higgpu-2g
zone=us-central1-a vm_type=a9-new-8g -> VM_TYPE: us-central1-a has no a9-new-8g
zone=us-central1-b vm_type=(g4-standard-6|g4-standard-24|a3-ultragpu-8g-nolssd) enable_spot=yes --
zone=us-west8-a vm_type=g2-standard-4 -> ZONE: there is no zone us-west8-a
zone=us-cental1-a vm_type=g2-standard-4 -> ZONE: did you mean us-central1-a?
zone=us-central1-a vm_type=a2-highgpu-3g
    -> VM_TYPE: did you mean a2-highgpu-2g or a2-highgpu-4g? | VM_TYPE=a2-highgpu-2g

zone=europe-west4-ai1a vm_type=g4-standard-48
    -> ZONE: there is no zone europe-west4-ai1a | ai-zones-visibility
zone=europe-west4-ai1a vm_type=g4-standard-48 scenario=ai-zones --
zone=us-central1-z vm_type=a2-highgpu-2g
    -> ZONE: there is no zone us-central1-z | a2-highgpu-2g is in us-central1-a, us-central1-b,
    | ZONE=us-central1-a
zone=us-central1-z @N1 accelerator_type=nvidia-tesla-p4
    -> ZONE: nvidia-tesla-p4 is in us-central1-a, us-central1-c
"""


@rows(TABLE, N1="vm_type=n1-standard-8 gpu_count=1")
def test_a_zone_that_lacks_what_is_asked_for_is_refused_with_the_nearest_that_has_it(
    tmp_path: Path, row: Row
) -> None:
    scenario, settings = row.environ.get("scenario", ""), dict(row.environ)
    settings.pop("scenario", None)
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

    assert all(finding.stops for finding in found)
    row.is_said_by([finding.problem for finding in found if finding.problem], [])
    assert not any("us-west8" in str(it) and "did you mean" in str(it) for it in found)
