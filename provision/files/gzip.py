"""The gzip format without compression.

The output of a compressor differs between its versions; the output of this module does not.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing_extensions import Buffer

_LARGEST_BLOCK: Final = 0xFFFF


class StoredGzip(io.RawIOBase):
    """A gzip stream with stored (uncompressed) blocks (RFC 1951 3.2.4, RFC 1952).

    `sha256`: The SHA-256 of the stream, in hexadecimal; set when the stream is closed.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._sum = hashlib.sha256()
        self._crc = 0
        self._size = 0
        self._waiting = bytearray()
        self.sha256 = ""
        # No flags, no time, no extra flags, "unknown" as the operating system.
        self._put(b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff")

    def write(self, data: Buffer) -> int:
        """Buffer bytes and write only full blocks, so that blocks do not depend on the calls."""
        taken = bytes(data)
        self._crc = zlib.crc32(taken, self._crc)
        self._size += len(taken)
        self._waiting += taken
        while len(self._waiting) > _LARGEST_BLOCK:
            self._block(bytes(self._waiting[:_LARGEST_BLOCK]), last=False)
            del self._waiting[:_LARGEST_BLOCK]
        return len(taken)

    def close(self) -> None:
        """Write the last block, the CRC and the size."""
        try:
            if not self.closed:
                self._block(bytes(self._waiting), last=True)
                self._put(struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF))
                self.sha256 = self._sum.hexdigest()
        finally:
            super().close()

    def _block(self, data: bytes, *, last: bool) -> None:
        self._put(struct.pack("<BHH", last, len(data), len(data) ^ 0xFFFF) + data)

    def _put(self, data: bytes) -> None:
        self._sum.update(data)
        self._file.write(data)
