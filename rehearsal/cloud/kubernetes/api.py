"""Requests to a cluster's API: discovery, objects, logs.

Kueue's API of what waits in its queues: who comes before whom.

Source: Kueue v0.18.3, pkg/visibility: Workloads without quota, in the order in which their
ClusterQueue takes them; those that wait for nodes are in none.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

import yaml

from rehearsal.cloud.kubernetes import (
    admission,
    changes,
    kinds,
    objects,
    programs,
    queues,
    scheduler,
)
from rehearsal.cloud.kubernetes.changes import (
    Refusal,
    no_such_path,
    not_found,
    not_simulated,
    success,
)
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.wire import Reply

_NO_SCHEMA: Final = {
    "Warning": '299 - "this simulated cluster has no schema of the kind: any field is taken"'
}
_DEFAULT_MANAGER: Final = "unknown"
_OF_QUEUES: Final = "visibility.kueue.x-k8s.io"


def answer(world: World, path: str) -> Reply:
    """Answer a request."""
    parts = [unquote(part) for part in path.split("/") if part]
    match parts:
        case ["apis", group, _, "namespaces", namespace, _, queue, _] if group == _OF_QUEUES:
            return Reply(body=_pending_workloads(world, namespace, queue))
        case ["api", "v1", *rest]:
            return _below(world, "v1", rest)
        case ["apis", group, version, *rest]:
            return _below(world, f"{group}/{version}", rest)
        case _:
            raise not_simulated(f"/{path}")


def _below(world: World, version: str, rest: list[str]) -> Reply:
    """What is behind a version: the kinds, a collection, an object, a part of it."""
    if not rest:
        found = kinds.resources(version, kinds.all_of(world.store, world.cluster))
        if found is None:
            raise no_such_path()
        return Reply(body=found)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):  # noqa: PLR2004 - the namespace's own parts
        namespace, rest = rest[1], rest[2:]
    plural, *more = rest
    kind = world.kind(version, plural)
    if kind is None or len(more) > 2:  # noqa: PLR2004 - a name and a part
        raise no_such_path()
    if not more:
        return _collection(world, kind, namespace)
    return _object(world, kind, namespace, more[0], more[1] if len(more) > 1 else "")


def _collection(world: World, kind: Kind, namespace: str) -> Reply:
    method, query = world.request.method, world.request.query
    if method == "POST":
        return _create(world, kind, namespace)
    chosen = [
        thing
        for thing in world.each(kind, namespace)
        if objects.is_chosen(thing, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    ]
    if method != "GET" or "watch" in query:
        raise not_simulated(f"{method} of a collection" if method != "GET" else "a watch")
    items = [objects.show(thing) for thing in chosen]
    metadata = {"resourceVersion": world.version()}
    body = {"kind": f"{kind.name}List", "apiVersion": kind.version, "metadata": metadata}
    return Reply(body={**body, "items": items}, headers=_warnings(kind))


def _create(world: World, kind: Kind, namespace: str) -> Reply:
    thing = _body(world)
    metadata = thing.setdefault("metadata", {})
    if "name" not in metadata and "generateName" in metadata:
        number = world.store.count(world.cluster.collection("names"))
        metadata["name"] = f"{metadata['generateName']}{number:05x}"
    name = str(metadata.get("name", ""))
    if not name:
        raise Refusal(422, "metadata.name: Required value: name or generateName is required")
    if world.get(kind, namespace, name) is not None:
        raise Refusal(409, f'{kind.resource} "{name}" already exists', "AlreadyExists")
    _place(world, kind, namespace, thing)
    _check(world, kind, thing, applied=False)
    manager = world.request.query.get("fieldManager", _DEFAULT_MANAGER)
    empty = {"apiVersion": thing.get("apiVersion"), "kind": kind.name, "metadata": {}}
    made = changes.changed(empty, thing, manager, world.stamp)
    return Reply(status=201, body=_kept(world, kind, made))


def _object(world: World, kind: Kind, namespace: str, name: str, part: str) -> Reply:
    found = world.get(kind, namespace, name)
    method, query = world.request.method, world.request.query
    content_type = world.request.headers.get("content-type", "").partition(";")[0]
    if part == "log" and found is not None:
        text = _log_of(world, found, query.get("container", ""))
        return Reply(body=text.encode(), headers={"Content-Type": "text/plain"})
    if method == "PATCH" and content_type == changes.APPLY:
        return _apply(world, kind, namespace, name)
    if found is None:
        raise not_found(kind.resource, name)
    if part or method == "PUT":
        raise not_simulated(part or "PUT")
    if method == "GET":
        return Reply(body=objects.show(found), headers=_warnings(kind))
    if method == "DELETE":
        world.delete(kind, found)
        return Reply(body=success())
    after = changes.patch(found, content_type, _body(world))
    _check(world, kind, after, applied=False)
    manager = query.get("fieldManager", _DEFAULT_MANAGER)
    return Reply(body=_kept(world, kind, changes.changed(found, after, manager, world.stamp)))


def _apply(world: World, kind: Kind, namespace: str, name: str) -> Reply:
    wanted, query = _body(world), world.request.query
    wanted.setdefault("metadata", {})["name"] = name
    manager = query.get("fieldManager", "")
    if not manager:
        raise Refusal(400, "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value")
    _place(world, kind, namespace, wanted)
    _check(world, kind, wanted, applied=True)
    before = world.get(kind, namespace, name)
    after = changes.apply(
        before, wanted, manager=manager, force=query.get("force") == "true", stamp=world.stamp
    )
    return Reply(
        status=201 if before is None else 200,
        body=_kept(world, kind, after),
    )


def _kept(world: World, kind: Kind, thing: Object) -> Object:
    """Keep an object that somebody has made or changed; what is answered of it."""
    admission.admit(world, kind, thing)
    world.settle(kind, thing)
    return objects.show(thing)


def _place(world: World, kind: Kind, namespace: str, thing: Object) -> None:
    if not kind.namespaced:
        return
    own = thing["metadata"].setdefault("namespace", namespace)
    if own != namespace:
        raise Refusal(400, "the namespace of the object does not match the namespace on the URL")
    if world.get(world.own("v1", "namespaces"), "", namespace) is None:
        raise not_found("namespaces", namespace)


def _check(world: World, kind: Kind, thing: Object, *, applied: bool) -> None:
    if not kind.has_schema:
        return
    schema = kinds.schema(world.store, world.cluster, kind)
    name = thing["metadata"].get("name", "")
    missing = list(_unknown(schema, thing, "", top=True))
    if missing and applied:
        group, _, version = kind.version.rpartition("/")
        raise Refusal(
            500,
            f"failed to create typed patch object ({thing['metadata'].get('namespace', '')}/{name};"
            f" {group}/{version}, Kind={kind.name}): {missing[0]}: field not declared in schema",
        )
    if missing and world.request.query.get("fieldValidation") == "Strict":
        words = ", ".join(f'unknown field "{path[1:]}"' for path in missing)
        raise Refusal(400, f"strict decoding error: {words}")
    if found := list(_problems(schema, thing, "")):
        raise Refusal(422, f'{kind.name}.{kind.group} "{name}" is invalid: {"; ".join(found)}')


def _body(world: World) -> Any:
    try:
        # Every JSON document is one of YAML; the other way is the slow one.
        text = world.request.body
        found: Any = json.loads(text) if text[:1] in (b"{", b"[") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise Refusal(400, f"the object provided is unrecognized: {error}") from error
    if not isinstance(found, dict | list):
        raise Refusal(400, "the object provided is unrecognized")
    return found


def _warnings(kind: Kind) -> dict[str, str]:
    return {} if kind.has_schema else dict(_NO_SCHEMA)


def _log_of(world: World, pod: Object, container: str) -> str:
    """The log so far of a container of a pod; "" is the only one."""
    name = pod["metadata"]["name"]
    known = pod["spec"].get("containers") or []
    names = [it["name"] for it in known]
    if not container and len(names) > 1:
        choice = " ".join(names)
        raise Refusal(
            400, f"a container name must be specified for pod {name}, choose one of: [{choice}]"
        )
    before = next((it for it in _before(pod) if it["name"] == container), None)
    if before is not None and "nodeName" in pod["spec"]:
        return scheduler.init_log(world, pod, before)
    chosen = next((it for it in known if it["name"] == (container or names[0])), None)
    if chosen is None:
        raise Refusal(400, f"container {container} is not valid for pod {name}")
    if pod["status"]["phase"] == "Pending":
        raise Refusal(
            400,
            f'container "{chosen["name"]}" in pod "{name}" is waiting to start: ContainerCreating',
        )
    return programs.log(world, pod, chosen)


def _before(pod: Object) -> list[Object]:
    found: list[Object] = pod["spec"].get("initContainers") or []
    return found


def _pending_workloads(world: World, namespace: str, queue: str) -> Object:
    """What waits in a LocalQueue, with its place among all of its ClusterQueue."""
    kind = world.kind(queues.API, "workloads")
    if kind is None:
        raise no_such_path()
    local = queues.find(world, "localqueues", queue, namespace)
    cluster_queue = local["spec"]["clusterQueue"] if local else ""
    waiting = [it for it in world.each(kind) if _waits(world, it, cluster_queue)]
    waiting.sort(key=lambda it: (-it["spec"]["priority"], it["_number"]))
    own = [
        {
            "metadata": {"name": it["metadata"]["name"], "namespace": namespace},
            "priority": it["spec"]["priority"],
            "localQueueName": queue,
            "positionInClusterQueue": place,
        }
        for place, it in enumerate(waiting)
        if (it["metadata"]["namespace"], it["spec"]["queueName"]) == (namespace, queue)
    ]
    items = [{**it, "positionInLocalQueue": place} for place, it in enumerate(own)]
    return {
        "kind": "PendingWorkloadsSummary",
        "apiVersion": f"{_OF_QUEUES}/v1beta2",
        "items": items,
    }


def _waits(world: World, workload: Object, cluster_queue: str) -> bool:
    spec, namespace = workload["spec"], workload["metadata"]["namespace"]
    local = queues.find(world, "localqueues", spec["queueName"], namespace)
    own = local is not None and local["spec"]["clusterQueue"] == cluster_queue
    is_over = objects.holds(workload, "Finished") or spec.get("active") is False
    return own and not is_over and not objects.holds(workload, "QuotaReserved")


_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_COMMON: Final = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def _unknown(
    schema: Mapping[str, Any], value: Any, path: str, *, top: bool = False
) -> Iterator[str]:
    """The paths of fields that the schema does not have (".spec.admissionChecks")."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _unknown(schema.get("items") or {}, entry, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    free = schema.get(_PRESERVE) or (not properties and others is None)
    for name, inner in value.items():
        if name in _COMMON and (top or schema.get(_EMBEDDED)):
            continue
        known = properties.get(name) or (others if isinstance(others, dict) else None)
        if known is not None:
            yield from _unknown(known, inner, f"{path}.{name}")
        elif not free and others is not True:
            yield f"{path}.{name}"


def _problems(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """What is wrong with the values of known fields, in Kubernetes' words."""
    if value is None:
        return
    kind = schema.get("type")
    if schema.get(_INT_OR_STRING):
        kind = None
    if kind is not None and not _is_a(value, kind):
        yield f'{path[1:]}: Invalid value: "{type(value).__name__}": must be of type {kind}'
        return
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(f'"{it}"' for it in schema["enum"])
        yield f'{path[1:]}: Unsupported value: "{value}": supported values: {allowed}'
    if isinstance(value, dict):
        yield from _of_object(schema, value, path)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _problems(schema.get("items") or {}, entry, f"{path}[{index}]")


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _of_object(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required") or []:
        if name not in value:
            yield f"{path[1:]}.{name}: Required value".lstrip(".")
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in value.items():
        known = properties.get(name) or (others if isinstance(others, dict) else None)
        if known is not None and name not in _COMMON:
            yield from _problems(known, inner, f"{path}.{name}")
