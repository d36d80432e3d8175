"""The calls to Google's APIs that this program makes; `http` sends the requests."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from provision.codes import Code
from provision.documents import json_object
from provision.endpoints import Service
from provision.errors import CheckError
from provision.google.http import GoogleApiError, Rest
from provision.time import deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provision.google.owner import Owner
    from provision.google.resources import Look

_Found = TypeVar("_Found")
_Else = TypeVar("_Else")

__all__ = ["GoogleApi", "GoogleApiError", "Service"]

_FORBIDDEN = 403
_NOT_FOUND = 404
_CONFLICTS = (409, 412)
"""Somebody else changed it meanwhile: 409 for most APIs, 412 for Cloud Storage."""
_WHOLE = 50  # VMs that are asked for at a time with their metadata
_OPERATION_POLL = 2.0  # poll interval for an operation, in seconds of cloud time


class GoogleApi(Rest):
    """Google's APIs, except for the state's bucket, which `state.folder` reads alone.

    Every method raises `GoogleApiError` if Google refuses the request.
    """

    @functools.cached_property
    def _projects(self) -> dict[str, dict[str, Any]]:
        return {}

    def project(self, project: str) -> dict[str, Any]:
        """A project, asked for once: neither its number nor what it is in changes in a run."""
        if project not in self._projects:
            self._projects[project] = self.get(Service.RESOURCE_MANAGER, f"projects/{project}")
        return self._projects[project]

    def project_number(self, project: str) -> str:
        """The project's number."""
        try:
            return str(self.project(project)["projectNumber"])
        except GoogleApiError as error:
            if error.code not in {_FORBIDDEN, _NOT_FOUND}:
                raise
            raise CheckError(
                f"The project {project} does not exist, or these credentials may not see it",
                code=Code.PROJECT_NOT_FOUND,
                why=error.message,
                fix="check PROJECT_ID and the active account (gcloud auth list); the account needs"
                " resourcemanager.projects.get (role Browser or more)",
                setting="PROJECT_ID",
            ) from error

    def managed_instances(self, project: str, zone: str, group: str) -> list[dict[str, Any]]:
        """The managed instances of a group: the state, and the last errors, of each of its VMs."""
        path = f"projects/{project}/zones/{zone}/instanceGroupManagers/{group}/listManagedInstances"
        return list(self.pages("POST", path, "managedInstances", {}))

    def named_instances(
        self, project: str, zone: str, base: str, fields: str
    ) -> list[dict[str, Any]]:
        """The VMs of a zone whose names are a base name, "-" and what a group appends."""
        path = f"projects/{project}/zones/{zone}/instances"
        query = {"filter": f'name eq "{base}-.*"', "fields": f"items({fields}),nextPageToken"}
        return list(self.pages("GET", path, "items", query))

    def all_instances(self, project: str, fields: str) -> list[dict[str, Any]]:
        """All VMs of a project; `fields`: as above."""
        path = f"projects/{project}/aggregated/instances"
        query = {"fields": f"items/*/instances({fields}),nextPageToken"}
        scopes = self.pages("GET", path, "items", query)
        return [one for scope in scopes for one in scope.get("instances", [])]

    def whole_instances(
        self, project: str, zone: str, names: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """VMs with all that Google has of them, few at a time.

        The metadata of one, with the programs that it gets, may be half a megabyte.
        """
        path = f"projects/{project}/zones/{zone}/instances"
        for start in range(0, len(names), _WHOLE):
            some = "|".join(names[start : start + _WHOLE])
            yield from self.pages("GET", path, "items", {"filter": f'name eq "({some})"'})

    def guest_attributes(self, path: str, namespace: str) -> dict[str, str]:
        """The guest attributes of a VM, by key; {} if it has none, or is gone."""
        query, of_vm = {"queryPath": f"{namespace}/"}, f"{path}/getGuestAttributes"
        document = _unless(
            {_NOT_FOUND}, lambda: self.call("GET", Service.COMPUTE, of_vm, query), {}
        )
        return _pairs(document.get("queryValue"))

    def apply_updates(
        self, project: str, zone: str, group: str, names: Collection[str], *, action: str
    ) -> None:
        """Bring VMs of a managed instance group to its newest template, and wait for Google's yes.

        `action`: what may happen to them: REFRESH changes running VMs, REPLACE replaces them.
        """
        path = f"projects/{project}/zones/{zone}/instanceGroupManagers/{group}"
        body = {
            "instances": [f"zones/{zone}/instances/{name}" for name in names],
            "minimalAction": action,
            "mostDisruptiveAllowedAction": action,
        }
        path += "/applyUpdatesToInstances"
        self._finish(self.call("POST", Service.COMPUTE, path, {}, body), path)

    def start_instance(self, project: str, zone: str, name: str) -> None:
        """Start a VM that is off, and wait for Google's yes (compute v1, instances.start)."""
        path = f"projects/{project}/zones/{zone}/instances/{name}/start"
        self._finish(self.call("POST", Service.COMPUTE, path, {}, {}), path)

    def stop_managed(self, project: str, zone: str, group: str, name: str) -> None:
        """Have a group stop a VM, which it then neither starts nor makes again.

        Google's yes comes at once, and the VM is off later (compute v1, stopInstances).
        """
        path = f"projects/{project}/zones/{zone}/instanceGroupManagers/{group}/stopInstances"
        body = {"instances": [f"zones/{zone}/instances/{name}"]}
        self._finish(self.call("POST", Service.COMPUTE, path, {}, body), path)

    def recreate_managed(self, project: str, zone: str, group: str, names: Collection[str]) -> None:
        """Have a group recreate VMs by their names, and wait for Google's yes."""
        path = f"projects/{project}/zones/{zone}/instanceGroupManagers/{group}/recreateInstances"
        body = {"instances": [f"zones/{zone}/instances/{name}" for name in names]}
        self._finish(self.call("POST", Service.COMPUTE, path, {}, body), path)

    def resize_managed(self, project: str, zone: str, group: str, size: int) -> None:
        """Set how many VMs a group is to have, and wait for Google's yes."""
        path = f"projects/{project}/zones/{zone}/instanceGroupManagers/{group}/resize"
        query = {"size": str(size)}
        self._finish(self.call("POST", Service.COMPUTE, path, query, {}), path)

    def make_image(self, project: str, image: Mapping[str, Any], *, force: bool) -> None:
        """Make an image of a disk, and wait until Google is done with it.

        Raises:
            GoogleApiError: The name is taken (409), the disk is in use (400), or it failed.
        """
        path = f"projects/{project}/global/images"
        query = {"forceCreate": "true"} if force else {}
        self._finish(self.call("POST", Service.COMPUTE, path, query, image), path)

    def change_metadata(
        self, path: str, change: Callable[[dict[str, str]], Mapping[str, str]]
    ) -> None:
        """Change the metadata of a VM, unless it is as wanted or the VM is gone.

        Whoever else changes it meanwhile loses nothing: Google refuses a request with an older
        fingerprint (412, compute v1, Metadata), and it is made again. `change`: makes of the keys
        and values that there are those that are wanted.
        """

        def once() -> None:
            found = (self.find(Service.COMPUTE, path) or {}).get("metadata")
            if not isinstance(found, dict):
                return
            now = _pairs(found)
            wanted = change(now)
            if wanted != now:
                items = [{"key": key, "value": value} for key, value in wanted.items()]
                body = {"fingerprint": found.get("fingerprint"), "items": items}
                of_vm = f"{path}/setMetadata"
                self._finish(self.call("POST", Service.COMPUTE, of_vm, {}, body), of_vm)

        _against_conflicts(once)

    def resize_requests(self, group: str) -> list[dict[str, Any]]:
        """The resize requests of a managed instance group; none if there is no such group."""
        path = f"{group}/resizeRequests"
        return _unless({_NOT_FOUND}, lambda: list(self.pages("GET", path, "items", {})), [])

    def cancel_resize_request(self, group: str, name: str) -> None:
        """Cancel a resize request that has not ended, and wait until that is done."""
        path = f"{group}/resizeRequests/{name}/cancel"
        self._finish(self.call("POST", Service.COMPUTE, path, {}), path)

    def has_bucket(self, name: str) -> bool:
        """Whether a bucket exists."""
        return self.find(Service.STORAGE, f"b/{name}") is not None

    def zones_with(self, project: str, collection: str, name: str) -> set[str]:
        """The zones that offer a resource of that name in a collection such as "machineTypes"."""
        path = f"projects/{project}/aggregated/{collection}"
        return {
            item["zone"].rpartition("/")[2]
            for scope in self.pages("GET", path, "items", {"filter": f"name={name}"})
            for item in scope.get(collection, [])
        }

    def find(self, service: Service, path: str) -> dict[str, Any] | None:
        """A resource by its path; None if it does not exist."""
        return _unless({_NOT_FOUND}, lambda: self.get(service, path), None)

    def listed(self, look: Look, project: str, **query: str) -> list[dict[str, Any]]:
        """All resources of one type in a project.

        Empty if these credentials may not list them, or the API is disabled, for types that are
        optional: whoever may not list them has not created any, and could not delete any.
        """
        is_compute = look.service is Service.COMPUTE
        key = "items" if is_compute else look.list_key or look.collection
        path = look.list_path(project)
        found = _unless(
            {_FORBIDDEN} if look.may_be_off else set(),
            lambda: list(self.pages("GET", path, key, query, service=look.service)),
            [],
        )
        if is_compute and not look.is_global:
            return [one for scope in found for one in scope.get(look.collection, [])]
        return found

    def marked(self, look: Look, project: str, owner: Owner) -> list[dict[str, Any]]:
        """The resources of one type in a project that carry the marker of a deployment."""
        query = {}
        if look.service is Service.COMPUTE:
            query["filter"] = f'description = "{owner.text}"'
        found = self.listed(look, project, **query)
        return [one for one in found if look.is_of(one, owner)]

    def unfinished(self, project: str, scope: str) -> list[dict[str, Any]]:
        """Compute Engine's operations in "global", a region or a zone; none as above."""
        path, query = f"projects/{project}/{scope}/operations", {"filter": "status != DONE"}
        return _unless({_FORBIDDEN}, lambda: list(self.pages("GET", path, "items", query)), [])

    def operations_of(
        self, project: str, zone: str, types: Collection[str]
    ) -> list[dict[str, Any]]:
        """Compute Engine's operations of these types in a zone; none if they may not be listed."""
        path = f"projects/{project}/zones/{zone}/operations"
        query = {"filter": f'operationType eq "{"|".join(types)}"'}
        return _unless({_FORBIDDEN}, lambda: list(self.pages("GET", path, "items", query)), [])

    def cluster_operations(self, project: str, location: str) -> list[dict[str, Any]]:
        """Kubernetes Engine's operations that are not done; none if they may not be listed."""
        path = f"projects/{project}/locations/{location}/operations"
        found = _unless(
            {_FORBIDDEN},
            lambda: list(self.pages("GET", path, "operations", {}, service=Service.CONTAINER)),
            [],
        )
        return [one for one in found if one["status"] != "DONE"]

    def delete(self, service: Service, path: str) -> None:
        """Delete a resource and wait until it is gone; does nothing if it does not exist."""
        operation = _unless({_NOT_FOUND}, lambda: self.call("DELETE", service, path, {}), None)
        if operation is not None:
            self._finish(operation, path, service)

    def _finish(
        self, operation: dict[str, Any], path: str, service: Service = Service.COMPUTE
    ) -> None:
        """Wait for the end of an operation; the newer APIs' have a field `done`, not a status."""
        with self._progress.waits(_named(operation, path)):
            while not _is_done(operation, service):
                self._progress.clock.pause(_OPERATION_POLL)
                operation = self.get(service, _where(operation, path, service))
        failure = json_object.inner(operation.get("error"))
        for one in json_object.objects(failure.get("errors")):
            code = json_object.whole(operation.get("httpErrorStatusCode")) or 400
            said = json_object.text(one.get("message") or one.get("code"))
            raise GoogleApiError(code, said, path)
        if failure and service is not Service.COMPUTE:
            raise GoogleApiError(400, json_object.text(failure.get("message")), path)

    def revoke(self, project: str, email: str, kept: Collection[str]) -> None:
        """Revoke a service account's roles on the project, except for those to keep."""
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
        """Revoke roles on a bucket; does nothing if it is gone or its policy may not be read.

        `is_revoked`: whether to remove a member (the second argument) from a binding.
        """
        path = f"b/{bucket}/iam"

        def once() -> None:
            # Older policy versions omit conditions.
            query = {"optionsRequestedPolicyVersion": "3"}
            policy = _unless(
                {_FORBIDDEN, _NOT_FOUND},
                lambda: self.call("GET", Service.STORAGE, path, query),
                {},
            )
            changed = _without(policy, is_revoked)
            if changed != policy:
                self.call("PUT", Service.STORAGE, path, {}, changed | {"version": 3})

        _against_conflicts(once)


def _unless(codes: Collection[int], ask: Callable[[], _Found], otherwise: _Else) -> _Found | _Else:
    """What Google answers; something else where it refuses with one of these codes."""
    try:
        return ask()
    except GoogleApiError as error:
        if error.code in codes:
            return otherwise
        raise


def _pairs(document: object) -> dict[str, str]:
    """The keys and values in a document's "items"; what is no pair of texts is left out."""
    pairs = json_object.objects(json_object.inner(document).get("items"))
    found = ((it.get("key"), it.get("value", "")) for it in pairs)
    return {key: text for key, text in found if isinstance(key, str) and isinstance(text, str)}


def _named(operation: Mapping[str, Any], path: str) -> str:
    """An operation in words, such as "Google's operation delete on networks/my-cluster-net"."""
    kind = operation.get("operationType")
    what = f"operation {kind}" if kind else "operation"
    return f"Google's {what} on {'/'.join(path.split('/')[-2:])}"


def _is_done(operation: Mapping[str, Any], service: Service) -> bool:
    if service is Service.FILESTORE:
        return bool(operation.get("done"))
    return bool(operation.get("status", "DONE") == "DONE")


def _where(operation: Mapping[str, Any], path: str, service: Service) -> str:
    match service:
        case Service.FILESTORE:
            return str(operation["name"])
        case Service.CONTAINER:
            return f"{path.partition('/clusters/')[0]}/operations/{operation['name']}"
        case _:
            return str(operation.get("selfLink")).partition("/v1/")[2]


def _without(
    policy: Mapping[str, Any], is_revoked: Callable[[Mapping[str, Any], str], bool]
) -> dict[str, Any]:
    """A policy without some members, and without bindings that have no members left.

    The etag stays: if somebody else has changed the policy meanwhile, Google refuses ours instead
    of losing that change.
    """
    kept = [
        {**binding, "members": [one for one in binding["members"] if not is_revoked(binding, one)]}
        for binding in policy.get("bindings", [])
    ]
    left = [binding for binding in kept if binding["members"]]
    return {**policy, "bindings": left} if "bindings" in policy else dict(policy)


def _against_conflicts(once: Callable[[], None]) -> None:
    """Change something, retrying as long as somebody else changes it first."""
    for _ in range(deadline.TRIES):
        try:
            return once()
        except GoogleApiError as error:
            if error.code not in _CONFLICTS:
                raise
            conflict = error
    raise conflict
