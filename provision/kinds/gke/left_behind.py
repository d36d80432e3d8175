"""What GKE has left in Google Cloud once its cluster is gone: whose it is, and removing it.

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
one has the same part in its name, the stem. What holds data goes only if its volume's policy is
known to be Delete.
"""

# No deferred annotations: pydantic reads those of `Traces`.

import dataclasses
import enum
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Final, Self

from pydantic import Field, TypeAdapter

from provision.catalogue import names
from provision.codes import Code
from provision.context import Cloud, Context
from provision.deployment.deployment import Left
from provision.documents import json_object
from provision.errors import ClusterError, Problem
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.resources import CLUSTER, FIREWALL, Look, Marker, path_in_document
from provision.lifecycle import phases
from provision.lifecycle.phases import Phase
from provision.state.folder import StateFolder
from provision.state.location import Place
from provision.state.objects import Stored, Writer
from provision.state.record import Record

_FORBIDDEN: Final = 403
_AGAIN: Final = "then run Destroy again"

# ------------------------------------------------------------------ whose it is

_NAMED: Final = 'name eq "(a|k8s|gke|pvc-).*"'
"""All names that GKE gives to such things; whose they are is decided one by one."""
_BALANCER: Final = "a[0-9a-f]{31}"
_ID: Final = "[0-9a-f]{16}"
_SHORT: Final = 8
_SHORT_ID: Final = f"[0-9a-z]{{{_SHORT}}}"
_GATEWAY: Final = r"gkegw\d-[0-9a-z]{4}"
_NAMES: Final = (
    re.compile(rf"(?:k8s-(?:fw-)?)?(?P<stem>{_BALANCER})(?:-deny|-(?:http-)?hc)?"),
    re.compile(rf"k8s-(?P<stem>{_ID})-(?:node|internal|external)(?:-[-a-z0-9]+)?"),
    re.compile(rf"k8s-[-a-z0-9]*[a-z0-9]--(?P<stem>{_ID})0?"),
    re.compile(rf"k8s\d-(?:[a-z0-9]{{2,3}}-)?(?P<stem>{_SHORT_ID})-[-a-z0-9]+"),
    re.compile(rf"(?P<stem>{_GATEWAY})-[-a-z0-9]+"),
)
_OF_GATEWAYS: Final = re.compile(rf"{_GATEWAY}-l7-[-a-z0-9]+")
_OF_THE_CLUSTER: Final = re.compile(r"gke-[-a-z0-9]+")
_NODES: Final = re.compile(r"gke-(?P<cluster>[-a-z0-9]+)-[0-9a-f]{8}-node")
_FILESTORES: Final = {"storage_gke_io_created-by": "filestore_csi_storage_gke_io"}

_Stem = Annotated[str, Field(pattern=rf"^({_BALANCER}|{_ID}|{_SHORT_ID}|{_GATEWAY})$")]
_Path = Annotated[str, Field(pattern=r"^projects/[a-z0-9.:-]+(/[A-Za-z0-9-]+){3,4}$")]
_Policy = Annotated[str, Field(pattern="^[A-Za-z]{0,20}$")]


