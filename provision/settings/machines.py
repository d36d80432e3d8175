"""The types of values that name machines and GPUs, as Google does."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

from provision.catalogue import machines, suggestions
from provision.settings import parsing
from provision.settings.parsing import InvalidValueError

_LABEL: Final = 63
"""The most characters of a name (RFC 1035)."""
_MOST_GPUS: Final = 16
"""Of one machine: an a2-megagpu-16g has them."""
_MOST_NAMED: Final = 8
"""The most machine types that a message names."""
_TPU: Final = re.compile(r"(ct[0-9][a-z]*|tpu[0-9a-z]*)-.*")
"""Machine types with TPUs: ct4p, ct5lp, ct5p, ct6e, tpu7x (GKE, pages on flex start, undated)."""


def _machine_type(text: str) -> str:
    if _TPU.fullmatch(text):
        raise InvalidValueError(
            "is a machine with TPUs", "this tool makes machines with GPUs, and no others"
        )
    found = suggestions.gpus(text)
    # A name of the right form may be newer than the table: a rule notes it.
    if re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", text) and len(text) <= _LABEL and not found:
        return text
    fitting = suggestions.machine_types(text)
    what = f"is a GPU, {found[0].name}, not a machine type" if found else "is not a machine type"
    if fitting:
        listed = ", ".join(fitting[:_MOST_NAMED])
        why = f"these machines have it: {listed}" if found else f"did you mean {listed}?"
        raise InvalidValueError(what, why, fix=fitting[0])
    if found:
        gpu = found[0].name
        why = f"it is attached to N1 machines: write ACCELERATOR_TYPE={gpu} and GPU_COUNT=1 too"
        raise InvalidValueError(what, why, fix=suggestions.USUAL_WITHOUT_GPUS)
    raise InvalidValueError(what, "such as a2-highgpu-2g")


def _accelerator(text: str) -> str:
    found = suggestions.gpus(text)
    if found:
        raise InvalidValueError(
            "is not a GPU type", f"Google's name for it is {found[0].name}", fix=found[0].name
        )
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", text):
        raise InvalidValueError("is not a GPU type", f"one of {', '.join(machines.ACCELERATORS)}")
    return text


def _gpus(number: int) -> int:
    if number not in range(1, _MOST_GPUS + 1):
        # No number of its own is right for every machine type.
        raise InvalidValueError(
            "is no number of GPUs",
            f"1 to {_MOST_GPUS}, and as many as VM_TYPE has; without it, it is that of VM_TYPE",
        )
    return number


MachineTypeName = Annotated[str, AfterValidator(_machine_type)]
AcceleratorName = Annotated[str, AfterValidator(_accelerator)]
Gpus = Annotated[int, BeforeValidator(parsing.whole_number), AfterValidator(_gpus)]
