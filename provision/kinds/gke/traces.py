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
  is `modeInstance/LOCATION/INSTANCE/SHARE`; the instance has its volume's name, and labels that
  name the driver, the volume and the claim, but no cluster.
- docs.cloud.google.com/kubernetes-engine/docs/concepts/firewall-rules: the rules of the cluster
  itself are `gke-CLUSTER-HASH-...`, for nodes that have the tag `gke-CLUSTER-HASH-node`.

None of these names has the cluster's name but the tag of its nodes. All load balancers have
firewall rules for that tag, or for Gateways a rule of the cluster's network; what else belongs to
one has the same part in its name, the stem.
"""

# No deferred annotations: pydantic reads them.

import dataclasses
import enum
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Final, Self

from pydantic import Field, TypeAdapter

from provision.catalogue import names
from provision.documents import json_object
from provision.google.resources import path_in_document
from provision.state.record import Record

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
_NODES: Final = re.compile(r"gke-(?P<cluster>[-a-z0-9]+)-[0-9a-f]{8}-node")
_FILESTORES: Final = {"storage_gke_io_created-by": "filestore_csi_storage_gke_io"}
_NAME_LABEL: Final = "goog-k8s-cluster-name"
_PLACE_LABEL: Final = "goog-k8s-cluster-location"

_Stem = Annotated[str, Field(pattern=rf"^({_BALANCER}|{_ID}|{_SHORT_ID}|gkegw\d-[0-9a-z]{{4}})$")]
_Path = Annotated[str, Field(pattern=r"^projects/[a-z0-9.:-]+(/[A-Za-z0-9-]+){3,4}$")]
_Policy = Annotated[str, Field(pattern="^[A-Za-z]{0,20}$")]


class Fate(enum.Enum):
    """What becomes of a disk or a Filestore instance that was made for a claim.

    `GOES`: Its volume's policy is Delete. `STAYS`: Its volume's policy is another one, such as
    Retain. `UNKNOWN`: Nobody could ask for the policy while the cluster was there. `UNPROVEN`: Its
    policy is said to be Delete; Google does not say that it is this cluster's.
    """

    GOES = "goes"
    STAYS = "stays"
    UNKNOWN = "unknown"
    UNPROVEN = "unproven"


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What tells the things of one cluster from those of others."""

    project: str
    location: str  # the cluster's region or zone
    cluster: str
    networks: frozenset[_Path]  # the paths of the networks that the deployment made for it
    alone: bool = False  # whether no other cluster is in these networks
    stems: frozenset[_Stem] = frozenset()  # parts of names that only things of this cluster have
    # the path of a disk or a Filestore instance -> the reclaim policy of its volume
    volumes: Mapping[_Path, _Policy] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )

    @classmethod
    def of(cls, record: Record, networks: Iterable[str]) -> Self:
        """What tells the things of a deployment's cluster before it is asked.

        `networks`: paths of networks; those whose names are none of the deployment's are left out.
        """
        made = [it.pattern(record.name_prefix) for it in (names.NETWORK, names.GPU_NETWORK)]
        place = f"projects/{record.project_id}/global/networks/"
        return cls(
            project=record.project_id,
            location=record.region,
            cluster=names.CLUSTER.of(record.name_prefix),
            networks=frozenset(
                it
                for it in networks
                if it.startswith(place)
                and any(one.fullmatch(it.removeprefix(place)) for one in made)
            ),
        )

    @classmethod
    def parse(cls, text: str, record: Record) -> Self:
        """Read what `document` wrote; whose cluster it is says the record.

        Raises:
            ValueError: It is something else, or a value has another form.
        """
        found = json_object.read(text)
        kept = {name: found.get(name) for name in ("networks", "stems", "volumes")}
        read = TypeAdapter(cls).validate_python({**vars(cls.of(record, ())), **kept})
        own = cls.of(record, read.networks)
        return dataclasses.replace(own, stems=read.stems, volumes=read.volumes)

    def document(self) -> str:
        """The traces as JSON."""
        lists = {"networks": sorted(self.networks), "stems": sorted(self.stems)}
        return json.dumps({**lists, "volumes": dict(self.volumes)})

    def and_earlier(self, earlier: Self | None) -> Self:
        """With what was found out earlier; of a policy, what was found out last counts."""
        if earlier is None:
            return self
        return dataclasses.replace(
            self,
            networks=self.networks | earlier.networks,
            stems=self.stems | earlier.stems,
            volumes={**earlier.volumes, **self.volumes},
        )

    def beside(self, clusters: Iterable[Mapping[str, Any]]) -> Self:
        """Knowing whether other clusters are in the same networks.

        `clusters`: the project's clusters as Google has them, without this one.
        """
        used = {(it.get("networkConfig") or {}).get("network") for it in clusters}
        return dataclasses.replace(self, alone=used.isdisjoint(self.networks))

    def with_stems(self, names: Iterable[str]) -> Self:
        """With the stems of names that are of this cluster's things."""
        found = {found for name in names if (found := stem(name))}
        short = {one[:_SHORT] for one in found if re.fullmatch(_ID, one)}
        return dataclasses.replace(self, stems=self.stems | found | short)

    def with_endpoints(self, groups: Iterable[Mapping[str, Any]]) -> Self:
        """With the stems of the network endpoint groups that are of this cluster.

        These keep a network from going, and for a Gateway no rule tells of them.
        """
        own = [it for it in groups if self.alone and _network(it) in self.networks]
        return self.with_stems(it["name"] for it in own)

    def with_rules(self, rules: Iterable[Mapping[str, Any]]) -> Self:
        """With the stems of the firewall rules that are of this cluster.

        `rules`: firewall rules as Google has them.
        """
        return self.with_stems(rule["name"] for rule in rules if self.has_rule(rule))

    def without_others(self, rules: Iterable[Mapping[str, Any]]) -> Self:
        """Without the stems that firewall rules for the nodes of other clusters have.

        `rules`: firewall rules as Google has them.
        """
        tags = [
            (rule, _NODES.fullmatch(tag)) for rule in rules for tag in rule.get("targetTags") or []
        ]
        others = {stem(rule["name"]) for rule, it in tags if it and it["cluster"] != self.cluster}
        return dataclasses.replace(self, stems=self.stems - others)

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
        tags = [_NODES.fullmatch(one) for one in rule.get("targetTags") or []]
        return bool(is_google and tags and all(it and it["cluster"] == self.cluster for it in tags))

    def instances(self) -> Iterable[str]:
        """The paths of the Filestore instances of claims."""
        return (it for it in self.volumes if it.startswith(f"projects/{self.project}/locations/"))

    def fate(self, thing: Mapping[str, Any]) -> Fate | None:
        """What becomes of a disk or an instance; None if it was made for none of these claims."""
        policy, claim = self.volumes.get(path_in_document(thing)), claim_of(thing)
        is_ours = bool(claim) and self._is_made_for(thing)
        if policy is None:
            return Fate.UNKNOWN if is_ours else None
        if policy == "Delete":
            return Fate.GOES if is_ours else Fate.UNPROVEN
        return Fate.STAYS if claim else None

    def _is_made_for(self, thing: Mapping[str, Any]) -> bool:
        """Whether Google's own document of a volume says that it is of this cluster.

        An instance has no label for that, but it is in a network: only this cluster uses one of the
        deployment's in which there is no other.
        """
        labels = thing.get("labels") or {}
        if (labels.get(_NAME_LABEL), labels.get(_PLACE_LABEL)) == (self.cluster, self.location):
            return True
        named = [str(it.get("network")) for it in thing.get("networks", [])]
        here = f"projects/{self.project}/global/networks/"
        places = {it if "/" in it else f"{here}{it}" for it in named}
        return self.alone and bool(places) and places <= self.networks


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


def claim_of(thing: Mapping[str, Any]) -> str:
    """The claim that a disk or an instance was made for, "namespace/name"; "" if for none."""
    tags, form = thing.get("labels") or {}, "kubernetes_io_created-for_{}_{}"
    try:
        if not _FILESTORES.items() <= tags.items():
            tags, form = json.loads(thing.get("description", "")), "kubernetes.io/created-for/{}/{}"
        claim = [tags[form.format("pvc", part)] for part in ("namespace", "name")]
        volume = tags[form.format("pv", "name")]
    except (ValueError, KeyError, TypeError):
        return ""
    # Only what was made for a volume has its name; a clone's description is copied.
    return "/".join(claim) if volume == path_in_document(thing).rpartition("/")[2] else ""
