"""What VMs are made of: what of it differs, what Google can change on them, what they hold."""

from collections.abc import Callable, Collection
from typing import Any, cast

import pytest

from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds.vms import out_of_date
from provision.kinds.vms.instances import Seen
from tests.table import cases
from tests.unit.kinds.cases import having, unheard

LINK = "https://www.googleapis.com/compute/v1/"
ZONE = "projects/p/zones/z"
NEWEST = "projects/p/global/instanceTemplates/np-newest"
PLACE = having(project_id="p", region="r", zone="z", name_prefix="np")


class Google:
    """A group with VMs of older templates; `code` answers updates of those of "np-image".

    What a VM has of its template is its labels; the image, which differs too, nobody tells.
    """

    def __init__(self, code: int | None = 400, **made_from: str) -> None:
        self.code = code
        self.made_from = made_from

    def find(self, _: object, path: str) -> dict[str, Any]:
        if path == NEWEST:
            return {"properties": {"labels": {"team": "ml"}}}
        return {"versions": [{"instanceTemplate": LINK + NEWEST}]}

    def managed_instances(self, *_: str) -> list[dict[str, Any]]:
        usual = {"id": "1", "instanceStatus": "RUNNING", "currentAction": "NONE"}
        templates = [NEWEST.replace("np-newest", it) for it in self.made_from.values()]
        return [
            usual | {"instance": vm["selfLink"], "version": {"instanceTemplate": LINK + template}}
            for vm, template in zip(self.named_instances(), templates, strict=True)
        ]

    def named_instances(self, *_: str) -> list[dict[str, Any]]:
        names = [f"np-vm-{name}" for name in self.made_from]
        return [{"name": it, "selfLink": f"{LINK}{ZONE}/instances/{it}"} for it in names]

    def whole_instances(self, _project: str, _zone: str, names: list[str]) -> list[dict[str, Any]]:
        return [it for it in self.named_instances() if it["name"] in names]

    def apply_updates(
        self, _project: str, _zone: str, _group: str, vms: Collection[str], *, action: str
    ) -> None:
        assert action == "REFRESH"
        names = [vm.removeprefix("np-vm-") for vm in vms]
        if any(self.made_from[name] == "np-image" for name in names):
            if self.code is not None:
                raise GoogleApiError(self.code, "requires REPLACE", "https://x")
            return
        self.made_from |= dict.fromkeys(names, "np-newest")

    def change_metadata(self, path: str, change: Callable[[dict[str, str]], Any]) -> None:
        assert path.startswith(ZONE)
        assert change({}) == {}


def _refreshed(google: Google) -> list[tuple[str, ...]]:
    cloud = having(api=google)
    left = out_of_date.refresh(cloud, PLACE, out_of_date.find(cloud, PLACE), unheard())
    return [(vm.name, *vm.differences) for vm in left]


@pytest.mark.parametrize("code", [400, None])
def test_a_vm_that_differs_in_more_than_its_labels_stays_out_of_date(code: int | None) -> None:
    google = Google(code, a="np-labels", b="np-image", c="np-newest", d="np-labels")
    assert _refreshed(google) == [
        ("np-vm-b", "labels team", "what Google changes only by replacing it")
    ]
    assert google.made_from == dict.fromkeys("abcd", "np-newest") | {"b": "np-image"}


def test_who_may_not_change_vms_and_vms_without_a_group_differ_in_nothing() -> None:
    with pytest.raises(GoogleApiError):
        _refreshed(Google(403, b="np-image"))
    alone = Seen(group=SEEN.group, members=[_member("vm-gone", OLD)])
    assert out_of_date.held(alone, older=True).paths == {OLD}
    assert out_of_date.held(Seen(group=None), older=False).paths == set()


OWN = {"startup-script": "true", "aiinfra-config": "{}", "enable-oslogin": "TRUE"}
VM = f"{ZONE}/instances/vm"


