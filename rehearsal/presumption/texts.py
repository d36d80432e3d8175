"""The forms of the settings' texts, as README gives them."""

from typing import Final

USUAL_MACHINE: Final = "a2-highgpu-2g"  # VM_TYPE's default, by README


def items(text: str, separator: str = ",") -> list[str]:
    """The items of a list, without empty ones."""
    return [item.strip() for item in text.split(separator) if item.strip()]


def number(text: str) -> int:
    """A whole number; 1 where there is none, as INSTANCE_COUNT and its like have it."""
    return int(text) if text.isdecimal() else 1
