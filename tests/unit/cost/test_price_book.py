"""Google's own prices, as the simulated cloud tells them over HTTP, and as they are kept."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from google.oauth2.credentials import Credentials

from provision.catalogue import prices
from provision.catalogue.filestores import Tier
from provision.catalogue.machines import Consumption
from provision.cost.skus import PriceBook
from provision.documents.cost import Origin
from provision.endpoints import Service
from provision.errors import CheckError
from provision.google.api import GoogleApi, GoogleApiError
from provision.time.clock import Clock
from provision.time.stages import Progress
from rehearsal.cloud.server import Cloud
from tests.unit.memory_folder import MemoryFolder

pytestmark = pytest.mark.loopback

TODAY = dt.date(2026, 11, 22)
IOWA = "us-central1"
ROUNDED = Decimal("0.0001")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[GoogleApi]:
    with Cloud(database=tmp_path / "cloud.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}) as cloud:
        moved = {"GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT": f"{cloud.base_url}/cloudbilling/v1/"}
        yield GoogleApi(Credentials("token"), moved, Progress(Clock(0), lambda _: None))


def _book(api: GoogleApi, folder: MemoryFolder, day: dt.date = TODAY) -> PriceBook:
    return PriceBook(api, folder, day)


def test_all_pages_of_all_services_are_read_and_no_trap_is_a_price(api: GoogleApi) -> None:
    first = api.call("GET", Service.BILLING, "services/6F81-5844-456A/skus", {"pageSize": "5000"})
    assert first["nextPageToken"]
    found = _book(api, MemoryFolder()).prices(lambda _: None, bucket=False)

    def usd(item: str, way: Consumption = Consumption.ON_DEMAND) -> Decimal | None:
        price = found.find(item, IOWA, way)
        assert price is None or not price.source.is_estimate
        return None if price is None else price.usd

    spot, flex = Consumption.SPOT, Consumption.FLEX_START
    # Each sum as whoever published the parts made it, or read it on Google's page.
    a2, a3 = prices.machine("a2-highgpu-1g"), prices.machine("a3-highgpu-8g")
    assert usd(a2) == pytest.approx(Decimal("3.67363"), rel=ROUNDED)
    assert usd(a2, spot) == pytest.approx(Decimal("1.92768"))
    assert usd(a2, flex) == pytest.approx(Decimal("2.02038"))
    assert usd(prices.machine("a3-megagpu-8g")) == pytest.approx(Decimal("93.400"), rel=ROUNDED)
    assert usd(a3, flex) == pytest.approx(Decimal("38.32"), rel=ROUNDED)
    assert usd(prices.machine("g2-standard-4"), spot) == pytest.approx(Decimal("0.361216"))
    assert usd(prices.machine("a4-highgpu-8g"), spot) == Decimal("39.6336")
    assert usd(prices.machine("g4-standard-12")) == Decimal("1.29376")
    assert usd(prices.machine("g4-standard-48")) == Decimal("4.49993")
    # A part is missing: half a machine has no price.
    assert usd(prices.machine("a3-ultragpu-8g")) is None
    assert usd(prices.machine("a3-megagpu-8g"), flex) is None
    assert usd(prices.ADDRESS, spot) == Decimal("0.0025")
    exact = {prices.disk("pd-ssd"): "0.17", prices.CONTROL_PLANE: "0.1"}
    exact |= {prices.share(Tier.BASIC_SSD): "0.3", prices.NAT: "0.0014"}
    for item, price in (exact | {prices.NAT_ADDRESS: "0.005"}).items():
        assert usd(item) == Decimal(price)


class Closed:
    """An API that nobody is to ask."""

    def pages(self, *_: object, **__: object) -> None:
        pytest.fail("Google is asked again")


def test_what_is_kept_counts_for_a_week_and_is_kept_once(api: GoogleApi) -> None:
    folder, said = MemoryFolder(), list[str]()
    book = _book(api, folder)
    found = book.prices(said.append, bucket=True)
    assert len(said) == 1
    assert folder.files == {}
    book.keep()
    assert set(folder.files) == {"prices.json"}

    closed = cast("GoogleApi", Closed())
    late = _book(closed, folder, TODAY + dt.timedelta(days=6))
    again = late.prices(said.append, bucket=True)
    assert again == found
    assert again.origin is Origin.LIVE
    assert len(said) == 1
    folder.files.clear()
    late.keep()
    assert folder.files == {}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("{", 0),
        ("[]", 0),
        ('{"sources": {}, "prices": []}', 0),
        ('{"sources": {"live": {"date": null, "text": ""}}, "prices": []}', 0),
        (None, 7),
        (None, -1),
    ],
)
def test_what_is_damaged_too_old_or_of_tomorrow_is_read_again(
    api: GoogleApi, text: str | None, days: int
) -> None:
    folder = MemoryFolder()
    if text is None:
        before = _book(api, folder)
        before.prices(lambda _: None, bucket=True)
        before.keep()
    else:
        folder.files["prices.json"] = text
    said: list[str] = []
    _book(api, folder, TODAY + dt.timedelta(days=days)).prices(said.append, bucket=True)
    assert len(said) == 1


class Odd:
    """An API whose catalogue has nothing that is known."""

    def pages(self, *_: object, **__: object) -> Iterator[dict[str, Any]]:
        yield {"description": "A Thing of Which Nobody Has Heard"}


def test_a_catalogue_without_machines_is_refused_and_a_refusal_of_google_is_its_own_error(
    api: GoogleApi,
) -> None:
    with pytest.raises(CheckError, match="not as it was"):
        _book(cast("GoogleApi", Odd()), MemoryFolder()).prices(lambda _: None, bucket=False)
    with pytest.raises(GoogleApiError):
        api.call("GET", Service.BILLING, "services/0000-0000-0000/skus", {})
