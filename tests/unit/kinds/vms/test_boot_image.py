"""The image of VMs is chosen among those that the simulated Google Cloud has, and checked there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provision import preflight
from provision.catalogue import images
from provision.codes import Code
from provision.documents.topology import BootImage
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.google.owner import Owner
from provision.kinds import registry
from provision.preflight import CheckResults
from provision.preflight.check import Answers
from provision.settings.model import Settings
from provision.spec.cluster import VmSpec
from provision.state.record import Record
from rehearsal.cloud import compute
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Request
from tests.table import cases
from tests.unit.preflight.stand_in import ID, ZONE, Google
from tests.unit.table import Row, rows

Json = dict[str, Any]

DLVM = "deeplearning-platform-release"
CHOSEN = "pytorch-2-9-cu129-ubuntu-2404-nvidia-580"
OLD = "pytorch-2-7-cu128-ubuntu-2204-nvidia-570"
COMMON = "common-cu129-ubuntu-2404-nvidia-580"
ACCELERATOR = "ubuntu-os-accelerator-images"
WITH_DRIVER = "ubuntu-accelerator-2404-amd64-with-nvidia-580"
MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
A4 = {"vm_type": "a4-highgpu-8g", "reservation_name": "mine", "disk_type": "hyperdisk-balanced"}
MEGA = {"vm_type": "a3-megagpu-8g", "network_config": "multi_nic_network"}
ULTRA = A4 | MEGA | {"vm_type": "a3-ultragpu-8g", "skip_checks": "reservation"}
STANDARD = {"image_project": "ubuntu-os-cloud", "image_family_name": "ubuntu-2404-lts-amd64"}
ROCKY = {
    "image_project": "rocky-linux-accelerator-cloud",
    "image_family_name": "rocky-linux-9-optimized-gcp-nvidia-580",
}
RECORD: Json = MANDATORY | {"kind": "mig", "cluster_id": ID, "region": "us-central1"}
RECORD |= {"tool_version": "1", "terraform_version": "1.11.4"}


class World(Google):
    """Images are those of the simulated cloud; all else is the stand-in's."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._database = Database(folder / "cloud.sqlite")
        self.hidden: set[str] = set()
        self.page_size = ""

    def ask(self, method: str, path: str, body: Json | None = None, /, **query: str) -> Json:
        """Ask the simulated Compute Engine."""
        request = Request(
            method=method,
            path=path,
            query=query,
            body=b"" if body is None else json.dumps(body).encode(),
        )
        try:
            with self._database.transaction() as store:
                answer = compute.service(request, store).body
        except GoogleError as error:
            told = error.reply()
            assert isinstance(told.body, dict)
            raise GoogleApiError(told.status, told.body["error"]["message"], path) from error
        assert isinstance(answer, dict)
        return answer

    def get(self, service: Service, path: str) -> Json:
        if "/global/images/" not in path:
            return super().get(service, path)
        self._heard(path)
        return self.ask("GET", path)

    def pages(
        self,
        method: str,
        path: str,
        key: str,
        query: dict[str, str],
        service: Service = Service.COMPUTE,
    ) -> Iterator[Json]:
        if not path.endswith("/global/images"):
            yield from super().pages(method, path, key, query, service)
            return
        self._heard(path)
        token = ""
        while True:
            sizes = {"maxResults": self.page_size} if self.page_size else {}
            page = self.ask(method, path, **query, pageToken=token, **sizes)
            yield from (it for it in page.get("items", []) if it["family"] not in self.hidden)
            token = page.get("nextPageToken", "")
            if not token:
                return


def _environ(settings: dict[str, str]) -> str:
    return " ".join(f"{name.upper()}={value}" for name, value in settings.items())


