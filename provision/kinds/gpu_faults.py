"""What is wrong with the GPUs of one machine, in words: the same for VMs and for nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.machines import Gpu


def of(
    gpus: Sequence[Mapping[str, Any]], error: str, count: int | None, kind: Gpu | None
) -> Iterator[str]:
    """The faults, by what nvidia-smi says.

    Uncorrected errors of the memory since the boot are a fault, and so are repairs that failed or
    wait; errors of the past that were repaired are none (NVIDIA's pages on memory errors). `gpus`:
    each GPU: `name`, `ecc_volatile` (None where it does not count errors), and as far as it is
    known `repair_failed` and `repair_pending`. `error`: what nvidia-smi failed with; "" if it did
    not. `count`: how many there should be; None if not known. `kind`: what they should be; None if
    not known.
    """
    if error:
        yield error
    if count is not None and len(gpus) != count:
        yield f"{len(gpus)} GPUs instead of {count}"
    yield from strange([str(gpu.get("name")) for gpu in gpus], kind)
    numbered = list(enumerate(gpus))
    errors = {number: gpu["ecc_volatile"] for number, gpu in numbered if gpu.get("ecc_volatile")}
    if errors:
        yield (
            f"{sum(errors.values())} uncorrected memory (ECC) errors since its boot, on"
            f" {_named(errors)}"
        )
    if broken := [number for number, gpu in numbered if gpu.get("repair_failed")]:
        yield f"{_named(broken)} can't repair its memory any more"
    if pending := [number for number, gpu in numbered if gpu.get("repair_pending")]:
        yield f"{_named(pending)} waits for a restart to repair its memory"


def strange(names: Sequence[str], kind: Gpu | None) -> list[str]:
    """GPUs of another kind, in words; at most one line.

    `kind`: what they should be; None if not known.
    """
    if kind is None:
        return []
    # A part of an RTX PRO 6000 calls itself "RTX Pro 6000".
    other = sorted({it for it in names if kind.model.casefold() not in it.casefold()})
    return [f"{', '.join(other)} instead of {kind.model}"] if other else []


def counted(gpus: Sequence[Mapping[str, Any]]) -> int | None:
    """The uncorrected memory errors of all since the boot; None where no GPU counts them."""
    known = [gpu["ecc_volatile"] for gpu in gpus if gpu.get("ecc_volatile") is not None]
    return sum(known) if known else None


def _named(numbers: Mapping[int, int] | Sequence[int]) -> str:
    return words.listed([f"GPU {number}" for number in numbers])
