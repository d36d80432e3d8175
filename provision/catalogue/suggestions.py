"""What a person means by a name of machines or GPUs that is not Google's.

People write H100, 8xA100, a3-high-8g or a2-highgpu-3g. Nothing here is a fact of its own: all is
read from the names in `machines`. For a name that is not understood, the online check decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines
from provision.catalogue.machines import Consumption
from provision.words import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.catalogue.machines import Family, Gpu, MachineType

USUAL_WITHOUT_GPUS: Final = "n1-standard-8"
"""The machine type to suggest where GPUs are attached, as in examples/n1-t4.env.list."""

_LONGEST_NAME: Final = 63
# "8xH100" and "H100x8", as people write it; "H100:8", as SkyPilot and dstack do.
_COUNTED: Final = re.compile(
    r"(?:(?P<before>\d{1,2}) ?x ?)?(?P<name>[^:]+?)(?: ?[:x] ?(?P<after>\d{1,2}))?"
)
# "h100-80gb-8", as xpk writes it.
_COUNT_LAST: Final = re.compile(r"(?P<name>.+)-(?P<after>\d{1,2})")
_NOISE: Final = re.compile(r"nvidia|tesla|gpu|(?<=rtx).?pro|[^a-z0-9]")
_MEMORY: Final = re.compile(r"\d+gb$")
_SIZE: Final = re.compile(r"\d+")


def gpus(text: str) -> tuple[Gpu, ...]:
    """The GPUs that a short name means, the best match first; none for Google's own names.

    `text`: such as "T4", "A100-80GB", "8xH100", "H100:8" or "h100-80gb-8".
    """
    return () if text in machines.GPUS else _counted(text)[0]


def machine_types(text: str) -> tuple[str, ...]:
    """The machine types that a text means, the best match first.

    `text`: a name with a slip, such as "A2-HighGPU-2g", without its "gpu", such as "a3-high-8g", or
    of a GPU that machines include, such as "8xH100"; of a family, such as "a3-mega".
    """
    name = re.sub(r"[_\s]+", "-", text.strip().lower())[:_LONGEST_NAME]
    if name in machines.MACHINE_TYPES:
        return (name,)
    meant, count = _counted(text)
    if meant:
        return tuple(it.name for it in _carrying(meant, count))
    short = _without_gpu(name)
    if machines.plain_series(name) is not None:
        return ()
    same = [it for it in machines.MACHINE_TYPES if _without_gpu(it) == short]
    kin = [it for it in machines.MACHINE_TYPES if _without_gpu(it).startswith(f"{short}-")]
    close = closest(name, machines.MACHINE_TYPES)
    return tuple(same or kin or ([close] if close else []))


def like(name: str) -> tuple[str, ...]:
    """The machine types that were probably meant by a well-formed name that is not known.

    A name in a known family is a size that it does not have: those next to it were meant. A name
    that differs from a known one in one letter, or in its "gpu", is a mistake. A name of an unknown
    family may be newer than the table; the online check decides.
    """
    if name in machines.MACHINE_TYPES or len(name) > _LONGEST_NAME:
        return ()
    family = machines.family(name)
    if family is not None:
        return tuple(_next_to(name, family))
    if machines.plain_series(name) is not None:
        return ()
    known = machines.MACHINE_TYPES
    typos = [it for it in known if _is_typo_of(name, it)]
    return tuple(typos[:1] or [it for it in known if _without_gpu(it) == name])


def accelerator(name: str) -> str:
    """The GPU whose name is the most similar to this one; "" if there is none."""
    return closest(name.lower(), machines.GPUS)


def _counted(text: str) -> tuple[tuple[Gpu, ...], int | None]:
    """The GPUs that a text means, and how many of them; None if it does not tell."""
    found = _COUNTED.fullmatch(text.strip().lower()[:_LONGEST_NAME])
    if found is None:
        return (), None
    count = found["before"] or found["after"]
    meant = _of_word(found["name"])
    last = _COUNT_LAST.fullmatch(found["name"])
    if not meant and last:
        meant, count = _of_word(last["name"]), last["after"]
    return meant, int(count) if meant and count else None


def _of_word(text: str) -> tuple[Gpu, ...]:
    word = _bare(text)
    exact = [
        gpu for gpu in machines.GPUS.values() if word in {_bare(gpu.name), _bare(gpu.quota_word)}
    ]
    others = [gpu for gpu in machines.GPUS.values() if word in _short(gpu)]
    return tuple(dict.fromkeys((*exact, *others)))


def _short(gpu: Gpu) -> Iterable[str]:
    return {_bare(gpu.model), _MEMORY.sub("", _bare(gpu.name))}


def _bare(name: str) -> str:
    """The name without maker, brand, blanks and hyphens: "h100mega80gb"."""
    return _NOISE.sub("", name.lower())


def _carrying(meant: Iterable[Gpu], count: int | None) -> Iterator[MachineType]:
    """The machine types with these GPUs: whoever is available on demand comes first."""
    order = [gpu.name for gpu in meant]
    fit = [
        it
        for it in machines.MACHINE_TYPES.values()
        if it.accelerator in order and not it.part and count in {None, it.gpus}
    ]
    yield from sorted(
        fit,
        key=lambda it: (
            order.index(it.accelerator or ""),
            Consumption.ON_DEMAND not in it.consumption,
        ),
    )


def _without_gpu(name: str) -> str:
    return name.replace("gpu", "")


def _next_to(name: str, family: Family) -> Iterator[str]:
    """The sizes of a family next to one that it does not have."""
    kin = [f"{family.name}-{shape.suffix}" for shape in family.shapes]
    asked = _SIZE.match(name.removeprefix(f"{family.name}-"))
    close = closest(name.lower(), kin)
    if asked is None or asked[0] in {_size(family, it) for it in kin}:
        yield close or kin[0]
        return
    number = int(asked[0])
    smaller = [it for it in kin if int(_size(family, it)) < number]
    larger = [it for it in kin if int(_size(family, it)) > number]
    yield from (*smaller[-1:], *larger[:1])


def _size(family: Family, name: str) -> str:
    found = _SIZE.match(name.removeprefix(f"{family.name}-"))
    return found[0] if found else "0"


def _is_typo_of(name: str, known: str) -> bool:
    """Whether the name differs from the known one only in its case or in one letter.

    A different digit of the series (a5-highgpu-8g) is a newer machine, not a typo.
    """
    if name.lower() == known:
        return True
    if re.sub(r"\d", "0", name) == re.sub(r"\d", "0", known):
        return False
    return _one_edit_apart(name, known)


def _one_edit_apart(one: str, other: str) -> bool:
    """Whether adding, removing or changing one letter, or swapping two, makes both names equal."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[start + 1 : start + 2] + short[start : start + 1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or swapped == long[start:]