class Asked:
    """The online checks of some settings, and the Google that they ask."""

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self, record: Json | None = None, /, **settings: str) -> CheckResults[VmSpec]:
        """Make the checks, for a new cluster or for one with the image of a record."""
        asked = Settings(MANDATORY | settings)
        kind = registry.of(asked)
        spec = kind.spec(asked)
        return preflight.run(
            spec,
            Answers(self.world),
            of_kind=kind.preflight(spec),
            owner=Owner(ID),
            record=None if record is None else Record(**RECORD, image=record),
        )

    def image(self, record: Json | None = None, /, **settings: str) -> tuple[str, str | None, str]:
        """Project, family and name of the image, which nothing must speak against."""
        image = self.run(record, **settings).require().image
        return image.project, image.family, str(image.name)

    def note(self, record: Json | None = None, /, **settings: str) -> Problem:
        """The only note about the image."""
        (note,) = (it for it in self.run(record, **settings).notes if "IMAGE" in it.setting)
        return note

    def own(self, family: str = "mine", /, more: Json | None = None, **withdrawal: str) -> None:
        """Make an image of one's own, and have Google say so much of its withdrawal."""
        own = "projects/my-images/global/images"
        source = f"projects/{DLVM}/global/images/{CHOSEN}-v20260831"
        made = {"name": "mine", "family": family, "sourceImage": source}
        self.world.ask("POST", own, made | (more or {}))
        if withdrawal:
            self.world.ask("POST", f"{own}/mine/deprecate", withdrawal)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    world = World(tmp_path)
    for machine, architecture in (("a4-highgpu-8g", "X86_64"), ("a4x-highgpu-4g", "ARM64")):
        world.documents[f"{ZONE}/machineTypes/{machine}"] = {"architecture": architecture}
    world.documents[f"{ZONE}/machineTypes/a3-ultragpu-8g"] = {"architecture": "X86_64"}
    return Asked(world)


def test_the_newest_supported_image_of_all_pages_is_chosen_and_said(asked: Asked) -> None:
    assert asked.image() == (DLVM, CHOSEN, f"{CHOSEN}-v20260831")
    note = asked.note()
    assert note.setting == "IMAGE_FAMILY_NAME"
    assert f"{CHOSEN}-v20260831" in note.what
    assert "PyTorch 2.9, CUDA 12.9, NVIDIA's driver 580, Ubuntu 24.04" in note.why
    assert "supported until 2028-08-04 (Google's page of 2026-04-10)" in note.why
    asked.world.page_size = "2"
    assert asked.image()[1] == CHOSEN
    # Slurm of Ubuntu 22.04 is too old, so PyTorch is less.
    asked.world.hidden = {CHOSEN}
    assert asked.image()[1] == CHOSEN.replace("2404", "2204")
    assert asked.image(orchestrator_type="slurm")[1] == COMMON
    asked.world.hidden = {CHOSEN, CHOSEN.replace("2404", "2204")}
    assert asked.image() == (DLVM, COMMON, f"{COMMON}-v20260909")


def test_what_is_chosen_is_in_the_report(asked: Asked) -> None:
    before = Settings(MANDATORY)
    spec = registry.of(before).spec(before)
    usual = {"project": DLVM, "family": CHOSEN}
    assert spec.boot_image.document == BootImage(
        **usual, name=None, resolved=False, supported_until=None
    )
    assert asked.run().spec.image.document == BootImage(
        **usual, name=f"{CHOSEN}-v20260831", resolved=True, supported_until="2028-08-04"
    )
    spec = asked.run(skip_checks="image").spec
    kind = registry.of(Settings(MANDATORY))
    assert kind.resolve(spec, None).image.family == CHOSEN
    assert kind.resolve(spec, None).image.name is None
    assert kind.resolve(spec, Record(**RECORD, image=KEPT)).image.name == KEPT["name"]


