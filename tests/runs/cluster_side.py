"""The Kubernetes side of a rehearsed GKE cluster, as somebody with kubectl sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import requests

from provision.google.resources import CLUSTER
from provision.kinds.gke.kubernetes import client
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.kinds.gke.kubernetes.objects import Object, from_yaml
from provision.state.record import Record

if TYPE_CHECKING:
    from tests.runs.conftest import Rehearsal

AUTHORIZED = {"Authorization": "Bearer test"}


def kept(rehearsal: Rehearsal, url: str) -> bytes:
    """The content of an object of Cloud Storage ("gs://...")."""
    bucket, _, name = url.removeprefix("gs://").partition("/")
    endpoint = rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]
    answer = requests.get(
        f"{endpoint}b/{bucket}/o/{quote(name, safe='')}?alt=media", headers=AUTHORIZED, timeout=60
    )
    assert answer.ok, answer.text
    return answer.content


def facts(rehearsal: Rehearsal, connection: dict[str, Any]) -> ClusterFacts:
    """What Create has kept of the cluster."""
    record = Record.parse(kept(rehearsal, f"{connection['state']}/deployment.json").decode())
    assert record is not None
    text = kept(rehearsal, f"{connection['state']}/cluster.json").decode()
    return ClusterFacts.parse(text, record)


def kubectl(rehearsal: Rehearsal, connection: dict[str, Any]) -> client.Cluster:
    """The client of the program for the cluster of a connection.json."""
    known = facts(rehearsal, connection)
    path = CLUSTER.path(project=known.project, location=known.location, name=known.name)
    document = rehearsal.google("GET", f"container/v1/{path}")
    endpoint = document["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
    return client.Cluster(client.endpoint(endpoint, rehearsal.environ), lambda _: "test")


def job(rehearsal: Rehearsal, connection: dict[str, Any], name: str) -> Object:
    """One of the examples that Create has rendered."""
    (found,) = from_yaml(kept(rehearsal, connection["jobs"][name]).decode())
    return found
