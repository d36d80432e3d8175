"""A bucket of states in a cloud without a server."""

import json
from urllib.parse import quote

from rehearsal.cloud.storage import service as storage
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Reply, Request, Service

NOW = 1_800_000_000.0


class States:
    """The bucket `states`; its clock stands still until it is moved."""

    def __init__(self, database: Database, project: str, rate: float = 0.0) -> None:
        self.database = database
        self.now, self.rate = NOW, rate
        self.scenarios: frozenset[str] = frozenset()
        body = json.dumps({"name": "states"}).encode()
        assert self.call(storage.json_api, "POST", "b", body, project=project).status == 200

    def call(
        self,
        service: Service,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = "",
        **query: str,
    ) -> Reply:
        """The answer; refusals are answers too."""
        request = Request(
            method=method,
            path=path,
            query=query,
            headers={"content-type": content_type} if content_type else {},
            body=body,
            now=self.now,
            rate=self.rate,
            scenarios=self.scenarios,
        )
        try:
            with self.database.transaction() as store:
                return service(request, store)
        except GoogleError as error:
            return error.reply()

    def read(self, name: str) -> Reply:
        path = f"b/states/o/{quote(name, safe='')}"
        return self.call(storage.json_api, "GET", path, alt="media")

    def write(self, name: str, body: bytes = b"x", **query: str) -> int:
        options = {"uploadType": "media", "name": name} | query
        return self.call(storage.upload, "POST", "b/states/o", body, **options).status
