"""Every object of a deployment's folder that the program reads, as its modules declare them."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import provision
from provision.state.objects import Stored


def found() -> dict[str, Stored[Any]]:
    """Name in the folder, with "{}" for what differs -> how it is read."""
    kept: dict[str, Stored[Any]] = {}
    for info in pkgutil.walk_packages(provision.__path__, "provision."):
        if not info.name.endswith("__main__"):
            for one in vars(importlib.import_module(info.name)).values():
                if isinstance(one, Stored):
                    assert kept.setdefault(one.name, one) is one, f"{one.name} is read in two ways"
    return kept
