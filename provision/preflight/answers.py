"""Google's answers to the checks; each request is sent only once, however many checks need it."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision.google.api import GoogleApiError, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from provision.google.api import GoogleApi

T = TypeVar("T")

_NOT_FOUND: Final = 404
_MOST_SERVICES: Final = "200"
"""The page size; most projects have fewer APIs enabled."""


class Answers:
    """Google's answers, cached; it is safe for several threads.

    Every method raises `GoogleApiError` if Google refuses the request.
    """

    def __init__(self, api: GoogleApi) -> None:
        self._api = api
        self._asked: dict[Hashable, concurrent.futures.Future[Any]] = {}
        self._lock = threading.Lock()

    def find(self, service: Service, path: str) -> dict[str, Any] | None:
        """A resource by its path; None if it does not exist."""
        return self._once((service, path), lambda: self._api.find(service, path))

    def get(self, service: Service, path: str) -> dict[str, Any]:
        """A resource by its path; it is an error if it does not exist."""
        return self._once(("get", service, path), lambda: self._api.get(service, path))

    def images(self, project: str, query: str) -> list[dict[str, Any]]:
        """The images of a project, deprecated ones too, for which a filter holds."""
        path = f"projects/{project}/global/images"

        def ask() -> list[dict[str, Any]]:
            return list(self._api.pages("GET", path, "items", {"filter": query}))

        return self._once(("images", project, query), ask)

    def zones_with(self, project: str, collection: str, name: str) -> set[str]:
        """The zones that offer a resource of that name in a collection such as "machineTypes"."""
        return self._once(
            (project, collection, name), lambda: self._api.zones_with(project, collection, name)
        )

    def everywhere(self, project: str, collection: str, name: str) -> list[dict[str, Any]]:
        """The resources of that name in all zones of a project."""
        path = f"projects/{project}/aggregated/{collection}"

        def ask() -> list[dict[str, Any]]:
            scopes = self._api.pages("GET", path, "items", {"filter": f"name={name}"})
            return [it for scope in scopes for it in scope.get(collection, [])]

        return self._once(("everywhere", path, name), ask)

    def listed(self, path: str) -> list[dict[str, Any]]:
        """The resources of Compute Engine in one place, such as the blocks of a reservation."""
        return self._once(("listed", path), lambda: list(self._api.pages("GET", path, "items", {})))

    def folders(self, bucket: str, prefix: str, page: str) -> tuple[list[str], str]:
        """The folders in a folder of a bucket, with a slash each; of one page of its entries.

        `page`: what the page before said; "" for the first one. Returns the folders, and what leads
        to the next page; "" for the last one.
        """
        query = {"delimiter": "/", "fields": "prefixes,nextPageToken", "prefix": prefix}

        def ask() -> tuple[list[str], str]:
            asked = query | {"pageToken": page} if page else query
            listed = self._api.call("GET", Service.STORAGE, f"b/{bucket}/o", asked)
            return list(listed.get("prefixes", ())), str(listed.get("nextPageToken") or "")

        return self._once(("folders", bucket, prefix, page), ask)

    def begins_any(self, bucket: str, prefix: str) -> bool:
        """Whether the name of an object in a bucket begins so."""
        query = {"prefix": prefix, "maxResults": "1", "fields": "items/name"}

        def ask() -> bool:
            return bool(self._api.call("GET", Service.STORAGE, f"b/{bucket}/o", query).get("items"))

        return self._once(("begins", bucket, prefix), ask)

    def enabled_apis(self, project: str) -> set[str]:
        """The APIs that a project has enabled, such as "compute.googleapis.com"."""
        query = {"filter": "state:ENABLED", "pageSize": _MOST_SERVICES}
        path = f"projects/{project}/services"

        def ask() -> set[str]:
            pages = self._api.pages("GET", path, "services", query, service=Service.SERVICE_USAGE)
            return {service["config"]["name"] for service in pages}

        return self._once(("apis", project), ask)

    def held_permissions(self, project: str, permissions: Sequence[str]) -> Collection[str]:
        """The permissions, out of at most 100, that the caller has on a project."""
        path, body = f"projects/{project}:testIamPermissions", {"permissions": list(permissions)}

        def ask() -> Collection[str]:
            answer = self._api.call("POST", Service.RESOURCE_MANAGER, path, {}, body)
            return frozenset(answer.get("permissions", ()))

        return self._once(("permissions", project), ask)

    def machines_with(
        self, project: str, label: str, value: str, *, after: str = ""
    ) -> list[dict[str, Any]]:
        """The VMs of a project, in all zones, that have a label with that value.

        `after`: what was looked at before, if the answer must be younger than that: a group may
        make VMs meanwhile, which a list from before would not have.
        """
        path = f"projects/{project}/aggregated/instances"

        def ask() -> list[dict[str, Any]]:
            query = {"filter": f"labels.{label}={value}"}
            scopes = self._api.pages("GET", path, "items", query)
            return [vm for scope in scopes for vm in scope.get("instances", [])]

        return self._once(("instances", project, label, value, after), ask)

    def held_on_account(self, path: str, permissions: Sequence[str]) -> Collection[str]:
        """The permissions that the caller has on a service account."""
        body = {"permissions": list(permissions)}

        def ask() -> Collection[str]:
            answer = self._api.call("POST", Service.IAM, f"{path}:testIamPermissions", {}, body)
            return frozenset(answer.get("permissions", ()))

        return self._once(("account", path), ask)

    def held_on(self, path: str, permissions: Sequence[str]) -> Collection[str]:
        """The permissions that the caller has on a resource of Compute Engine."""
        body = {"permissions": list(permissions)}

        def ask() -> Collection[str]:
            answer = self._api.call("POST", Service.COMPUTE, f"{path}/testIamPermissions", {}, body)
            return frozenset(answer.get("permissions", ()))

        return self._once(("held", path, *permissions), ask)

    def subnetwork(self, path: str) -> dict[str, Any] | None:
        """A subnetwork, with how many of its addresses are free; None if it does not exist."""

        def ask() -> dict[str, Any] | None:
            try:
                return self._api.call("GET", Service.COMPUTE, path, {"views": "WITH_UTILIZATION"})
            except GoogleApiError as error:
                if error.code == _NOT_FOUND:
                    return None
                raise

        return self._once(("subnetwork", path), ask)

    def policy_of_subnetwork(self, path: str) -> dict[str, Any]:
        """Who may do what on a subnetwork."""
        return self.get(Service.COMPUTE, f"{path}/getIamPolicy")

    def policy_of_project(self, project: str) -> dict[str, Any]:
        """Who may do what in a project."""
        path = f"projects/{project}:getIamPolicy"

        def ask() -> dict[str, Any]:
            return self._api.call("POST", Service.RESOURCE_MANAGER, path, {}, {})

        return self._once(("policy", project), ask)

    def project_number(self, project: str) -> str:
        """The number of a project, by which Google's own accounts of it are called."""
        return str(self.get(Service.RESOURCE_MANAGER, f"projects/{project}")["projectNumber"])

    def shares(self, project: str) -> list[dict[str, Any]]:
        """The Filestore instances of a project, in all places."""
        path = f"projects/{project}/locations/-/instances"

        def ask() -> list[dict[str, Any]]:
            return list(self._api.pages("GET", path, "instances", {}, service=Service.FILESTORE))

        return self._once(("shares", project), ask)

    def _once(self, question: Hashable, ask: Callable[[], T]) -> T:
        with self._lock:
            answer = self._asked.get(question)
            is_first = answer is None
            if answer is None:
                answer = self._asked[question] = concurrent.futures.Future()
        if is_first:
            try:
                answer.set_result(ask())
            except BaseException as error:  # noqa: BLE001 - it is raised below, for all who ask
                answer.set_exception(error)
        found: T = answer.result()
        return found
