"""Secret Manager: secrets, their versions, and who may read them."""

import base64
import re
from collections.abc import Mapping
from typing import Any

import google_crc32c

from rehearsal.cloud import policies, projects, services
from rehearsal.cloud.projects import Project
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request, rfc3339

_SECRETS = "secretmanager/secrets"
_API, _TITLE = "secretmanager.googleapis.com", "Secret Manager API"
_ROLES = frozenset({"roles/secretmanager.secretAccessor", "roles/secretmanager.admin"})
_STARTS = re.compile(r'resource\.name\.startsWith\("([^"]*)"\)')


def readable(store: Store, version: str, member: str) -> bool:
    """Whether a member ("serviceAccount:x@y") may read a version, by secret and project."""
    _, project, _, secret, *_ = version.split("/")
    owner = projects.find(project, store)
    if owner is None or _find(store, owner, secret) is None:
        return False
    # Conditions see the project by its number.
    resource = f"projects/{owner.number}/{version.split('/', 2)[2]}"
    of_project = policies.get(store, f"projects/{owner.id}", {})
    of_secret = policies.get(store, f"projects/{owner.number}/secrets/{secret}", {})
    return any(
        binding["role"] in _ROLES and member in binding["members"] and _holds(binding, resource)
        for policy in (of_project, of_secret)
        for binding in policy.get("bindings", [])
    )


def denied(store: Store, wanted: Mapping[str, str], vm: Mapping[str, Any]) -> str:
    """What a VM says of the first secret that its account may not read; "" where it may all."""
    emails = [it["email"] for it in vm.get("serviceAccounts") or []]
    for name, version in wanted.items():
        if not any(readable(store, version, f"serviceAccount:{it}") for it in emails):
            return grant(name, version, f"serviceAccount:{', '.join(emails)}")
    return ""


def grant(name: str, version: str, member: str) -> str:
    """What a machine says that may not read the secret of a variable."""
    _, project, _, secret, *_ = version.split("/")
    return (
        f"the secret of {name} can't be read: {version}: 403, Permission"
        f" 'secretmanager.versions.access' denied for {version}; its owner grants it: gcloud"
        f" secrets add-iam-policy-binding {secret} --project {project} --role"
        f" roles/secretmanager.secretAccessor --member {member}"
    )


def _holds(binding: dict[str, Any], resource: str) -> bool:
    """Whether a binding's condition holds; of those that this cloud can't judge, none does."""
    if "condition" not in binding:
        return True
    beginning = _STARTS.fullmatch(binding["condition"]["expression"])
    return beginning is not None and resource.startswith(beginning[1])


def _find(store: Store, project: Project, secret: str) -> dict[str, Any] | None:
    return store.get(_SECRETS, f"projects/{project.number}/secrets/{secret}")


def _require(request: Request, store: Store, project: str, secret: str) -> dict[str, Any]:
    owner = _owner(request, store, project)
    found = _find(store, owner, secret)
    if found is None:
        name = f"projects/{owner.number}/secrets/{secret}"
        raise GoogleError(404, f"Secret [{name}] not found.", status="NOT_FOUND")
    return found


def _owner(request: Request, store: Store, project: str) -> Project:
    owner = projects.permitted(project, store)
    services.require(request, store, owner, _API, _TITLE)
    return owner


def _create(request: Request, store: Store, project: str) -> Reply:
    owner = _owner(request, store, project)
    secret = request.query.get("secretId", "")
    name = f"projects/{owner.number}/secrets/{secret}"
    if _find(store, owner, secret) is not None:
        raise GoogleError(409, f"Secret [{name}] already exists.", status="ALREADY_EXISTS")
    document = {**request.json(), "name": name, "createTime": rfc3339(request.now)}
    store.put(_SECRETS, name, {"document": document, "versions": []})
    return Reply(body=document)


def _get(request: Request, store: Store, project: str, secret: str) -> Reply:
    return Reply(body=_require(request, store, project, secret)["document"])


def _add(request: Request, store: Store, project: str, secret: str) -> Reply:
    found = _require(request, store, project, secret)
    found["versions"].append((request.json().get("payload") or {}).get("data", ""))
    store.put(_SECRETS, found["document"]["name"], found)
    name = f"{found['document']['name']}/versions/{len(found['versions'])}"
    return Reply(body={"name": name, "createTime": rfc3339(request.now), "state": "ENABLED"})


def _access(request: Request, store: Store, project: str, secret: str, version: str) -> Reply:
    found = _require(request, store, project, secret)
    count = len(found["versions"])
    number = count if version == "latest" else int(version) if version.isdecimal() else 0
    name = f"{found['document']['name']}/versions/{version}"
    if not 1 <= number <= count:
        raise GoogleError(
            404, f"Secret Version [{name}] not found or has no versions.", status="NOT_FOUND"
        )
    data = found["versions"][number - 1]
    crc = str(google_crc32c.value(base64.b64decode(data)))
    name = f"{found['document']['name']}/versions/{number}"
    return Reply(body={"name": name, "payload": {"data": data, "dataCrc32c": crc}})


def _delete(request: Request, store: Store, project: str, secret: str) -> Reply:
    name = _require(request, store, project, secret)["document"]["name"]
    store.delete(_SECRETS, name)
    policies.forget(store, name)
    return Reply(body={})


def _get_policy(request: Request, store: Store, project: str, secret: str) -> Reply:
    name = _require(request, store, project, secret)["document"]["name"]
    return Reply(body=policies.get(store, name, {}))


def _set_policy(request: Request, store: Store, project: str, secret: str) -> Reply:
    name = _require(request, store, project, secret)["document"]["name"]
    policy = request.json().get("policy") or {}
    policies.check_members(store, policy, _owner(request, store, project).accounts_domain)
    return Reply(body=policies.replace(store, name, policy, {}))


_ONE = "projects/{project}/secrets/{secret}"

service = Routes(
    {
        "POST projects/{project}/secrets": _create,
        f"POST {_ONE}:addVersion": _add,
        f"GET {_ONE}/versions/{{version}}:access": _access,
        f"GET {_ONE}:getIamPolicy": _get_policy,
        f"POST {_ONE}:setIamPolicy": _set_policy,
        f"GET {_ONE}": _get,
        f"DELETE {_ONE}": _delete,
    },
    api="secretmanager.v1",
)
