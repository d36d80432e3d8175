"""The status of a deployment. Nothing is written and no lock is taken."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.spec.cluster import ClusterSpec
    from provision.state.record import Record

_CONSOLE: Final = "https://console.cloud.google.com"
_INDEX: Final = re.compile(r"\[[^]]*\]")


def look(context: Context, cloud: Cloud, record: Record, kind: Kind[ClusterSpec]) -> dict[str, Any]:
    """Collect the status of a deployment, as the JSON document has it.

    Args:
        context: The run.
        cloud: Google and the state folder.
        record: The deployment.
        kind: The kind of cluster.
    """
    addresses = sorted(cloud.folder.addresses())
    outputs = cloud.folder.outputs()
    return {
        "kind": record.kind,
        "cluster_id": record.cluster_id,
        "zone": record.zone,
        "locked_by": getattr(cloud.folder.lock(), "who", None),
        "resources": addresses,
        **kind.status(context, cloud, record),
        "filestores": outputs.get("filestores") or [],
        "links": _links(record, kind, outputs),
        "last_log": cloud.folder.last_log(),
        "state": cloud.folder.location.url,
    }


def text(found: Mapping[str, Any], kind: Kind[ClusterSpec]) -> str:
    """The status as text."""
    return "\n".join(_lines(found, kind))


def _lines(found: Mapping[str, Any], kind: Kind[ClusterSpec]) -> Iterator[str]:
    kinds = Counter(_INDEX.sub("", address).split(".")[-2] for address in found["resources"])
    yield f"{len(found['resources'])} resources in {found['state']}:"
    yield from (f"  {count} {name}" for name, count in sorted(kinds.items()))
    if found["locked_by"]:
        yield f"Locked by {found['locked_by']}: another run is changing it"
    yield from kind.status_lines(found)
    for share in found["filestores"]:
        yield f"Filestore {share['name']} at {share['path']}: {share['ip']}"
    yield from (f"{name}: {url}" for name, url in found["links"].items())
    if found["last_log"]:
        yield f"Last log: {found['last_log']}"


def _links(record: Record, kind: Kind[ClusterSpec], outputs: Mapping[str, Any]) -> dict[str, str]:
    """Pages of the Google Cloud console: title -> URL."""
    project = f"project={record.project_id}"
    title, page = kind.page(record)
    links = {
        title: f"{_CONSOLE}/{page}?{project}",
        "Bucket": f"{_CONSOLE}/storage/browser?{project}",
        "Quotas": f"{_CONSOLE}/iam-admin/quotas?{project}",
    }
    dashboard = (outputs.get("dashboard") or {}).get("url")
    return links | ({"Dashboard": dashboard} if dashboard else {})
