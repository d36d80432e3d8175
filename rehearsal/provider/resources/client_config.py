"""The data source google_client_config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.provider.resources import links

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State


class Data:
    """What the provider block came to."""

    def read(self, api: Api, config: State) -> State:
        """Project, region, zone, default labels and a token; only for the last is anybody asked."""
        del config
        place = f"projects/{api.project}/regions/{api.region}/zones/{links.name(api.zone)}"
        return {
            "id": place,
            "project": api.project,
            "region": api.region,
            "zone": api.zone,
            "default_labels": api.default_labels,
            "access_token": api.token(),
        }


DATA = Data()
