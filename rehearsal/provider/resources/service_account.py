"""google_service_account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources.fields import Field, Table, expand, is_zero
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    is_deletable,
    kept,
    parse_import,
    present,
    scope,
    with_defaults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_CONFLICT = 409
_LOOKS = 3
_GAP = 0.5
_AFTER_CREATE = 10.0
_AFTER_UPDATE = 5.0

_TEXTS = Table(
    "google_service_account",
    Field("display_name"),
    Field("description"),
)


class ServiceAccount:
    """An account for machines. IAM is slow to know a new one, so the provider waits."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {}

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The address follows from the account's id, so it is known before the apply."""
        plan = with_defaults(api, plan)
        account, project = plan.get("account_id"), plan.get("project")
        if prior is not None or is_zero(account) or is_zero(project):
            return plan
        email = f"{account}@{_domain(str(project))}.iam.gserviceaccount.com"
        return {
            **plan,
            "email": email,
            "member": f"serviceAccount:{email}",
            "name": f"projects/{project}/serviceAccounts/{email}",
        }

    def create(self, api: Api, plan: State) -> State:
        """Make the account, see it three times, and give IAM ten seconds."""
        where = scope(api, plan)
        path = f"projects/{where.project}/serviceAccounts"
        texts = expand(_TEXTS, plan, where)
        body = {"accountId": plan["account_id"], "serviceAccount": texts}
        try:
            name = str(api.client("iam", "POST", path, body)["name"])
        except GoogleApiError as error:
            adopted = error.code == _CONFLICT and plan.get("create_ignore_already_exists") is True
            if not adopted:
                raise ProviderError(f"Error creating service account: {error}") from error
            name = str(plan["name"])
        if plan.get("disabled") is True:
            api.client("iam", "POST", f"{name}:disable", {})
        return self._settled(api, {**plan, "id": name}, _AFTER_CREATE)

    def _settled(self, api: Api, state: State, rest: float) -> State:
        """Look at the account until that is no wonder any more, then rest."""
        for look in range(_LOOKS):
            if look:
                api.sleep(_GAP)
            found = present(self.read(api, state))
        api.sleep(rest)
        return found

    def read(self, api: Api, state: State) -> State | None:
        """The account as IAM knows it."""
        try:
            answer = api.client("iam", "GET", state["id"])
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing Service Account "{state["id"]}": {error}'
            ) from error
        email = answer["email"]
        ignore = kept(state, "create_ignore_already_exists", None)
        return {
            "id": answer["name"],
            "name": answer["name"],
            "project": answer.get("projectId"),
            "account_id": email.partition("@")[0],
            "email": email,
            "member": f"serviceAccount:{email}",
            "unique_id": answer.get("uniqueId", ""),
            "display_name": answer.get("displayName", ""),
            "description": answer.get("description", ""),
            "disabled": answer.get("disabled", False),
            "create_ignore_already_exists": ignore,
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
            "timeouts": state.get("timeouts"),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Switch the account on or off, and send the changed texts under the account's etag."""
        name = plan["id"]
        try:
            if plan.get("disabled") != prior.get("disabled"):
                verb = "disable" if plan.get("disabled") is True else "enable"
                api.client("iam", "POST", f"{name}:{verb}", {})
            changed = sorted(
                each.name for each in _TEXTS if plan.get(each.name) != prior.get(each.name)
            )
            if not changed:
                return present(self.read(api, plan))
            texts = expand(_TEXTS, plan, scope(api, plan, prior))
            account = {**texts, "etag": api.client("iam", "GET", name).get("etag")}
            body = {"serviceAccount": account, "updateMask": ",".join(changed)}
            api.client("iam", "PATCH", name, body)
        except GoogleApiError as error:
            raise ProviderError(f'Error updating service account "{name}": {error}') from error
        return self._settled(api, plan, _AFTER_UPDATE)

    def delete(self, api: Api, state: State) -> None:
        """Delete the account."""
        if not is_deletable(state, "ServiceAccount"):
            return
        try:
            api.client("iam", "DELETE", state["id"])
        except GoogleApiError as error:
            if error.code != NOT_FOUND:
                raise ProviderError(
                    f'Error when reading or editing Service Account "{state["id"]}": {error}'
                ) from error

    def import_state(self, api: Api, import_id: str) -> State:
        """From the name, "PROJECT/EMAIL" or the email."""
        template = "projects/{project}/serviceAccounts/{email}"
        found = parse_import(api, template, import_id)
        return {**found, "id": template.format(**found)}


def _domain(project: str) -> str:
    """A project's part of an account's address; one of a domain ("d.org:p") comes turned round."""
    domain, _, name = project.rpartition(":")
    return f"{name}.{domain}" if domain else name


RESOURCE = ServiceAccount()
