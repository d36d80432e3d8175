"""Kubernetes objects as plain data, in the API's format."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Object = dict[str, Any]
"""One object: apiVersion, kind, metadata, and the fields of its kind."""

MANAGER: Final = "aiinfra"
"""The field manager of everything that is applied."""

OURS: Final = {"app.kubernetes.io/managed-by": MANAGER}
"""The label of everything that this tool makes."""
_LONGEST_LABEL: Final = 63


def build(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    """Make an object; the namespace is "" for cluster-scoped objects."""
    metadata: Object = {"name": name, "labels": dict(OURS)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def title(thing: Object) -> str:
    """The object in a message, such as "ClusterQueue dws-cluster-queue"."""
    return f"{thing['kind']} {thing['metadata']['name']}"


def conditions(thing: Object) -> dict[str, Mapping[str, Any]]:
    """The conditions of an object, by type; the API has null if there are none yet."""
    found = (thing.get("status") or {}).get("conditions") or []
    return {entry["type"]: entry for entry in found}


def holds(thing: Object, condition: str) -> bool:
    """Whether a condition is true."""
    return bool(conditions(thing).get(condition, {}).get("status") == "True")


def containers(pod: Object) -> Iterator[Mapping[str, Any]]:
    """The status of each container of a pod, those that run first too."""
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(kind) or []


def mount(volume: str, path: str) -> Object:
    """The mount of a volume in a container."""
    return {"name": volume, "mountPath": path}


def variables(values: Mapping[str, object]) -> list[Object]:
    """Variables of a container."""
    return [{"name": name, "value": str(value)} for name, value in values.items()]


def field(variable: str, path: str) -> Object:
    """A variable of a container with what a field of its pod has."""
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def labels(thing: Object) -> Mapping[str, Any]:
    """Its labels."""
    return thing["metadata"].get("labels") or {}


def labelled(variable: str, label: str) -> Object:
    """A variable of a container with what a label of its pod says."""
    return field(variable, f"metadata.labels['{label}']")


def later(moment: str, seconds: float) -> str:
    """The moment so many seconds after another one, both in RFC 3339 format."""
    then = dt.datetime.fromisoformat(moment) + dt.timedelta(seconds=seconds)
    return then.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def name_of(text: str) -> str:
    """A valid name (RFC 1123) for a text; different texts have different names.

    Invalid characters are replaced; a digest then keeps the names of different texts apart.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "root"
    if f"/{plain.replace('-', '/')}" == text and len(plain) <= _LONGEST_LABEL:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: _LONGEST_LABEL - len(digest) - 1].rstrip('-')}-{digest}"


def from_yaml(text: str) -> list[Object]:
    """The objects of YAML documents, without empty documents."""
    # The C loader takes one second for Kueue's manifest, the Python loader 15 seconds.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [thing for thing in yaml.load_all(text, Loader=loader) if thing]


def to_yaml(things: list[Object]) -> str:
    """The objects as YAML documents, with multi-line strings as blocks."""
    return yaml.dump_all(things, Dumper=_Dumper, sort_keys=False, width=100)


class _Dumper(yaml.SafeDumper):
    """Writes scripts as block scalars, and lists indented below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Indent lists too, as Kubernetes' own documents have it."""
        del indentless
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        """Never use YAML anchors for an object that occurs twice."""
        del data
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)
