"""What a change opens: for others, and for the machines."""

import json
from typing import Any

import pytest

from provision.lifecycle import opens
from provision.settings import masking
from tests.unit import table

BEFORE: dict[str, Any] = {
    "NETWORK_CONFIG": "new_network",
    "ENABLE_EXTERNAL_IP": False,
    "AUTHORIZED_CIDR": ["10.0.0.0/8"],
    "SERVICE_ACCOUNT": "dedicated",
    "GCS_MOUNT_LIST": [{"bucket": "mine", "path": "/mnt/a"}],
}
CASES = table.answers("""
{}
{"INSTANCE_COUNT": 9, "NETWORK_RANGE": "10.0.0.0/12"}
{"ENABLE_EXTERNAL_IP": true} -> ! VMs get public addresses: ssh from IAP alone comes in
{"NETWORK_CONFIG": "default_network"} -> ! machines join the project's default network:
{"NETWORK_CONFIG": "existing", "NETWORK": "n"} -> ! machines join the network n:
{"NETWORK_CONFIG": "multi_nic_network"}
{"NETWORK_CONFIG": "default_network", "ENABLE_EXTERNAL_IP": true} -> ! machines join
    -> ! of the project's default network let in
{"AUTHORIZED_CIDR": ["10.0.0.0/8", "0.0.0.0/0"]}
    -> ! the control plane takes connections from 0.0.0.0/0
{"AUTHORIZED_CIDR": null}
{"SERVICE_ACCOUNT": "default"} -> machines act as the project's default account
{"SERVICE_ACCOUNT": "a@p.iam.gserviceaccount.com"} -> machines act as a@p.iam.gserviceaccount.com
{"GCS_MOUNT_LIST": [{"bucket": "other", "path": "/mnt/b"}]} -> machines read and write gs://other
{"GCS_MOUNT_LIST": [{"bucket": "mine", "path": "/mnt/b"}]}
{"GCS_MOUNT_LIST": [{"bucket": "other", "path": "/mnt/b"}], "GCS_OPTIONS": ["ro=true"]}
    -> machines read gs://other
{"GCS_OPTIONS": ["ro"]}
{"SECRETS": [{"project": "p", "secret": "s"}]} -> machines read the secret s of p
{"CA_BUNDLE": "/a.pem"} -> trust the certificates of /a.pem
{"HTTPS_PROXY": "http://p:1"} -> send what they ask through http://p:1
{"METADATA": {"enable-oslogin": "FALSE"}} -> ! enable-oslogin: OS Login is off
{"METADATA": {"enable-oslogin": "TRUE"}}
{"METADATA": {"enable-oslogin": "Yes"}}
{"METADATA": {"enable-oslogin": "off"}} -> ! enable-oslogin: OS Login is off
{"METADATA": {"enable-oslogin": ""}} -> ! enable-oslogin: OS Login is off
{"METADATA": {"serial-port-enable": "1"}} -> ! serial-port-enable: the serial console
{"METADATA": {"serial-port-enable": "0"}}
{"METADATA": {"ssh-keys": "me:ssh-rsa AAAA"}}
{"METADATA": {"ssh-keys": "me:ssh-rsa AAAA", "enable-oslogin": "no"}}
    -> ! enable-oslogin -> ! ssh-keys: whoever
""")


def _found(before: dict[str, Any] | None, now: dict[str, Any]) -> list[str]:
    sealed = masking.seal_settings({**now, "METADATA": now.get("METADATA", {})})
    found = opens.found(before, sealed, now.get("METADATA", {}))
    return [f"{'! ' if it.outside else ''}{it.words}" for it in found]


@pytest.mark.parametrize("changed", CASES)
def test_what_others_and_machines_may_after_a_change_is_said(changed: str) -> None:
    told = [it for it in CASES[changed] if it]
    found = _found(BEFORE, {**BEFORE, **json.loads(changed)})
    assert len(found) == len(told), found
    for says, wanted in zip(found, told, strict=True):
        outside, _, words = wanted.rpartition("! ")
        assert says.startswith("! ") is (wanted.startswith("! ") or bool(outside))
        assert words in says


def test_a_mount_that_was_read_only_opens_when_machines_write() -> None:
    options = {"GCS_OPTIONS": ["ro=true"]}
    assert _found(BEFORE | options, BEFORE) == ["machines read and write gs://mine"]
    assert _found(BEFORE | options, BEFORE | options) == []


def test_what_is_open_already_is_not_said_again() -> None:
    for changed in CASES:
        now = {**BEFORE, **json.loads(changed)}
        sealed = masking.seal_settings({**now, "METADATA": now.get("METADATA", {})})
        assert _found(sealed, now) == []


def test_of_a_new_cluster_only_what_hides_in_values_is_said() -> None:
    now = {**BEFORE, "ENABLE_EXTERNAL_IP": True, "METADATA": {"serial-port-enable": "true"}}
    assert [it[:20] for it in _found(None, now)] == ["! serial-port-enable"]
    assert _found(None, BEFORE) == []
