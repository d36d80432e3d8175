"""The data source google_project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

# What Resource Manager calls a parent, and the attribute that has its id.
_PARENTS = {"organization": "org_id", "folder": "folder_id"}


class Data:
    """A project, with its number and its billing account."""

    def read(self, api: Api, config: State) -> State:
        """The project of that id, else the provider's."""
        project = config.get("project_id") or api.project
        try:
            answer = api.client("cloudresourcemanager", "GET", f"projects/{project}")
            billing = api.client("cloudbilling", "GET", f"projects/{project}/billingInfo")
        except GoogleApiError as error:
            raise ProviderError(
                f'Error when reading or editing Project "{project}": {error}'
            ) from error
        parent = answer.get("parent") or {}
        of = _PARENTS.get(parent.get("type", ""))
        return {
            "id": f"projects/{project}",
            "project_id": project,
            "name": answer.get("name", ""),
            "number": str(answer.get("projectNumber", "")),
            "labels": answer.get("labels") or {},
            "effective_labels": answer.get("labels") or {},
            "terraform_labels": answer.get("labels") or {},
            "auto_create_network": None,
            "deletion_policy": "PREVENT",
            "org_id": "",
            "folder_id": "",
            **({of: parent.get("id", "")} if of else {}),
            "billing_account": links.name(billing.get("billingAccountName") or ""),
        }


DATA = Data()
