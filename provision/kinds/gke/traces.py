"""By what Destroy knows that GKE made something in Google Cloud for this very cluster.

GKE's controllers make load balancers, firewall rules and disks for what users create in Kubernetes,
and name them by rules of their own. The rules are read in these sources:

- github.com/kubernetes/cloud-provider-gcp at 4e24531, providers/gce/gce_loadbalancer_naming.go and
  vendor/k8s.io/cloud-provider/cloud.go: `a` and the Service's UID for a load balancer, `k8s-fw-` of
  that for its firewall rule, `k8s-ID-node` for a health check and its rules, where ID is random.
- github.com/kubernetes/ingress-gce at acbcf5d, pkg/utils/namer: `k8s2-`, perhaps a word of two or
  three letters, eight characters that stand for the cluster, and the names of what it is for;
  network endpoint groups and what they serve are `k8s1-` and the first half of the cluster's ID.
- the annotations networking.gke.io/... of a Gateway of 2025-12-04 and of a multi-cluster one of
  2024-07-24, as people have published them: `gkegw1-HASH-` and the names of what it is for, and for
  all of a cluster one firewall rule, `gkegw1-HASH-l7-NETWORK-global`, without target tags.
- github.com/kubernetes/ingress-gce/issues/136: `k8s-ig--ID` for the groups of a cluster's nodes.
- github.com/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver at b560165, pkg/parameters and
  pkg/gce-cloud-provider: a disk's description is JSON that names its volume and its claim.
- github.com/kubernetes-sigs/gcp-filestore-csi-driver at 2edb466, pkg/csi_driver: a volume's handle
  is `modeInstance/LOCATION/INSTANCE/SHARE`.
- docs.cloud.google.com/kubernetes-engine/docs/concepts/firewall-rules: the rules of the cluster
  itself are `gke-CLUSTER-HASH-...`, for nodes that have the tag `gke-CLUSTER-HASH-node`.

None of these names has the cluster's name but the tag of its nodes. All load balancers have
firewall rules for that tag, or for Gateways a rule of the cluster's network; what else belongs to
one has the same part in its name, the stem.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from provision.google.resources import path_in_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BALANCER: Final = "a[0-9a-f]{31}"
_ID: Final = "[0-9a-f]{16}"
_SHORT: Final = 8
_SHORT_ID: Final = f"[0-9a-z]{{{_SHORT}}}"
_NAMES: Final = (
    re.compile(rf"(?:k8s-(?:fw-)?)?(?P<stem>{_BALANCER})(?:-deny|-(?:http-)?hc)?"),
    re.compile(rf"k8s-(?P<stem>{_ID})-(?:node|internal|external)(?:-[-a-z0-9]+)?"),
    re.compile(rf"k8s-[-a-z0-9]*[a-z0-9]--(?P<stem>{_ID})0?"),
    re.compile(rf"k8s\d-(?:[a-z0-9]{{2,3}}-)?(?P<stem>{_SHORT_ID})-[-a-z0-9]+"),
    re.compile(r"(?P<stem>gkegw\d-[0-9a-z]{4})-[-a-z0-9]+"),
)
_OF_GATEWAYS: Final = re.compile(r"gkegw\d-[0-9a-z]{4}-l7-[-a-z0-9]+")
_OF_THE_CLUSTER: Final = re.compile(r"gke-[-a-z0-9]+")
_HASH: Final = "[0-9a-f]{8}"
_CREATED_FOR: Final = "kubernetes.io/created-for"
_NAME_LABEL: Final = "goog-k8s-cluster-name"
_PLACE_LABEL: Final = "goog-k8s-cluster-location"


class Fate(enum.Enum):
    """What becomes of a disk that was made for a claim.

    Attributes:
        GOES: Its volume's policy is Delete.
        STAYS: Its volume's policy is another one, such as Retain.
        UNKNOWN: Nobody could ask for the policy while the cluster was there.
    """

    GOES = "goes"
    STAYS = "stays"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What tells the things of one cluster from those of others.

    Attributes:
        project: The project.
        location: The cluster's region or zone.
        cluster: Its name.
        networks: The paths of the networks that the deployment made for it.
        alone: Whether no other cluster is in these networks.
        stems: Parts of names that only things of this cluster have.
        volumes: The path of a disk or a Filestore instance -> the reclaim policy of its volume.
    """

    project: str
    location: str
    cluster: str
    networks: frozenset[str]
    alone: bool = False
    stems: frozenset[str] = frozenset()
    volumes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `document` wrote.

        Raises:
            ValueError, KeyError, TypeError: It is something else.
        """
        found = json.loads(text)
        return cls(
            project=found["project"],
            location=found["location"],
            cluster=found["cluster"],
            networks=frozenset(found["networks"]),
            stems=frozenset(found["stems"]),
            volumes=dict(found["volumes"]),
        )

    def document(self) -> str:
        """The traces as JSON."""
        lists = {"networks": sorted(self.networks), "stems": sorted(self.stems)}
        return json.dumps(
            {
                "project": self.project,
                "location": self.location,
                "cluster": self.cluster,
                **lists,
                "volumes": dict(self.volumes),
            }
        )

    def and_earlier(self, earlier: Traces | None) -> Traces:
        """With what was found out earlier; of a policy, what was found out last counts."""
        if earlier is None:
            return self
        return dataclasses.replace(
            self,
            networks=self.networks | earlier.networks,
            stems=self.stems | earlier.stems,
            volumes={**earlier.volumes, **self.volumes},
        )

    def beside(self, clusters: Iterable[Mapping[str, Any]]) -> Traces:
        """Knowing whether other clusters are in the same networks.

        Args:
            clusters: The project's clusters as Google has them, without this one.
        """
        used = {(it.get("networkConfig") or {}).get("network") for it in clusters}
        return dataclasses.replace(self, alone=used.isdisjoint(self.networks))

    def with_stems(self, names: Iterable[str]) -> Traces:
        """With the stems of names that are of this cluster's things."""
        found = {found for name in names if (found := stem(name))}
        short = {one[:_SHORT] for one in found if re.fullmatch(_ID, one)}
        return dataclasses.replace(self, stems=self.stems | found | short)

    def with_endpoints(self, groups: Iterable[Mapping[str, Any]]) -> Traces:
        """With the stems of the network endpoint groups that are of this cluster.

        These keep a network from going, and for a Gateway no rule tells of them.

        Args:
            groups: Network endpoint groups as Google has them.
        """
        own = [it for it in groups if self.alone and _network(it) in self.networks]
        return self.with_stems(it["name"] for it in own)

    def with_rules(self, rules: Iterable[Mapping[str, Any]]) -> Traces:
        """With the stems of the firewall rules that are of this cluster.

        Args:
            rules: Firewall rules as Google has them.
        """
        return self.with_stems(rule["name"] for rule in rules if self.has_rule(rule))

    def has_named(self, document: Mapping[str, Any]) -> bool:
        """Whether something is of this cluster by its name."""
        return stem(document["name"]) in self.stems

    def has_rule(self, rule: Mapping[str, Any]) -> bool:
        """Whether a firewall rule is GKE's, in a network of this deployment, for this cluster."""
        if _network(rule) not in self.networks:
            return False
        if self.has_named(rule):
            return True
        if self.alone and _OF_GATEWAYS.fullmatch(rule["name"]):
            return True
        is_google = stem(rule["name"]) is not None or _OF_THE_CLUSTER.fullmatch(rule["name"])
        tag = re.compile(rf"gke-{re.escape(self.cluster)}-{_HASH}-node")
        tags = rule.get("targetTags") or []
        return bool(is_google and tags and all(tag.fullmatch(one) for one in tags))

    def instances(self) -> dict[str, Fate]:
        """The Filestore instances of claims, by path, and what becomes of each."""
        return {
            path: Fate.GOES if policy == "Delete" else Fate.STAYS
            for path, policy in self.volumes.items()
            if "/instances/" in path
        }

    def fate(self, disk: Mapping[str, Any]) -> Fate | None:
        """What becomes of a disk; None if it is not one of this cluster's claims."""
        claim = claim_of(disk)
        path, labels = path_in_document(disk), disk.get("labels") or {}
        own = {_NAME_LABEL: self.cluster, _PLACE_LABEL: self.location}
        is_labelled = all(labels.get(name) == value for name, value in own.items())
        if not claim or not (is_labelled or path in self.volumes):
            return None
        policy = self.volumes.get(path)
        if policy is None:
            return Fate.UNKNOWN
        return Fate.GOES if policy == "Delete" else Fate.STAYS


def _network(document: Mapping[str, Any]) -> str:
    """The path of the network that something is in; "" for none."""
    return str(document.get("network", "")).partition("/v1/")[2]


def stem(name: str) -> str | None:
    """The part of a name that all of one load balancer or of one cluster have.

    None for a name that GKE gives to nothing of a load balancer.
    """
    return next((found["stem"] for it in _NAMES if (found := it.fullmatch(name))), None)


def balancer(service: Mapping[str, Any]) -> str:
    """What GKE calls the load balancer of a Service, if not by the newer rules."""
    return f"a{service['metadata']['uid'].replace('-', '')}"[:32]


def claim_of(disk: Mapping[str, Any]) -> str:
    """The claim that a disk was made for, "namespace/name"; "" if for none."""
    try:
        tags = json.loads(disk.get("description", ""))
        names = [tags[f"{_CREATED_FOR}/pvc/{part}"] for part in ("namespace", "name")]
        volume = tags[f"{_CREATED_FOR}/pv/name"]
    except (ValueError, KeyError, TypeError):
        return ""
    # Only a disk that was made for a volume has its name; a clone's description is copied.
    return "/".join(names) if volume == disk["name"] else ""