def test_a_machine_may_have_another_line_of_images(asked: Asked) -> None:
    for machine, architecture in (("a4-highgpu-8g", "amd64"), ("a4x-highgpu-4g", "arm64")):
        found = asked.run(**A4 | {"vm_type": machine, "skip_checks": "reservation"})
        family = f"ubuntu-accelerator-2404-{architecture}-with-nvidia-580"
        image = found.spec.image
        assert (image.project, image.family) == (ACCELERATOR, family)
        assert image.name == f"{family}-v20260418"
        (note,) = (it for it in found.notes if it.setting == "IMAGE_FAMILY_NAME")
        assert "no CUDA toolkit, no PyTorch and no JupyterLab" in note.why
        assert "Google names no end of its support" in note.why


def test_a_project_alone_is_where_the_newest_is_looked_up(asked: Asked) -> None:
    assert asked.image(image_project="ml-images") == ("ml-images", CHOSEN, f"{CHOSEN}-v20260518")
    assert asked.image(image_project=ACCELERATOR)[:2] == (ACCELERATOR, WITH_DRIVER)
    named = asked.image(image_project=ACCELERATOR, image_name=f"{WITH_DRIVER}-v20260418")
    assert named[2] == f"{WITH_DRIVER}-v20260418"
    asked_for = asked.image(image_project=ACCELERATOR, image_family_name=WITH_DRIVER)
    assert asked_for[:2] == (ACCELERATOR, WITH_DRIVER)
    asked.own(CHOSEN, state="ACTIVE", obsolete="2027-02-01T00:00:00Z")
    found = asked.run(image_project="my-images")
    assert found.require().image.supported_until == "2027-02-01"
    (note,) = (it for it in found.notes if it.setting == "IMAGE_FAMILY_NAME")
    assert note.why.endswith("supported until 2027-02-01")


