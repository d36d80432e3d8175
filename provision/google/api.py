"""What the program asks Google, in its own words; `rest` sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.errors import CheckError
from provision.google.http import GoogleApiError, Rest, Service
from provision.time import retries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from provision.google.owner import Owner
    from provision.google.resources import Look

__all__ = ["GoogleApi", "GoogleApiError", "Service"]

_FORBIDDEN = 403
_NOT_FOUND = 404
_CONFLICTS = (409, 412)
"""Somebody else changed it meanwhile: as most of the APIs say that, and as Cloud Storage does."""
_OPERATION_POLL = 2.0
"""Seconds of cloud time between two looks at an operation."""


class GoogleApi(Rest):
    """Google's APIs, except for the state's bucket, which `state` has its own client for."""

    def project_number(self, project: str) -> str:
        """The project's number.

        Raises:
            CheckError: It does not exist, or may not be read.
        """
        try:
            return str(self.get(Service.RESOURCE_MANAGER, f"projects/{project}")["projectNumber"])
        except GoogleApiError as error:
            raise CheckError(
                f"The project {project} does not exist, or these credentials may not see it",
                why=error.message,
                fix="check PROJECT_ID and the active account (gcloud auth list); the account needs"
                " resourcemanager.projects.get (role Browser or more)",
                setting="PROJECT_ID",
            ) from error

    def image_of_family(self, project: str, family: str) -> str | None:
        """The name of the family's newest image, or None when there is none to be had."""
        path = f"projects/{project}/global/images/family/{family}"
        try:
            return str(self.get(Service.COMPUTE, path)["name"])
        except GoogleApiError as error:
            if error.code in (403, 404):
                return None
            raise

    def managed_instances(self, project: str, zone: str, group: str) -> list[dict[str, Any]]:
        """What a managed instance group says of each of its VMs."""
        path = f"projects/{project}/zones/{zone}/instanceGroupManagers/{group}/listManagedInstances"
        return list(self.pages("POST", path, "managedInstances", {}))

    def named_instances(self, project: str, zone: str, base: str) -> list[dict[str, Any]]:
        """The VMs of a zone whose names are a base name, "-" and what a group appends."""
        path = f"projects/{project}/zones/{zone}/instances"
        return list(self.pages("GET", path, "items", {"filter": f'name eq "{base}-.*"'}))

    def guest_attributes(self, path: str, namespace: str) -> dict[str, str]:
        """What a VM says of itself, by key; {} when it says nothing, or is gone.

        Args:
            path: The VM's: "projects/P/zones/Z/instances/N".
            namespace: Whose attributes.
        """
        try:
            document = self.call(
                "GET", Service.COMPUTE, f"{path}/getGuestAttributes", {"queryPath": f"{namespace}/"}
            )
        except GoogleApiError as error:
            if error.code == _NOT_FOUND:
                return {}
            raise
        items = document.get("queryValue", {}).get("items", [])
        return {item["key"]: item.get("value", "") for item in items}

    def resize_requests(self, group: str) -> list[dict[str, Any]]:
        """The requests for VMs of a managed instance group; none when there is no such group.

        Args:
            group: Its path: "projects/P/zones/Z/instanceGroupManagers/N".
        """
        try:
            return list(self.pages("GET", f"{group}/resizeRequests", "items", {}))
        except GoogleApiError as error:
            if error.code == _NOT_FOUND:
                return []
            raise

    def cancel_resize_request(self, group: str, name: str) -> None:
        """Cancel a request for VMs and wait until that is done.

        Raises:
            GoogleApiError: It has ended already, or may not be cancelled.
        """
        path = f"{group}/resizeRequests/{name}/cancel"
        self._finish(self.call("POST", Service.COMPUTE, path, {}), path)

    def has_bucket(self, name: str) -> bool:
        """Whether a bucket exists.

        Raises:
            GoogleApiError: These credentials may not know (403).
        """
        return self.find(Service.STORAGE, f"b/{name}") is not None

    def zones_with(self, project: str, collection: str, name: str) -> set[str]:
        """The zones that offer something of that name, such as one of the "machineTypes"."""
        path = f"projects/{project}/aggregated/{collection}"
        return {
            item["zone"].rpartition("/")[2]
            for scope in self.pages("GET", path, "items", {"filter": f"name={name}"})
            for item in scope.get(collection, [])
        }

    def find(self, service: Service, path: str) -> dict[str, Any] | None:
        """A resource by its path, or None when there is none."""
        try:
            return self.get(service, path)
        except GoogleApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    def listed(self, look: Look, project: str, **query: str) -> list[dict[str, Any]]:
        """All that a project has in the collection of one type of resource.

        None where these credentials may not list it, or the API is off, if a project can do without
        it: whoever may not do that has not made any, and could not delete any.

        Args:
            look: How the type is found.
            project: The project.
            **query: Of the request.
        """
        is_compute = look.service is Service.COMPUTE
        key = "items" if is_compute else look.list_key or look.collection
        try:
            found = list(
                self.pages("GET", look.list_path(project), key, query, service=look.service)
            )
        except GoogleApiError as error:
            if error.code == _FORBIDDEN and look.may_be_off:
                return []
            raise
        if is_compute and not look.is_global:
            return [one for scope in found for one in scope.get(look.collection, [])]
        return found

    def marked(self, look: Look, project: str, owner: Owner) -> list[dict[str, Any]]:
        """What a project has of one type that carries the marker of a deployment.

        Args:
            look: How the type is found.
            project: The project.
            owner: The deployment.
        """
        query = {}
        if look.service is Service.COMPUTE:
            query["filter"] = f'description = "{owner.text}"'
        found = self.listed(look, project, **query)
        return [one for one in found if look.is_of(one, owner)]

    def unfinished(self, project: str, scope: str) -> list[dict[str, Any]]:
        """Compute Engine's operations that are not done, of "global" or one region or zone."""
        path = f"projects/{project}/{scope}/operations"
        return list(self.pages("GET", path, "items", {"filter": "status != DONE"}))

    def cluster_operations(self, project: str, location: str) -> list[dict[str, Any]]:
        """Kubernetes Engine's operations that are not done; none where they may not be listed."""
        path = f"projects/{project}/locations/{location}/operations"
        try:
            found = list(self.pages("GET", path, "operations", {}, service=Service.CONTAINER))
        except GoogleApiError as error:
            if error.code == _FORBIDDEN:
                return []
            raise
        return [one for one in found if one["status"] != "DONE"]

    def delete(self, service: Service, path: str) -> None:
        """Delete a resource and wait until it is gone; one that is gone already is success.

        Raises:
            GoogleApiError: It is still in use, or may not be deleted.
        """
        try:
            operation = self.call("DELETE", service, path, {})
        except GoogleApiError as error:
            if error.code == _NOT_FOUND:
                return
            raise
        match service:
            case Service.FILESTORE:
                self._finish_named(operation, path)
            case Service.CONTAINER:
                self._finish_of_cluster(operation, path)
            case _:
                self._finish(operation, path)

    def _finish_named(self, operation: dict[str, Any], path: str) -> None:
        """Wait for the end of an operation of the newer APIs, which is done or not.

        Raises:
            GoogleApiError: It failed.
        """
        while not operation.get("done"):
            self._pause()
            operation = self.get(Service.FILESTORE, operation["name"])
        if failure := operation.get("error"):
            raise GoogleApiError(400, failure.get("message", ""), path)

    def _finish_of_cluster(self, operation: dict[str, Any], path: str) -> None:
        """Wait for the end of one of Kubernetes Engine's operations.

        Raises:
            GoogleApiError: It failed.
        """
        place = path.partition("/clusters/")[0]
        while operation["status"] != "DONE":
            self._pause()
            operation = self.get(Service.CONTAINER, f"{place}/operations/{operation['name']}")
        if failure := operation.get("error"):
            raise GoogleApiError(400, failure.get("message", ""), path)

    def _pause(self) -> None:
        self._progress.clock.pause(_OPERATION_POLL)

    def _finish(self, operation: dict[str, Any], path: str) -> None:
        """Wait for the end of one of Compute Engine's operations.

        Raises:
            GoogleApiError: It failed.
        """
        while operation.get("status", "DONE") != "DONE":
            self._pause()
            operation = self.get(Service.COMPUTE, operation["selfLink"].partition("/v1/")[2])
        for failure in operation.get("error", {}).get("errors", []):
            code = operation.get("httpErrorStatusCode", 400)
            raise GoogleApiError(code, failure.get("message", failure.get("code", "")), path)

    def revoke(self, project: str, email: str, kept: Collection[str]) -> None:
        """Take the roles in the project from a service account, but for those that it keeps.

        Raises:
            GoogleApiError: It may not be done, or others change the policy all the time.
        """
        path, own = f"projects/{project}", f"serviceAccount:{email}"

        def once() -> None:
            policy = self.call("POST", Service.RESOURCE_MANAGER, f"{path}:getIamPolicy", {})
            changed = _without(
                policy, lambda binding, member: member == own and binding["role"] not in kept
            )
            if changed != policy:
                body = {"policy": changed}
                self.call("POST", Service.RESOURCE_MANAGER, f"{path}:setIamPolicy", {}, body)

        _against_conflicts(once)

    def revoke_in_bucket(
        self, bucket: str, is_revoked: Callable[[Mapping[str, Any], str], bool]
    ) -> None:
        """Take roles in a bucket away; one that is gone, or whose roles may not be read, has none.

        Args:
            bucket: Its name.
            is_revoked: Says of a binding and one of its members whether it goes.

        Raises:
            GoogleApiError: It may not be done, or others change the policy all the time.
        """
        path = f"b/{bucket}/iam"

        def once() -> None:
            try:
                # Older versions leave conditions out.
                query = {"optionsRequestedPolicyVersion": "3"}
                policy = self.call("GET", Service.STORAGE, path, query)
            except GoogleApiError as error:
                if error.code in {_FORBIDDEN, _NOT_FOUND}:
                    return
                raise
            changed = _without(policy, is_revoked)
            if changed != policy:
                self.call("PUT", Service.STORAGE, path, {}, changed | {"version": 3})

        _against_conflicts(once)


def _without(
    policy: Mapping[str, Any], is_revoked: Callable[[Mapping[str, Any], str], bool]
) -> dict[str, Any]:
    """A policy without some members, and without bindings that have none left.

    Its etag stays, and makes Google refuse, rather than lose, what somebody else changed meanwhile.
    """
    kept = [
        {**binding, "members": [one for one in binding["members"] if not is_revoked(binding, one)]}
        for binding in policy.get("bindings", [])
    ]
    left = [binding for binding in kept if binding["members"]]
    return {**policy, "bindings": left} if "bindings" in policy else dict(policy)


def _against_conflicts(once: Callable[[], None]) -> None:
    """Change a policy, again and again as long as others are quicker.

    Raises:
        GoogleApiError: They always are.
    """
    for _ in range(retries.TRIES):
        try:
            return once()
        except GoogleApiError as error:
            if error.code not in _CONFLICTS:
                raise
            conflict = error
    raise conflict
