"""What of a running VM's metadata is ours, and what an update leaves of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.kinds.vms import metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.google.api import GoogleApi

OWN = {"startup-script": "true", "aiinfra-config": "{}", "enable-oslogin": "TRUE"}
GOOGLES = {"created-by": "a-group", "instance-template": "the-old-one", "proxy-url": "a-url"}
VM = "projects/p/zones/z/instances/vm"


def _document(**keys: str) -> dict[str, Any]:
    own = {key.replace("_", "-"): value for key, value in keys.items()}
    items = [{"key": key, "value": value} for key, value in {**OWN, **own}.items()]
    return {"metadata": {"items": items}}


@pytest.mark.parametrize(
    ("vm", "template", "keys", "in_place"),
    [
        ({}, {}, (), True),
        ({}, {"purpose": "training", "aiinfra_metadata_keys": "purpose"}, ("purpose",), True),
        (
            {"purpose": "x", "aiinfra_metadata_keys": "purpose"},
            {"purpose": "y", "aiinfra_metadata_keys": "purpose"},
            ("purpose",),
            True,
        ),
        ({"purpose": "x", "aiinfra_metadata_keys": "purpose"}, {}, ("purpose",), True),
        # Nobody knows whether an older version set it, or somebody by hand.
        ({"purpose": "x"}, {}, (), True),
        ({"purpose": "x"}, {"purpose": "x", "aiinfra_metadata_keys": "purpose"}, None, True),
        ({"ssh_keys": "me:ssh-ed25519 AAAA", **GOOGLES}, {}, (), True),
        ({"enable_oslogin": "FALSE"}, {}, ("enable-oslogin",), True),
        ({}, {"aiinfra_startup_command": "true"}, ("aiinfra-startup-command",), False),
        ({"aiinfra_startup_command": "true"}, {}, ("aiinfra-startup-command",), False),
        ({"proxy_mode": "project_editors"}, {}, ("proxy-mode",), False),
        ({"startup_script": "false"}, {}, ("startup-script",), False),
        ({}, {"user_data": "#cloud-config", "purpose": "x"}, ("purpose", "user-data"), False),
    ],
)
def test_what_differs_and_whether_a_running_vm_heeds_it(
    vm: dict[str, str], template: dict[str, str], keys: tuple[str, ...] | None, *, in_place: bool
) -> None:
    found = metadata.differing(_document(**vm), _document(**template))
    expected = ("aiinfra-metadata-keys",) if keys is None else keys
    assert found == metadata.Differing(keys=expected, in_place=in_place)


class _Google:
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
    google = _Google(**left)
    keeper = metadata.Keeper(cast("GoogleApi", google), {VM: _document(**BEFORE)})
    keeper.restore(_document(**WANTED))
    assert google.keys == {
        **OWN,
        "stays": "2",
        "aiinfra-metadata-keys": "stays",
        "ssh-keys": "me:ssh-ed25519 AAAA",
        "created-by": "a-group",
    }


def test_what_others_have_changed_meanwhile_stays_as_they_wrote_it() -> None:
    google = _Google(ssh_keys="you:ssh-ed25519 BBBB")
    metadata.Keeper(cast("GoogleApi", google), {VM: _document(**BEFORE)}).restore(_document())
    assert google.keys == {
        **OWN,
        "ssh-keys": "you:ssh-ed25519 BBBB",
        "created-by": "a-group",
    }
