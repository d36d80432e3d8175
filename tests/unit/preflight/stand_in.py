"""A Google that has all that a cluster needs, and that a test takes things from."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from provision import preflight
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.owner import Owner
from provision.intake import load
from provision.kinds import registry
from provision.preflight import CheckResults
from provision.preflight.check import Answers
from provision.settings.model import Settings
from provision.state.record import Record
from tests.unit import fixes

PROJECT = "projects/my-project"
ZONE = f"{PROJECT}/zones/us-central1-a"
REGION = f"{PROJECT}/regions/us-central1"
IMAGES = "projects/deeplearning-platform-release/global/images"
PARENT = f"crm/{PROJECT}"
ID = "0123456789ab"
APIS = (
    "cloudresourcemanager",
    "compute",
    "container",
    "file",
    "iam",
    "logging",
    "monitoring",
    "secretmanager",
    "storage",
)

_MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_IMAGE = {"image_family_name": "common-cu129-ubuntu-2404-nvidia-580"}

# What is not here does not exist.
WORLD: Mapping[str, dict[str, Any]] = {
    f"{PROJECT}/billingInfo": {"billingEnabled": True},
    # The project, as Resource Manager tells it: in no organization.
    PARENT: {"projectId": "my-project", "projectNumber": "42"},
    ZONE: {"region": f"https://x/v1/{REGION}", "status": "UP"},
    f"{ZONE}/machineTypes/a2-highgpu-2g": {
        "guestCpus": 24,
        "architecture": "X86_64",
        "accelerators": [{"guestAcceleratorType": "nvidia-tesla-a100", "guestAcceleratorCount": 2}],
    },
    f"{ZONE}/machineTypes/e2-standard-4": {"guestCpus": 4},
    f"{ZONE}/machineTypes/n1-standard-8": {"guestCpus": 8},
    f"{ZONE}/machineTypes/a3-ultragpu-8g": {"guestCpus": 224},
    f"{ZONE}/acceleratorTypes/nvidia-tesla-t4": {"maximumCardsPerInstance": 4},
    f"{ZONE}/diskTypes/pd-ssd": {"validDiskSize": "10GB-65536GB"},
    f"{ZONE}/diskTypes/pd-balanced": {"validDiskSize": "10GB-65536GB"},
    f"{ZONE}/diskTypes/hyperdisk-balanced": {"validDiskSize": "4GB-65536GB"},
    f"{IMAGES}/family/common-cu129-ubuntu-2404-nvidia-580": {
        "name": "common-cu129-ubuntu-2404-nvidia-580-v1",
        "diskSizeGb": "50",
        "architecture": "X86_64",
    },
    f"{PROJECT}/global/networks/default": {"name": "default"},
    f"{REGION}/subnetworks/default": {"name": "default"},
    REGION: {
        "quotas": [
            {"metric": metric, "limit": 1000.0, "usage": 0.0}
            for metric in (
                "A2_CPUS",
                "CPUS",
                "NVIDIA_A100_GPUS",
                "NVIDIA_T4_GPUS",
                "PREEMPTIBLE_NVIDIA_A100_GPUS",
                "IN_USE_ADDRESSES",
                "INSTANCES",
            )
        ]
        + [{"metric": "SSD_TOTAL_GB", "limit": 100_000.0, "usage": 0.0}]
    },
    PROJECT: {"quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": 1000.0, "usage": 0.0}]},
    "b/my-data": {"name": "my-data"},
    f"{PROJECT}/serviceAccounts/42-compute@developer.gserviceaccount.com": {},
    f"{PROJECT}/serviceAccounts/vms@my-project.iam.gserviceaccount.com": {},
    f"{PROJECT}/locations/us-central1/serverConfig": {
        "validMasterVersions": ["1.34.1-gke.1", "1.33.5-gke.10"],
        "defaultClusterVersion": "1.33.5-gke.10",
        "channels": [
            {
                "channel": "REGULAR",
                "validVersions": ["1.33.5-gke.10", "1.33.4-gke.2"],
                "defaultVersion": "1.33.4-gke.2",
            }
        ],
    },
}


class Google(GoogleApi):
    """Answers from a table, and counts what it is asked.

    `documents`: Path -> what is there. `refusals`: Beginning of a path, whose end is "$" -> the
    code that is answered. `withheld`: Permissions that the caller has not. `elsewhere`: The zones
    that offer any machine and GPU. `instances`: The VMs with the deployment's label. `shares`: The
    project's Filestore instances. `asked`: How often each path was asked for.
    """

    def __init__(self) -> None:
        self.documents = {path: dict(document) for path, document in WORLD.items()}
        self.refusals: dict[str, int] = {}
        self.apis = set(APIS)
        self.withheld: set[str] = set()
        self.elsewhere: set[str] = set()
        self.instances: list[dict[str, Any]] = []
        self.shares: list[dict[str, Any]] = []
        self.asked: Counter[str] = Counter()

    def check(
        self,
        settings: Mapping[str, str] = _NOTHING,
        *,
        record: Record | None = None,
        makes_bucket: bool = False,
        **more: str,
    ) -> CheckResults[Any]:
        """Make the checks of these settings, given as a mapping, by name, or both.

        They come on top of the mandatory ones and an image that is there.
        """
        image = {} if "image_name" in more else _IMAGE
        values = {**_MANDATORY, **image, **settings, **more}

        def again(values: Mapping[str, str]) -> CheckResults[Any]:
            return self._check(values, record, makes_bucket=makes_bucket)

        found, asked = again(values), self.asked.copy()
        _try_fixes(values, found, again)
        self.asked = asked
        return found

    def _check(
        self, values: Mapping[str, str], record: Record | None, *, makes_bucket: bool
    ) -> CheckResults[Any]:
        asked = Settings({**values})
        kind = registry.of(asked)
        spec = kind.spec(asked)
        return preflight.run(
            spec,
            Answers(self),
            of_kind=kind.preflight(spec),
            owner=Owner(ID),
            record=record,
            makes_bucket=makes_bucket,
        )

    def have(self, changes: str) -> None:
        """Change what it has.

        "no PATH", "withheld PERMISSIONS", "off APIS", "limit METRIC LIMIT USAGE", as "limit-all"
        for all regions, "PATH = JSON", or "PATH + JSON" with fields in place of the same ones.
        """
        for change in filter(None, changes.split("; ")):
            word, _, rest = change.partition(" ")
            match word:
                case "no":
                    del self.documents[rest]
                case "withheld":
                    self.withheld = set(rest.split(", "))
                case "off":
                    self.apis -= set(rest.split(", "))
                case "limit" | "limit-all":
                    metric, *numbers = rest.split()
                    own = self.limit if word == "limit" else self.limit_everywhere
                    own(metric, *map(float, numbers))
                case path:
                    before = self.documents[path] if rest.startswith("+") else {}
                    self.documents[path] = before | json.loads(rest[2:])

    def _heard(self, path: str) -> None:
        self.asked[path] += 1
        for beginning, code in self.refusals.items():
            if f"{path}$".startswith(beginning):
                raise GoogleApiError(code, f"{beginning} is off limits", f"https://x/{path}")

    def get(self, service: Service, path: str) -> dict[str, Any]:
        if service is Service.RESOURCE_MANAGER:
            path = f"crm/{path}"
        self._heard(path)
        if path not in self.documents:
            raise GoogleApiError(404, f"{path} was not found", f"https://x/{path}")
        return self.documents[path]

    def pages(
        self,
        method: str,
        path: str,
        key: str,
        query: dict[str, str],
        service: Service = Service.COMPUTE,
    ) -> Iterator[dict[str, Any]]:
        del method, service
        self._heard(path)
        if path.endswith("/global/images"):
            return iter(())
        if key == "instances":
            return iter(self.shares)
        if key == "services":
            return iter({"config": {"name": f"{name}.googleapis.com"}} for name in self.apis)
        if path.endswith("/aggregated/reservations"):
            return iter([{"reservations": self._below("reservations", query["filter"])}])
        if path.endswith(("Blocks", "futureReservations")):
            return iter(self._below(path))
        return iter([{"instances": self.instances}])

    def _below(self, collection: str, name: str = "") -> list[dict[str, Any]]:
        """The documents of a collection, by its path or the end of it."""
        found = []
        for path, document in self.documents.items():
            parent, _, last = path.rpartition("/")
            if parent.endswith(collection) and name in {"", f"name={last}"}:
                found.append(document.get("resource", document))
        return found

    def call(
        self,
        method: str,
        service: Service,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        del method
        if "views" in query:
            return self.get(service, path)
        self._heard(path)
        if path.endswith(":getIamPolicy"):
            return self.documents.get(f"crm/{path}", {})
        asked = body["permissions"] if body else []
        return {"permissions": [name for name in asked if name not in self.withheld]}

    def zones_with(self, project: str, collection: str, name: str) -> set[str]:
        del project, name
        self._heard(f"aggregated/{collection}")
        return set(self.elsewhere)

    def limit_everywhere(self, metric: str, limit: float, usage: float = 0.0) -> None:
        """Set a quota of the project, which holds for all regions together."""
        shown = {"metric": metric, "limit": limit, "usage": usage}
        kept = [it for it in self.documents[PROJECT]["quotas"] if it["metric"] != metric]
        self.documents[PROJECT] = {**self.documents[PROJECT], "quotas": [*kept, shown]}

    def limit(self, metric: str, limit: float, usage: float = 0.0) -> None:
        """Set a quota of the region."""
        shown = {"metric": metric, "limit": limit, "usage": usage}
        kept = [it for it in self.documents[REGION]["quotas"] if it["metric"] != metric]
        self.documents[REGION] = {"quotas": [*kept, shown]}


def _try_fixes(
    values: Mapping[str, str],
    found: CheckResults[Any],
    again: Callable[[Mapping[str, str]], CheckResults[Any]],
) -> None:
    """Write each setting that a fix has: it is valid, its problem is gone, and it brings none.

    ZONE alone may bring one, as nothing is in this Google's other zones.
    """
    known = load({name.upper(): text for name, text in values.items()}).problems
    for problem in (*found.problems, *found.notes):
        for written, removed in fixes.ways(problem):
            lines = {name.upper(): text for name, text in values.items()} | {**written}
            lines = {name: text for name, text in lines.items() if name not in removed}
            brought = [it for it in load(lines).problems if it not in known]
            after = again({name.lower(): text for name, text in lines.items()})
            brought += [
                it
                for it in after.problems
                if it.setting in written.keys() - {"ZONE"} and it not in found.problems
            ]
            assert not brought, f"{problem.fix} in {values} brings {brought}"
            left = {(it.setting, it.what) for it in (*after.problems, *after.notes)}
            assert (problem.setting, problem.what) not in left, f"{problem.fix} leaves {values}"
