"""The data source google_compute_default_service_account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.provider.failures import GoogleApiError, ProviderError

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State


class Data:
    """The account that VMs have when nobody says otherwise."""

    def read(self, api: Api, config: State) -> State:
        """Compute Engine names the account, IAM knows it."""
        project = config.get("project") or api.project
        try:
            email = api.plain("compute", "GET", f"projects/{project}")["defaultServiceAccount"]
            name = f"projects/{project}/serviceAccounts/{email}"
            # An email is unique: the provider leaves the project to IAM.
            account = api.client("iam", "GET", f"projects/-/serviceAccounts/{email}")
        except GoogleApiError as error:
            raise ProviderError(
                f"Error when reading or editing GCE default service account: {error}"
            ) from error
        return {
            "id": name,
            "project": project,
            "email": email,
            "name": account.get("name", ""),
            "unique_id": account.get("uniqueId", ""),
            "display_name": account.get("displayName", ""),
            "member": f"serviceAccount:{email}",
        }


DATA = Data()
