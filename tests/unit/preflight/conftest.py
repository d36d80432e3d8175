"""Preflights against a stand-in for Google that has all that a cluster needs."""

import pytest

from tests.unit.preflight.stand_in import Google


@pytest.fixture
def google() -> Google:
    return Google()
