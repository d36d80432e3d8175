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


@pytest.mark.parametrize("path", ["/mnt", "/mnt/localssd", "/mnt/localssd/data"])
def test_the_local_ssds_of_vms_are_not_hidden(given: Given, path: str) -> None:
    mounts = f"a-b:{path}"

    problem = given(GCS_MOUNT_LIST=mounts, VM_TYPE="a3-highgpu-8g").problem("GCS_MOUNT_LIST")
    assert "the VMs need /mnt/localssd" in problem.why
    assert not given(GCS_MOUNT_LIST=mounts, VM_TYPE="a2-highgpu-1g").refused
    gke = {"ORCHESTRATOR_TYPE": "gke", "GKE_MAX_NODE_COUNT": "1", "GKE_MIN_NODE_COUNT": "0"}
    assert (
        "GCS_MOUNT_LIST" not in given(GCS_MOUNT_LIST=mounts, VM_TYPE="a3-highgpu-8g", **gke).refused
    )


TWO = "a-b:/mnt/x,c-d:/mnt/y"


@pytest.mark.parametrize(
    ("environ", "what"),
    [
        ({"VM_TYPE": "a2-highgpu-8g"}, "needs Local SSDs, which a2-highgpu-8g does not have"),
        ({"VM_TYPE": "a3-highgpu-8g", "GCS_CACHE_GB": "3001"}, "is more than the Local SSDs of"),
        (
            {
                "ORCHESTRATOR_TYPE": "gke",
                "GKE_NODE_POOLS": "name=a,vm_type=a3-highgpu-8g,max=1;"
                "name=b,vm_type=a2-highgpu-1g,max=1",
            },
            "needs Local SSDs, which a2-highgpu-1g does not have",
        ),
    ],
    ids=["without", "too_large", "one_pool_without"],
)
def test_a_cache_that_would_fill_the_boot_disk_is_refused(
    given: Given, environ: dict[str, str], what: str
) -> None:
    case = given(**{"GCS_MOUNT_LIST": TWO, "GCS_CACHE_GB": "100", **environ})

    assert what in case.problem("GCS_CACHE_GB").what


@pytest.mark.parametrize("vm_type", ["a3-highgpu-8g", "a9-highgpu-8g"])
def test_a_cache_that_fits_or_may_fit_is_taken(given: Given, vm_type: str) -> None:
    case = given(VM_TYPE=vm_type, GCS_MOUNT_LIST=TWO, GCS_CACHE_GB="3000")

    assert "GCS_CACHE_GB" not in case.refused | case.noted


def test_options_without_a_bucket_are_noted(given: Given) -> None:
    case = given(GCS_CACHE_GB="100", GCS_OPTIONS="ro")

    assert {"GCS_CACHE_GB", "GCS_OPTIONS"} <= case.noted
    assert not case.refused


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
