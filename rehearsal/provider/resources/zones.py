"""The data source google_compute_zones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State


class Data:
    """The names of a region's zones."""

    def read(self, api: Api, config: State) -> State:
        """All zones are asked for; the region's are picked here (recorded traffic)."""
        project = config.get("project") or api.project
        region = links.name(config.get("region") or api.region)
        if not region:
            raise ProviderError(
                "Please specify the region to get zones for, in the data source or the provider"
            )
        status = config.get("status")
        query = {"filter": f"(status eq {status})" if status else "", "prettyPrint": "false"}
        try:
            answer = api.plain("compute", "GET", f"projects/{project}/zones", query=query)
        except GoogleApiError as error:
            raise ProviderError(f"Error listing zones: {error}") from error
        items: list[dict[str, Any]] = answer.get("items") or []
        names = sorted(it["name"] for it in items if links.name(it.get("region", "")) == region)
        return {"id": f"projects/{project}/regions/{region}", "project": project, "names": names}


DATA = Data()
