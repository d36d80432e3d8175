"""What a kind takes from another module when it is asked is called as the kind is."""

import inspect
from collections.abc import Callable

import pytest

from provision.deployment.kind import Kind, Later
from provision.kinds.gke.kind import GkeCluster
from provision.kinds.vms.kind import VmGroup

LATER = [
    pytest.param(name, it, id=f"{of.__name__}.{name}")
    for of in (GkeCluster, VmGroup)
    for name, it in vars(of).items()
    if isinstance(it, Later)
]


def _parameters(function: Callable[..., object]) -> list[tuple[str, object]]:
    parameters = inspect.signature(function).parameters.values()
    return [(it.name, it.kind) for it in parameters if it.name != "self"]


@pytest.mark.parametrize(("name", "later"), LATER)
def test_it_is_called_with_what_the_kind_is_called_with(name: str, later: Later) -> None:
    assert _parameters(later.find()) == _parameters(getattr(Kind, name))
