"""Google's catalogue is matched by whole descriptions; what only resembles is never a price."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.catalogue import prices
from provision.catalogue.filestores import Tier
from provision.catalogue.machines import Consumption
from provision.catalogue.prices import Prices
from provision.cost import skus
from provision.documents.cost import Origin
from tests.unit import table

IOWA = ("us-central1",)
CORE = Decimal("0.031611")


def sku(  # noqa: PLR0913 - a SKU has as many fields
    description: str,
    usd: str,
    *,
    unit: str = "h",
    usage: str = "OnDemand",
    regions: tuple[str, ...] = IOWA,
    free: int = 0,
) -> dict[str, Any]:
    """A SKU as the catalogue has it; `free` is how much of it costs nothing."""
    whole, _, nanos = usd.partition(".")
    price = {"currencyCode": "USD", "units": whole, "nanos": int(nanos.ljust(9, "0"))}
    rates = [{"startUsageAmount": free, "unitPrice": price}]
    if free:
        nothing = {"currencyCode": "USD", "units": "0", "nanos": 0}
        rates.insert(0, {"startUsageAmount": 0, "unitPrice": nothing})
    return {
        "skuId": "0000-0000-0000",
        "description": description,
        "category": {"resourceFamily": "Compute", "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": rates}}],
    }


A2 = [
    sku("A2 Instance Core running in Americas", "0.031611"),
    sku("A2 Instance Ram running in Americas", "0.004237", unit="GiBy.h"),
    sku("Nvidia Tesla A100 GPU running in Americas", "2.933908"),
]
A2_HIGHGPU_1G = 12 * CORE + 85 * Decimal("0.004237") + Decimal("2.933908")


def read(*more: dict[str, Any]) -> Prices:
    return skus.read([*A2, *more], "2026-11-22")


def usd(found: Prices, item: str, way: Consumption = Consumption.ON_DEMAND) -> Decimal | None:
    price = found.find(item, "us-central1", way)
    return None if price is None else price.usd


def machine(found: Prices, name: str, way: Consumption = Consumption.ON_DEMAND) -> Decimal | None:
    return usd(found, prices.machine(name), way)


def test_a_machine_is_the_sum_of_its_parts_on_the_day_of_the_answer() -> None:
    found = read()
    price = found.find(prices.machine("a2-highgpu-1g"), "us-central1")
    assert price is not None
    assert (price.usd, price.source.date) == (A2_HIGHGPU_1G, "2026-11-22")
    assert not price.source.is_estimate
    assert found.origin is Origin.LIVE


_TRAPS = """# The beginning of a name is not the name.
Nvidia Tesla A100 80GB GPU running in Americas: 3.92808
# All of these say OnDemand too.
Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs: 1.61365
DWS Calendar Mode A2 Core running in Americas: 0.02
Nvidia Tesla A100 GPU in Americas in Calendar Mode: 2.1
Reserved Nvidia Tesla A100 GPU in Americas: 0
Reserved Nvidia Tesla A100 GPU in Americas: 1
A2 Sole Tenancy Instance Core running in Americas: 0.04
A2 Custom Instance Core running in Americas: 0.04
Committed Use Discount Premium for A2 Instance Core running in Americas: 0.1
Capacity Optimized A2 Instance Core running in Americas: 0.1
# Of another usage, free, for another unit, and elsewhere.
Nvidia Tesla A100 GPU attached to Spot Preemptible VMs: 1.5399 usage=Preemptible
Commitment v1: Nvidia Tesla A100 GPU in Americas for 1 Year: 1.8 usage=Commit1Yr
Commitment v1: A2 Cpu in Americas for 1 Year: 0.02 usage=Commit1Yr
A2 Instance Core running in Americas: 9 unit=count
A2 Instance Core running in Americas: 9 usage=Preemptible
A2 Instance Core running in Americas: 0"""
ELSEWHERE = sku("A2 Instance Core running in Tokyo", "0.036", regions=("asia-northeast1",))


def _trap(line: str) -> dict[str, Any]:
    description, _, told = line.rpartition(": ")
    price, *how = told.split()
    more: dict[str, Any] = dict(it.split("=") for it in how)
    return sku(description, price, **more)


@pytest.mark.parametrize(
    "trap", [*map(_trap, table.lines(_TRAPS)), ELSEWHERE], ids=lambda trap: trap["description"]
)
def test_what_only_resembles_an_a100_on_demand_is_not_its_price(trap: dict[str, Any]) -> None:
    for order in ([trap, *A2], [*A2, trap]):
        found = skus.read(order, "2026-11-22")
        price = found.find(prices.machine("a2-highgpu-1g"), "us-central1")
        assert price is not None
        # An estimate would be one of several prices.
        assert (price.usd, price.source.is_estimate) == (A2_HIGHGPU_1G, False)


def test_flex_start_is_what_the_catalogue_calls_defined_duration() -> None:
    found = read(
        sku("DWS Defined Duration A2 Core running in Americas", "0.01739"),
        sku("DWS Defined Duration A2 Ram running in Americas", "0.00233", unit="GiBy.h"),
        sku("Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs", "1.61365"),
    )
    # Google's own sum for it, as people read it in August 2026.
    assert machine(found, "a2-highgpu-1g", Consumption.FLEX_START) == Decimal("2.02038")


def test_a_machine_of_which_a_part_has_no_price_has_none() -> None:
    found = read(
        sku("A3 Instance Core running in Americas", "0.02926"),
        sku("A3 Instance Ram running in Americas", "0.002548", unit="GiBy.h"),
        sku("SSD backed Local Storage", "0.08", unit="GiBy.mo"),
    )
    assert machine(found, "a3-highgpu-8g") is None
    assert machine(found, "a2-highgpu-1g", Consumption.SPOT) is None
    assert machine(found, "a4x-highgpu-4g") is None


@pytest.mark.parametrize("name", ["Mega", "Plus"])
def test_the_gpu_of_a3_mega_has_two_names(name: str) -> None:
    found = read(
        sku("A3Plus Instance Core running in Americas", "0.026924"),
        sku("A3Plus Instance Ram running in Americas", "0.002344", unit="GiBy.h"),
        sku("A3 Instance Core running in Americas", "0.02926"),
        sku("A3 Instance Ram running in Americas", "0.002548", unit="GiBy.h"),
        sku(f"Nvidia H100 80GB {name} GPU running in Americas", "10.344276"),
        sku("Nvidia H100 80GB GPU running in Americas", "9.796551"),
        sku("SSD backed Local Storage", "0.08", unit="GiBy.mo"),
    )
    mega = 208 * Decimal("0.026924") + 1872 * Decimal("0.002344") + 8 * Decimal("10.344276")
    ssd = 6000 * Decimal("0.08") / 730
    assert machine(found, "a3-megagpu-8g") == pytest.approx(mega + ssd, abs=Decimal("1e-9"))


def test_local_ssds_cost_with_flex_start_what_they_cost_on_demand() -> None:
    a3 = [
        sku("DWS Defined Duration A3 Core running in Americas", "0.010934"),
        sku("DWS Defined Duration A3 Ram running in Americas", "0.000952", unit="GiBy.h"),
        sku(
            "Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas",
            "4.200761",
        ),
    ]
    monthly = read(*a3, sku("SSD backed Local Storage", "0.08", unit="GiBy.mo"))
    own = sku("DWS Defined Duration SSD backed Local Storage", "0.000109589", unit="GiBy.h")
    # The price page says 38.32 for it.
    for found in (monthly, read(*a3, own)):
        price = machine(found, "a3-highgpu-8g", Consumption.FLEX_START)
        assert price == pytest.approx(Decimal("38.32"), abs=Decimal("0.001"))


def test_parts_of_a_gpu_are_sold_with_all_that_belongs_to_them() -> None:
    found = read(
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "16.11"),
        sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "4.9542"),
        sku("DWS Defined Duration A4 Nvidia B200 (1 gpu slice) running in Americas", "8.055"),
        sku("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas", "11.277"),
        sku("1/8 vGPU no lssd running in Iowa", "0.64688"),
    )
    assert machine(found, "a4-highgpu-8g", Consumption.SPOT) == Decimal("39.6336")
    assert machine(found, "a4-highgpu-8g", Consumption.FLEX_START) == Decimal("64.44")
    assert machine(found, "g4-standard-6") == Decimal("0.64688")
    assert machine(found, "g4-standard-24") == Decimal("2.58752")


def test_disks_addresses_and_shares_are_what_their_whole_names_say() -> None:
    month = "GiBy.mo"
    found = read(
        sku("SSD backed PD Capacity", "0.17", unit=month),
        sku("Regional SSD backed PD Capacity", "0.34", unit=month),
        sku("Balanced PD Capacity in Iowa", "0.1", unit=month),
        sku("Hyperdisk Balanced Capacity in Iowa", "0.08", unit=month),
        sku("Hyperdisk Balanced High Availability Capacity in Iowa", "0.16", unit=month),
        sku("Hyperdisk Balanced IOPS in Iowa", "0.005", unit="mo"),
        sku("External IP Charge on a Standard VM", "0.005", regions=("global",), free=744),
        sku("Filestore Capacity Basic SSD (Premium) Iowa/South Carolina/Oregon", "0.3", unit=month),
        sku("Filestore Capacity Zonal and High Scale Iowa", "0.25", unit=month),
        sku("Regional Kubernetes Clusters", "0.1", regions=("global",)),
        sku("Extended Period Kubernetes Clusters", "0.5", regions=("global",)),
    )
    assert usd(found, prices.disk("pd-ssd")) == Decimal("0.17")
    assert usd(found, prices.disk("pd-balanced")) == Decimal("0.1")
    assert usd(found, prices.disk("hyperdisk-balanced")) == Decimal("0.08")
    assert usd(found, prices.iops("hyperdisk-balanced")) == Decimal("0.005")
    assert usd(found, prices.share(Tier.BASIC_SSD)) == Decimal("0.3")
    assert usd(found, prices.share(Tier.ZONAL)) == Decimal("0.25")
    assert usd(found, prices.share(Tier.REGIONAL)) is None
    # In all regions, and what is free for a while is not free.
    for region in ("us-central1", "me-west1"):
        address, control = (found.find(it, region) for it in (prices.ADDRESS, prices.CONTROL_PLANE))
        assert address is not None
        assert control is not None
        assert (address.usd, control.usd) == (Decimal("0.005"), Decimal("0.1"))


def test_a_price_per_decimal_gigabyte_is_one_per_gibibyte_after_all() -> None:
    found = read(sku("E2 Instance Ram running in Americas", "0.002", unit="GBy.h"))
    assert usd(found, prices.memory("e2")) == Decimal("0.002147484")


def test_of_two_prices_for_the_same_the_higher_is_an_estimate() -> None:
    # Two words for one place, which is in the region of both.
    first = sku("E2 Instance Core running in Northern Virginia", "0.0245", regions=("us-east4",))
    second = sku("E2 Instance Core running in Virginia", "0.0246", regions=("us-east4",))
    for order in ([first, second], [second, first]):
        price = read(*order).find(prices.core("e2"), "us-east4")
        assert price is not None
        assert (price.usd, price.source.is_estimate) == (Decimal("0.0246"), True)


def test_without_any_machine_it_is_not_the_catalogue_that_is_known() -> None:
    with pytest.raises(skus.NoPricesError):
        skus.read([sku("E2 Instance Core running in Americas", "0.0218")], "2026-11-22")


_WORDS = ["Nvidia", "Tesla", "A100", "GPU", "80GB", "Reserved", "A2", "Instance", "Core", "Ram"]


@given(
    st.lists(st.sampled_from([*_WORDS, "DWS", "Spot", "in", "Americas"]), max_size=8).map(" ".join),
    st.sampled_from(["h", "GiBy.h", "GBy.h", "GiBy.mo", "mo", "count", ""]),
    st.sampled_from(["OnDemand", "Preemptible", "Commit1Yr", ""]),
    st.one_of(st.none(), st.integers(), st.text(max_size=3), st.just([]), st.just({})),
)
def test_no_sku_of_whatever_form_changes_a_price_that_it_does_not_name(
    description: str, unit: str, usage: str, pricing: object
) -> None:
    odd = sku(description, "77", unit=unit, usage=usage, regions=("us-central1",))
    names = ("Nvidia Tesla A100 GPU", "A2 Instance Core", "A2 Instance Ram")
    if any(description.startswith(f"{name} in") or description == name for name in names):
        return
    assert machine(read(odd), "a2-highgpu-1g") == A2_HIGHGPU_1G
    assert machine(read(odd | {"pricingInfo": pricing}), "a2-highgpu-1g") == A2_HIGHGPU_1G


def test_a_list_is_read_as_it_was_written() -> None:
    for found in (read(), prices.listed()):
        again = prices.read(prices.write(found), found.origin)
        assert again == found


def test_a_renewed_list_has_the_newer_price_wherever_there_is_one() -> None:
    before = skus.read(
        [*A2, sku("Balanced PD Capacity in Iowa", "0.2", unit="GiBy.mo")], "2026-01-01"
    )
    address = sku("External IP Charge on a Standard VM", "0.005")
    before = prices.renewed(before, skus.read([*A2, address], "2026-01-02"))
    everywhere = sku("External IP Charge on a Standard VM", "0.006", regions=("global",))
    after = prices.renewed(before, read(everywhere))

    for item, expected in (
        (prices.ADDRESS, ("0.006", "2026-11-22")),
        (prices.machine("a2-highgpu-1g"), (str(A2_HIGHGPU_1G), "2026-11-22")),
        (prices.disk("pd-balanced"), ("0.2", "2026-01-01")),
    ):
        price = after.find(item, "us-central1")
        assert price is not None
        assert (str(price.usd), price.source.date) == expected
    assert sorted(it.date or "" for it in after.sources.values()) == ["2026-01-01", "2026-11-22"]
    assert set(prices.changes(before, after)) == {
        "external address, on-demand: gone us-central1; new *"
    }
