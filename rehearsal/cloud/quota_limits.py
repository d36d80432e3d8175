"""Limits of quotas that no region shows.

Filestore's and those of machine families are told by Cloud Quotas v1, those of GPUs and of resize
requests by Service Usage v1beta1.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rehearsal.cloud import projects, services
from rehearsal.cloud.compute import quotas, stock
from rehearsal.cloud.facts import filestore_tiers, places
from rehearsal.cloud.facts import quotas as facts
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_API: Final = "cloudquotas.googleapis.com"
_COMPUTE: Final = "compute.googleapis.com"
_SERVICE: Final = "file.googleapis.com"


def check(
    request: Request, present: Iterable[Mapping[str, Any]], location: str, asked: Mapping[str, Any]
) -> None:
    """Refuse a share that is too large for what a tier has left in a region."""
    tier, region = _tier(asked), _region(location)
    if tier not in facts.SHARES:
        return
    others = (it for it in present if _region(it["name"].split("/")[3]) == region)
    used = sum(_size(it) for it in others if _tier(it) == tier)
    most = facts.limit_of_shares(tier, request.scenarios)
    if used + _size(asked) > most:
        name = facts.SHARES[tier]
        raise GoogleError(
            429,
            f"Quota limit '{name}' has been exceeded. Limit: {most} in region {region}.",
            status="RESOURCE_EXHAUSTED",
            details=[
                {
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [
                        {
                            "subject": "project",
                            "description": f"Quota '{name}' exhausted. Limit {most} in region"
                            f" {region}",
                        }
                    ],
                }
            ],
        )


def _tier(instance: Mapping[str, Any]) -> str:
    found = filestore_tiers.find(instance.get("tier", ""))
    return found.name if found else ""


def _size(instance: Mapping[str, Any]) -> int:
    return sum(int(it.get("capacityGb", 0)) for it in instance["fileShares"])


def _region(location: str) -> str:
    return location if location in places.ZONES else places.region_of(location)


def _get_share(request: Request, store: Store, project: str, quota: str) -> Reply:
    owner = projects.permitted(project, store)
    services.require(request, store, owner, _API, "Cloud Quotas API")
    tier = next((tier for tier, name in facts.SHARES.items() if name == quota), None)
    base = f"projects/{owner.number}/locations/global/services/{_SERVICE}/quotaInfos"
    if tier is None:
        raise GoogleError(404, f"Quota {base}/{quota} was not found.", status=None)
    limit = facts.limit_of_shares(tier, request.scenarios)
    return _told(f"{base}/{quota}", _SERVICE, _row(limit))


def _get_of_compute(request: Request, store: Store, project: str, quota: str) -> Reply:
    owner = projects.permitted(project, store)
    services.require(request, store, owner, _API, "Cloud Quotas API")
    base = f"projects/{owner.number}/locations/global/services/{_COMPUTE}/quotaInfos"
    if quota != facts.ID_OF_FAMILY:
        raise GoogleError(404, f"Quota {base}/{quota} was not found.", status=None)
    rows = (
        _row(int(facts.limit_of_family(it, request.scenarios)), vm_family=it)
        for it in facts.OF_FAMILY
    )
    # For all other families: a row without a number.
    return _told(f"{base}/{quota}", _COMPUTE, *rows, _row(None))


def _row(limit: int | None, **dimensions: str) -> dict[str, Any]:
    # As every 64-bit number of these APIs: a text.
    details = {} if limit is None else {"value": str(limit)}
    row = {"details": details, "applicableLocations": list(places.REGIONS)}
    return {**row, "dimensions": dimensions} if dimensions else row


def _told(name: str, service: str, *rows: dict[str, Any]) -> Reply:
    more = {key for row in rows for key in row.get("dimensions", ())}
    return Reply(
        body={
            "name": name,
            "quotaId": name.rpartition("/")[2],
            "service": service,
            "isPrecise": True,
            "dimensions": ["region", *more],
            "dimensionsInfos": list(rows),
        }
    )


# No discovery document of this API comes with the client library.
shares = Routes(
    {
        f"GET projects/{{project}}/locations/global/services/{_SERVICE}/quotaInfos/{{quota}}": (
            _get_share
        ),
        f"GET projects/{{project}}/locations/global/services/{_COMPUTE}/quotaInfos/{{quota}}": (
            _get_of_compute
        ),
    }
)


_RESIZE_REQUESTS = "active_resize_requests"
_USUAL_RESIZE_REQUESTS = 100


def _get_metric(request: Request, store: Store, project: str, metric: str) -> Reply:
    owner = projects.permitted(project, store)
    name = metric.removeprefix(f"{_COMPUTE}/")
    regional: dict[str, int] = {}
    if name == _RESIZE_REQUESTS:
        limit = _USUAL_RESIZE_REQUESTS
    elif quotas.is_of_gpus(name.upper()):
        limit = int(quotas.gpu_limit(request, store, name.upper()))
        own = {it: stock.gpu_quota(request, store, it) for it in places.REGIONS}
        regional = {region: int(most) for region, most in own.items() if most is not None}
    else:
        raise GoogleError(404, f"Quota metric {metric} not found.", status=None)
    base = f"projects/{owner.number}/services/{_COMPUTE}/consumerQuotaMetrics"
    path = f"{base}/{metric.replace('/', '%2F')}"
    # As all 64-bit numbers of these APIs: a text, and left out when it is 0.
    usual = {"effectiveLimit": str(limit), "defaultLimit": str(limit)} if limit else {}
    buckets: list[dict[str, Any]] = [usual]
    for region, most in regional.items():
        shown = {"effectiveLimit": str(most)} if most else {}
        buckets.append({**shown, "dimensions": {"region": region}})
    return Reply(
        body={
            "name": path,
            "metric": metric,
            "displayName": name.replace("_", " "),
            "unit": "1",
            "consumerQuotaLimits": [
                {
                    "name": f"{path}/limits/%2Fproject%2Fregion",
                    "metric": metric,
                    "unit": "1/{project}/{region}",
                    "quotaBuckets": buckets,
                }
            ],
        }
    )


metrics = Routes(
    {f"GET projects/{{project}}/services/{_COMPUTE}/consumerQuotaMetrics/{{metric}}": _get_metric},
    api="serviceusage.v1beta1",
)
