"""The data source google_container_engine_versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State


class Data:
    """The versions of GKE that a location offers."""

    def read(self, api: Api, config: State) -> State:
        """All versions are asked for; those of the prefix are picked here (recorded traffic)."""
        project = config.get("project") or api.project
        location = config.get("location") or api.zone or api.region
        if not location:
            raise ProviderError(
                "Cannot determine location: set location in this data source or at provider-level"
            )
        at = f"projects/{project}/locations/{location}"
        try:
            answer = api.client("container", "GET", f"{at}/serverConfig")
        except GoogleApiError as error:
            raise ProviderError(
                f"Error retrieving available container cluster versions: {error}"
            ) from error
        prefix = config.get("version_prefix") or ""
        masters = _of(answer.get("validMasterVersions"), prefix)
        nodes = _of(answer.get("validNodeVersions"), prefix)
        channels: list[dict[str, Any]] = answer.get("channels") or []
        return {
            **config,
            "id": at,
            "valid_master_versions": masters,
            "valid_node_versions": nodes,
            "latest_master_version": masters[0] if masters else None,
            "latest_node_version": nodes[0] if nodes else None,
            "default_cluster_version": answer.get("defaultClusterVersion"),
            "release_channel_default_version": {
                it["channel"]: it["defaultVersion"] for it in channels
            },
            "release_channel_latest_version": {
                it["channel"]: (_of(it.get("validVersions"), prefix) or [""])[0] for it in channels
            },
            "release_channel_upgrade_target_version": {
                it["channel"]: it.get("upgradeTargetVersion", "") for it in channels
            },
        }


def _of(versions: list[str] | None, prefix: str) -> list[str]:
    return [version for version in versions or [] if version.startswith(prefix)]


DATA = Data()
