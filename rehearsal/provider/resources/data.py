"""Data sources that are no objects of a collection."""

from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import State
from rehearsal.provider.resources import links


class _Project:
    def read(self, api: Api, config: State) -> State:
        project = config.get("project_id") or api.project
        try:
            answer = api.client("cloudresourcemanager", "GET", f"projects/{project}")
            billing = api.client("cloudbilling", "GET", f"projects/{project}/billingInfo")
        except GoogleApiError as error:
            raise ProviderError(
                f'Error when reading or editing Project "{project}": {error}'
            ) from error
        parent = answer.get("parent") or {}
        of = {"organization": "org_id", "folder": "folder_id"}.get(parent.get("type", ""))
        names = ("labels", "effective_labels", "terraform_labels")
        return {
            **dict.fromkeys(names, answer.get("labels") or {}),
            **dict.fromkeys(("org_id", "folder_id"), ""),
            **({of: parent.get("id", "")} if of else {}),
            "id": f"projects/{project}",
            "project_id": project,
            "name": answer.get("name", ""),
            "number": str(answer.get("projectNumber", "")),
            "deletion_policy": "PREVENT",
            "billing_account": links.name(billing.get("billingAccountName") or ""),
        }


class _DefaultAccount:
    """The account that VMs have when nobody says otherwise."""

    def read(self, api: Api, config: State) -> State:
        """Compute Engine names the account, IAM knows it."""
        project = config.get("project") or api.project
        try:
            email = api.plain("compute", "GET", f"projects/{project}")["defaultServiceAccount"]
            # An email is unique: the provider leaves the project to IAM.
            account = api.client("iam", "GET", f"projects/-/serviceAccounts/{email}")
        except GoogleApiError as error:
            raise ProviderError(
                f"Error when reading or editing GCE default service account: {error}"
            ) from error
        return {
            "id": f"projects/{project}/serviceAccounts/{email}",
            "project": project,
            "email": email,
            "name": account.get("name", ""),
            "unique_id": account.get("uniqueId", ""),
            "display_name": account.get("displayName", ""),
            "member": f"serviceAccount:{email}",
        }


class _Versions:
    """The versions of GKE that a location offers; no root reads them, but the recorded stories."""

    def read(self, api: Api, config: State) -> State:
        """All versions are asked for; those of the prefix are picked here (recorded traffic)."""
        at = f"projects/{config.get('project') or api.project}/locations/{config['location']}"
        try:
            answer = api.client("container", "GET", f"{at}/serverConfig")
        except GoogleApiError as error:
            raise ProviderError(
                f"Error retrieving available container cluster versions: {error}"
            ) from error
        found: dict[str, Any] = {}
        for kind in ("master", "node"):
            versions = answer.get(f"valid{kind.capitalize()}Versions") or []
            fitting = [it for it in versions if it.startswith(config.get("version_prefix") or "")]
            found[f"valid_{kind}_versions"] = fitting
            found[f"latest_{kind}_version"] = next(iter(fitting), None)
        default = answer.get("defaultClusterVersion")
        return {**config, **found, "id": at, "default_cluster_version": default}


PROJECT, DEFAULT_ACCOUNT, VERSIONS = _Project(), _DefaultAccount(), _Versions()
