"""Access to the Kubernetes API of a deployment's cluster, and the facts that are stored for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.codes import Code
from provision.errors import ClusterError, StateError
from provision.google.resources import CLUSTER
from provision.kinds.gke import states
from provision.kinds.gke.kubernetes import client
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.settings import recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder
    from provision.state.location import Place
    from provision.state.record import Record

_FILE: Final = "cluster.json"


def keep(folder: StateFolder, facts: ClusterFacts) -> None:
    """Store the facts of the cluster, for actions that run without its settings."""
    folder.write(_FILE, facts.document(), "application/json")


def kept(folder: StateFolder, record: Record) -> ClusterFacts | None:
    """The facts that the last Create stored; None if no Create has stored any."""
    text = folder.texts(_FILE).get(_FILE)
    if text is None:
        return None
    try:
        return ClusterFacts.parse(text, record)
    except ValueError as error:
        raise StateError(
            f"{folder.location.url}/{_FILE} can't be read",
            code=Code.STATE_UNREADABLE,
            why=recorded.misfit(error),
            fix="run Create again: it rewrites that file",
        ) from error


def finished(folder: StateFolder, record: Record) -> ClusterFacts:
    """The facts, of a cluster that is to be worked with."""
    facts = kept(folder, record)
    if facts is None:
        raise StateError(
            f"The cluster in {folder.location.url} is not ready",
            code=Code.NO_CLUSTER,
            why="no Create has finished creating it",
            fix="run Create again",
        )
    return facts


def require_settings(folder: StateFolder, record: Record) -> None:
    """Make sure that the record says what new pods fetch, mount and read."""
    if not record.settings:
        raise StateError(
            "It is not known where pods get their images from, nor their secrets and mounts",
            code=Code.STATE_UNREADABLE,
            why=f"{folder.location.url}/deployment.json was lost or damaged",
            fix="run Create again: it writes the settings there",
        )


def find(api: GoogleApi, place: Place) -> dict[str, Any] | None:
    """The cluster of a deployment as Google has it; None if it does not exist."""
    name = names.CLUSTER.of(place.name_prefix)
    path = CLUSTER.path(project=place.project_id, location=place.region, name=name)
    return api.find(CLUSTER.look.service, path)


def reach(
    document: Mapping[str, Any] | None, api: GoogleApi, environ: Mapping[str, str]
) -> client.Cluster:
    """The API of a cluster at its DNS endpoint, where the IAM roles of the credentials apply.

    `document`: the cluster as Google has it: a host that the bucket names would get the token.

    Raises:
        ClusterError: The cluster does not exist.
    """
    if not document:
        raise ClusterError.of([states.problem("The cluster", {})])
    config = (document.get("controlPlaneEndpointsConfig") or {}).get("dnsEndpointConfig") or {}
    return client.Cluster(client.endpoint(str(config.get("endpoint", "")), environ), api.token)
