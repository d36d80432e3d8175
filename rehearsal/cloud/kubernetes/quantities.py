"""Amounts of resources, as Kubernetes writes them."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

_UNITS: Final[Mapping[str, Decimal]] = {
    **{f"{unit}i": Decimal(1024**power) for power, unit in enumerate("KMGTPE", 1)},
    **{unit: Decimal(1000**power) for power, unit in enumerate("kMGTPE", 1)},
    "m": Decimal("0.001"),
}


def parse(text: object) -> Decimal:
    """The number that a quantity ("100m", "4Gi", 8) stands for; ArithmeticError if it is none."""
    words = str(text)
    for unit, factor in _UNITS.items():
        if words.endswith(unit):
            return Decimal(words.removesuffix(unit)) * factor
    return Decimal(words)


def shown(amount: Decimal) -> str:
    """An amount in a message."""
    return f"{amount.normalize():f}"


def requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """What one pod of a specification asks for, by resource; a limit is a request too."""
    total: dict[str, Decimal] = {}
    for container in _containers(spec):
        wanted = container.get("resources") or {}
        for name, text in {
            **(wanted.get("limits") or {}),
            **(wanted.get("requests") or {}),
        }.items():
            total[name] = total.get(name, Decimal(0)) + parse(text)
    return total


def _containers(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = spec.get("containers") or []
    return found
