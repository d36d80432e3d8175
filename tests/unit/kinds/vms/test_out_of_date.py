"""Running VMs get what Google can change on them; the others are said to need more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.google.api import GoogleApiError
from provision.kinds.vms import out_of_date
from provision.time.clock import Clock
from provision.time.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from provision.context import Cloud
    from provision.state.location import Place

LINK = "https://www.googleapis.com/compute/v1/"
ZONE = "projects/p/zones/z"
NEWEST = "projects/p/global/instanceTemplates/np-newest"
PLACE = cast("Place", SimpleNamespace(project_id="p", region="r", zone="z", name_prefix="np"))


class Google:
    """A group with VMs of older templates; `code` answers updates of those of "np-image".

    What a VM has of its template is its labels; the image, which differs too, nobody tells.
    """

    def __init__(self, code: int | None = 400, **made_from: str) -> None:
        self.code = code
        self.made_from = made_from

    def find(self, _: object, path: str) -> dict[str, Any]:
        if path == NEWEST:
            return {"properties": {"labels": {"team": "ml"}}}
        return {"versions": [{"instanceTemplate": LINK + NEWEST}]}

    def managed_instances(self, *_: str) -> list[dict[str, Any]]:
        templates = f"{LINK}projects/p/global/instanceTemplates/"
        return [
            {
                "id": "1",
                "instance": f"{LINK}{ZONE}/instances/np-vm-{name}",
                "instanceStatus": "RUNNING",
                "currentAction": "NONE",
                "version": {"instanceTemplate": templates + template},
            }
            for name, template in self.made_from.items()
        ]

    def named_instances(self, *_: str) -> list[dict[str, Any]]:
        return [
            {"name": f"np-vm-{name}", "selfLink": f"{LINK}{ZONE}/instances/np-vm-{name}"}
            for name in self.made_from
        ]

    def apply_updates(
        self, _project: str, _zone: str, _group: str, vms: Collection[str], *, action: str
    ) -> None:
        assert action == "REFRESH"
        names = [vm.removeprefix("np-vm-") for vm in vms]
        if any(self.made_from[name] == "np-image" for name in names):
            if self.code is not None:
                raise GoogleApiError(self.code, "requires REPLACE", "https://x")
            return
        self.made_from |= dict.fromkeys(names, "np-newest")

    def change_metadata(self, path: str, change: Callable[[dict[str, str]], Any]) -> None:
        assert path.startswith(ZONE)
        assert change({}) == {}


def _refreshed(google: Google) -> list[tuple[str, ...]]:
    progress = Progress(Clock(0), lambda _: None)
    cloud = cast("Cloud", SimpleNamespace(api=google))
    found = out_of_date.find(cloud, PLACE)
    left = out_of_date.refresh(cloud, PLACE, found, progress)
    return [(vm.name, *vm.differences) for vm in left]


@pytest.mark.parametrize("code", [400, None])
def test_a_vm_that_differs_in_more_than_its_labels_stays_out_of_date(code: int | None) -> None:
    google = Google(code, a="np-labels", b="np-image", c="np-newest", d="np-labels")
    assert _refreshed(google) == [
        ("np-vm-b", "labels team", "what Google changes only by replacing it")
    ]
    assert google.made_from == {
        "a": "np-newest",
        "b": "np-image",
        "c": "np-newest",
        "d": "np-newest",
    }


def test_that_nobody_may_change_vms_is_no_difference_of_theirs() -> None:
    with pytest.raises(GoogleApiError):
        _refreshed(Google(403, b="np-image"))
