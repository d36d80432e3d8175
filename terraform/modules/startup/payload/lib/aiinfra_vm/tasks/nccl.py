"""NCCL and the GPU's driver, called as what they are: two libraries in C.

NCCL comes with every stack of Google's for the GPUs' network, and brings its own CUDA runtime; the
driver is there anyway. So nothing else is needed on a VM: no CUDA toolkit, no MPI, no PyTorch.
Signatures and numbers are those of NVIDIA's nccl.h (NCCL 2) and cuda.h (the driver's interface).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path
from typing import Iterator

ID_BYTES = 128
_FLOAT32 = 7  # ncclFloat32
_SUM = 0  # ncclSum

# Where PyTorch's packages bring NCCL, that of Ray's environment first.
_OF_PYTORCH = (
    "/opt/aiinfra/ray/lib/python3*/site-packages/nvidia/nccl/lib",
    "/usr/local/lib/python3*/dist-packages/nvidia/nccl/lib",
    "/usr/lib/python3*/dist-packages/nvidia/nccl/lib",
    "/opt/*/lib/python3*/site-packages/nvidia/nccl/lib",
)
# Where Google's installers put it.
_OF_GOOGLE = (
    "/usr/local/gib/lib64",
    "/var/lib/tcpxo/lib64",
    "/usr/local/nccl2/lib",
    "/usr/local/cuda/lib64",
)
NAME = "libnccl.so.2"


_MEANINGS = {
    2: "the GPU has not so much memory left: does something else run on it?",
    100: "there is no GPU",
    101: "there is no GPU of that number",
}
"""What the driver's errors that are to be expected mean (CUresult of cuda.h)."""


class GpuError(OSError):
    """NCCL or the driver refused something."""


class _Id(ctypes.Structure):
    """ncclUniqueId, which is handed over by value."""

    _fields_ = (("internal", ctypes.c_char * ID_BYTES),)


def library() -> str | None:
    """NCCL's file as jobs load it, or its name if the linker has it; None where this VM has none.

    PyTorch loads the NCCL of its own packages by the RPATH of its libraries, which LD_LIBRARY_PATH
    does not change (readelf and ldd on torch 2.9.1); LD_PRELOAD does. Other programs take what the
    environment names, which is the plugin's.
    """
    preloaded = os.environ.get("LD_PRELOAD", "")
    for file in (preloaded, *_found(_OF_PYTORCH), *named(), *_found(_OF_GOOGLE)):
        if file.endswith(NAME) and Path(file).exists():
            return file
    try:
        ctypes.CDLL(NAME)
    except OSError:
        return None
    return NAME


def named() -> Iterator[str]:
    """NCCL in the folders of LD_LIBRARY_PATH, the first of which is the plugin's."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and Path(folder, NAME).exists():
            yield f"{folder}/{NAME}"


def _found(patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        yield from map(str, sorted(Path("/").glob(f"{pattern.lstrip('/')}/{NAME}")))


def main() -> None:
    """Print the file that jobs load, that of the plugin, and its version: "" for none."""
    plugin = next(named(), "")
    version = ""
    if plugin:
        with contextlib.suppress(OSError):
            version = Nccl(plugin).version()
    sys.stdout.write(f"{library() or ''}\n{plugin}\n{version}\n")


class Gpu:
    """One GPU, in this process's own context, with a stream.

    Raises:
        OSError: The driver or the GPU does not answer.
    """

    def __init__(self, number: int) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", ctypes.c_uint(0))
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(number))
        context = ctypes.c_void_p()
        # The primary context is the one that NCCL's CUDA runtime uses.
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(0))

    def allocate(self, size: int) -> int:
        """Memory of so many bytes; its address.

        Raises:
            OSError: The GPU has not so much.
        """
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def fill(self, address: int, word: int, words: int) -> None:
        """Put the same 32 bits everywhere."""
        self._call(
            "cuMemsetD32_v2", ctypes.c_uint64(address), ctypes.c_uint(word), ctypes.c_size_t(words)
        )

    def word(self, address: int) -> int:
        """The 32 bits at an address."""
        found = ctypes.c_uint32()
        self._call(
            "cuMemcpyDtoH_v2", ctypes.byref(found), ctypes.c_uint64(address), ctypes.c_size_t(4)
        )
        return found.value

    def wait(self) -> None:
        """Wait until the stream has done all."""
        self._call("cuStreamSynchronize", self.stream)

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._cuda, name)(*arguments)
        if result:
            meaning = _MEANINGS.get(result)
            raise GpuError(f"{name}: CUDA error {result}" + (f": {meaning}" if meaning else ""))


class Nccl:
    """NCCL's library.

    Raises:
        OSError: It can't be loaded.
    """

    def __init__(self, file: str) -> None:
        self._nccl = ctypes.CDLL(file)
        self._nccl.ncclGetErrorString.restype = ctypes.c_char_p
        self._communicator = ctypes.c_void_p()

    def version(self) -> str:
        """Such as 2.28.7."""
        found = ctypes.c_int()
        self._call("ncclGetVersion", ctypes.byref(found))
        return f"{found.value // 10000}.{found.value // 100 % 100}.{found.value % 100}"

    def new_id(self) -> bytes:
        """What all processes of a group need to find each other; this process has to live on."""
        found = _Id()
        self._call("ncclGetUniqueId", ctypes.byref(found))
        return bytes(ctypes.string_at(ctypes.byref(found), ID_BYTES))

    def join(self, token: bytes, ranks: int, rank: int) -> None:
        """Become a member of a group; returns when all are there."""
        given = _Id.from_buffer_copy(token)
        self._call(
            "ncclCommInitRank",
            ctypes.byref(self._communicator),
            ctypes.c_int(ranks),
            given,
            ctypes.c_int(rank),
        )

    def all_gather(self, source: int, target: int, words: int, stream: ctypes.c_void_p) -> None:
        """Begin to gather so many words of each process, at all of them."""
        self._call(
            "ncclAllGather",
            ctypes.c_void_p(source),
            ctypes.c_void_p(target),
            ctypes.c_size_t(words),
            ctypes.c_int(_FLOAT32),
            self._communicator,
            stream,
        )

    def all_reduce(self, source: int, target: int, words: int, stream: ctypes.c_void_p) -> None:
        """Begin to sum so many words over all processes, at all of them."""
        self._call(
            "ncclAllReduce",
            ctypes.c_void_p(source),
            ctypes.c_void_p(target),
            ctypes.c_size_t(words),
            ctypes.c_int(_FLOAT32),
            ctypes.c_int(_SUM),
            self._communicator,
            stream,
        )

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._nccl, name)(*arguments)
        if result:
            words = self._nccl.ncclGetErrorString(ctypes.c_int(result)) or b""
            raise GpuError(f"{name}: {words.decode('utf-8', 'replace')}")


if __name__ == "__main__":
    main()
