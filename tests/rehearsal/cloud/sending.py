import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

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
)
from rehearsal.cloud.storage import service as storage
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Reply, Request, Service

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
NOW = 1_800_000_000.0


class Sender:
    """Sends requests to the services without a server; its clock stands still until it is moved."""

    def __init__(self, database: Database, now: float = NOW) -> None:
        self.database = database
        self.now = now
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
        if not isinstance(body, bytes):
            body = b"" if body is None else json.dumps(body).encode()
        request = Request(
            method=method,
            path=path,
            query=dict(parameters),
            parameters=parameters,
            headers=headers or {},
            body=body,
            now=self.now,
            rate=self.rate,
            scenarios=self.scenarios,
        )
        try:
            with self.database.transaction() as store:
                return _SERVICES[service](request, store)
        except GoogleError as error:
            return error.reply()


class States(Sender):
    """The bucket `states`."""

    def __init__(self, database: Database, project: str, rate: float = 0.0) -> None:
        super().__init__(database)
        self.rate = rate
        assert self("storage", "POST", f"b?project={project}", {"name": "states"}).status == 200

    def read(self, name: str) -> Reply:
        return self("storage", "GET", f"b/states/o/{quote(name, safe='')}?alt=media")

    def write(self, name: str, body: bytes = b"x", **query: str) -> int:
        options = urlencode({"uploadType": "media", "name": name} | query)
        return self("upload", "POST", f"b/states/o?{options}", body).status

    def delete(self, name: str) -> int:
        return self("storage", "DELETE", f"b/states/o/{quote(name, safe='')}").status

    def listed(self, query: str = "") -> list[dict[str, str]]:
        found = self("storage", "GET", f"b/states/o?{query}").body
        assert isinstance(found, dict)
        return list(found.get("items", []))
