"""The real start-up script on the real system of each Debian release: what stand-ins can't show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.startup.debian_vm import DebianVM

# The first of them makes the roots, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)


def test_a_vm_boots_and_reports(debian: DebianVM) -> None:
    booted = debian.boot()

    assert booted.returncode == 0, booted.stderr
    assert debian.states()["startup"] == "done"
