"""What VMs hold, read from what Google says of them."""

from __future__ import annotations

from typing import Any

import pytest

from provision.kinds.vms import held
from provision.kinds.vms.instances import Seen

LINK = "https://www.googleapis.com/compute/v1/"
OLD = "projects/p/global/instanceTemplates/np-old"
NEW = "projects/p/global/instanceTemplates/np-new"
POLICY = "projects/p/regions/r/resourcePolicies/np-placement"


def _member(name: str, template: str) -> dict[str, Any]:
    version = {"instanceTemplate": LINK + template}
    return {"instance": f"{LINK}projects/p/zones/z/instances/{name}", "version": version}


def _vm(name: str, account: str, *policies: str) -> dict[str, Any]:
    urls = [LINK + policy for policy in policies]
    return {"name": name, "serviceAccounts": [{"email": account}], "resourcePolicies": urls}


SEEN = Seen(
    group={"versions": [{"instanceTemplate": LINK + NEW}]},
    members=[_member("vm-1", OLD), _member("vm-2", NEW), _member("vm-gone", OLD)],
    documents=[
        _vm("vm-1", "old@p", POLICY),
        _vm("vm-2", "new@p"),
        _vm("somebody-elses", "other@p", "projects/p/regions/r/resourcePolicies/other"),
    ],
)


@pytest.mark.parametrize(
    ("older", "paths", "accounts"),
    [(False, {OLD, NEW, POLICY}, {"old@p", "new@p"}), (True, {OLD, POLICY}, {"old@p"})],
)
def test_vms_of_the_group_hold_template_policies_and_account(
    *, older: bool, paths: set[str], accounts: set[str]
) -> None:
    found = held.by(SEEN, older=older)
    assert found.paths == paths
    assert found.accounts == accounts


def test_a_vm_that_is_being_made_again_holds_its_template() -> None:
    alone = Seen(group=SEEN.group, members=[_member("vm-gone", OLD)])
    assert held.by(alone, older=True).paths == {OLD}


def test_where_there_is_no_group_nothing_is_held() -> None:
    assert held.by(Seen(group=None), older=False).paths == set()
