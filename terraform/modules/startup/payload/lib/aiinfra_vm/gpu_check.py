"""Whether this VM has the GPUs and the network interfaces that its machine type promises."""

from __future__ import annotations

import json
import sys
from typing import Any

from aiinfra_vm import configuration, counted, interfaces, programs, report

_QUERY = "name,driver_version,ecc.errors.uncorrected.volatile.total"
_SECONDS = 120  # a GPU that fell off its bus can make nvidia-smi hang, beyond all signals


def gpus() -> list[list[str]]:
    """Name, driver's version and uncorrected ECC errors of each GPU, as nvidia-smi prints them.

    Raises:
        OSError, subprocess.SubprocessError: nvidia-smi is not there, fails, or hangs.
    """
    command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    answer = programs.ask(command, _SECONDS)
    sys.stderr.write(answer.stderr.decode("utf-8", "replace"))
    answer.check_returncode()
    lines = answer.stdout.decode().splitlines()
    return [[field.strip() for field in line.split(",")] for line in lines if line.strip()]


def document(found: list[list[str]], ready: int, expected: dict[str, int]) -> dict[str, Any]:
    """What is reported; `ecc_errors` is None where no GPU counts them."""
    errors = [int(fields[2]) for fields in found if fields[2].isdigit()]
    return {
        "gpus": len(found),
        "names": [fields[0] for fields in found],
        "driver": found[0][1] if found else None,
        "ecc_errors": sum(errors) if errors else None,
        "interfaces": ready,
        "expected": expected,
    }


def complaints(checked: dict[str, Any]) -> list[str]:
    """What is not as expected, in words."""
    return [
        f"this VM has {counted(checked[what], noun)}, not {expected}"
        for what, noun in (("gpus", "GPU"), ("interfaces", "network interface"))
        for expected in [checked["expected"][what]]
        if checked[what] != expected
    ]


def main() -> int:
    """Check, report, and say what is wrong."""
    wanted = configuration.load()
    expected = {
        "gpus": wanted["gpus"]["count"] if wanted["gpus"] else 0,
        "interfaces": wanted["interfaces"],
    }
    found = gpus() if expected["gpus"] else []
    links = interfaces.find()
    checked = document(found, len(interfaces.ready(links)), expected)
    report.tell("gpu_check", checked)
    wrong = [*(it.fault for it in links if it.fault), *complaints(checked)]
    sys.stderr.write("".join(f"{complaint}\n" for complaint in [json.dumps(checked), *wrong]))
    return 1 if complaints(checked) else 0


if __name__ == "__main__":
    sys.exit(main())
