"""Where storage may be mounted on the VMs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.catalogue import filestores
from provision.catalogue.filestores import Tier

if TYPE_CHECKING:
    from tests.unit.conftest import Given


@pytest.mark.parametrize(
    ("environ", "setting", "what"),
    [
        ({"GCS_MOUNT_LIST": "a-b:/x,c-d:/x"}, "GCS_MOUNT_LIST", "mounts /x twice"),
        ({"GCS_MOUNT_LIST": "a-b:/x/y,c-d:/x"}, "GCS_MOUNT_LIST", "has /x/y inside /x"),
        (
            {"GCS_MOUNT_LIST": "a-b:/x", "NFS_FILESHARE_LIST": "/x/y:BASIC_SSD"},
            "NFS_FILESHARE_LIST",
            "has /x/y inside /x, in GCS_MOUNT_LIST",
        ),
        ({"GCS_MOUNT_LIST": "a-b:/usr"}, "GCS_MOUNT_LIST", "mounts /usr"),
        ({"GCS_MOUNT_LIST": "a-b:/etc/x"}, "GCS_MOUNT_LIST", "mounts /etc/x"),
        ({"GCS_MOUNT_LIST": "a-b:/opt/aiinfra"}, "GCS_MOUNT_LIST", "mounts /opt/aiinfra"),
        ({"NFS_FILESHARE_LIST": "/home:BASIC_SSD"}, "NFS_FILESHARE_LIST", "mounts /home"),
    ],
)
def test_a_mount_that_hides_something_is_refused(
    given: Given, environ: dict[str, str], setting: str, what: str
) -> None:
    problem = given(**environ).problem(setting)

    assert what in problem.what
    assert problem.why
    assert problem.fix


def test_a_path_that_only_begins_like_another_is_fine(given: Given) -> None:
    case = given(
        GCS_MOUNT_LIST="a-b:/mnt/x,c-d:/mnt/x-2,e-f:/usr/trainfiles,g-h:/home/jupyter/data",
        NFS_FILESHARE_LIST="/usr/nfsshare1:BASIC_SSD",
    )

    assert not case.loaded.problems
    assert not case.loaded.notes


def test_files_that_every_vm_writes_into_the_same_mount_are_noted(given: Given) -> None:
    case = given(GCS_MOUNT_LIST="a-b:/mnt/x", VM_LOCALFILE_DEST_PATH="/mnt/x/code")

    assert not case.loaded.problems
    assert "is inside the mount /mnt/x" in case.note("VM_LOCALFILE_DEST_PATH").what


def test_shares_of_regional_tiers_alone_are_made_in_a_region() -> None:
    regional = {tier for tier in Tier if filestores.is_regional(tier)}

    assert regional == {Tier.ENTERPRISE, Tier.REGIONAL}
