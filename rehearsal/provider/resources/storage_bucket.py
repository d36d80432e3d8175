"""google_storage_bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import labels
from rehearsal.provider.resources.bucket_configuration import FIELDS, MUTABLE
from rehearsal.provider.resources.fields import expand, flatten, is_zero
from rehearsal.provider.resources.rest import NOT_FOUND, is_deletable, kept, present, scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_ACCESS = ("uniform_bucket_level_access", "public_access_prevention")


def _emptied(prior: Any, wanted: Any, _: State) -> bool:
    """A text that is taken out of the configuration stays as Google has it."""
    return bool(prior) and not wanted


def _off(prior: Any, wanted: Any, _: State) -> bool:
    """A block that says "off" is as good as none, both ways round."""

    def on(blocks: Any) -> bool:
        return any(block.get("enabled") for block in blocks or [])

    return not on(prior) and not on(wanted)


class StorageBucket:
    """A bucket of Cloud Storage."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {
        "location": lambda prior, wanted, _: bool(
            prior and wanted and prior.upper() == wanted.upper()
        ),
        "autoclass": _off,
        "hierarchical_namespace": _off,
        "ip_filter": lambda prior, wanted, _: not wanted and _is_unfiltered(prior),
        "website.main_page_suffix": _emptied,
        "website.not_found_page": _emptied,
    }

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Labels, the location in capitals, the provider's deletion policy."""
        plan = labels.plan(api, prior, plan)
        if not is_zero(plan.get("location")):
            plan["location"] = plan["location"].upper()
        if plan.get("deletion_policy") in (None, UNKNOWN):
            plan["deletion_policy"] = api.deletion_policy
        return plan

    def create(self, api: Api, plan: State) -> State:
        """Make the bucket, and see it before anything is put into it.

        Raises:
            GoogleApiError: Google refused.
        """
        where = scope(api, plan)
        query = {"project": where.project}
        if plan.get("enable_object_retention") is True:
            query["enableObjectRetention"] = "true"
        body = {**expand(FIELDS, plan, where, create=True), "iamConfiguration": _access(plan)}
        api.client("storage", "POST", "b", body, query=query)
        api.client("storage", "GET", f"b/{plan['name']}")
        return present(self.read(api, plan))

    def read(self, api: Api, state: State) -> State | None:
        """The bucket as Google has it."""
        name = state["name"]
        try:
            answer = api.client("storage", "GET", f"b/{name}")
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing Storage Bucket "{name}": {error}'
            ) from error
        return {
            **_attributes(api, answer, state),
            **labels.read(answer.get("labels"), state),
            "force_destroy": kept(state, "force_destroy", False),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
            "timeouts": state.get("timeouts"),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """PATCH what changed; what goes away is sent as null.

        Raises:
            GoogleApiError: Google refused.
        """
        where = scope(api, plan, prior)
        body = {
            each.key: each.to_wire(plan.get(each.name), where)
            for each in MUTABLE
            if plan.get(each.name) != prior.get(each.name)
        }
        new, old = (it.get("effective_labels") or {} for it in (plan, prior))
        if new != old:
            body["labels"] = {**new, **dict.fromkeys(key for key in old if key not in new)}
        if any(plan.get(name) != prior.get(name) for name in _ACCESS):
            body["iamConfiguration"] = _access(plan)
        if body:
            api.client("storage", "PATCH", f"b/{plan['name']}", body)
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Delete the bucket, with what is in it only if so configured.

        Raises:
            GoogleApiError: Google refused.
        """
        if not is_deletable(state, "StorageBucket"):
            return
        path = f"b/{state['name']}"
        try:
            _empty(api, path, state)
            api.client("storage", "DELETE", path)
        except GoogleApiError as error:
            if error.code != NOT_FOUND:
                raise

    def import_state(self, api: Api, import_id: str) -> State:
        """From the name, or "PROJECT/NAME"."""
        del api
        project, _, name = import_id.rpartition("/")
        if "/" in project:
            raise ValueError(f'Import id "{import_id}" is neither "NAME" nor "PROJECT/NAME"')
        return {"name": name, "project": project or None, "id": name, "force_destroy": False}


def _attributes(api: Api, answer: dict[str, Any], state: State) -> State:
    access = answer.get("iamConfiguration") or {}
    uniform = access.get("uniformBucketLevelAccess") or {}
    return {
        **flatten(FIELDS, answer, scope(api, state)),
        "id": answer["id"],
        "project": _project(api, answer, state),
        "url": f"gs://{answer['name']}",
        "uniform_bucket_level_access": uniform.get("enabled", False),
        "public_access_prevention": access.get("publicAccessPrevention", ""),
    }


def _project(api: Api, answer: dict[str, Any], state: State) -> str:
    """The project that the configuration names, else the bucket's own, looked up by its number."""
    if not is_zero(state.get("project")):
        return str(state["project"])
    number = answer.get("projectNumber")
    return str(api.plain("compute", "GET", f"projects/{number}")["name"])


def object_path(bucket: str, name: str) -> str:
    """An object's path below its bucket's; its name is one part, whatever slashes it has."""
    return f"{bucket}/o/{quote(name, safe='$&+=:@~')}"


def _access(plan: State) -> dict[str, Any]:
    uniform = plan.get("uniform_bucket_level_access") is True
    body: dict[str, Any] = {"uniformBucketLevelAccess": {"enabled": uniform}}
    if not is_zero(plan.get("public_access_prevention")):
        body["publicAccessPrevention"] = plan["public_access_prevention"]
    return body


def _is_unfiltered(prior: Any) -> bool:
    return all(block.get("mode") in (None, "", "Disabled") for block in prior or [])


def _empty(api: Api, path: str, state: State) -> None:
    """Delete all that is in a bucket, old versions too, if that is allowed."""
    api.plain("storage", "GET", f"{path}/anywhereCaches/")
    while True:
        answer = api.client("storage", "GET", f"{path}/o", query={"versions": "true"})
        items: list[dict[str, Any]] = answer.get("items") or []
        if not items:
            return
        if state.get("force_destroy") is not True:
            raise ProviderError(
                f"Error trying to delete bucket {state['name']} containing objects without"
                " `force_destroy` set to true"
            )
        for it in items:
            generation = {"generation": str(it["generation"])}
            api.client("storage", "DELETE", object_path(path, it["name"]), query=generation)


RESOURCE = StorageBucket()
