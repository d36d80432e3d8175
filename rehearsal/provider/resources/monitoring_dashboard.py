"""google_monitoring_dashboard: one JSON document, which Google completes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    is_deletable,
    kept,
    parse_import,
    present,
    with_defaults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_COLLECTION = "projects/{project}/dashboards"


def _same_dashboard(prior: Any, wanted: Any, _: State) -> bool:
    """Whether two documents differ in nothing that the configuration says."""
    try:
        return bool(_shared(json.loads(prior), json.loads(wanted)) == json.loads(wanted))
    except (TypeError, ValueError):
        return False


def _shared(there: Any, wanted: Any) -> Any:
    """What is there, without the keys that nobody asked for."""
    if isinstance(there, dict) and isinstance(wanted, dict):
        return {
            key: _shared(value, wanted[key])
            for key, value in there.items()
            if wanted.get(key) is not None
        }
    if isinstance(there, list) and isinstance(wanted, list):
        # Entries beyond the wanted ones stay as they are: they are a difference.
        paired = [_shared(*pair) for pair in zip(there, wanted, strict=False)]
        return [*paired, *there[len(paired) :]]
    return there


class MonitoringDashboard:
    """A dashboard of Cloud Monitoring."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {"dashboard_json": _same_dashboard}

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The provider's defaults, and the document in the one form that the state has."""
        del prior
        plan = with_defaults(api, plan)
        text = plan.get("dashboard_json")
        return plan if text is UNKNOWN else {**plan, "dashboard_json": _normal(text)}

    def create(self, api: Api, plan: State) -> State:
        """Make the dashboard; Google gives it its name."""
        path = f"v1/{_COLLECTION.format(project=plan['project'])}"
        try:
            answer = api.plain("monitoring", "POST", path, json.loads(plan["dashboard_json"]))
        except GoogleApiError as error:
            raise ProviderError(f"Error creating Dashboard: {error}") from error
        return present(self.read(api, {**plan, "id": answer["name"]}))

    def read(self, api: Api, state: State) -> State | None:
        """The dashboard, None if Google knows none."""
        try:
            answer = api.plain("monitoring", "GET", f"v1/{state['id']}")
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing MonitoringDashboard "{state["id"]}": {error}'
            ) from error
        return {
            "id": state["id"],
            "dashboard_json": _normal(json.dumps(answer)),
            "project": kept(state, "project", api.project),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
            "timeouts": state.get("timeouts"),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Replace the document, if nobody else has done so since it was read."""
        if plan["dashboard_json"] != prior["dashboard_json"]:
            etag = json.loads(prior["dashboard_json"]).get("etag")
            body = {**json.loads(plan["dashboard_json"]), "etag": etag}
            try:
                api.plain("monitoring", "PATCH", f"v1/{prior['id']}", body)
            except GoogleApiError as error:
                raise ProviderError(f'Error updating Dashboard "{prior["id"]}": {error}') from error
        return present(self.read(api, {**plan, "id": prior["id"]}))

    def delete(self, api: Api, state: State) -> None:
        """Delete the dashboard."""
        if not is_deletable(state, "MonitoringDashboard"):
            return
        try:
            api.plain("monitoring", "DELETE", f"v1/{state['id']}")
        except GoogleApiError as error:
            if error.code != NOT_FOUND:
                raise ProviderError(
                    f'Error when reading or editing MonitoringDashboard "{state["id"]}": {error}'
                ) from error

    def import_state(self, api: Api, import_id: str) -> State:
        """From "projects/PROJECT/dashboards/ID", or the id alone."""
        found = parse_import(api, f"{_COLLECTION}/{{id}}", import_id)
        path = f"{_COLLECTION.format(project=found['project'])}/{found['id']}"
        return {"id": path, "project": found["project"]}


def _normal(text: Any) -> Any:
    """JSON as the provider writes it: keys in order, nothing between them."""
    try:
        return json.dumps(
            json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
    except (TypeError, ValueError):
        return text


RESOURCE = MonitoringDashboard()
