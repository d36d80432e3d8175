"""What a plan may not take from machines that hold it, and what it may."""

from typing import Any

import pytest

from provision.deployment.deployment import Held
from provision.google import resources
from provision.google.owner import Owner
from provision.lifecycle import in_use
from provision.terraform.plan import Existing, Plan

OWNER = Owner("abc", "gs://state/np-deployment")
TEMPLATE = "projects/p/global/instanceTemplates/np-old"
POLICY = "projects/p/regions/r/resourcePolicies/np-placement"
NODES = "np-nodes@p.iam.gserviceaccount.com"
TEAM = "team@p.iam.gserviceaccount.com"
HELD = Held(paths=frozenset({TEMPLATE, POLICY}), accounts=frozenset({NODES, TEAM}))
OURS = {"condition": [{"description": OWNER.text}]}


def _made_of(row: resources.Resource, path: str) -> tuple[str, dict[str, Any]]:
    return row.type, {"self_link": f"https://www.googleapis.com/compute/v1/{path}"}


def _role(row: resources.Resource, account: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return row.type, {"member": f"serviceAccount:{account}", "bucket": "b/my-data", **more}


ACCOUNT = (resources.SERVICE_ACCOUNT.type, {"email": NODES})


def _taken(*removals: tuple[str, dict[str, Any]], having: Held = HELD) -> list[int]:
    """Which of some removals are taken out of the plan, by their place in it."""
    found = tuple(
        Existing(address=str(n), type=type_, values=values, called="")
        for n, (type_, values) in enumerate(removals)
    )
    return [int(it.address) for it in in_use.taken(Plan(removals=found), having, OWNER, "np")]


@pytest.mark.parametrize(
    ("removal", "stays"),
    [
        (_made_of(resources.TEMPLATE, TEMPLATE), True),
        (_made_of(resources.TEMPLATE, TEMPLATE + "er"), False),
        (_made_of(resources.RESOURCE_POLICY, POLICY), True),
        (ACCOUNT, True),
        ((resources.SERVICE_ACCOUNT.type, {"email": "np-jobs@p.iam.gserviceaccount.com"}), False),
        ((resources.FILESTORE.type, {"name": "np-nfs"}), False),
        (_role(resources.BUCKET_ROLE, NODES), True),
        (_role(resources.BUCKET_ROLE, TEAM, **OURS), True),
        # A role that somebody else gave to an account of theirs is no business of the sweep's.
        (_role(resources.BUCKET_ROLE, TEAM), False),
        # An account that stays keeps what it mounts, not each role.
        (_role(resources.PROJECT_ROLE, NODES), False),
    ],
)
def test_what_machines_hold_stays_if_the_sweep_can_find_it_again(
    removal: tuple[str, dict[str, Any]], *, stays: bool
) -> None:
    assert _taken(removal) == ([0] if stays else [])


def test_an_account_stays_with_all_of_its_roles() -> None:
    role = _role(resources.PROJECT_ROLE, NODES)
    assert _taken(ACCOUNT, role, _role(resources.PROJECT_ROLE, TEAM)) == [0, 1]
    assert _taken(ACCOUNT, role, having=Held(paths=HELD.paths)) == []


def test_nothing_is_held_by_machines_that_go_too() -> None:
    assert _taken(ACCOUNT, (resources.GROUP.type, {})) == []
