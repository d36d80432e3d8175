"""The metadata of a running VM: changed by whoever knows its fingerprint."""

from typing import Any

import pytest

from tests.rehearsal.cloud.compute.conftest import GROUP, ZONE, Compute, metadata

KEYS = {"items": [{"key": "ssh-keys", "value": "me:ssh-ed25519 AAAA"}]}


@pytest.fixture
def vm(wired: Compute) -> str:
    """The path of the VM of a group of one."""
    wired.of_one(metadata=metadata(purpose="training"))
    return f"{ZONE}/instances/{wired.vm()['name']}"


def _keys(api: Compute, vm: str) -> dict[str, str]:
    return {it["key"]: it["value"] for it in api.get(vm)["metadata"]["items"]}


def test_the_whole_metadata_is_replaced_and_has_another_fingerprint(
    wired: Compute, vm: str
) -> None:
    before = wired.get(vm)["metadata"]["fingerprint"]
    wired.post(f"{vm}/setMetadata", {**KEYS, "fingerprint": before})
    assert _keys(wired, vm) == {"ssh-keys": "me:ssh-ed25519 AAAA"}
    assert wired.get(vm)["metadata"]["fingerprint"] != before


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (KEYS, 412, "Supplied fingerprint does not match"),
        ({**KEYS, "fingerprint": "b2xk"}, 412, "Supplied fingerprint does not match"),
        ({"items": [{"key": "a b", "value": ""}]}, 400, "Must be a match of regex"),
        ({"items": KEYS["items"] * 2}, 400, "duplicate keys"),
    ],
)
def test_what_google_refuses_changes_nothing(
    wired: Compute, vm: str, body: dict[str, Any], code: int, words: str
) -> None:
    before = wired.get(vm)["metadata"]
    known = {"fingerprint": before["fingerprint"]} if code == 400 else {}
    error = wired.refused("POST", f"{vm}/setMetadata", {**body, **known})
    assert error.startswith(f"{code} ")
    assert words in error
    assert wired.get(vm)["metadata"] == before


@pytest.mark.parametrize("action", ["REFRESH", "REPLACE"])
def test_an_update_by_the_group_gives_a_vm_the_templates(
    wired: Compute, vm: str, action: str
) -> None:
    known = {"fingerprint": wired.get(vm)["metadata"]["fingerprint"]}
    wired.post(f"{vm}/setMetadata", KEYS | known)
    wired.template("next", metadata=metadata(purpose="serving"))
    wired.use("next")
    assert "purpose" not in _keys(wired, vm)
    body = {"instances": [vm], "minimalAction": action, "mostDisruptiveAllowedAction": action}
    wired.post(f"{GROUP}/applyUpdatesToInstances", body)
    keys = _keys(wired, vm)
    assert keys["purpose"] == "serving"
    assert "ssh-keys" not in keys
    assert keys["instance-template"].endswith("/next")


def test_no_update_without_a_restart_changes_what_a_vm_is_made_of(wired: Compute, vm: str) -> None:
    wired.template("next", machineType="e2-standard-8", labels={"team": "ml"})
    wired.use("next")
    body = {"minimalAction": "REFRESH", "mostDisruptiveAllowedAction": "REFRESH"}
    path = f"{GROUP}/applyUpdatesToInstances"
    assert wired.refusal("POST", path, {"instances": [vm], **body})["code"] == 400
    assert "team" not in wired.get(vm)["labels"]
