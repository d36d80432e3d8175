"""Cloud KMS: keys of symmetric encryption, and which of Google's service agents may use them.

A role counts on the key, on its ring and on its project. The words of refusals are those that
people have met (terraform-provider-google 5103, gsutil 963); those about a place of disks, shares
and clusters are made up.
"""

from typing import Any

from rehearsal.cloud import policies, projects
from rehearsal.cloud.facts import places
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request, rfc3339

_RINGS, _KEYS = "cloudkms/rings", "cloudkms/keys"
_USERS = frozenset({"roles/cloudkms.cryptoKeyEncrypterDecrypter", "roles/cloudkms.cryptoOperator"})
COMPUTE, GKE = "compute-system", "container-engine-robot"
FILESTORE, STORAGE = "cloud-filer", "gs-project-accounts"


def refusal(store: Store, key: str, project: str, agent: str, place: str) -> str:
    """Why something of a project can't be encrypted by a service agent with a key; "" if it can."""
    denied = (
        "Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource"
        f" '{key}' (or it may not exist)."
    )
    if store.get(_KEYS, key) is None:
        return denied
    number = projects.require(project, store).number
    member = f"serviceAccount:service-{number}@{agent}.iam.gserviceaccount.com"
    _, owner, _, location, *_ = key.split("/")
    ring = key.partition("/cryptoKeys/")[0]
    bindings = [
        binding
        for where in (key, ring, f"projects/{owner}")
        for binding in policies.get(store, where, {}).get("bindings", [])
    ]
    may = any(it["role"] in _USERS and member in it["members"] for it in bindings)
    if not may:
        return denied
    region = place.lower() if place.lower() in places.ZONES else places.region_of(place.lower())
    around = location == "global" or region.startswith(f"{location}-")
    if location == region or (around and agent == COMPUTE):
        return ""
    if agent == STORAGE:
        return f"Cloud KMS region '{location}' not available for use with GCS region '{place}'."
    return f"Cloud KMS key '{key}' is not in '{region}'."


def require(store: Store, key: str | None, project: str, agent: str, place: str) -> None:
    """Refuse to make what a key can't encrypt; nothing where there is none."""
    why = refusal(store, key, project, agent, place) if key else ""
    if why:
        raise GoogleError(403 if why.startswith("Permission") else 400, why, status=None)


def _make_ring(request: Request, store: Store, project: str, location: str) -> Reply:
    projects.permitted(project, store)
    name = f"projects/{project}/locations/{location}/keyRings/{request.query['keyRingId']}"
    return _make(store, _RINGS, {"name": name, "createTime": rfc3339(request.now)})


def _make_key(request: Request, store: Store, project: str, location: str, ring: str) -> Reply:
    parent = f"projects/{project}/locations/{location}/keyRings/{ring}"
    _found(store, _RINGS, parent)
    name = f"{parent}/cryptoKeys/{request.query['cryptoKeyId']}"
    purpose = request.json().get("purpose", "ENCRYPT_DECRYPT")
    key = {**request.json(), "name": name, "purpose": purpose, "createTime": rfc3339(request.now)}
    if purpose == "ENCRYPT_DECRYPT":
        key["primary"] = {"name": f"{name}/cryptoKeyVersions/1", "state": "ENABLED"}
    return _make(store, _KEYS, key)


def _make(store: Store, collection: str, document: dict[str, Any]) -> Reply:
    if store.get(collection, document["name"]) is not None:
        raise GoogleError(409, f"{document['name']} already exists.", status="ALREADY_EXISTS")
    store.put(collection, document["name"], document)
    return Reply(body=document)


def _found(store: Store, collection: str, name: str) -> dict[str, Any]:
    found = store.get(collection, name)
    if found is None:
        what = "CryptoKey" if collection == _KEYS else "KeyRing"
        raise GoogleError(404, f"{what} {name} not found.", status="NOT_FOUND")
    return found


def _path(project: str, location: str, ring: str, key: str = "") -> tuple[str, str]:
    path = f"projects/{project}/locations/{location}/keyRings/{ring}"
    return (_KEYS, f"{path}/cryptoKeys/{key}") if key else (_RINGS, path)


def _get(request: Request, store: Store, **names: str) -> Reply:
    del request
    return Reply(body=_found(store, *_path(**names)))


def _get_policy(request: Request, store: Store, **names: str) -> Reply:
    del request
    return Reply(body=policies.get(store, _found(store, *_path(**names))["name"], {}))


def _set_policy(request: Request, store: Store, **names: str) -> Reply:
    name = _found(store, *_path(**names))["name"]
    return Reply(body=policies.replace(store, name, request.json()["policy"], {}))


_RING = "projects/{project}/locations/{location}/keyRings/{ring}"
_KEY = f"{_RING}/cryptoKeys/{{key}}"

service = Routes(
    {
        "POST projects/{project}/locations/{location}/keyRings": _make_ring,
        f"POST {_RING}/cryptoKeys": _make_key,
        **{
            f"{verb} {path}:{name}IamPolicy": handler
            for path in (_KEY, _RING)
            for verb, name, handler in (("GET", "get", _get_policy), ("POST", "set", _set_policy))
        },
        f"GET {_KEY}": _get,
    },
    api="cloudkms.v1",
)
