"""Which conditions of roles in a bucket hold: those on objects' names, and on lists' prefixes."""

from pathlib import Path

import pytest

from rehearsal.cloud import policies
from rehearsal.cloud.storage import buckets
from rehearsal.cloud.store import Database

VMS = "serviceAccount:nodes@proj-a1.iam.gserviceaccount.com"
NAMED = 'resource.name.startsWith("projects/_/buckets/states/objects/np-deployment/vms/")'
LISTED = (
    'api.getAttribute("storage.googleapis.com/objectListPrefix", "")'
    '.startsWith("np-deployment/vms/")'
)


def _verdict(folder: Path, expression: str | None, role: str = "objectUser") -> dict[str, bool]:
    binding = {"role": f"roles/storage.{role}", "members": [VMS]}
    if expression is not None:
        binding["condition"] = {"title": "vms", "expression": expression}  # type: ignore[assignment]  # as Google has it
    with Database(folder / "cloud.sqlite").transaction() as store:
        policies.replace(store, "buckets/states", {"bindings": [binding]}, {})
        return {
            "write": buckets.may_write(store, "states", VMS, "np-deployment/vms/members/vm.json"),
            "write state": buckets.may_write(store, "states", VMS, "np-deployment/terraform/state"),
            "list": buckets.may_list(store, "states", VMS, "np-deployment/vms/members/"),
            "list all": buckets.may_list(store, "states", VMS, ""),
        }


NOTHING = {"write": False, "write state": False, "list": False, "list all": False}


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        (f"{NAMED} || {LISTED}", {"write", "list"}),
        (NAMED, {"write"}),
        (LISTED, {"list"}),
        (None, {"write", "write state", "list", "list all"}),
        (f"{NAMED} && {LISTED}", set()),
        ('resource.name.endsWith("x")', set()),
    ],
    ids=["both", "names", "lists", "none", "and", "unknown"],
)
def test_a_role_is_for_what_its_condition_says(
    tmp_path: Path, expression: str | None, allowed: set[str]
) -> None:
    assert _verdict(tmp_path, expression) == NOTHING | dict.fromkeys(allowed, True)


def test_a_role_that_only_reads_lets_nobody_write(tmp_path: Path) -> None:
    assert _verdict(tmp_path, None, role="objectViewer") == NOTHING
