"""What GKE has left in Google Cloud once its cluster is gone: finding and removing it.

What holds data goes only if its volume's policy is known to be Delete.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import ClusterError, Problem, StateError
from provision.google.api import GoogleApiError, Service
from provision.google.resources import CLUSTER, FIREWALL, Look, Marker, path_in_document
from provision.kinds.gke.traces import Fate, Traces, claim_of
from provision.lifecycle import phases
from provision.lifecycle.phases import Phase
from provision.settings import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder
    from provision.state.record import Record

_FILE: Final = "leftovers.json"
_NAMED: Final = 'name eq "(a|k8s|gke|pvc-).*"'
"""All names that GKE gives to such things; whose they are is decided one by one."""
_FORBIDDEN: Final = 403
_AGAIN: Final = "then run Destroy again"


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
PERMISSIONS: Final[Mapping[str, str]] = {
    **{f"compute.{look.collection}": "delete get list" for look in _LOOKS.values()},
    "file.instances": "delete get",
}
"""Collection -> the verbs of the permissions with which all of it is found and removed."""

_WITHOUT_PLACE: Final = frozenset({_RULES, "http-health-checks"})
"""What gcloud knows to be global without being told."""


def keep(folder: StateFolder, traces: Traces) -> None:
    """Store what tells this cluster's things from others', for when the cluster is gone."""
    folder.write(_FILE, traces.document(), "application/json")


def kept(folder: StateFolder, record: Record) -> Traces | None:
    """What an earlier Destroy stored; None if none got that far."""
    text = folder.texts(_FILE).get(_FILE)
    if text is None:
        return None
    try:
        return Traces.parse(text, record)
    except ValueError as error:
        url = f"{folder.location.url}/{_FILE}"
        raise StateError(
            f"{url} can't be read",
            code=Code.STATE_UNREADABLE,
            why=recorded.misfit(error),
            fix="run Destroy with the version of this tool that wrote it; or, to find what GKE has"
            f" left by what Google says of it alone: gcloud storage rm {url}\n{_AGAIN}",
        ) from error


def sweep(context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
    """Remove what GKE left of the cluster, if the cluster is gone; returns how much that was.

    `last`: whether nothing comes after this; only then what stays is told.

    Raises:
        ClusterError: At the last time: something of it can't be removed.
        TerraformError: Google does not say what there is.
    """
    traces = kept(cloud.folder, record)
    if traces is None:
        return 0
    with phases.during(Phase.REMOVING, cloud, "Could not look for what GKE has left"):
        grown = of_gone(cloud.api, traces)
        if grown is None:
            return 0
        # What the rules tell is kept first: they go last, and the rest is known by them alone.
        if grown.stems != traces.stems:
            keep(cloud.folder, grown)
        url = f"{cloud.folder.location.url}/{_FILE}"
        found = Sweep(grown, cloud.api, context.console.progress, url)
        found.all()
    if last:
        context.note(found.kept)
        if found.problems:
            raise ClusterError.of(found.problems)
    return found.removed


def of_gone(api: GoogleApi, traces: Traces) -> Traces | None:
    """The traces of a cluster, with what firewall rules tell; None if the cluster is there.

    Raises:
        GoogleApiError: Google does not say whether it is there.
    """
    path = CLUSTER.path(project=traces.project, location=traces.location, name=traces.cluster)
    if api.find(CLUSTER.look.service, path) is not None:
        return None
    if not (traces.networks or traces.stems):
        return traces
    rules = api.listed(FIREWALL.look, traces.project, filter=_NAMED)
    traces = traces.without_others(rules)
    if not traces.networks:
        return traces
    strict = dataclasses.replace(CLUSTER.look, may_be_off=False)  # else a 403 looks like none
    others = _allowed(api, strict, traces.project)
    if others is not None:
        traces = traces.beside(others)
    traces = traces.with_rules(rules)
    # That this may not be listed is one of the problems of the sweep.
    groups = _allowed(api, _LOOKS[_ENDPOINTS], traces.project, filter=_NAMED)
    return traces.with_endpoints(groups or ())


def _allowed(api: GoogleApi, look: Look, project: str, **query: str) -> list[dict[str, Any]] | None:
    """What there is of a type; None where these credentials may not know."""
    try:
        return api.listed(look, project, **query)
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None


@dataclass
class Sweep:
    """One look at all that there may be."""

    traces: Traces  # what tells this cluster's things from others'
    api: GoogleApi
    tell: Callable[[str], None]  # gets one sentence for each thing that is removed
    url: str = ""  # where the traces are kept; "" where they are not
    removed: int = 0  # how many were removed
    kept: list[Problem] = field(default_factory=list)
    # what could not be removed, or not be looked for
    problems: list[Problem] = field(default_factory=list)

    def all(self) -> None:
        """Remove all that there is of the cluster, and does not stay."""
        self.balancers()
        self.rules()
        self.collection(_DISKS)
        self.instances()

    def balancers(self) -> None:
        """Remove what there is of load balancers; it is known by what rules have told."""
        for noun in _BALANCERS if self.traces.stems else ():
            self.collection(noun)

    def rules(self) -> None:
        """Remove the firewall rules."""
        if self.traces.networks:
            self.collection(_RULES)

    def seen(self) -> tuple[list[str], list[Problem]]:
        """The paths of what `all` removes, and what stays; nothing is removed."""
        paths = []
        rules = (_RULES,) if self.traces.networks else ()
        for noun in (*(_BALANCERS if self.traces.stems else ()), *rules, _DISKS):
            for found in self._listed(noun):
                if noun != _DISKS or self.traces.fate(found) is Fate.GOES:
                    paths.append(path_in_document(found))
                else:
                    self.kept.append(_doubtful_disk(found))
        return paths, self.kept

    def collection(self, noun: str) -> None:
        """Remove what a collection of Compute Engine has of the cluster."""
        for found in self._listed(noun):
            match self.traces.fate(found) if noun == _DISKS else Fate.GOES:
                case Fate.GOES:
                    self._remove(Service.COMPUTE, noun, path_in_document(found))
                case Fate.STAYS:
                    self.kept.append(_kept_disk(found))
                case Fate.UNKNOWN:
                    self.problems.append(_doubtful_disk(found))
                case Fate.UNPROVEN:
                    self.problems.append(_unproven(_DISKS, path_in_document(found), self.url))
                case None:
                    pass

    def instances(self) -> None:
        """Remove the Filestore instances of claims that were to go with them."""
        for path in self.traces.instances():
            found = self.api.find(Service.FILESTORE, path)
            if found is None:
                continue
            match self.traces.fate(found):
                case Fate.GOES:
                    self._remove(Service.FILESTORE, _INSTANCES, path)
                case Fate.UNPROVEN:
                    self.problems.append(_unproven(_INSTANCES, path, self.url))
                case Fate.STAYS | Fate.UNKNOWN | None:
                    self.kept.append(_kept_instance(path))

    def _listed(self, noun: str) -> list[dict[str, Any]]:
        """What there is of the cluster; that it may not be listed is one of the problems."""
        look = _LOOKS[noun]
        try:
            found = self.api.listed(look, self.traces.project, filter=_NAMED)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            permission = f"compute.{look.collection}.list"
            self.problems.append(
                Problem(
                    code=Code.NOT_REMOVED,
                    what=f"Whether GKE has left {noun.replace('-', ' ')} could not be looked for",
                    why=error.message,
                    fix=f"get {permission} (role Compute Viewer or more), {_AGAIN}",
                )
            )
            return []
        return [one for one in found if _is_own(self.traces, noun, one)]

    def _remove(self, service: Service, noun: str, path: str) -> None:
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


def _is_own(traces: Traces, noun: str, document: Mapping[str, Any]) -> bool:
    if noun == _RULES:
        return traces.has_rule(document)
    if noun == _DISKS:
        return traces.fate(document) is not None
    return traces.has_named(document)


def _kept_disk(disk: Mapping[str, Any]) -> Problem:
    return Problem(
        code=Code.STILL_BILLED,
        what=f"The disk {disk['name']} is kept: {disk.get('sizeGb', '?')} GB, which are billed",
        why=f"it was made for the claim {claim_of(disk)}, and its volume was not to go with that"
        " (its reclaim policy)",
        fix=f"if nobody needs its data: {_command(_DISKS, path_in_document(disk))}",
    )


def _doubtful_disk(disk: Mapping[str, Any]) -> Problem:
    return Problem(
        code=Code.STILL_BILLED,
        what=f"The disk {disk['name']} is kept: {disk.get('sizeGb', '?')} GB, which are billed",
        why=f"it was made for the claim {claim_of(disk)}, and the cluster did not say whether the"
        " data was to go with that",
        fix=f"if nobody needs its data: {_command(_DISKS, path_in_document(disk))}\n{_AGAIN}",
    )


def _kept_instance(path: str) -> Problem:
    return Problem(
        code=Code.STILL_BILLED,
        what=f"The Filestore instance {path.rpartition('/')[2]} is kept, and is billed",
        why="a claim's volume is on it that was not to go with the claim (its reclaim policy)",
        fix=f"if nobody needs its data: {_command(_INSTANCES, path)}",
    )


def _unproven(noun: str, path: str, url: str) -> Problem:
    return Problem(
        code=Code.STILL_BILLED,
        what=f"{path} is kept, and is billed",
        why=f"{url} says that it was made for a claim of this cluster, and Google does not: neither"
        " its labels nor its network are this cluster's alone",
        fix=f"if it was this cluster's and nobody needs its data: {_command(noun, path)}\n"
        f"if it is another's: gcloud storage rm {url}\n{_AGAIN}",
    )


def _command(noun: str, path: str) -> str:
    """The command that deletes something, for a machine that has gcloud."""
    project, name = path.split("/")[1], path.rpartition("/")[2]
    place = re.search(r"/(region|zone|location)s/([^/]+)/", path)
    where = f" --{place[1]} {place[2]}" if place else " --global"
    where = "" if noun in _WITHOUT_PLACE else where
    group = "filestore" if noun == _INSTANCES else "compute"
    return f"gcloud {group} {noun} delete {name}{where} --project {project}"
