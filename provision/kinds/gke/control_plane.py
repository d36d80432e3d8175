"""Access to the Kubernetes API of a deployment's cluster, and the facts that are stored for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import StateError
from provision.kinds.gke.kubernetes import client
from provision.kinds.gke.kubernetes.facts import ClusterFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder

_FILE: Final = "cluster.json"


def keep(folder: StateFolder, facts: ClusterFacts) -> None:
    """Store the facts of the cluster, for actions that run without its settings."""
    folder.write(_FILE, facts.document(), "application/json")


def kept(folder: StateFolder) -> ClusterFacts | None:
    """The facts that the last Create stored; None if no Create has stored any.

    Raises:
        StateError: The file was written by an incompatible version.
    """
    text = folder.texts(_FILE).get(_FILE)
    if text is None:
        return None
    try:
        return ClusterFacts.parse(text)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{folder.location.url}/{_FILE} can't be read",
            code=Code.STATE_UNREADABLE,
            why=str(error),
            fix="run Create again: it rewrites that file",
        ) from error


def reach(facts: ClusterFacts, api: GoogleApi, environ: Mapping[str, str]) -> client.Cluster:
    """The cluster's API at its DNS endpoint, where the IAM roles of the credentials apply.

    Args:
        facts: The facts of the cluster, which have the endpoint.
        api: Google, for an access token.
        environ: May set another endpoint.
    """
    return at(facts.endpoint, api, environ)


def at(endpoint: str, api: GoogleApi, environ: Mapping[str, str]) -> client.Cluster:
    """The API at a DNS endpoint; the arguments are those of `reach`."""
    return client.Cluster(client.endpoint(endpoint, environ), api.token)