class Fate(enum.Enum):
    """What becomes of something that GKE left; what was made for no claim goes in any case.

    `GOES`: Its volume's policy is Delete, or it holds nothing. `STAYS`: Its volume's policy is
    another one, such as Retain. `UNKNOWN`: Nobody could ask for the policy while the cluster was
    there. `UNPROVEN`: The bucket says that it goes; Google does not say that it is this cluster's.
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
    # stems that the bucket alone says are of this cluster, found out in a look at Google; not kept
    unproven: frozenset[_Stem] = frozenset()
    # the path of a disk or a Filestore instance -> the reclaim policy of its volume
    volumes: Mapping[_Path, _Policy] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )

    @classmethod
    def of(cls, record: Record, networks: Iterable[str]) -> Self:
        """What is known before the cluster is asked; networks with others' names are left out."""
        made = [it.pattern(record.name_prefix) for it in (names.NETWORK, names.GPU_NETWORK)]
        place = f"projects/{record.project_id}/global/networks/"
        own = (
            it
            for it in networks
            if it.startswith(place) and any(one.fullmatch(it.removeprefix(place)) for one in made)
        )
        return cls.in_networks(record, own)

    @classmethod
    def in_networks(cls, place: Place, networks: Iterable[str]) -> Self:
        """The same in networks that are known to be the deployment's."""
        return cls(
            project=place.project_id,
            location=place.region,
            cluster=names.CLUSTER.of(place.name_prefix),
            networks=frozenset(networks),
        )

    @classmethod
    def parse(cls, text: str | bytes, record: Record) -> Self:
        """Read what `document` wrote, or raise a ValueError; the record says whose it is."""
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
        """Knowing whether other clusters of the project are in the same networks."""
        used = {(it.get("networkConfig") or {}).get("network") for it in clusters}
        return dataclasses.replace(self, alone=used.isdisjoint(self.networks))

    def with_stems(self, names: Iterable[str]) -> Self:
        """With the stems of names that are of this cluster's things."""
        found = {found for name in names if (found := stem(name))}
        short = {one[:_SHORT] for one in found if re.fullmatch(_ID, one)}
        return dataclasses.replace(self, stems=self.stems | found | short)

    def with_own(
        self, rules: Iterable[Mapping[str, Any]], groups: Iterable[Mapping[str, Any]] = ()
    ) -> Self:
        """With the stems of the firewall rules and network endpoint groups of this cluster.

        The latter keep a network from going, and for a Gateway no rule tells of them.
        """
        own = (it for it in groups if self.alone and _network(it) in self.networks)
        return self.with_stems(it["name"] for it in (*filter(self.has_rule, rules), *own))

    def without_others(self, rules: Iterable[Mapping[str, Any]]) -> Self:
        """Without the stems that firewall rules for the nodes of other clusters have."""
        others = {
            stem(rule["name"])
            for rule in rules
            for cluster in _clusters(rule)
            if cluster and cluster != self.cluster
        }
        return dataclasses.replace(self, stems=self.stems - others)

    def proven_by(
        self, rules: Iterable[Mapping[str, Any]], clusters: Iterable[Mapping[str, Any]] | None
    ) -> Self:
        """In networks of others: with those stems alone that a rule for this cluster's nodes has.

        The tag of nodes has their cluster's name alone. `clusters`: those of the project, this one
        not among them; None where nobody may know.
        """
        is_one = clusters is not None and all(it.get("name") != self.cluster for it in clusters)
        own = (it["name"] for it in rules if is_one and set(_clusters(it)) == {self.cluster})
        proven = self.stems & dataclasses.replace(self, stems=frozenset()).with_stems(own).stems
        return dataclasses.replace(self, stems=proven, unproven=self.stems - proven)

    def without_others_networks(self, things: Iterable[Mapping[str, Any]]) -> Self:
        """Without the stems of what Google says is in another network than the deployment's.

        Gateways and what they lead to have no rule for nodes, and whoever may write to the bucket
        may have written the stem of another cluster's.
        """
        others = {stem(it["name"]) for it in things if _network(it) not in self.networks}
        return dataclasses.replace(self, stems=self.stems - others)

    def has_named(self, document: Mapping[str, Any]) -> bool:
        """Whether something is of this cluster by its name."""
        return stem(document["name"]) in self.stems

    def has_rule(self, rule: Mapping[str, Any]) -> bool:
        """Whether a firewall rule is GKE's, in a network of this deployment, for this cluster."""
        name = rule["name"]
        if _network(rule) not in self.networks:
            return False
        if self.has_named(rule) or (self.alone and _OF_GATEWAYS.fullmatch(name)):
            return True
        is_googles = stem(name) is not None or _OF_THE_CLUSTER.fullmatch(name) is not None
        return is_googles and set(_clusters(rule)) == {self.cluster}

    def fate_of_balancer(self, document: Mapping[str, Any]) -> Fate | None:
        """What becomes of a part of a load balancer; None if it is not of this cluster."""
        if self.has_named(document):
            return Fate.GOES
        return Fate.UNPROVEN if stem(document["name"]) in self.unproven else None

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
        named = [labels.get(f"goog-k8s-cluster-{it}") for it in ("name", "location")]
        if named == [self.cluster, self.location]:
            return True
        here = f"projects/{self.project}/global/networks/"
        networks = [str(it.get("network")) for it in thing.get("networks", [])]
        places = {it if "/" in it else f"{here}{it}" for it in networks}
        return self.alone and bool(places) and places <= self.networks


