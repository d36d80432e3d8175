"""What GKE has left in Google Cloud once its cluster is gone: finding and removing it.

What holds data goes only if its volume's policy is known to be Delete.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from provision.errors import ClusterError, Problem, StateError
from provision.google.api import GoogleApiError, Service
from provision.google.resources import CLUSTER, FIREWALL, Look, Marker, path_in_document
from provision.kinds.gke.traces import Fate, Traces, claim_of
from provision.lifecycle import remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder

_FILE: Final = "leftovers.json"
_NAMED: Final = 'name eq "(a|k8s|gke-|pvc-).*"'
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
    "network-endpoint-groups": _look("zones/-/networkEndpointGroups"),
    "health-checks": _look("regions/-/healthChecks"),
    "http-health-checks": _look("global/httpHealthChecks"),
    "addresses": _look("regions/-/addresses"),
}
_RULES: Final = "firewall-rules"
_DISKS: Final = "disks"
_LOOKS: Final[Mapping[str, Look]] = {
    **_BALANCERS,
    _RULES: FIREWALL.look,
    _DISKS: _look("zones/-/disks"),
}
_WITHOUT_PLACE: Final = frozenset({_RULES, "http-health-checks"})
"""What gcloud knows to be global without being told."""


def keep(folder: StateFolder, traces: Traces) -> None:
    """Store what tells this cluster's things from others', for when the cluster is gone."""
    folder.write(_FILE, traces.document(), "application/json")


def kept(folder: StateFolder) -> Traces | None:
    """What an earlier Destroy stored; None if none got that far.

    Raises:
        StateError: It can't be read.
    """
    text = folder.texts(_FILE).get(_FILE)
    if text is None:
        return None
    try:
        return Traces.parse(text)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{folder.location.url}/{_FILE} can't be read",
            why=f"{type(error).__name__}: {error}",
            fix="run Destroy with the version of this tool that wrote it",
        ) from error


def sweep(context: Context, cloud: Cloud, *, last: bool) -> int:
    """Remove what GKE left of the cluster, if the cluster is gone; returns how much that was.

    Args:
        context: The run.
        cloud: Google, and the state folder.
        last: Whether nothing comes after this; only then what stays is told.

    Raises:
        ClusterError: At the last time: something of it can't be removed.
        TerraformError: Google does not say what there is.
    """
    traces = kept(cloud.folder)
    if traces is None:
        return 0
    path = CLUSTER.path(project=traces.project, location=traces.location, name=traces.cluster)
    problems: list[Problem] = []
    notes: list[Problem] = []
    removed = 0
    with remove.told("Could not look for what GKE has left"):
        if cloud.api.find(CLUSTER.look.service, path) is not None:
            return 0
        # What the rules tell is kept first: they go last, and the rest is known by them alone.
        grown = traces.with_rules(cloud.api.listed(FIREWALL.look, traces.project, filter=_NAMED))
        if grown != traces:
            keep(cloud.folder, grown)
        for noun, look in _LOOKS.items():
            for found in _listed(cloud.api, grown, noun, look, problems):
                if noun == _DISKS and (stays := _staying(grown, found)):
                    (notes if grown.fate(found) is Fate.STAYS else problems).append(stays)
                elif failed := _removed(context, cloud.api, noun, path_in_document(found)):
                    problems.append(failed)
                else:
                    removed += 1
    if last:
        context.note(notes)
        if problems:
            raise ClusterError.of(problems)
    return removed


def _listed(
    api: GoogleApi, traces: Traces, noun: str, look: Look, problems: list[Problem]
) -> Iterable[Mapping[str, Any]]:
    """What a collection has of the cluster; that it may not be listed is one of the problems."""
    try:
        found = api.listed(look, traces.project, filter=_NAMED)
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        permission = f"compute.{look.collection}.list"
        problems.append(
            Problem(
                what=f"Whether GKE has left {noun.replace('-', ' ')} could not be looked for",
                why=error.message,
                fix=f"get {permission} (role Compute Viewer or more), {_AGAIN}",
            )
        )
        return ()
    return list(_own(traces, noun, found))


def _own(
    traces: Traces, noun: str, found: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    for document in found:
        if noun == _RULES:
            is_own = traces.has_rule(document)
        elif noun == _DISKS:
            is_own = traces.fate(document) is not None
        else:
            is_own = traces.has_named(document)
        if is_own:
            yield document


def _staying(traces: Traces, disk: Mapping[str, Any]) -> Problem | None:
    """What is to be said of a disk that is not deleted; None for one that is."""
    what = f"The disk {disk['name']} is kept: {disk.get('sizeGb', '?')} GB, which are billed"
    claim = claim_of(disk)
    command = f"if nobody needs its data: {_command(_DISKS, path_in_document(disk))}"
    match traces.fate(disk):
        case Fate.STAYS:
            why = f"it was made for the claim {claim}, and its volume was not to go with that"
            return Problem(what=what, why=f"{why} (its reclaim policy)", fix=command)
        case Fate.UNKNOWN:
            why = f"it was made for the claim {claim}, and the cluster did not say whether the data"
            return Problem(what=what, why=f"{why} was to go with that", fix=f"{command}\n{_AGAIN}")
        case Fate.GOES | None:
            return None


def _removed(context: Context, api: GoogleApi, noun: str, path: str) -> Problem | None:
    """Delete something; the problem if that did not work."""
    try:
        api.delete(Service.COMPUTE, path)
    except GoogleApiError as error:
        return Problem(
            what=f"{path} could not be removed",
            why=f"GKE made it for this cluster and left it; Google says: {error.message}",
            fix=f"{_command(noun, path)}\n{_AGAIN}",
        )
    context.console.progress(f"Removed {path}: GKE made it for this cluster and left it")
    return None


def _command(noun: str, path: str) -> str:
    """The command that deletes something, for a machine that has gcloud."""
    project, name = path.split("/")[1], path.rpartition("/")[2]
    place = re.search(r"/(region|zone)s/([^/]+)/", path)
    where = f" --{place[1]} {place[2]}" if place else " --global"
    where = "" if noun in _WITHOUT_PLACE else where
    return f"gcloud compute {noun} delete {name}{where} --project {project}"
