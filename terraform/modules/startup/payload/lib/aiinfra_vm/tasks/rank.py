"""One process of a bandwidth measurement, for one GPU: NUMBER of the GPU, RANK, and FILE.

FILE has what all of them do. The first writes its times as one JSON object to the file that FILE
names as `result`; stdout and stderr are NCCL's.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

from aiinfra_vm.tasks import meeting, nccl

_WORD = 4  # bytes of a number that is sent
_ALIGNED = 16  # bytes: NCCL is slower with parts that are not
_MEETING_SECONDS = 120.0
_LARGE = 2**28  # bytes from which on fewer rounds do
# Rounds that are not counted, and rounds that are.
_ROUNDS = {False: (5, 20), True: (2, 10)}
_ONE = struct.unpack("<I", struct.pack("<f", 1.0))[0]


def main() -> None:
    """Take part in all of it; in the first process, tell the times."""
    number, rank = int(sys.argv[1]), int(sys.argv[2])
    plan = json.loads(Path(sys.argv[3]).read_text("utf-8"))
    gpu, library = nccl.Gpu(number), nccl.Nccl(plan["library"])
    address, word = (plan["address"], plan["port"]), plan["word"].encode()
    ranks = plan["ranks"]
    if rank == 0:
        token = library.new_id()
        others = meeting.hold(address, word, token, ranks - 1, _MEETING_SECONDS)
    else:
        token, others = meeting.join(address, word, rank, nccl.ID_BYTES, _MEETING_SECONDS)
    library.join(token, ranks, rank)
    rows = list(_measured(gpu, library, plan, rank))
    if rank == 0:
        found = {"nccl": library.version(), "rows": rows}
        Path(plan["result"]).write_text(json.dumps(found), "utf-8")
    meeting.part(others)


def _measured(
    gpu: nccl.Gpu, library: nccl.Nccl, plan: dict[str, Any], rank: int
) -> Iterator[dict[str, Any]]:
    """For each size: the seconds of one round, out of place and in place, and wrong values."""
    ranks, sizes = plan["ranks"], plan["sizes"]
    gathers = plan["collective"] == "all_gather"
    source = gpu.allocate(max(sizes) // (ranks if gathers else 1))
    target = gpu.allocate(max(sizes))
    for size in sizes:
        part = size // ranks // _ALIGNED * _ALIGNED if gathers else size
        words = part // _WORD
        own = target + rank * part if gathers else target
        call = library.all_gather if gathers else library.all_reduce
        # `call` is asked for at once, within this round of the loop.
        seconds = [
            _timed(gpu, lambda it=it: call(it, target, words, gpu.stream), size >= _LARGE)  # type: ignore[misc]  # noqa: B023
            for it in (source, own)
        ]
        wrong = _wrong(gpu, call, (source, target), (words, ranks, rank), gathers=gathers)
        yield {
            "size": part * ranks if gathers else size,
            "out_of_place": seconds[0],
            "in_place": seconds[1],
            "wrong": wrong,
        }


def _timed(gpu: nccl.Gpu, call: Callable[[], None], large: bool) -> float:  # noqa: FBT001 - the key of a table
    """The seconds that one round takes, on the average."""
    idle, counted = _ROUNDS[large]
    for _ in range(idle):
        call()
    gpu.wait()
    begin = time.perf_counter()
    for _ in range(counted):
        call()
    gpu.wait()
    return (time.perf_counter() - begin) / counted


def _wrong(
    gpu: nccl.Gpu,
    call: Callable[..., None],
    memory: tuple[int, int],
    about: tuple[int, int, int],
    *,
    gathers: bool,
) -> int:
    """How many of the values that are looked at are not what they must be."""
    (source, target), (words, ranks, rank) = memory, about
    parts = ranks if gathers else 1
    gpu.fill(source, rank + 1 if gathers else _ONE, words)
    gpu.fill(target, 0, words * parts)
    gpu.wait()
    call(source, target, words, gpu.stream)
    gpu.wait()
    total = struct.unpack("<I", struct.pack("<f", float(ranks)))[0]
    return sum(
        gpu.word(target + (part * words + at) * _WORD) != (part + 1 if gathers else total)
        for part in range(parts)
        for at in {0, words // 2, words - 1}
    )


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(str(error))
