"""What a Create tells at its end: how to connect, where things are, what it costs from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.screens import amounts, layout
from provision.screens.layout import Line, Look, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.documents.cost import Amount


def lines(
    rows: Sequence[tuple[str, str]],
    width: int,
    *,
    seconds: float | None = None,
    remark: str = "",
    amount: Amount | None = None,
) -> list[Line]:
    """The end of a Create.

    `rows`: what there is to know: its name, and a command, a URL or a few words. `seconds`: how
    long it took; None if not everything is ready. `remark`: what else is to be said of it, such as
    that no node runs yet.
    """
    return [
        *_head(seconds, remark, width),
        *(line for label, text in rows for line in Row(label, text).lines(width)),
        *_tail(seconds, amount, width),
    ]


def _head(seconds: float | None, remark: str, width: int) -> Iterator[Line]:
    if seconds is None:
        yield Line("What there is, although not all of it is ready:", Look.TITLE)
        return
    text = " ".join(filter(None, [f"Ready after {amounts.clock(seconds)}.", remark]))
    yield from layout.wrapped(text, width, rest="    ", look=Look.GOOD)


def _tail(seconds: float | None, amount: Amount | None, width: int) -> Iterator[Line]:
    costs = f"It costs {amounts.per_hour(amount)} from now on. " if amount else ""
    then = "Next: Test, Status; Destroy ends it." if seconds is not None else "Destroy ends it."
    yield from layout.wrapped(costs + then, width, rest="    ")
