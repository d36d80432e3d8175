"""Service Usage v1beta1: the limits of Compute Engine's quotas, also of those no region shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.cloud import projects
from rehearsal.cloud.compute import quotas, stock
from rehearsal.cloud.facts import places
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_COMPUTE = "compute.googleapis.com"
_RESIZE_REQUESTS = "active_resize_requests"
_USUAL_RESIZE_REQUESTS = 100


def _get(request: Request, store: Store, project: str, metric: str) -> Reply:
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


service = Routes(
    {f"GET projects/{{project}}/services/{_COMPUTE}/consumerQuotaMetrics/{{metric}}": _get},
    api="serviceusage.v1beta1",
)
