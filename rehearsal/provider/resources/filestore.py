"""google_filestore_instance: an NFS share on a network."""

from collections.abc import Mapping
from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN, State
from rehearsal.provider.resources.rest import Rest, present, scope
from rehearsal.provider.resources.shapes import KEPT, MANY, SKIP, VIRTUAL, Rule, Scope, Shape


def _reserved(_: Any, where: Scope) -> str:
    """The range as it was configured: Google may answer one of another form."""
    values = [it.get("reserved_ip_range") for it in where.state.get("networks") or []]
    return next((str(it) for it in values if it not in (None, UNKNOWN)), "")


class _Instance(Rest):
    """One instance, whose name is in the query of its create."""

    def query(self, where: Scope) -> Mapping[str, str]:
        return {"instanceId": where.state["name"]}

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        own = {"name": where.state["name"], "location": where.location}
        return {**super().state(where, answer), **own}

    def update(self, api: Api, prior: State, plan: State) -> State:
        """One PATCH with all that can change; the mask says what does."""
        where = scope(api, plan, prior)
        names = (*self.shape.mutable, "effective_labels")
        if changed := [self.shape.key(it) for it in names if where.changes(it)]:
            body, query = self.shape.expand(plan, where, names), {"updateMask": ",".join(changed)}
            try:
                answer = self.ask(api, "PATCH", self.path(where), body, query=query)
            except GoogleApiError as error:
                raise ProviderError(f"{self.no_update(where)}: {error}") from error
            self.wait(where, answer, "update")
        return present(self.read(api, plan))


RESOURCE = _Instance(
    service="file",
    collection="projects/{project}/locations/{location}/instances",
    shape=Shape(
        "google_filestore_instance",
        {
            **dict.fromkeys(("location", "name"), SKIP),
            **dict.fromkeys(("desired_replica_state", "zone"), VIRTUAL),
            **dict.fromkeys(("initial_replication", "tags"), KEPT),
            "effective_replication": Rule("replication"),
            "file_shares": MANY,
            "networks.connect_mode": Rule(flatten=lambda mode, _: mode or "DIRECT_PEERING"),
            "networks.reserved_ip_range": Rule(flatten=_reserved),
        },
    ),
    least=2,
)