def _document(**keys: str) -> dict[str, Any]:
    own = {key.replace("_", "-"): value for key, value in keys.items()}
    items = [{"key": key, "value": value} for key, value in {**OWN, **own}.items()]
    return {"metadata": {"items": items}}


@cases("""
vm | template | keys | in_place
{} | {} | - | true
{} | {purpose: training, aiinfra_metadata_keys: purpose} | purpose | true
{purpose: x, aiinfra_metadata_keys: purpose} | {purpose: y, aiinfra_metadata_keys: purpose}
    | purpose | true
{purpose: x, aiinfra_metadata_keys: purpose} | {} | purpose | true
# Nobody knows whether an older version set it, or somebody by hand.
{purpose: x} | {} | - | true
{purpose: x} | {purpose: x, aiinfra_metadata_keys: purpose} | aiinfra-metadata-keys | true
# Google's own, and somebody's keys.
{ssh_keys: "me:ssh-ed25519 AAAA", created-by: a-group, instance-template: old, proxy-url: a-url}
    | {} | - | true
{enable_oslogin: "FALSE"} | {} | enable-oslogin | true
{} | {aiinfra_startup_command: "true"} | aiinfra-startup-command | false
{aiinfra_startup_command: "true"} | {} | aiinfra-startup-command | false
{proxy_mode: project_editors} | {} | proxy-mode | false
{startup_script: "false"} | {} | startup-script | false
{} | {user_data: "#cloud-config", purpose: x} | purpose, user-data | false
""")
def test_what_differs_and_whether_a_running_vm_heeds_it(
    vm: dict[str, str], template: dict[str, str], keys: str, *, in_place: bool
) -> None:
    found = list(out_of_date._differences(_document(**vm), _document(**template)))
    assert [it.in_place for it in found] == [in_place] * bool(keys)
    assert [it.words.partition(" (")[0] for it in found] == [f"metadata {keys}"] * bool(keys)


class _OneVm:
    """A Google whose update of a VM leaves these keys, and which takes one change of them."""

    def __init__(self, **keys: str) -> None:
        items = _document(**keys)["metadata"]["items"]
        self.keys = {one["key"]: one["value"] for one in items}

    def change_metadata(
        self, path: str, change: Callable[[dict[str, str]], dict[str, str]]
    ) -> None:
        assert path == VM
        self.keys = change(dict(self.keys))


BEFORE = {
    "old": "ours",
    "stays": "1",
    "aiinfra_metadata_keys": "old,stays",
    "ssh_keys": "me:ssh-ed25519 AAAA",
    "created_by": "a-group",
}
WANTED = {"stays": "2", "aiinfra_metadata_keys": "stays"}


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(WANTED | {"created_by": "a-group"}, id="the template's and Google's own"),
        pytest.param(BEFORE | WANTED, id="the template's, beside all that was there"),
        pytest.param(BEFORE, id="all that was there"),
    ],
)
def test_what_others_have_added_stays_whatever_an_update_makes_of_it(left: dict[str, str]) -> None:
    google = _OneVm(**left)
    keeper = out_of_date.Keeper(cast("GoogleApi", google), [(VM, _document(**BEFORE))])
    keeper.restore(_document(**WANTED))
    assert google.keys == {
        **OWN,
        "stays": "2",
        "aiinfra-metadata-keys": "stays",
        "ssh-keys": "me:ssh-ed25519 AAAA",
        "created-by": "a-group",
    }


def test_what_others_have_changed_meanwhile_stays_as_they_wrote_it() -> None:
    google = _OneVm(ssh_keys="you:ssh-ed25519 BBBB")
    out_of_date.Keeper(cast("GoogleApi", google), [(VM, _document(**BEFORE))]).restore(_document())
    assert google.keys == {**OWN, "ssh-keys": "you:ssh-ed25519 BBBB", "created-by": "a-group"}


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
    found = out_of_date.held(SEEN, older=older)
    assert found.paths == paths
    assert found.accounts == accounts
