"""Cloud Billing: every project has an account that pays, and everybody may read the price list."""

import datetime as dt
from typing import Final

from rehearsal.cloud import paging, projects
from rehearsal.cloud.facts import skus
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_PAGE: Final = 25
"""Google gives up to 5,000 SKUs, of some 32,000. A page may always be smaller than what was asked
for, and this list is small: so that it has several pages too, they are."""


def _billing_info(_request: Request, store: Store, project: str) -> Reply:
    found = projects.permitted(project, store)
    return Reply(
        body={
            "name": f"projects/{found.id}/billingInfo",
            "projectId": found.id,
            "billingAccountName": "billingAccounts/000000-AAAAAA-BBBBBB",
            "billingEnabled": True,
        }
    )


def _skus(request: Request, _store: Store, service: str) -> Reply:
    """A page of a service's SKUs; there is no way to ask for one region or one machine alone."""
    currency = request.query.get("currencyCode") or "USD"
    if currency != "USD":
        raise GoogleError(
            501, f"Prices in {currency} are not part of the simulated cloud.", status=None
        )
    made = dt.datetime.fromtimestamp(request.now, tz=dt.UTC).replace(minute=0, second=0)
    found = skus.of_service(service, f"{made:%Y-%m-%dT%H:%M:%SZ}")
    if found is None:
        raise GoogleError(404, f"Service {service} not found.", status=None)
    entries = [(f"{number:05}", sku) for number, sku in enumerate(found)]
    items, token = paging.page(entries, request.query, size="pageSize", limit=_PAGE)
    # The last page has an empty token, not none.
    return Reply(body={"skus": items, "nextPageToken": "", **token})


service = Routes(
    {
        "GET projects/{project}/billingInfo": _billing_info,
        "GET services/{service}/skus": _skus,
    },
    api="cloudbilling.v1",
)
