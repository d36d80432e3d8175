"""Filestore's service tiers: where their shares are made, and how large they may be."""

from dataclasses import dataclass
from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("filestore_tiers")


@dataclass(frozen=True, kw_only=True)
class Tier:
    """A service tier."""

    name: str
    is_regional: bool  # whether its shares are made in a region; all others are made in a zone
    sizes: tuple[range, ...]  # ranges of sizes in GiB, each with its step

    @property
    def is_basic(self) -> bool:
        """Whether one server stands behind a share."""
        return self.name.startswith("BASIC_")

    @property
    def sizes_in_words(self) -> str:
        """What it takes, as a sentence part."""
        return " or ".join(map(_in_words, self.sizes))

    def takes(self, size_gib: int) -> bool:
        """Whether there are shares of that size."""
        return any(size_gib in sizes for sizes in self.sizes)


def _in_words(sizes: range) -> str:
    steps = "" if sizes.step == 1 else f" in steps of {sizes.step}"
    return f"{sizes[0]} to {sizes[-1]} GiB{steps}"


TIERS: Final = {
    name: Tier(
        name=name,
        is_regional=it["is_regional"],
        sizes=tuple(range(least, most + 1, step) for least, most, step in it["sizes_gib"]),
    )
    for name, it in _FACTS["tiers"].items()
}
"""Name -> tier."""


def find(name: str) -> Tier | None:
    """The tier of a name, which may be one that Google has replaced; None if there is none."""
    return TIERS.get(_FACTS["replaced"].get(name, name))