KEPT: Json = {"project": DLVM, "family": CHOSEN, "name": f"{CHOSEN}-v20260518"}
KEPT_OLD = {"project": DLVM, "family": OLD, "name": f"{OLD}-v20260305"}
RECORDED = {
    "old": KEPT_OLD,
    "gone": KEPT | {"name": f"{CHOSEN}-v20250101"},
    "own": {"project": "my-images", "family": "mine", "name": "mine"},
}
OWN: dict[str, dict[str, Any]] = {
    "obsolete": {"state": "OBSOLETE", "obsolete": "2026-10-01T00:00:00Z"},
    "deleted": {"state": "DELETED", "deleted": "2026-10-01T00:00:00Z"},
    "baked": {"more": {"labels": {"aiinfra-from": "common-cu129-ubuntu-2204-nvidia-580"}}},
    "rocky": {"more": {"licenses": ["projects/rocky-linux-cloud/global/licenses/rocky-linux-9"]}},
}
TABLE = """
IMAGE_PROJECT=debian-cloud -> IMAGE_FAMILY_NAME:
    debian-cloud has no image to choose for a2-highgpu-2g | --project debian-cloud
# It was the default; Google answers 404 for it since 2026-04-13.
IMAGE_FAMILY_NAME=@OLD -> IMAGE_FAMILY_NAME: are deprecated since 2026-04-13 | until 2027-04-13
    | all images of the family pytorch-2-7-cu128-ubuntu-2204-nvidia-570 in deeplearning-platform-
    | IMAGE_FAMILY_NAME=pytorch-2-9-cu129-ubuntu-2204-nvidia-580, or IMAGE_NAME=pytorch-2-7-cu128
    | nvidia-570-v20260320: Google still makes VMs from it
    | it suggests pytorch-2-9-cu129-ubuntu-2204-nvidia-580-v20260408 instead
IMAGE_FAMILY_NAME=(pytorch-latest-gpu|pytorch-1-12-gpu-debian-10) -> IMAGE_FAMILY_NAME:
    there is no image family | remove IMAGE_FAMILY_NAME for the newest supported image
IMAGE_NAME=@OLD-v20260320 ~> IMAGE_NAME: is deprecated since 2026-04-13 | until 2027-04-13
    | IMAGE_NAME=pytorch-2-9-cu129-ubuntu-2204-nvidia-580-v20260408
OWN=obsolete @MINE -> IMAGE_NAME: the image mine is obsolete since 2026-10-01
    | Google makes no VM from it any more; it suggests better instead | IMAGE_NAME=better
OWN=deleted @MINE -> IMAGE_NAME: the image mine is deleted since 2026-10-01
    | Google makes no VM from it any more; it suggests better instead | IMAGE_NAME=better
IMAGE_FAMILY_NAME=@WITH_DRIVER -> IMAGE_PROJECT: IMAGE_PROJECT=ubuntu-os-accelerator-images
IMAGE_NAME=@WITH_DRIVER-v20260418 -> IMAGE_PROJECT: IMAGE_PROJECT=ubuntu-os-accelerator-images

# A cluster stays on its image.
KEPT=old ~> IMAGE_NAME: of this cluster is deprecated since 2026-04-13 | until 2027-04-13
    | IMAGE_FAMILY_NAME=pytorch-2-9-cu129-ubuntu-2404-nvidia-580
OWN=obsolete KEPT=own ~> IMAGE_NAME: is obsolete | Google makes no VM from it any more
KEPT=gone -> IMAGE_NAME: v20250101 of this cluster is gone from deeplearning-platform-release
    | IMAGE_NAME=pytorch-2-9-cu129-ubuntu-2404-nvidia-580-v20260831

# What start-up needs of a system: Python, apt-get for storage, a driver that can be installed.
@COS -> IMAGE_FAMILY_NAME: is of Container-Optimized OS | IMAGE_FAMILY_NAME
@ROCKY @STORAGE -> IMAGE_FAMILY_NAME: is of Rocky Linux, which has no apt-get
OWN=rocky IMAGE_PROJECT=my-images IMAGE_FAMILY_NAME=mine @STORAGE ~> IMAGE_FAMILY_NAME: no apt-get
IMAGE_PROJECT=rocky-linux-cloud IMAGE_FAMILY_NAME=rocky-linux-9
    -> IMAGE_FAMILY_NAME: of Rocky Linux has no NVIDIA driver
IMAGE_PROJECT=ubuntu-os-cloud IMAGE_FAMILY_NAME=ubuntu-2510-amd64
    -> IMAGE_FAMILY_NAME: of Ubuntu has no NVIDIA driver
IMAGE_PROJECT=debian-cloud IMAGE_FAMILY_NAME=debian-13
    ~> IMAGE_FAMILY_NAME: has no NVIDIA driver: start-up installs it | a reboot
IMAGE_PROJECT=ubuntu-os-cloud IMAGE_FAMILY_NAME=ubuntu-(2404-lts-amd64|minimal-2204-lts)
    ~> IMAGE_FAMILY_NAME: has no NVIDIA driver: start-up installs it | a reboot
@SLURM @ROCKY -> IMAGE_FAMILY_NAME: is of Rocky Linux, which has no apt-get | Slurm
@SLURM IMAGE_FAMILY_NAME=common-cu129-ubuntu-2204-nvidia-580
    -> IMAGE_FAMILY_NAME: has a Slurm that is too old | is 21.08; 23.11 is needed
@SLURM OWN=baked @MINE -> IMAGE_NAME: mine has a Slurm that is too old | Ubuntu 24.04 or Debian 13
@SLURM IMAGE_PROJECT=debian-cloud IMAGE_FAMILY_NAME=debian-13
    ~> IMAGE_FAMILY_NAME: has no NVIDIA driver

# What NCCL can use of the GPU network.
@ULTRA @STANDARD -> IMAGE_FAMILY_NAME: can't use the GPU network
    | without NVIDIA's DOCA-OFED driver | IMAGE_PROJECT=ubuntu-os-accelerator-images
(@ULTRA|@MEGA) @ROCKY -> IMAGE_FAMILY_NAME: can't use the GPU network
    | is installed by apt-get, which Rocky Linux lacks | IMAGE_PROJECT=ubuntu-os-accelerator-images
"""


