"""The price list: in pages, with what only looks like what one searches."""

from typing import Any

from tests.rehearsal.cloud.services.conftest import Api

_COMPUTE = "services/6F81-5844-456A/skus"


def _all(api: Api) -> list[dict[str, Any]]:
    found, token = [], ""
    while True:
        page = api.json("cloudbilling", "GET", f"{_COMPUTE}?pageSize=5000&pageToken={token}")
        found += page["skus"]
        token = page["nextPageToken"]
        if not token:
            return found


def test_the_list_comes_in_pages_that_may_be_smaller_than_asked_for(api: Api) -> None:
    first = api.json("cloudbilling", "GET", f"{_COMPUTE}?pageSize=5000&currencyCode=USD")
    assert 0 < len(first["skus"]) < 5000
    found = _all(api)
    assert len(found) > len(first["skus"])
    assert len({sku["skuId"] for sku in found}) == len(found)


def test_whole_units_are_a_string_and_a_free_tier_comes_first(api: Api) -> None:
    by_name = {sku["description"]: sku for sku in _all(api)}
    h100 = by_name["Nvidia H100 80GB GPU running in Americas"]["pricingInfo"][0]
    (rate,) = h100["pricingExpression"]["tieredRates"]
    assert rate["unitPrice"] == {"currencyCode": "USD", "units": "9", "nanos": 796550569}
    address = by_name["External IP Charge on a Standard VM"]["pricingInfo"][0]
    free, paid = address["pricingExpression"]["tieredRates"]
    assert free["unitPrice"]["nanos"] == 0
    assert paid["unitPrice"]["nanos"] == 5_000_000


def test_flex_start_reservations_and_some_of_spot_say_on_demand(api: Api) -> None:
    usage = {sku["description"]: sku["category"]["usageType"] for sku in _all(api)}
    for words in (
        "DWS Defined Duration A3 Core",
        "Reserved Nvidia Tesla A100",
        "Spot Preemptible A4",
    ):
        assert {kind for name, kind in usage.items() if name.startswith(words)} == {"OnDemand"}


def test_other_currencies_services_and_misspelt_parameters_are_refused(api: Api) -> None:
    assert api.refused("cloudbilling", "GET", f"{_COMPUTE}?currencyCode=EUR")[0] == 501
    assert api.refused("cloudbilling", "GET", "services/0000-0000-0000/skus")[0] == 404
    assert api.refused("cloudbilling", "GET", f"{_COMPUTE}?maxResults=10")[0] == 400
    assert api.refused("cloudbilling", "GET", "services")[0] == 501
