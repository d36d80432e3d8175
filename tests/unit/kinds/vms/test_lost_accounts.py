"""VMs whose account was deleted run on and may do nothing: that is told, with the way out."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from provision.catalogue import accounts
from provision.codes import Code
from provision.errors import ClusterError
from provision.google.api import GoogleApiError
from provision.kinds.vms import jobs, out_of_date
from provision.kinds.vms.out_of_date import LostAccount
from provision.lifecycle import plan_document
from provision.time.clock import Clock
from tests.unit.kinds.cases import having
from tests.unit.memory_folder import MemoryFolder

PLACE = having(project_id="p", region="r", zone="z", name_prefix="np")
OURS = "np-nodes@p.iam.gserviceaccount.com"
DEFAULT = accounts.default("42")
LINK = "https://www.googleapis.com/compute/v1/projects/p/"
TEMPLATE = f"{LINK}global/instanceTemplates/np-newest"
FIRST, SECOND = "103271949540120710052", "103271949540120710053"


class Google:
    """Two VMs of their group's newest template, and what IAM answers of their account."""

    def __init__(self, account: dict[str, Any] | int, email: str = OURS) -> None:
        self.account = account
        self.email = email
        self.asked: list[str] = []

    def find(self, _: object, path: str) -> dict[str, Any] | None:
        if "serviceAccounts" not in path:
            return {"versions": [{"instanceTemplate": TEMPLATE}]}
        self.asked.append(path)
        if isinstance(self.account, int):
            if self.account == 404:
                return None
            raise GoogleApiError(self.account, "no", "https://x")
        return self.account

    def managed_instances(self, *_: str) -> list[dict[str, Any]]:
        version = {"instanceTemplate": TEMPLATE}
        return [
            {"id": it["id"], "instance": f"{LINK}zones/z/instances/{it['name']}"}
            | {"version": version}
            for it in self.named_instances()
        ]

    def named_instances(self, *_: str) -> list[dict[str, Any]]:
        acts_as = [{"email": self.email}]
        return [{"name": f"np-vm-{it}", "id": it, "serviceAccounts": acts_as} for it in "12"]

    def whole_instances(self, _project: str, _zone: str, names: list[str]) -> list[dict[str, Any]]:
        return [it for it in self.named_instances() if it["name"] in names]


def _cloud(google: Google) -> Any:
    """The VM 1 has said as which account it acts, and 2 has not."""
    said = {"members": [{"instance_id": "1", "account": FIRST, "present": False}]}
    folder = MemoryFolder({"vms/roster.json": json.dumps(said)})
    vars(folder)["record"] = lambda: having(settings={"INSTANCE_COUNT": 1}, **vars(PLACE))
    return having(api=google, folder=folder, project_number="42", lists=None)


def _lost(account: dict[str, Any] | int, email: str = OURS) -> Sequence[LostAccount]:
    google = Google(account, email)
    return out_of_date.without_account(_cloud(google), PLACE, google.named_instances())


def test_nothing_is_claimed_of_an_account_that_is_there_or_that_nobody_may_see() -> None:
    assert _lost({"uniqueId": FIRST}) == []
    assert _lost(403) == []
    # One of another project, which its address does not name.
    assert _lost(404, accounts.default("43")) == []


def test_a_deleted_account_can_be_brought_back_and_another_of_its_address_is_told_apart() -> None:
    known, unknown = _lost(404)
    assert known.what == f"np-vm-1 acts as {OURS}, a service account that was deleted"
    undelete, other = known.problem.fix.splitlines()[1:]
    assert undelete == f"gcloud iam service-accounts undelete {FIRST} --project p"
    assert other == "or Create --replace-vms, for VMs that act as another one"
    assert unknown.vms == ("np-vm-2",)
    assert "`?uid=` in what `gcloud projects get-iam-policy p` lists" in unknown.back
    (lost,) = _lost({"uniqueId": FIRST, "disabled": True})
    assert lost.vms == ("np-vm-1", "np-vm-2")
    assert lost.problem.fix == f"gcloud iam service-accounts enable {OURS} --project p"
    assert not lost.others
    lost = _lost(404, DEFAULT)[0]
    assert "\nor SERVICE_ACCOUNT=dedicated and Create --replace-vms," in lost.problem.fix
    (lost,) = _lost({"uniqueId": SECOND})
    assert lost.vms == ("np-vm-1",)
    assert lost.what.endswith("was deleted; the one that has its address now is another")
    # Google brings none back over one of its address.
    delete, undelete = lost.back.splitlines()[1:3]
    assert delete == f"gcloud iam service-accounts delete {OURS} --project p"
    assert undelete == f"gcloud iam service-accounts undelete {FIRST} --project p"


def test_who_needs_the_vms_is_refused() -> None:
    there, another = Google({"uniqueId": FIRST}), Google({"uniqueId": SECOND})
    with pytest.raises(ClusterError) as caught:
        out_of_date.require_accounts(_cloud(another), PLACE, another.named_instances())
    assert [it.code for it in caught.value.problems] == [Code.ACCOUNT_GONE]
    assert caught.value.exit_code == 8
    out_of_date.require_accounts(_cloud(there), PLACE, there.named_instances())
    out_of_date.require_accounts(_cloud(another), PLACE, another.named_instances(), {"1": SECOND})


def test_vms_whose_account_is_gone_are_out_of_date_though_of_the_newest_template() -> None:
    found = out_of_date.find(_cloud(Google({"uniqueId": SECOND})), PLACE)
    assert [(it.name, it.differences, it.in_place) for it in found] == [
        ("np-vm-1", ("its service account, which was deleted",), False)
    ]
    assert f"undelete {FIRST}" in plan_document.note_of_older(found).fix
    assert out_of_date.find(_cloud(Google({"disabled": True})), PLACE) == []


def test_who_waits_for_a_job_is_told_and_google_asked_once_a_minute() -> None:
    google = Google(404)
    watch = jobs.Watch(_cloud(google), Clock())
    first, second = watch.look()[0], watch.look()[0]
    assert first == second
    assert f"undelete {FIRST}" in first
    assert "\n" not in first
    assert google.asked == [f"projects/p/serviceAccounts/{OURS}"]
    assert not jobs.Watch(_cloud(Google(500)), Clock()).look()[0]


@pytest.mark.parametrize("code", [403, 503])
def test_an_account_that_google_does_not_tell_of_hides_nothing_of_its_vms(code: int) -> None:
    cloud = _cloud(google := Google(code))
    assert out_of_date.without_account(cloud, PLACE, google.named_instances()) == []


@pytest.mark.parametrize("shares", [True, None, False])
def test_vms_that_say_nothing_for_lack_of_a_role_are_told_what_gives_it(
    *, shares: bool | None
) -> None:
    cloud = _cloud(google := Google({"uniqueId": FIRST}))
    vars(cloud.folder)["shares_with"] = lambda email, part: {(OURS, "vms/"): shares}[email, part]

    found = out_of_date.without_role(cloud, google.named_instances(), {"np-vm-2"})

    assert out_of_date.without_role(cloud, google.named_instances(), set()) == []
    if shares is not False:
        assert found == []
        return
    (one,) = found
    assert one.what == f"np-vm-2 acts as {OURS}, which has no role on vms/"
    assert one.problem.code is Code.PERMISSION_MISSING
    assert "no job begins on them" in one.problem.why
    assert one.problem.fix == "run Create: it gives the account its role again"
