"""Google Cloud projects, and Cloud Resource Manager v1 and v3.

Every project of a valid id is there, with the same number each time, except:

- `missing-...`: does not exist;
- `foreign-...`: somebody else's, on which the caller has no rights. What is made in its name (a
  bucket, say) is what the caller meets as a stranger's.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import policies
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

HOSTS = "compute/hosts"  # the collection of host projects of a Shared VPC
OF_RULES = tuple(f"compute.firewalls.{verb}" for verb in ("create", "delete", "update"))
"""What the caller may not do in a host project under `network-forbidden`."""

_COLLECTION = "projects"
_ID = re.compile(r"(?:[a-z0-9][a-z0-9.-]*:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_MISSING = "missing-"
_FOREIGN = "foreign-"
_CREATED = "2024-01-01T00:00:00.000Z"
_NUMBERS = {"proj-a1": "123456789012"}  # the project of the recorded traffic


@dataclass(frozen=True)
class Project:
    """A project that exists."""

    id: str  # such as "proj-a1"
    number: str  # twelve digits

    @property
    def foreign(self) -> bool:
        """Whether it is somebody else's."""
        return self.id.startswith(_FOREIGN)

    @property
    def compute_account(self) -> str:
        """The email of Compute Engine's default service account."""
        return f"{self.number}-compute@developer.gserviceaccount.com"

    @property
    def accounts_domain(self) -> str:
        """The domain of the emails of its own service accounts."""
        scope, _, name = self.id.rpartition(":")
        return ".".join(part for part in (name, scope, "iam.gserviceaccount.com") if part)


def number(project: str) -> str:
    """The project's number: the same for the same id, always."""
    digest = hashlib.sha256(project.encode()).digest()
    derived = 10**11 + int.from_bytes(digest[:8], "big") % (9 * 10**11)
    return _NUMBERS.get(project, str(derived))


def find(project: str, store: Store) -> Project | None:
    """The project of that id, or of that number if its id was met before; None if there is none."""
    if project.isdecimal():
        known = store.get(_COLLECTION, project)
        fixed = {value: key for key, value in _NUMBERS.items()}.get(project)
        name = known["projectId"] if known else fixed
        return None if name is None else Project(name, project)
    if project.startswith(_MISSING) or not _ID.fullmatch(project):
        return None
    found = Project(project, number(project))
    # Kept, since a number alone does not tell the id that it was made of.
    if store.get(_COLLECTION, found.number) is None:
        store.put(_COLLECTION, found.number, {"projectId": project})
    return found


def require(project: str, store: Store) -> Project:
    """The project, for a caller who wants to use it."""
    found = find(project, store)
    if found is None:
        raise GoogleError(404, f"The resource 'projects/{project}' was not found")
    if found.foreign:
        raise GoogleError(
            403, f"Required 'compute.projects.get' permission for 'projects/{project}'"
        )
    return found


def permitted(project: str, store: Store) -> Project:
    """As `require`, in the words of the newer APIs, which don't tell the two cases apart."""
    found = find(project, store)
    if found is None or found.foreign:
        raise GoogleError(403, "The caller does not have permission", status=None)
    return found


def _get_v1(_request: Request, store: Store, project: str) -> Reply:
    found = permitted(project, store)
    return Reply(
        body={
            "projectNumber": found.number,
            "projectId": found.id,
            "lifecycleState": "ACTIVE",
            "name": found.id,
            "createTime": _CREATED,
            "parent": {"type": "organization", "id": "1"},
        }
    )


def _get_v3(_request: Request, store: Store, project: str) -> Reply:
    found = permitted(project, store)
    return Reply(
        body={
            "name": f"projects/{found.number}",
            "projectId": found.id,
            "state": "ACTIVE",
            "displayName": found.id,
            "parent": "organizations/1",
            "createTime": _CREATED,
            "updateTime": _CREATED,
            "etag": 'W/"a1"',
        }
    )


def _get_policy(_request: Request, store: Store, project: str) -> Reply:
    found = permitted(project, store)
    return Reply(body=policies.get(store, f"projects/{found.id}", _first_policy()))


def _set_policy(request: Request, store: Store, project: str) -> Reply:
    found = permitted(project, store)
    policy = request.json().get("policy") or {}
    policies.check_members(store, policy, found.accounts_domain)
    kept = policies.replace(store, f"projects/{found.id}", policy, _first_policy())
    return Reply(body=kept)


def _test_permissions(request: Request, store: Store, project: str) -> Reply:
    permitted(project, store)
    asked = request.json().get("permissions") or []
    if "network-forbidden" in request.scenarios and store.get(HOSTS, project) is not None:
        asked = [it for it in asked if it not in OF_RULES]
    return Reply(body=policies.granted(request, asked))


def _first_policy() -> dict[str, Any]:
    return {"bindings": [{"role": "roles/owner", "members": ["user:owner@example.com"]}]}


_POLICY = {
    "POST projects/{project}:getIamPolicy": _get_policy,
    "POST projects/{project}:setIamPolicy": _set_policy,
    "POST projects/{project}:testIamPermissions": _test_permissions,
}

service_v1 = Routes({**_POLICY, "GET projects/{project}": _get_v1}, api="cloudresourcemanager.v1")
service_v3 = Routes({**_POLICY, "GET projects/{project}": _get_v3}, api="cloudresourcemanager.v3")
