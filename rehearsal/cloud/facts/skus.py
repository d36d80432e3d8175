"""Some of the SKUs of Google's price list, with those that only look like what one searches."""

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from rehearsal.cloud import facts

_NANOS: Final = 10**9
_DESCRIPTIONS: Final = {
    "h": "hour",
    "GiBy": "gibibyte",
    "GiBy.h": "gibibyte hour",
    "GBy.h": "gigabyte hour",
    "GiBy.mo": "gibibyte month",
    "mo": "month",
}
_SERVICES: Final = {
    "6F81-5844-456A": "Compute Engine",
    "CCD8-9BF1-090E": "Kubernetes Engine",
    "D97E-AB26-5D95": "Cloud Filestore",
    "E505-1604-58F8": "Networking",
}


def of_service(service: str, effective: str) -> list[dict[str, Any]] | None:
    """The SKUs of a service as the API has them; None for a service that is not known.

    `service`: its ID, such as "6F81-5844-456A". `effective`: since when the prices hold, which is
    when the list was made last.
    """
    rows = facts.read("skus")["skus"].get(service)
    return None if rows is None else [_document(service, row, effective) for row in rows]


def _document(service: str, row: Mapping[str, Any], effective: str) -> dict[str, Any]:
    sku = row.get("id") or _made_up(row["description"])
    free = [{"startUsageAmount": 0, "unitPrice": _money("0")}] if "free" in row else []
    price = {"startUsageAmount": row.get("free", 0), "unitPrice": _money(row["usd"])}
    return {
        "name": f"services/{service}/skus/{sku}",
        "skuId": sku,
        "description": row["description"],
        "category": {
            "serviceDisplayName": _SERVICES[service],
            "resourceFamily": "Compute",
            "resourceGroup": row["group"],
            "usageType": row["usage"],
        },
        "serviceRegions": row["regions"].split(),
        "pricingInfo": [
            {
                "summary": "",
                "pricingExpression": {
                    "usageUnit": row["unit"],
                    "usageUnitDescription": _DESCRIPTIONS[row["unit"]],
                    "displayQuantity": 1,
                    "tieredRates": [*free, price],
                },
                "currencyConversionRate": 1,
                "effectiveTime": effective,
            }
        ],
        "serviceProviderName": "Google",
    }


def _money(usd: str) -> dict[str, Any]:
    """An amount as Google's APIs have it: whole units are a string, billionths a number."""
    amount = Decimal(usd)
    whole = int(amount)
    return {
        "currencyCode": "USD",
        "units": str(whole),
        "nanos": int((amount - whole) * _NANOS),
    }


def _made_up(description: str) -> str:
    """An ID in the form of Google's, always the same for a description."""
    digits = hashlib.sha256(description.encode()).hexdigest().upper()
    return f"{digits[:4]}-{digits[4:8]}-{digits[8:12]}"