_TRACES: Final = Stored(
    "leftovers.json",
    Writer.PROGRAM,
    Traces.parse,
    fix="run Destroy with the version of this tool that wrote it; or, to find what GKE has left by"
    f" what Google says of it alone: gcloud storage rm {{url}}\n{_AGAIN}",
)


def _network(document: Mapping[str, Any]) -> str:
    """The path of the network that something is in; "" for none."""
    return str(document.get("network", "")).partition("/v1/")[2]


def _clusters(rule: Mapping[str, Any]) -> list[str]:
    """For each tag of a firewall rule the cluster whose nodes have it; "" for another tag."""
    tags = [_NODES.fullmatch(tag) for tag in rule.get("targetTags") or []]
    return [it["cluster"] if it else "" for it in tags]


def stem(name: str) -> str | None:
    """The part of a name that all of one load balancer or of one cluster have; None for others."""
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


# ------------------------------------------------------------------ what there may be


def _look(path: str) -> Look:
    return Look(
        service=Service.COMPUTE,
        path=f"projects/{{project}}/{path}/{{name}}",
        import_id="",  # Terraform never has any of these
        marker=Marker.DESCRIPTION,
    )


_ENDPOINTS: Final = "network-endpoint-groups"
# gcloud's name of a collection -> how it is listed, ordered so that each is unused by the time it
# is deleted. What a list of regions has is listed with what is global.
_BALANCERS: Final[Mapping[str, Look]] = {
    "forwarding-rules": _look("regions/-/forwardingRules"),
    "target-https-proxies": _look("regions/-/targetHttpsProxies"),
    "target-http-proxies": _look("regions/-/targetHttpProxies"),
    "url-maps": _look("regions/-/urlMaps"),
    "ssl-certificates": _look("regions/-/sslCertificates"),
    "target-pools": _look("regions/-/targetPools"),
    "backend-services": _look("regions/-/backendServices"),
    _ENDPOINTS: _look("zones/-/networkEndpointGroups"),
    "instance-groups unmanaged": _look("zones/-/instanceGroups"),
    "health-checks": _look("regions/-/healthChecks"),
    "http-health-checks": _look("global/httpHealthChecks"),
    "addresses": _look("regions/-/addresses"),
}
_RULES: Final = "firewall-rules"
_DISKS: Final = "disks"
_INSTANCES: Final = "instances"
"""Filestore's; they are looked for one by one, as the cluster has named them."""
_LOOKS: Final[Mapping[str, Look]] = {
    **_BALANCERS,
    _RULES: FIREWALL.look,
    _DISKS: _look("zones/-/disks"),
}
_WITHOUT_PLACE: Final = frozenset({_RULES, "http-health-checks"})
"""What gcloud knows to be global without being told."""
PERMISSIONS: Final[Mapping[str, str]] = {
    **{f"compute.{look.collection}": "delete get list" for look in _LOOKS.values()},
    "file.instances": "delete get",
}
"""Collection -> the verbs of the permissions with which all of it is found and removed."""


def of_gone(api: GoogleApi, traces: Traces) -> Traces | None:
    """The traces of a cluster, with what firewall rules tell; None if the cluster is there."""
    path = CLUSTER.path(project=traces.project, location=traces.location, name=traces.cluster)
    if api.find(CLUSTER.look.service, path) is not None:
        return None
    if not (traces.networks or traces.stems):
        return traces
    rules = api.listed(FIREWALL.look, traces.project, filter=_NAMED)
    traces = traces.without_others(rules)
    strict = dataclasses.replace(CLUSTER.look, may_be_off=False)  # else a 403 looks like none
    others = _allowed(api, strict, traces.project)
    if not traces.networks:
        return traces.proven_by(rules, others)
    if others is not None:
        traces = traces.beside(others)
    # That groups may not be listed is one of the problems of the sweep.
    groups = _allowed(api, _LOOKS[_ENDPOINTS], traces.project, filter=_NAMED) or ()
    traces = traces.without_others_networks([*rules, *groups])
    return traces.with_own(rules, groups)


