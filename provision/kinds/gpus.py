"""The GPUs of a machine in words for people: what they are, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision import words
from provision.catalogue import machines
from provision.spec.topology import gpu_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.catalogue.machines import Gpu


def named(machine_type: str, attached: str | None = None, count: int = 0) -> str:
    """The GPUs of each machine, such as "2 x A100 40 GB"; "" for none, or if not known."""
    if attached and count:
        return f"{count} x {gpu_words(attached)}"
    machine = machines.lookup(machine_type)
    if machine is None or machine.family.gpu is None:
        return ""
    # A machine may have a part of one, such as "1/8".
    return f"{machine.part or machine.gpus or 0} x {gpu_words(machine.family.gpu.name)}"


def faults(
    gpus: Sequence[Mapping[str, Any]], error: str, count: int | None, kind: Gpu | None
) -> Iterator[str]:
    """What is wrong, by what nvidia-smi says, and where it failed by the `error`.

    Uncorrected errors of the memory since the boot are a fault, and so are repairs that failed or
    wait; errors of the past that were repaired are none (NVIDIA's pages on memory errors). Each GPU
    has `name`, `ecc_volatile` (None where it does not count errors), and as far as it is known
    `repair_failed` and `repair_pending`.
    """
    if error:
        yield error
    if count is not None and len(gpus) != count:
        yield f"{words.counted(len(gpus), 'GPU')} instead of {count}"
    yield from strange([str(gpu.get("name")) for gpu in gpus], kind)
    errors = {n: gpu["ecc_volatile"] for n, gpu in enumerate(gpus) if gpu.get("ecc_volatile")}
    if errors:
        total = sum(errors.values())
        told = words.counted(total, "uncorrected memory (ECC) error")
        yield f"{told} since its boot, on {_numbered(errors)}"
    if broken := [n for n, gpu in enumerate(gpus) if gpu.get("repair_failed")]:
        yield f"{_numbered(broken)} can't repair its memory any more"
    if pending := [n for n, gpu in enumerate(gpus) if gpu.get("repair_pending")]:
        yield f"{_numbered(pending)} waits for a restart to repair its memory"


def strange(names: Sequence[str], kind: Gpu | None) -> list[str]:
    """GPUs of another kind than they should be, in words; at most one line."""
    if kind is None:
        return []
    # A part of an RTX PRO 6000 calls itself "RTX Pro 6000".
    other = sorted({it for it in names if kind.model.casefold() not in it.casefold()})
    return [f"{', '.join(other)} instead of {kind.model}"] if other else []


def memory_errors(gpus: Sequence[Mapping[str, Any]]) -> int | None:
    """The uncorrected memory errors of all since the boot; None where no GPU counts them."""
    known = [gpu["ecc_volatile"] for gpu in gpus if gpu.get("ecc_volatile") is not None]
    return sum(known) if known else None


def _numbered(numbers: Iterable[int]) -> str:
    return words.listed([f"GPU {number}" for number in numbers])
