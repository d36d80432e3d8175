"""Preflights against a stand-in for Google that has all that a cluster needs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from provision import preflight
from provision.google.owner import Owner
from provision.kinds import registry
from provision.preflight.answers import Answers
from provision.settings.model import Settings
from tests.unit.preflight.stand_in import ID, Google

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from provision.preflight import CheckResults
    from provision.state.record import Record

_MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_IMAGE = {"image_family_name": "common-cu129-ubuntu-2404-nvidia-580"}


class Preflight(Protocol):
    """Makes the checks of these settings, given as a mapping, by name, or both.

    They come on top of the mandatory ones and an image that is there.
    """

    def __call__(
        self,
        settings: Mapping[str, str] = _NOTHING,
        *,
        record: Record | None = None,
        makes_bucket: bool = False,
        in_state: Collection[str] = (),
        **more: str,
    ) -> CheckResults[Any]: ...


@pytest.fixture
def google() -> Google:
    return Google()


@pytest.fixture
def check(google: Google) -> Preflight:
    def run(
        settings: Mapping[str, str] = _NOTHING,
        *,
        record: Record | None = None,
        makes_bucket: bool = False,
        in_state: Collection[str] = (),
        **more: str,
    ) -> CheckResults[Any]:
        image = {} if "image_name" in more else _IMAGE
        asked = Settings({**_MANDATORY, **image, **settings, **more})
        kind = registry.of(asked)
        spec = kind.spec(asked)
        return preflight.run(
            spec,
            Answers(google),
            of_kind=kind.preflight(spec),
            owner=Owner(ID),
            record=record,
            makes_bucket=makes_bucket,
            in_state=in_state,
        )

    return run
