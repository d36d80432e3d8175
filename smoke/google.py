"""What the smoke test itself asks of Google: buckets, a job, and what is left."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import requests
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smoke.steps import Place

_TIMEOUT: Final = 120.0
_NOT_FOUND: Final = 404
_REFUSED: Final = 400
_POLL: Final = 10.0
"""Seconds between two looks at a job."""

_COMPUTE: Final = "compute/v1/projects/{project}"
LISTS: Final = {
    "VMs": (f"{_COMPUTE}/aggregated/instances", "items"),
    "groups of VMs": (f"{_COMPUTE}/aggregated/instanceGroupManagers", "items"),
    "disks": (f"{_COMPUTE}/aggregated/disks", "items"),
    "addresses": (f"{_COMPUTE}/aggregated/addresses", "items"),
    "forwarding rules": (f"{_COMPUTE}/aggregated/forwardingRules", "items"),
    "instance templates": (f"{_COMPUTE}/global/instanceTemplates", "items"),
    "networks": (f"{_COMPUTE}/global/networks", "items"),
    "subnetworks": (f"{_COMPUTE}/aggregated/subnetworks", "items"),
    "firewall rules": (f"{_COMPUTE}/global/firewalls", "items"),
    "routers": (f"{_COMPUTE}/aggregated/routers", "items"),
    "resource policies": (f"{_COMPUTE}/aggregated/resourcePolicies", "items"),
    "clusters": ("container/v1/projects/{project}/locations/-/clusters", "clusters"),
    "shares": ("file/v1/projects/{project}/locations/-/instances", "instances"),
    "service accounts": ("iam/v1/projects/{project}/serviceAccounts", "accounts"),
    "dashboards": ("monitoring/v1/projects/{project}/dashboards", "dashboards"),
    "buckets": ("storage/v1/b?project={project}", "items"),
}
"""What a deployment is made of -> where it is listed, and the field of the answer."""


class RefusedError(Exception):
    """Google refused something that the smoke test asked for itself."""


@dataclass(frozen=True)
class Google:
    """Requests by way of the recording proxy."""

    base_url: str  # the proxy's
    token: Callable[[], str]  # gives a valid access token
    place: Place  # where the smoke test works

    def make_bucket(self, name: str) -> None:
        """Make a bucket for this test alone, with uniform access and nothing public."""
        iam = {
            "uniformBucketLevelAccess": {"enabled": True},
            "publicAccessPrevention": "enforced",
        }
        body = {
            "name": name,
            "location": self.place.region,
            "iamConfiguration": iam,
            "labels": {"smoke": self.place.prefix},
        }
        self.call("POST", f"storage/v1/b?project={self.place.project}", body)

    def remove_bucket(self, name: str) -> None:
        """Delete a bucket with all that is in it; one that is not there is no trouble."""
        try:
            while True:
                listed = self.call("GET", f"storage/v1/b/{name}/o?versions=true")
                objects = listed.get("items", [])
                for it in objects:
                    path = f"storage/v1/b/{name}/o/{quote(it['name'], safe='')}"
                    self.call("DELETE", f"{path}?generation={it['generation']}")
                if not objects:
                    break
            self.call("DELETE", f"storage/v1/b/{name}")
        except _MissingError:
            return

    def left(self) -> tuple[list[str], list[str]]:
        """What there is of this test, and what could not be listed: a line each."""
        found, unknown = [], []
        for kind, (path, key) in LISTS.items():
            try:
                listed = list(self._listed(path.format(project=self.place.project), key))
            except RefusedError as error:
                unknown.append(f"{kind}: {error}")
                continue
            # Names, labels and descriptions all have the prefix, which nothing else has.
            found += [
                f"{kind}: {_name(it)}" for it in listed if self.place.prefix in json.dumps(it)
            ]
        return found, unknown

    def _listed(self, path: str, key: str) -> Iterator[dict[str, Any]]:
        token = ""
        while True:
            sign = "&" if "?" in path else "?"
            page = self.call("GET", f"{path}{sign}pageToken={token}" if token else path)
            entries = page.get(key, [])
            if isinstance(entries, dict):  # an aggregated list, by place
                for place in entries.values():
                    for items in place.values():
                        yield from items if isinstance(items, list) else []
            else:
                yield from entries
            token = page.get("nextPageToken", "")
            if not token:
                return

    def run_job(self, connection: Mapping[str, Any], seconds: float) -> str:
        """Submit the sample job that Create has rendered, and wait for its end."""
        url = next(it for name, it in connection["jobs"].items() if name.startswith("sample-job"))
        bucket, _, name = url.removeprefix("gs://").partition("/")
        path = f"storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media"
        job = next(filter(None, yaml.safe_load_all(self._send("GET", path).text)))
        host = connection["endpoint"].removeprefix("https://")
        jobs = f"kubernetes/{host}/apis/{job['apiVersion']}/namespaces/{_namespace(job)}/jobs"
        made = self.call("POST", jobs, job)["metadata"]["name"]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status = self.call("GET", f"{jobs}/{made}").get("status", {})
            ended = {it["type"] for it in status.get("conditions", []) if it["status"] == "True"}
            if "Complete" in ended:
                return ""
            if "Failed" in ended:
                return f"the job {made} failed: {json.dumps(status)}"
            time.sleep(_POLL if seconds > _POLL else 0)
        return f"the job {made} did not end within {seconds:.0f} s"

    def preempt(self, settings: Mapping[str, str], seconds: float) -> str:
        """Preempt the Spot VM of a deployment, and wait until its group has made it again.

        Returns what went wrong; "" for nothing. A repair makes a VM of the template that it was of
        ("About repairing VMs"), which is what is tried here.
        """
        zone = f"{_COMPUTE.format(project=self.place.project)}/zones/{settings['ZONE']}"
        group = f"{zone}/instanceGroupManagers/{settings['NAME_PREFIX']}-mig"
        before = self._member(group)
        name = before["instance"].rpartition("/")[2]
        self.call("POST", f"{zone}/instances/{name}/simulateMaintenanceEvent")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            now = self._member(group)
            if now.get("id") != before["id"] and now.get("instanceStatus") == "RUNNING":
                same = now["version"] == before["version"]
                return "" if same else f"it came again of {now['version']}, not {before['version']}"
            time.sleep(_POLL if seconds > _POLL else 0)
        last = json.dumps(self._member(group))
        return f"{name} did not come again within {seconds:.0f} s: {last}"

    def _member(self, group: str) -> dict[str, Any]:
        """The only VM of a group, as the group has it."""
        found: list[dict[str, Any]]
        found = self.call("POST", f"{group}/listManagedInstances")["managedInstances"]
        return found[0]

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """A request that is answered with JSON, or nothing.

        Raises:
            RefusedError: Google refused.
        """
        answer = self._send(method, path, body)
        document: dict[str, Any] = answer.json() if answer.content else {}
        return document

    def _send(self, method: str, path: str, body: Any = None) -> requests.Response:
        answer = requests.request(
            method,
            f"{self.base_url}/{path}",
            json=body,
            auth=_Bearer(self.token()),
            timeout=_TIMEOUT,
        )
        if answer.status_code == _NOT_FOUND:
            raise _MissingError(f"{method} {path}: not found")
        if answer.status_code >= _REFUSED:
            raise RefusedError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer


class _MissingError(RefusedError):
    """There is no such thing."""


class _Bearer(requests.auth.AuthBase):
    """The access token; given so that a password of ~/.netrc does not take its place."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _namespace(job: Mapping[str, Any]) -> str:
    return str(job["metadata"].get("namespace", "default"))


def _name(thing: Mapping[str, Any]) -> str:
    place = str(thing.get("zone") or thing.get("region") or thing.get("location") or "")
    name = thing.get("email") or thing.get("displayName") or thing.get("name")
    return f"{name} {place.rpartition('/')[2]}".strip()
