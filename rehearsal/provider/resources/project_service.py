"""google_project_service: an API of Google, switched on for a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    is_deletable,
    kept,
    present,
    scope,
    with_defaults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_TYPE = "google_project_service"
_BATCH = 20
"""How many services one request may switch on."""

_LIST = {
    "fields": "services/name,nextPageToken",
    "filter": "state:ENABLED",
    "pageSize": "200",
}


class ProjectService:
    """Switching on and looking are gathered: one request for all services of a project."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {"project": links.same_name}

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The provider's project and deletion policy are known before the apply."""
        del prior
        return with_defaults(api, plan)

    def create(self, api: Api, plan: State) -> State:
        """Switch the service on unless it is on."""
        where = scope(api, plan)
        project, service = where.project, plan["service"]
        limit = operations.timeout(plan, "create", _TYPE)
        if service not in _enabled(api, project):
            try:
                api.batches.run(
                    f"project/{project}/services:batchEnable",
                    service,
                    lambda services: _enable(api, project, services, limit),
                )
            except (GoogleApiError, OperationError) as error:
                raise ProviderError(
                    f'Request `Enable Project Service "{service}" for project "{project}"`'
                    f" returned error: failed to enable services: {error}"
                ) from error
        return present(self.read(api, {**plan, "id": f"{project}/{service}"}))

    def read(self, api: Api, state: State) -> State | None:
        """The service, None if it is off, or its project gone."""
        project, service = scope(api, state).project, state["service"]
        try:
            answer = api.client("cloudresourcemanager", "GET", f"projects/{project}")
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f"Error when reading or editing Project Service {project}/{service}: {error}"
            ) from error
        if answer.get("lifecycleState") != "ACTIVE" or service not in _enabled(api, project):
            return None
        virtual = ("disable_on_destroy", "disable_dependent_services")
        return {
            **{name: kept(state, name, None) for name in virtual},
            "id": f"{project}/{service}",
            "project": project,
            "service": service,
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
            "timeouts": state.get("timeouts"),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Only what Google never hears of can change in place: nothing is sent."""
        del api, prior
        return plan

    def delete(self, api: Api, state: State) -> None:
        """Switch the service off if so configured."""
        if not is_deletable(state, "ProjectService"):
            return
        if state.get("disable_on_destroy") is not True:
            return
        project, service = scope(api, state).project, state["service"]
        dependents = state.get("disable_dependent_services") is True
        body = {"disableDependentServices": True} if dependents else {}
        limit = operations.timeout(state, "delete", _TYPE)
        try:
            path = f"projects/{project}/services/{service}:disable"
            answer = api.client("serviceusage", "POST", path, body)
            operations.named(api, "serviceusage", answer, "api to disable", limit)
        except (GoogleApiError, OperationError) as error:
            raise ProviderError(
                f'Error disabling service "{service}" for project "{project}": {error}'
            ) from error

    def import_state(self, api: Api, import_id: str) -> State:
        """From "PROJECT/SERVICE"."""
        del api
        project, found, service = import_id.partition("/")
        if not found or "/" in service:
            raise ValueError(
                "Invalid google_project_service id format for import, expecting"
                f" `{{project}}/{{service}}`, found {import_id}"
            )
        return {"id": import_id, "project": project, "service": service}


def _enabled(api: Api, project: str) -> frozenset[str]:
    """The services that are on, asked for together with others who want to know."""
    try:
        found: frozenset[str] = api.batches.run(
            f"project/{project}/services", None, lambda _: _list(api, project)
        )
    except GoogleApiError as error:
        raise ProviderError(
            f"Request `List Project Services {project}` returned error: Failed to list enabled"
            f" services for project {project}: {error}"
        ) from error
    return found


def _list(api: Api, project: str) -> frozenset[str]:
    names: set[str] = set()
    query = dict(_LIST)
    while True:
        answer = api.client("serviceusage", "GET", f"projects/{project}/services", query=query)
        names.update(links.name(it["name"]) for it in answer.get("services") or [])
        if not answer.get("nextPageToken"):
            return frozenset(names)
        query["pageToken"] = answer["nextPageToken"]


def _enable(api: Api, project: str, services: Sequence[str], limit: float) -> None:
    """Switch services on, and see them on."""
    for first in range(0, len(services), _BATCH):
        some = list(services[first : first + _BATCH])
        path = f"projects/{project}/services"
        if len(some) == 1:
            answer = api.client("serviceusage", "POST", f"{path}/{some[0]}:enable", {})
        else:
            body = {"serviceIds": some}
            answer = api.client("serviceusage", "POST", f"{path}:batchEnable", body)
        activity = f"Enabling services {some}"
        operations.named(api, "serviceusage", answer, activity, limit)
    waited = 0.0
    while not set(services) <= _list(api, project):
        if waited > limit:
            raise ProviderError(f"timed out while waiting for services {list(services)}")
        api.pause(api.poll_interval)
        waited += api.poll_interval


RESOURCE = ProjectService()
