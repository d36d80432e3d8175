"""Google's own prices for a run: from its catalogue, or as they were kept beside the state.

The catalogue can't be asked for a region or a machine: all of it is read, some 25 MB in a minute.
So what matters of it is kept for a week, in the deployment's folder.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from typing import TYPE_CHECKING, Any, Final

from provision import background
from provision.catalogue import prices
from provision.cost import skus
from provision.documents.cost import Origin
from provision.errors import CheckError
from provision.google.api import Service
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provision.catalogue.prices import Prices
    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder

_KEPT: Final = dt.timedelta(days=7)
_PAGE: Final = {"currencyCode": "USD", "pageSize": "5000"}
"""The largest page that the catalogue gives."""


def _listed(content: bytes) -> Prices | None:
    try:
        return prices.read(content, Origin.LIVE)
    except ValueError:
        return None  # they are read again


_LIST: Final = Stored("prices.json", Writer.PROGRAM, _listed, largest=2**24)


class PriceBook:
    """Google's prices for one run."""

    def __init__(self, api: GoogleApi, folder: StateFolder, today: dt.date) -> None:
        self._api = api
        self._folder = folder
        self._today = today
        self._new: Prices | None = None

    def prices(self, tell: Callable[[str], None], *, bucket: bool) -> Prices:
        """The prices.

        Raises:
            ProvisionError: Google, or Cloud Storage, refuses; or there is no price in the answer.
        """
        kept = self.kept() if bucket else None
        if kept is not None:
            return kept
        tell("Reading Google's price list, which takes up to two minutes once a week")
        self._new = read(self._api, self._today)
        return self._new

    def keep(self) -> None:
        """Keep what was read from the catalogue; nothing if nothing was."""
        if self._new is not None:
            self._folder.write(_LIST.name, prices.write(self._new), "application/json")
            self._new = None

    def kept(self) -> Prices | None:
        """What was kept; None if there is nothing, or nothing that is good and new enough."""
        found = self._folder.read(_LIST)
        if found is None:
            return None
        try:
            days = [dt.date.fromisoformat(it.date or "") for it in found.sources.values()]
        except ValueError:
            return None
        is_new = all(dt.timedelta() <= self._today - day < _KEPT for day in days)
        return found if days and is_new else None


def read(api: GoogleApi, today: dt.date) -> Prices:
    """Read the catalogue.

    Raises:
        ProvisionError: Google refuses, or there is no price of any machine in the answer.
    """
    asked = [
        background.begin(functools.partial(_of_service, api, service))
        for service in skus.SERVICES.values()
    ]
    lists = [answer.result() for answer in asked]
    try:
        return skus.read(itertools.chain.from_iterable(lists), today.isoformat())
    except skus.NoPricesError as error:
        raise CheckError("Google's price list is not as it was", why=str(error)) from error


def _of_service(api: GoogleApi, service: str) -> list[Mapping[str, Any]]:
    """The SKUs of a service that matter; there are tens of thousands of others."""
    pages = api.pages("GET", f"services/{service}/skus", "skus", _PAGE, service=Service.BILLING)
    return [sku for sku in pages if skus.matters(sku)]
