"""google_monitoring_dashboard: one JSON document, which Google completes."""

import json
from collections.abc import Mapping
from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN, State
from rehearsal.provider.resources.rest import Rest, parse_import, present, scope
from rehearsal.provider.resources.shapes import Scope, Shape


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


class _Dashboard(Rest):
    """A dashboard; Google gives it its name."""

    def id(self, where: Scope) -> str:
        return str(where.state["id"])

    def path(self, where: Scope) -> str:
        return f"v1/{self.id(where)}"

    @property
    def template(self) -> str:
        return f"{self.collection}/{{id}}"

    def no_delete(self, where: Scope) -> str:
        return f"Error when reading or editing {self.title(where)}"

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The document in the one form that the state has."""
        plan = super().customize(api, prior, plan)
        text = plan.get("dashboard_json")
        return plan if text is UNKNOWN else {**plan, "dashboard_json": _normal(text)}

    def create(self, api: Api, plan: State) -> State:
        path = f"v1/{self.collection.format(project=plan['project'])}"
        try:
            answer = self.ask(api, "POST", path, json.loads(plan["dashboard_json"]))
        except GoogleApiError as error:
            raise ProviderError(f"Error creating {self.label}: {error}") from error
        return present(self.read(api, {**plan, "id": answer["name"]}))

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        return {**super().state(where, {}), "dashboard_json": _normal(json.dumps(answer))}

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Replace the document, if nobody else has done so since it was read."""
        where = scope(api, {**plan, "id": prior["id"]}, prior)
        if where.changes("dashboard_json"):
            etag = json.loads(prior["dashboard_json"]).get("etag")
            body = {**json.loads(plan["dashboard_json"]), "etag": etag}
            try:
                self.ask(api, "PATCH", self.path(where), body)
            except GoogleApiError as error:
                raise ProviderError(f"{self.no_update(where)}: {error}") from error
        return present(self.read(api, where.state))

    def import_state(self, api: Api, import_id: str) -> State:
        """From "projects/PROJECT/dashboards/ID", or the id alone."""
        found = parse_import(api, self.template, import_id)
        return {**found, "id": self.template.format(**found)}


def _normal(text: Any) -> Any:
    """JSON as the provider writes it: keys in order, nothing between them."""
    try:
        return json.dumps(
            json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
    except (TypeError, ValueError):
        return text


RESOURCE = _Dashboard(
    service="monitoring",
    collection="projects/{project}/dashboards",
    shape=Shape("google_monitoring_dashboard"),
    suppress={"dashboard_json": _same_dashboard},
)
