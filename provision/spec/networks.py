"""Networks that exist and that machines join, maybe in a host project, and the rules they need."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from provision.google.resources import NETWORK, SUBNETWORK
from provision.settings.choices import NetworkConfig
from provision.settings.resource_paths import NetworkPath, SubnetworkPath

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.settings.model import Settings

_EVERY_PORT: Final = range(1, 65536)  # nothing listens at 0, and rules of GKE's begin at 1


@dataclass(frozen=True, kw_only=True)
class Subnetwork:
    """A subnetwork that somebody else has made."""

    project: str  # the project that owns it; for a Shared VPC its host project
    region: str
    name: str

    @property
    def path(self) -> str:
        """It as projects/P/regions/R/subnetworks/S."""
        return SUBNETWORK.path(project=self.project, region=self.region, name=self.name)


@dataclass(frozen=True, kw_only=True)
class ExistingNetwork:
    """Networks that somebody else has made, and that nothing is made in."""

    network: str  # the name of the network of the first interface
    subnetwork: Subnetwork  # the subnetwork of the first interface
    # those of the others, in their order; empty where there is one interface
    gpus: tuple[Subnetwork, ...] = ()
    # the secondary range of the subnetwork for pods; None without a GKE cluster
    pods: str | None = None
    services: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """What the settings name; None if they name none, as a rule between them refuses."""
        network = NetworkPath.parse(settings.network or "")
        first = SubnetworkPath.parse(settings.subnetwork or "")
        if settings.network_config is not NetworkConfig.EXISTING or not (network and first):
            return None
        project = network.project or first.project or settings.project_id
        region = first.region or settings.region
        named = map(SubnetworkPath.parse, settings.gpu_subnetworks or ())
        return cls(
            network=network.name,
            subnetwork=Subnetwork(project=project, region=region, name=first.name),
            gpus=tuple(
                Subnetwork(
                    project=one.project or project, region=one.region or region, name=one.name
                )
                for one in named
                if one is not None
            ),
            pods=settings.gke_pods_range,
            services=settings.gke_services_range,
        )

    @property
    def project(self) -> str:
        """The project that owns the first network."""
        return self.subnetwork.project

    @property
    def path(self) -> str:
        """The first network, as projects/P/global/networks/N."""
        return NETWORK.path(project=self.project, name=self.network)

    def in_region(self, region: str) -> Self:
        """The subnetworks of the same names in another region."""
        first, *others = (replace(one, region=region) for one in (self.subnetwork, *self.gpus))
        return replace(self, subnetwork=first, gpus=tuple(others))


@dataclass(frozen=True, kw_only=True)
class FirewallRule:
    """A rule that lets connections in to the machines, and how it is made."""

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
