r"""Numbers, lists and the words of others, for messages.

Names, reasons and outputs come from Google, VMs, buckets and their users, and a terminal obeys
what is in them: colours, titles, the clipboard, the cursor. So whatever controls, hides or turns
text around is shown as its escape, such as a visible `\x1b`. Of controls only the newline is left.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_NAMED: Final = 20


def duration(seconds: float) -> str:
    """A duration in its two largest units, such as "3 h 20 min"."""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"


def counted(number: int, noun: str) -> str:
    """A number of things, such as "1 VM", "3 VMs" or "2 policies"."""
    if number != 1:
        noun = noun[:-1] + "ies" if re.search(r"[^aeiou]y$", noun) else noun + "s"
    return f"{number:,} {noun}"


def closest(word: str, known: Iterable[str], alike: float = 0.75) -> str:
    """What is known and the most similar to a word, by difflib's ratio; "" if nothing is enough."""
    # No valid name is that long; difflib's time grows with the product of the lengths.
    return next(iter(difflib.get_close_matches(word[:64], known, n=1, cutoff=alike)), "")


def listed(names: Collection[str]) -> str:
    """Sorted names, separated by commas; only the first ones if there are many."""
    named = sorted(names)[:_NAMED]
    more = f" and {len(names) - len(named)} more" if len(names) > len(named) else ""
    return ", ".join(named) + more


COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,64}m")
"""What sets colours and weight of text, and nothing else (SGR, ECMA-48)."""

_ODD: Final = re.compile(rf"(?P<colour>{COLOUR.pattern})|[^\x20-\x7e\n]")
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks by their category, of which nothing is to be seen (Unicode 15, DICP)."""


def printable(said: str, *, colours: bool = False) -> str:
    """A text of lines, each of which may be of somebody else, fit for a terminal."""

    def shown(found: re.Match[str]) -> str:
        if found["colour"]:
            return found[0] if colours else _escaped("\x1b") + found[0][1:]
        return found[0] if _is_plain(found[0]) else _escaped(found[0])

    return _ODD.sub(shown, said.replace("\r\n", "\n").expandtabs())


def printable_line(said: str) -> str:
    """A text that is to stay on one line, as nothing in it may look like a line of ours."""
    return printable(said).replace("\n", _escaped("\n"))


def _is_plain(letter: str) -> bool:
    """Whether a character is one to be seen, or a blank: not Cc, Cf, Cs, Zl, Zp, nor unassigned."""
    is_blank = unicodedata.category(letter) == "Zs"
    return (letter.isprintable() or is_blank) and letter not in _UNSEEN


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