def _allowed(api: GoogleApi, look: Look, project: str, **query: str) -> list[dict[str, Any]] | None:
    """What there is of a type; None where these credentials may not know."""
    try:
        return api.listed(look, project, **query)
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None


# ------------------------------------------------------------------ removing it


def keep(folder: StateFolder, traces: Traces) -> None:
    """Store what tells this cluster's things from others', for when the cluster is gone."""
    folder.write(_TRACES.name, traces.document(), "application/json")


def kept(folder: StateFolder, record: Record) -> Traces | None:
    """What an earlier Destroy stored; None if none got that far."""
    return folder.read(_TRACES, record=record)


def sweep(context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
    """Remove what GKE left of the cluster, if the cluster is gone; returns how much that was.

    `last`: whether nothing comes after this; only then what stays is told, and is an error.
    """
    traces = kept(cloud.folder, record)
    if traces is None:
        return 0
    with phases.during(Phase.REMOVING, cloud, "Could not look for what GKE has left"):
        grown = of_gone(cloud.api, traces)
        if grown is None:
            return 0
        # What the rules tell is kept first: they go last, and the rest is known by them alone.
        if grown.stems - traces.stems:
            keep(cloud.folder, grown)
        url = f"{cloud.folder.location.url}/{_TRACES.name}"
        found = Sweep(grown, cloud.api, context.console.progress, url)
        for noun in (*found.nouns(), _DISKS, _INSTANCES):
            found.remove(noun)
    if last:
        context.note(found.kept)
        if found.problems:
            raise ClusterError.of(found.problems)
    return found.removed


def find(cloud: Cloud, place: Place, networks: Collection[str]) -> Left:
    """What there is of a cluster that no state tells of: only names tell then whose something is.

    They are that of the cluster, of which each prefix has one in a region, and those of the
    networks that carry the deployment's marker. Nothing while the cluster is there, or where nobody
    may look.
    """
    traces = _without_state(cloud.api, place, networks)
    if traces is None:
        return Left()
    look = Sweep(traces, cloud.api, lambda _: None)
    found = [(noun, *it) for noun in (*look.nouns(), _DISKS) for it in look.listed(noun)]
    return Left(
        what=f"what GKE made for the cluster {traces.cluster}",
        paths=tuple(path_in_document(it) for _, fate, it in found if fate is Fate.GOES),
        kept=tuple(_kept(noun, it, fate) for noun, fate, it in found if fate is not Fate.GOES),
    )


def sweep_without_state(
    context: Context, cloud: Cloud, place: Place, networks: Collection[str]
) -> int:
    """Remove what `find` found but for what holds data: nobody can be asked whether that may go."""
    traces = _without_state(cloud.api, place, networks)
    if traces is None:
        return 0
    found = Sweep(traces, cloud.api, context.console.progress)
    for noun in found.nouns():
        # The rules tell the next run whose the rest is.
        if noun != _RULES or not found.problems:
            found.remove(noun)
    if found.problems:
        raise ClusterError.of(found.problems)
    return found.removed


def _without_state(api: GoogleApi, place: Place, networks: Collection[str]) -> Traces | None:
    try:
        return of_gone(api, Traces.in_networks(place, networks))
    except GoogleApiError as error:
        if error.code == _FORBIDDEN:
            return None
        raise


@dataclass
class Sweep:
    """One look at all that there may be."""

    traces: Traces
    api: GoogleApi
    tell: Callable[[str], None]  # gets one sentence for each thing that is removed
    url: str = ""  # where the traces are kept; "" where they are not
    removed: int = 0  # how many were removed
    kept: list[Problem] = field(default_factory=list)
    # what could not be removed, or not be looked for
    problems: list[Problem] = field(default_factory=list)

    def nouns(self) -> Iterator[str]:
        """The collections in which it is, but for disks; the rules, which tell of it, are last."""
        if self.traces.stems or self.traces.unproven:
            yield from _BALANCERS
        if self.traces.networks:
            yield _RULES

    def listed(self, noun: str) -> Iterator[tuple[Fate, dict[str, Any]]]:
        """What there is of the cluster; that it may not be listed is one of the problems."""
        if noun == _INSTANCES:
            for path in self.traces.instances():
                found = self.api.find(Service.FILESTORE, path)
                if found is not None:
                    yield self.traces.fate(found) or Fate.STAYS, found
            return
        look = _LOOKS[noun]
        try:
            there = self.api.listed(look, self.traces.project, filter=_NAMED)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            what = f"Whether GKE has left {noun.replace('-', ' ')} could not be looked for"
            fix = f"get compute.{look.collection}.list (role Compute Viewer or more), {_AGAIN}"
            self.problems.append(
                Problem(code=Code.NOT_REMOVED, what=what, why=error.message, fix=fix)
            )
            return
        for it in there:
            if noun == _RULES:
                fate = Fate.GOES if self.traces.has_rule(it) else None
            else:
                fate = (self.traces.fate if noun == _DISKS else self.traces.fate_of_balancer)(it)
            if fate is not None:
                yield fate, it

    def remove(self, noun: str) -> None:
        """Remove what a collection has of the cluster."""
        for fate, found in self.listed(noun):
            match fate:
                case Fate.GOES:
                    self._delete(noun, path_in_document(found))
                case Fate.STAYS:
                    self.kept.append(_kept(noun, found, fate))
                case Fate.UNKNOWN | Fate.UNPROVEN:
                    self.problems.append(_kept(noun, found, fate, self.url))

    def _delete(self, noun: str, path: str) -> None:
        service = Service.FILESTORE if noun == _INSTANCES else Service.COMPUTE
        try:
            self.api.delete(service, path)
        except GoogleApiError as error:
            self.problems.append(
                Problem(
                    code=error.code_or(Code.NOT_REMOVED),
                    what=f"{path} could not be removed",
                    why=f"GKE made it for this cluster and left it; Google says: {error.message}",
                    fix=f"{_command(noun, path)}\n{_AGAIN}",
                )
            )
        else:
            self.tell(f"Removed {path}: GKE made it for this cluster and left it")
            self.removed += 1


def _kept(noun: str, thing: Mapping[str, Any], fate: Fate, url: str = "") -> Problem:
    """A disk or an instance whose volume's policy is not known to be Delete."""
    path, again = path_in_document(thing), f"\n{_AGAIN}" if fate is not Fate.STAYS else ""
    name, fix = path.rpartition("/")[2], f"nobody needs its data: {_command(noun, path)}"
    if fate is Fate.UNPROVEN and noun in _BALANCERS:
        what = f"{path} is kept"
        why = (
            f"{url} says that GKE made it for this cluster, and Google does not: no firewall rule"
            " for nodes of this name, which no other cluster has, is named like it"
        )
        fix = f"it was this cluster's: {_command(noun, path)}"
        fix += f"\nif it is another's: gcloud storage rm {url}"
    elif fate is Fate.UNPROVEN:
        what = f"{path} is kept, and is billed"
        why = (
            f"{url} says that it was made for a claim of this cluster, and Google does not: neither"
            " its labels nor its network are this cluster's alone"
        )
        fix = f"it was this cluster's and {fix}\nif it is another's: gcloud storage rm {url}"
    elif noun == _INSTANCES:
        what = f"The Filestore instance {name} is kept, and is billed"
        why = "a claim's volume is on it that was not to go with the claim (its reclaim policy)"
    else:
        what = f"The disk {name} is kept: {thing.get('sizeGb', '?')} GB, which are billed"
        why = f"it was made for the claim {claim_of(thing)}, and " + (
            "the cluster did not say whether the data was to go with that"
            if fate is Fate.UNKNOWN
            else "its volume was not to go with that (its reclaim policy)"
        )
    return Problem(code=Code.STILL_BILLED, what=what, why=why, fix=f"if {fix}{again}")


def _command(noun: str, path: str) -> str:
    """The command that deletes something, for a machine that has gcloud."""
    project, name = path.split("/")[1], path.rpartition("/")[2]
    place = re.search(r"/(region|zone|location)s/([^/]+)/", path)
    where = f" --{place[1]} {place[2]}" if place else " --global"
    where = "" if noun in _WITHOUT_PLACE else where
    group = "filestore" if noun == _INSTANCES else "compute"
    return f"gcloud {group} {noun} delete {name}{where} --project {project}"
