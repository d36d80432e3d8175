"""The names of the tool's resources, and the resulting limit on the length of NAME_PREFIX.

Terraform builds the names (`terraform/`) and Python uses them for look-ups; a contract test checks
that both agree with this table.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

STATE_BUCKETS: Final = "aiinfra-terraform-"
"""How the names of the buckets begin that are made for states; the project's ID follows."""
_BOUND: Final = 8  # hexadecimal digits at the end of the name of what is bound to a place
_FREE: Final = re.compile(r"x+$")  # the end of a suffix that is a digest or a number


@dataclass(frozen=True)
class DerivedName:
    """One name that is derived from NAME_PREFIX."""

    kind: str  # what has this name, for messages
    suffix: str  # what follows the prefix
    limit: int  # Google's maximum length of such a name, in characters
    # whether a hash of the place that it is bound to ends the name: its zone, region or network, or
    # an IP range
    bound: bool = False

    def of(self, prefix: str) -> str:
        """The whole name, without a hash of a place."""
        return prefix + self.suffix

    def at(self, prefix: str, *place: str) -> str:
        """The whole name of what is bound to a place, as Terraform gives it to a new one."""
        return f"{self.of(prefix)}-{_digest(place)}"

    def numbered(self, number: int | str) -> DerivedName:
        """The name of the one with that number, for a suffix that ends with a free digit.

        `number`: the number; behind the kind of network, such as "rdma2", where there are several
        kinds.
        """
        return dataclasses.replace(self, suffix=_FREE.sub(str(number), self.suffix))

    def pattern(self, prefix: str) -> re.Pattern[str]:
        """What the name looks like, whatever number or hash it ends with."""
        whole = re.escape(_FREE.sub("", self.of(prefix)))
        free = r"[a-z0-9]+" if _FREE.search(self.suffix) else ""
        place = rf"(-[0-9a-f]{{{_BOUND}}})?" if self.bound else ""
        return re.compile(whole + free + place)

    @property
    def longest_prefix(self) -> int:
        """The maximum length of a prefix for this name."""
        return self.limit - len(self.suffix) - (_BOUND + 1 if self.bound else 0)


def is_at(name: str, *place: str) -> bool:
    """Whether a name ends with the hash of a place, as `DerivedName.at` makes it."""
    return name.endswith(f"-{_digest(place)}")


def _digest(place: Collection[str]) -> str:
    return hashlib.sha256(" ".join(place).encode()).hexdigest()[:_BOUND]


# Limits: service account IDs 30 (and at least 6, hence the long suffix), GKE clusters 40, the base
# name of a group's VMs 58 (Google appends "-" and four characters), RFC 1035 labels 63.
SERVICE_ACCOUNT = DerivedName("service account", "-nodes", 30)
CLUSTER = DerivedName("GKE cluster", "-gke", 40)
INSTANCE = DerivedName("VM base name", "-vm", 58)
GROUP = DerivedName("managed instance group", "-mig", 63)
TEMPLATE = DerivedName("instance template", "-" + 8 * "x", 63)
NETWORK = DerivedName("network", "-net", 63, bound=True)
SUBNETWORK = DerivedName("subnetwork", "-primary-subnet", 63, bound=True)
ROUTER = DerivedName("router", "-router", 63, bound=True)
NAT = DerivedName("Cloud NAT", "-nat", 63)
FIREWALL_INTERNAL = DerivedName("firewall rule", "-internal", 63, bound=True)
FIREWALL_SSH = DerivedName("firewall rule", "-iap-ssh", 63, bound=True)
FIREWALL_RAY_ALLOW = DerivedName("firewall rule", "-ray-allow", 63, bound=True)
FIREWALL_RAY_DENY = DerivedName("firewall rule", "-ray-deny", 63, bound=True)
FIREWALL_SLURM_ALLOW = DerivedName("firewall rule", "-slurm-allow", 63, bound=True)
FIREWALL_SLURM_DENY = DerivedName("firewall rule", "-slurm-deny", 63, bound=True)
# One digit is enough: no machine type has more than nine additional interfaces. The networks of a
# second kind have it before the digit, which leaves no prefix too long: see tests/terraform.
GPU_NETWORK = DerivedName("GPU network", "-gpu-net-x", 63, bound=True)
GPU_SUBNETWORK = DerivedName("GPU subnetwork", "-gpu-subnet-x", 63, bound=True)
FIREWALL_GPU = DerivedName("GPU network's firewall rule", "-gpu-internal-x", 63, bound=True)
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
    FIREWALL_RAY_ALLOW,
    FIREWALL_RAY_DENY,
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
FIREWALL_NODES = DerivedName("firewall rule", "-nodes", 63, bound=True)
FIREWALL_PODS = DerivedName("firewall rule", "-pods", 63, bound=True)
SYSTEM_POOL = DerivedName("system node pool", "-system", 40)
# Two digits are enough: there are at most 50 equal pools.
EQUAL_POOL = DerivedName("node pool", "-nodepool-xx", 40)

TIGHTEST_OF_GKE = min(
    (*ALL, WORKLOAD_ACCOUNT, SYSTEM_POOL, EQUAL_POOL), key=lambda name: name.longest_prefix
)
"""The name that limits the length of NAME_PREFIX for a GKE cluster."""

_LONGEST_POOL = 40
_DIGEST = 6

BAKE: Final = "-bake"
"""How the prefix of a cluster of one VM ends that is made for an image; VMs know it by that."""


def for_image(prefix: str) -> str:
    """The NAME_PREFIX of the cluster of one VM that Bake makes, and then destroys."""
    whole = prefix + BAKE
    limit = TIGHTEST.longest_prefix
    if len(whole) <= limit:
        return whole
    digest = hashlib.sha256(prefix.encode()).hexdigest()[:_DIGEST]
    return f"{prefix[: limit - len(BAKE) - _DIGEST - 1].rstrip('-')}-{digest}{BAKE}"


def node_pool(prefix: str, name: str) -> str:
    """The full name of a node pool.

    A long name is cut and ends with a digest of the full name. So two long names with the same
    beginning stay different, and each is the same in every run.
    """
    whole = f"{prefix}-{name}"
    if len(whole) <= _LONGEST_POOL:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST]
    return f"{whole[: _LONGEST_POOL - _DIGEST - 1].rstrip('-')}-{digest}"


def own_pool(prefix: str, asked: str, known: Collection[str]) -> str | None:
    """The full name of a node pool of a cluster that somebody names, in full or as in settings."""
    return next((it for it in (asked, node_pool(prefix, asked)) if it in known), None)
