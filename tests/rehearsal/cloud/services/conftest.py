from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest

from rehearsal.cloud import (
    billing,
    compute,
    container,
    dashboards,
    filestore,
    iam,
    metadata,
    org_policies,
    projects,
    quota_limits,
    services,
    storage,
)
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rehearsal.cloud.wire import Service

_SERVICES: dict[str, Service] = {
    "storage": storage.json_api,
    "upload": storage.upload,
    "media": storage.media,
    "iam": iam.service,
    "crm/v1": projects.service_v1,
    "crm/v3": projects.service_v3,
    "serviceusage": services.service,
    "cloudbilling": billing.service,
    "cloudquotas": quota_limits.shares,
    "orgpolicy": org_policies.service,
    "compute": compute.service,
    "container": container.service,
    "file": filestore.service,
    "monitoring": dashboards.service,
    "metadata": metadata.service,
}
_START = 1_795_000_000.0


class Api:
    """Sends requests to the services without a server; its clock stands still until it is moved."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = _START
        self.rate = 0.0
        self.scenarios: frozenset[str] = frozenset()

    def __call__(
        self,
        service: str,
        method: str,
        target: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """The answer; refusals are answers too."""
        path, _, query = target.partition("?")
        parameters = parse_qsl(query, keep_blank_values=True)
        request = Request(
            method=method,
            path=path,
            query=dict(parameters),
            parameters=parameters,
            headers=headers or {},
            body=body if isinstance(body, bytes) else json.dumps(body).encode() if body else b"",
            now=self.now,
            rate=self.rate,
            scenarios=self.scenarios,
        )
        try:
            with self.database.transaction() as store:
                return _SERVICES[service](request, store)
        except GoogleError as error:
            return error.reply()

    def json(self, service: str, method: str, target: str, body: Any = None) -> dict[str, Any]:
        """The document of an answer that must be a success."""
        reply = self(service, method, target, body)
        assert isinstance(reply.body, dict), reply
        assert reply.status == 200, reply.body
        return reply.body

    def refused(
        self, service: str, method: str, target: str, body: Any = None
    ) -> tuple[int, str, str]:
        """Code, reason and message of a refusal."""
        reply = self(service, method, target, body)
        assert isinstance(reply.body, dict), reply
        error = reply.body["error"]
        assert error["code"] == reply.status
        return reply.status, error["errors"][0]["reason"], error["message"]

    def bucket(self, name: str = "loom", **fields: Any) -> dict[str, Any]:
        """A new bucket of proj-a1."""
        return self.json("storage", "POST", "b?project=proj-a1", {"name": name, **fields})

    def put(self, name: str, content: bytes = b"x", query: str = "") -> Reply:
        """Upload an object to the bucket `loom`."""
        return self("upload", "POST", f"b/loom/o?uploadType=media&name={name}{query}", content)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    database = Database(tmp_path / "cloud.sqlite")
    yield Api(database)
    database.close()
