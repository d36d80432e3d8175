"""A firewall rule for a network of others: as command, as Terraform, and whether others do."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_EVERY_PORT: Final = range(1, 65536)  # nothing listens at 0, and rules of GKE's begin at 1


@dataclass(frozen=True, kw_only=True)
class FirewallRule:
    """A rule that lets connections in to the machines."""

    name: str  # what it may be called; a hash of the network follows where we make it
    network: str
    purpose: str  # what it is for, as a part of a sentence
    source: str  # the range that connections come from; what to put there, if it is not known
    allowed: Mapping[str, tuple[int, ...]]  # protocol -> the ports; empty for all

    @property
    def project(self) -> str:
        """The project of the network."""
        return self.network.split("/")[1]

    @property
    def is_whole(self) -> bool:
        """Whether its network and the range that it lets in are known."""
        return "<" not in self.network + self.source

    @property
    def variable(self) -> dict[str, Any]:
        """It as the module `network` takes it."""
        allow = [
            {"protocol": protocol, "ports": list(map(str, ports))}
            for protocol, ports in self.allowed.items()
        ]
        return {"name": self.name, "network": self.network, "source": self.source, "allow": allow}

    @property
    def gcloud(self) -> str:
        """The command that makes it."""
        allow = ",".join(
            f"{protocol}:{port}" if port else protocol
            for protocol, ports in self.allowed.items()
            for port in (ports or (0,))
        )
        return (
            f"gcloud compute firewall-rules create {self.name} --project {self.project} --network"
            f" {self._network} --direction INGRESS --source-ranges {self.source} --allow {allow}"
        )

    @property
    def terraform(self) -> str:
        """The resource that makes it."""
        lines = [
            f'resource "google_compute_firewall" "{self.name}" {{',
            f'  name          = "{self.name}"',
            f'  project       = "{self.project}"',
            f'  network       = "{self._network}"',
            '  direction     = "INGRESS"',
            f"  source_ranges = {json.dumps([self.source])}",
        ]
        for protocol, ports in self.allowed.items():
            of_ports = [f"    ports    = {json.dumps(list(map(str, ports)))}"] if ports else []
            lines += ["  allow {", f'    protocol = "{protocol}"', *of_ports, "  }"]
        return "\n".join([*lines, "}"])

    def is_met_by(self, rules: Sequence[Mapping[str, Any]]) -> bool:
        """Whether rules that are there let in all that this one does.

        A rule with a target is none: machines carry no tag, and their account differs. What denies
        it, and what policies say, is not looked at. `rules`: the rules of the network's project, as
        Compute Engine lists them.
        """
        fitting = [it for it in rules if _is_open(it, self.network) and self._comes_from(it)]
        return all(
            any(_lets_in(it, protocol, ports) for it in fitting)
            for protocol, ports in self.allowed.items()
        )

    @property
    def _network(self) -> str:
        return self.network.rpartition("/")[2]

    def _comes_from(self, rule: Mapping[str, Any]) -> bool:
        try:
            own = ipaddress.IPv4Network(self.source)
        except ValueError:
            return False
        ranges = (it for it in rule.get("sourceRanges", []) if ":" not in it)
        return any(own.subnet_of(ipaddress.IPv4Network(it, strict=False)) for it in ranges)


def _is_open(rule: Mapping[str, Any], network: str) -> bool:
    targets = rule.get("targetTags") or rule.get("targetServiceAccounts")
    is_here = str(rule.get("network", "")).endswith(f"/{network}")
    is_on = rule.get("direction") == "INGRESS" and not rule.get("disabled")
    return is_here and is_on and not targets


def _lets_in(rule: Mapping[str, Any], protocol: str, ports: tuple[int, ...]) -> bool:
    for allowed in rule.get("allowed", []):
        if allowed["IPProtocol"] == "all":
            return True
        if allowed["IPProtocol"] == protocol:
            told = allowed.get("ports")
            open_ = [_EVERY_PORT] if not told else list(map(_range, told))
            # The first and the last stand for all: nobody looks for holes between ranges.
            wanted = ports or (_EVERY_PORT[0], _EVERY_PORT[-1])
            if any(all(port in one for port in wanted) for one in open_):
                return True
    return False


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
