"""Which rules VMs need in a network of others, and when those that are there do."""

from typing import Any

import pytest

from provision.preflight import firewall
from provision.preflight.firewall import IAP
from provision.spec.networks import FirewallRule
from tests.unit.conftest import vm_spec

NETWORK = "projects/my-host/global/networks/my-vpc"


def _needed(name: str, source: str, allowed: dict[str, tuple[int, ...]]) -> FirewallRule:
    return FirewallRule(name=name, network=NETWORK, purpose="", source=source, allowed=allowed)


INSIDE = _needed("np-internal", "10.1.0.0/24", {"tcp": (), "udp": ()})
SSH = _needed("np-iap-ssh", IAP, {"tcp": (22,)})


def _rule(*allowed: str, **more: Any) -> dict[str, Any]:
    return {
        "network": f"https://www.googleapis.com/compute/v1/{NETWORK}",
        "direction": "INGRESS",
        "sourceRanges": ["10.0.0.0/8", IAP],
        "allowed": [
            {"IPProtocol": protocol, **({"ports": ports.split("+")} if ports else {})}
            for protocol, _, ports in (it.partition(":") for it in allowed)
        ],
        **more,
    }


@pytest.mark.parametrize(
    ("needed", "rules", "met"),
    [
        (INSIDE, [_rule("all")], True),
        (INSIDE, [_rule("tcp:0-65535"), _rule("udp")], True),
        (INSIDE, [_rule("tcp:1-65535"), _rule("udp")], True),
        (INSIDE, [_rule("tcp", "udp:1024-65535")], False),
        (INSIDE, [_rule("tcp")], False),
        (INSIDE, [_rule("all", sourceRanges=["10.1.0.0/25", "2600:2d00:1:7::/64"])], False),
        (SSH, [_rule("tcp:22")], True),
        (SSH, [_rule("tcp:80+20-30")], True),
        (SSH, [_rule("tcp:80+443")], False),
        (SSH, [_rule("tcp:22", direction="EGRESS")], False),
        (SSH, [_rule("tcp:22", disabled=True)], False),
        (SSH, [_rule("tcp:22", targetTags=["bastion"])], False),
        (SSH, [_rule("tcp:22", targetServiceAccounts=["me@p.iam.gserviceaccount.com"])], False),
        (SSH, [_rule("tcp:22", network=f"https://x/{NETWORK}-2")], False),
        (SSH, [{**_rule(), "denied": [{"IPProtocol": "tcp"}]}], False),
        (SSH, [], False),
    ],
)
def test_a_rule_that_is_there_does_if_it_lets_in_as_much(
    needed: FirewallRule, rules: list[dict[str, Any]], *, met: bool
) -> None:
    assert needed.is_met_by(rules) is met


def test_a_range_that_is_not_known_is_met_by_nothing() -> None:
    unknown = _needed("n", "<RANGE OF gpus>", {"tcp": ()})
    assert not unknown.is_met_by([_rule("all", sourceRanges=["0.0.0.0/0"])])


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["np-iap-ssh"]),
        ({"INSTANCE_COUNT": "2"}, ["np-internal", "np-iap-ssh"]),
        ({"ORCHESTRATOR_TYPE": "ray"}, ["np-internal", "np-iap-ssh"]),
        ({"ORCHESTRATOR_TYPE": "slurm"}, ["np-internal", "np-iap-ssh"]),
    ],
)
def test_what_is_used_decides_on_the_rules(settings: dict[str, str], names: list[str]) -> None:
    existing = {"NETWORK_CONFIG": "existing", "NETWORK": "my-vpc", "SUBNETWORK": "gpus"}
    found = list(firewall.of(vm_spec(**existing | settings), NETWORK, "10.1.0.0/24"))
    assert [it.name for it in found] == names


def test_a_rule_is_written_for_both_tools() -> None:
    assert SSH.gcloud == (
        "gcloud compute firewall-rules create np-iap-ssh --project my-host --network my-vpc"
        " --direction INGRESS --source-ranges 35.235.240.0/20 --allow tcp:22"
    )
    assert INSIDE.gcloud.endswith("--allow tcp,udp")
    assert SSH.terraform.splitlines() == [
        'resource "google_compute_firewall" "np-iap-ssh" {',
        '  name          = "np-iap-ssh"',
        '  project       = "my-host"',
        '  network       = "my-vpc"',
        '  direction     = "INGRESS"',
        '  source_ranges = ["35.235.240.0/20"]',
        "  allow {",
        '    protocol = "tcp"',
        '    ports    = ["22"]',
        "  }",
        "}",
    ]
