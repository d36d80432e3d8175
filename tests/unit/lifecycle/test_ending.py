"""What a Destroy says that it ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from provision.google import resources
from provision.lifecycle import ending


def test_what_nobody_knows_is_counted_first_and_by_its_type() -> None:
    types = [resources.NETWORK.type, resources.GROUP.type, "google_project", "null_resource"]
    cloud = SimpleNamespace(folder=SimpleNamespace(types=lambda: [*types, "google_project"]))
    found = ending._counts(cast("Any", cloud))
    assert list(found.items()) == [
        ("google_project", 2),
        ("null_resource", 1),
        ("group", 1),
        ("network", 1),
    ]
