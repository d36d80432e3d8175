"""The names of what the tool makes, and how long a NAME_PREFIX can be because of them.

Terraform makes the names (`terraform/`), Python looks things up by them; a contract test holds
both sides to this table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DerivedName:
    """One name that is made of the NAME_PREFIX.

    Attributes:
        kind: What carries the name, in words.
        suffix: What follows the prefix.
        limit: Google's greatest length of such a name, in characters.
    """

    kind: str
    suffix: str
    limit: int

    def of(self, prefix: str) -> str:
        """The whole name."""
        return prefix + self.suffix

    @property
    def longest_prefix(self) -> int:
        """How long a prefix may be for this name alone."""
        return self.limit - len(self.suffix)


# Limits: service account ids 30 (and 6 at least, hence the long suffix), GKE clusters 40, the base
# name of a group's VMs 58 (Google appends "-" and four characters), RFC 1035 labels 63.
SERVICE_ACCOUNT = DerivedName("service account", "-nodes", 30)
CLUSTER = DerivedName("GKE cluster", "-gke", 40)
INSTANCE = DerivedName("VM base name", "-vm", 58)
GROUP = DerivedName("managed instance group", "-mig", 63)
TEMPLATE = DerivedName("instance template", "-" + 8 * "x", 63)
NETWORK = DerivedName("network", "-net", 63)
SUBNETWORK = DerivedName("subnetwork", "-primary-subnet", 63)
ROUTER = DerivedName("router", "-router", 63)
NAT = DerivedName("Cloud NAT", "-nat", 63)
FIREWALL_INTERNAL = DerivedName("firewall rule", "-internal", 63)
FIREWALL_SSH = DerivedName("firewall rule", "-iap-ssh", 63)
# One digit is enough: no machine type has more than nine interfaces beside the first.
GPU_NETWORK = DerivedName("GPU network", "-gpu-net-x", 63)
GPU_SUBNETWORK = DerivedName("GPU subnetwork", "-gpu-subnet-x", 63)
FIREWALL_GPU = DerivedName("GPU network's firewall rule", "-gpu-internal-x", 63)

ALL = (
    SERVICE_ACCOUNT,
    CLUSTER,
    INSTANCE,
    GROUP,
    TEMPLATE,
    NETWORK,
    SUBNETWORK,
    ROUTER,
    NAT,
    FIREWALL_INTERNAL,
    FIREWALL_SSH,
    GPU_NETWORK,
    GPU_SUBNETWORK,
    FIREWALL_GPU,
)

TIGHTEST = min(ALL, key=lambda name: name.longest_prefix)
"""The name that decides how long a NAME_PREFIX may be."""