@rows(
    TABLE,
    OLD=OLD,
    WITH_DRIVER=WITH_DRIVER,
    MINE="IMAGE_PROJECT=my-images IMAGE_NAME=mine",
    SLURM="ORCHESTRATOR_TYPE=slurm",
    STORAGE="GCS_MOUNT_LIST=data:/mnt/data",
    COS="IMAGE_PROJECT=cos-cloud IMAGE_FAMILY_NAME=cos-121-lts",
    ROCKY=_environ(ROCKY),
    ULTRA=_environ(ULTRA),
    MEGA=_environ(MEGA),
    STANDARD=_environ(STANDARD),
)
def test_what_speaks_against_an_image_is_refused_or_noted(asked: Asked, row: Row) -> None:
    settings = {name.lower(): value for name, value in row.environ.items()}
    own, kept = settings.pop("own", ""), settings.pop("kept", "")
    if own:
        asked.own(replacement="projects/my-images/global/images/better", **OWN[own])
    found = asked.run(RECORDED.get(kept), **settings)
    problems, notes = (
        [it for it in said if "IMAGE" in it.setting] for said in (found.problems, found.notes)
    )
    row.is_said_by(problems, notes)
    told = {it.code for it in (*problems, *notes)} - {Code.CHOSEN}
    assert len(told) == 1
    assert told <= {Code.IMAGE_UNSUITABLE, Code.RESOURCE_NOT_FOUND}


def test_a_cluster_stays_on_its_image(asked: Asked) -> None:
    found = asked.run(KEPT)
    assert found.require().image.name == f"{CHOSEN}-v20260518"
    assert not [note for note in found.notes if "IMAGE" in note.setting]
    assert asked.image(KEPT, image_family_name=CHOSEN)[2] == f"{CHOSEN}-v20260518"
    # A machine type whose line is another one since then does not move the cluster.
    assert asked.run(KEPT, **A4).spec.image.name == f"{CHOSEN}-v20260518"
    assert asked.image(KEPT_OLD) == (DLVM, OLD, f"{OLD}-v20260305")
    said = "".join(note.what for note in asked.run(**MEGA, image_project=DLVM).notes)
    assert "NCCL may not use the GPU network of a3-megagpu-8g" in said


def test_a_cluster_moves_to_the_image_that_is_asked_for(asked: Asked) -> None:
    before = asked.image(KEPT)
    assert asked.image(KEPT, image_family_name=COMMON) != before
    assert asked.image(KEPT, image_name=f"{CHOSEN}-v20260831") != before
    assert asked.image(KEPT, image_project="ml-images") != before


def test_nothing_is_said_where_the_network_is_not_used_or_the_image_will_do(asked: Asked) -> None:
    unused = ULTRA | {"network_config": "new_network"} | ROCKY
    for settings in (MEGA, MEGA | STANDARD, STANDARD, unused):
        found = asked.run(**settings)
        assert not [it for it in (*found.problems, *found.notes) if "GPU network" in it.what]


@cases("""
command                                | family                                        | noted
torchrun train.py                      | ubuntu-accelerator-2404-amd64-with-nvidia-580 | torchrun
sudo docker run x                      | common-cu129-ubuntu-2404-nvidia-580           | docker
A=1 exec torchrun t.py                 | common-cu129-ubuntu-2404-nvidia-580           | torchrun
torchrun train.py                      | pytorch-2-9-cu129-ubuntu-2404-nvidia-580      | -
pip install torch && torchrun train.py | common-cu129-ubuntu-2404-nvidia-580           | -
./torchrun train.py                    | common-cu129-ubuntu-2404-nvidia-580           | -
""")
def test_a_command_that_begins_with_what_the_image_has_not_is_noted(
    asked: Asked, command: str, family: str, noted: str
) -> None:
    image = {"image_project": images.project_of(family) or "", "image_family_name": family}
    found = asked.run(startup_command=command, **image)
    said = [note.what for note in found.notes if note.setting == "STARTUP_COMMAND"]
    assert [it.split()[2].rstrip(",") for it in said] == ([noted] if noted else [])
