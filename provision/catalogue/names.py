"""The names of the tool's resources, and the resulting limit on the length of NAME_PREFIX.

Terraform builds the names (`terraform/`) and Python uses them for look-ups; a contract test checks
that both agree with this table.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class DerivedName:
    """One name that is derived from NAME_PREFIX.

    Attributes:
        kind: What has this name, for messages.
        suffix: What follows the prefix.
        limit: Google's maximum length of such a name, in characters.
    """

    kind: str
    suffix: str
    limit: int

    def of(self, prefix: str) -> str:
        """The whole name."""
        return prefix + self.suffix

    @property
    def longest_prefix(self) -> int:
        """The maximum length of a prefix for this name."""
        return self.limit - len(self.suffix)


# Limits: service account IDs 30 (and at least 6, hence the long suffix), GKE clusters 40, the base
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
# One digit is enough: no machine type has more than nine additional interfaces.
GPU_NETWORK = DerivedName("GPU network", "-gpu-net-x", 63)
GPU_SUBNETWORK = DerivedName("GPU subnetwork", "-gpu-subnet-x", 63)
FIREWALL_GPU = DerivedName("GPU network's firewall rule", "-gpu-internal-x", 63)
FILESTORE = DerivedName("Filestore instance", "-nfs-" + 8 * "x", 63)
PLACEMENT_POLICY = DerivedName("placement policy", "-placement", 63)
WORKLOAD_POLICY = DerivedName("workload policy", "-workload", 63)

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
    FILESTORE,
    PLACEMENT_POLICY,
    WORKLOAD_POLICY,
)

TIGHTEST = min(ALL, key=lambda name: name.longest_prefix)
"""The name that limits the length of NAME_PREFIX."""

WORKLOAD_ACCOUNT = DerivedName("service account of the pods", "-workload", 30)
SYSTEM_POOL = DerivedName("system node pool", "-system", 40)
# Two digits are enough: there are at most 50 equal pools.
EQUAL_POOL = DerivedName("node pool", "-nodepool-xx", 40)

TIGHTEST_OF_GKE = min(
    (*ALL, WORKLOAD_ACCOUNT, SYSTEM_POOL, EQUAL_POOL), key=lambda name: name.longest_prefix
)
"""The name that limits the length of NAME_PREFIX for a GKE cluster."""

_LONGEST_POOL = 40
_DIGEST = 6


def node_pool(prefix: str, name: str) -> str:
    """The full name of a node pool.

    A long name is cut and ends with a digest of the full name. So two long names with the same
    beginning stay different, and each is the same in every run.

    Args:
        prefix: NAME_PREFIX.
        name: The pool's name in the settings.
    """
    whole = f"{prefix}-{name}"
    if len(whole) <= _LONGEST_POOL:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST]
    return f"{whole[: _LONGEST_POOL - _DIGEST - 1].rstrip('-')}-{digest}"
