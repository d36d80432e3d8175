"""A deployment's way to the Kubernetes API of its cluster, and what is kept for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.errors import StateError
from provision.kinds.gke.kubernetes import client
from provision.kinds.gke.kubernetes.facts import ClusterFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder

_FILE: Final = "cluster.json"


def keep(folder: StateFolder, facts: ClusterFacts) -> None:
    """Keep what is known of the cluster for the actions that need no settings."""
    folder.write(_FILE, facts.document(), "application/json")


def kept(folder: StateFolder) -> ClusterFacts | None:
    """What the last Create knew of the cluster; None where none has come so far.

    Raises:
        StateError: The file is not this version's.
    """
    text = folder.texts(_FILE).get(_FILE)
    if text is None:
        return None
    try:
        return ClusterFacts.parse(text)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{folder.location.url}/{_FILE} can't be read",
            why=str(error),
            fix="run Create again: it writes that file anew",
        ) from error


def reach(facts: ClusterFacts, api: GoogleApi, environ: Mapping[str, str]) -> client.Cluster:
    """The cluster's API by its DNS endpoint, where these credentials' roles decide.

    Args:
        facts: Name the endpoint.
        api: Whose credentials count here too.
        environ: For a moved endpoint.
    """
    return client.Cluster(client.endpoint(facts.endpoint, environ), api.token)
