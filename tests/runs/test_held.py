"""What running VMs of older settings hold stays for them, and goes when they have gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Change = tuple[dict[str, str], dict[str, str], Callable[[str], bool], str]

    from tests.runs.conftest import Rehearsal, Rehearse

_COMPACT: Final = {"ENABLE_COMPACT_PLACEMENT": "yes"}
_TEAM: Final = "team-vms@my-project.iam.gserviceaccount.com"
_MOUNTED: Final = {"GCS_MOUNT_LIST": "my-data:/mnt/data"}
_NOTHING: Final = {"add": 0, "change": 0, "destroy": 0}

CHANGES: Final[Mapping[str, Change]] = {
    "no_compact_placement": (
        _COMPACT,
        {"ENABLE_COMPACT_PLACEMENT": "no"},
        lambda line: "resourcePolicies/" in line,
        "placement policy np-placement stays until then",
    ),
    "another_account": (
        _MOUNTED,
        {"SERVICE_ACCOUNT": _TEAM},
        lambda line: "np-nodes@" in line,
        "service account np-nodes@my-project.iam.gserviceaccount.com stays until then",
    ),
    "a_bucket_that_is_mounted_no_more": (
        _MOUNTED,
        {"GCS_MOUNT_LIST": ""},
        lambda line: "np-nodes@" in line and "my-data" in line,
        "",
    ),
}
"""Name -> settings before, what changes, what goes with the last VM of before, said of it."""
SLOW = pytest.mark.slow(
    sibling="tests/runs/test_done_is_done.py::test_flex_start_vms_are_not_replaced"
)


def _prepare(rehearsal: Rehearsal) -> None:
    access = {"uniformBucketLevelAccess": {"enabled": True}}
    bucket = {"name": "my-data", "iamConfiguration": access}
    rehearsal.google("POST", "storage/v1/b?project=my-project", bucket)
    body = {"accountId": "team-vms", "serviceAccount": {}}
    rehearsal.google("POST", "iam/v1/projects/my-project/serviceAccounts", body)


def _there(rehearsal: Rehearsal) -> set[str]:
    """What can be held: resources, and who may do what in the project and on the bucket."""
    lines = {it for it in rehearsal.resources() if it.startswith(("compute/", "iam/"))}
    project = "crm/v1/projects/my-project:getIamPolicy"
    policy = rehearsal.google("POST", project, {})
    lines |= _granted(policy, "in the project")
    policy = rehearsal.google("GET", "storage/v1/b/my-data/iam?optionsRequestedPolicyVersion=3")
    return lines | _granted(policy, "on my-data")


def _granted(policy: Mapping[str, list[dict[str, list[str]]]], where: str) -> set[str]:
    return {
        f"role {one['role']} of {member.partition(':')[2]} {where}"
        for one in policy.get("bindings", [])
        for member in one["members"]
    }


@SLOW
@pytest.mark.parametrize("name", CHANGES)
def test_what_running_vms_hold_stays_until_they_are_replaced(rehearse: Rehearse, name: str) -> None:
    before, change, gone, said = CHANGES[name]
    rehearsal = rehearse()
    _prepare(rehearsal)
    assert rehearsal.run("Create", **before).code == 0
    held = {it for it in _there(rehearsal) if "team-vms" not in it}
    wanted = before | change

    planned = rehearsal.run("Plan", **wanted)
    assert planned.code == 0, planned.said
    assert said in " ".join(planned.said.split())
    assert "loses" not in planned.said
    assert _there(rehearsal) >= held

    changed = rehearsal.run("Create", **wanted)
    assert changed.code == 0, changed.said
    assert _there(rehearsal) >= held
    again = rehearsal.run("Create", **wanted)
    assert again.document["changes"] == _NOTHING, again.said
    assert _there(rehearsal) >= held

    replaced = rehearsal.run("Create", "--replace-vms", "--yes", **wanted)
    assert replaced.code == 0, replaced.said
    assert "no machine holds it any more" in replaced.said
    left = _there(rehearsal)
    assert held - left == {it for it in held if "/instanceTemplates/" in it or gone(it)}
    assert rehearsal.run("Destroy", "--yes", **wanted).code == 0
    assert [it for it in _there(rehearsal) if "np-" in it] == []
