"""Parsing the text of one value: numbers, booleans, durations, lists, maps.

Every function takes the text after `NAME=`, without surrounding blanks or quotes, and raises
`InvalidValueError` if it is invalid.
"""

from __future__ import annotations

import difflib
import enum
import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision.settings import masking

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Mapping

_Choice = TypeVar("_Choice", bound=enum.StrEnum)

_SECONDS_PER: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}
_SPAN: Final = re.compile(
    r"([0-9]{1,9}) ?(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z]) ?"
)
_SIZE: Final = re.compile(
    r"(?P<number>[+-]?[0-9]{1,15}(?:\.[0-9]{1,3}(?= ?t))?) ?(?P<unit>[gt]?)(?:(?<=[gt])i?b?)?",
    re.IGNORECASE,
)
_GIB_PER_TIB: Final = 1024
_DOLLARS: Final = re.compile(
    r"\$? ?(?P<usd>(?:[0-9]{1,3}(?:,[0-9]{3}){1,2}|[0-9]{1,9})(?:\.[0-9]{1,6})?)(?: ?USD)?"
)
_BOOLEANS: Final = {
    **dict.fromkeys(("yes", "true", "on", "1"), True),
    **dict.fromkeys(("no", "false", "off", "0"), False),
}

_MOUNT: Final = re.compile(
    r"(?:gs://)?(?P<bucket>[a-z0-9][a-z0-9_-]{1,61}[a-z0-9])/?"
    r"(?::/?(?P<path>[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*)/?)?"
)

# No valid value has more; this keeps the time for hostile input linear.
_MOST_ITEMS: Final = 256
_MOST_HCL: Final = 32 * 1024

_NO_NAMES: Final[Mapping[str, enum.StrEnum]] = {}


class InvalidValueError(ValueError):
    """A value that breaks the rule of its setting.

    `what`: What is wrong, as the predicate of the value: "is not a whole number". `why`: The rule.
    `fix`: A valid value; "" if the setting's example is the best advice.
    """

    def __init__(self, what: str, why: str = "", *, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix


def whole_number(text: str) -> int:
    """A whole number in decimal digits."""
    if not re.fullmatch(r"[+-]?[0-9]{1,15}", text):
        plain = re.sub(r"\.0+$", "", text)
        is_long = re.fullmatch(r"[+-]?[0-9]+", text)
        raise InvalidValueError(
            "is out of all bounds" if is_long else "is not a whole number",
            "digits only, without separators or units",
            fix=str(int(plain)) if plain.isdecimal() and not is_long else "",
        )
    return int(text)


def rank(text: str) -> int | None:
    """The rank of a machine in a job; None for `all`."""
    return None if text == "all" else whole_number(text)


def amount(text: str) -> float:
    """A number of US dollars: `100`, `7.50`, `$1,000`, `100 USD`."""
    found = _DOLLARS.fullmatch(text)
    # Of "1,000" alone nobody can tell whether it is a thousand or one.
    if not found or ("," in text and text[0].isdecimal() and text[-1].isdecimal()):
        raise InvalidValueError(
            "is not an amount in US dollars", "digits, with a point before cents: 100 or 7.50"
        )
    return float(found["usd"].replace(",", ""))


def gibibytes(text: str) -> int:
    """A size in GiB: a number alone, or with GB, GiB, G, Gi or the same of T (1024 GiB, also 1.5T).

    Google's own "GB" of disks are GiB, and gcloud's --boot-disk-size=2TB makes 2048 of them
    (gcloud reference, compute instances create, 2026-04).
    """
    found = _SIZE.fullmatch(text)
    if not found:
        raise InvalidValueError(
            "is not a size", "a whole number of GiB, or a number with GB or TB: 500, 500GB, 1.5TB"
        )
    if found["unit"].lower() != "t":
        return int(found["number"])
    whole, _, part = found["number"].partition(".")
    return -(-int(whole + part.ljust(3, "0")) * _GIB_PER_TIB // 1000)


def boolean(text: str) -> bool:
    """yes/no, true/false, on/off, 1/0 in any case; anything else is an error, never a no."""
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise InvalidValueError(
            "is neither yes nor no",
            "yes, true, on or 1 turn it on; no, false, off or 0 turn it off, in any case",
        ) from None


def duration(text: str, alone_from: int = 0) -> int:
    """A duration in seconds: `90s`, `10m`, `1h30m`, `7d`, `8 days`, `2w`.

    A number alone is seconds, from `alone_from` on: who writes 48 means hours, or minutes.
    """
    if re.fullmatch("[0-9]{1,9}", text):
        if 0 < int(text) < alone_from:
            raise InvalidValueError(
                f"has no unit: {text}h or {text}m?",
                f"a number alone is seconds, and at least {alone_from}",
                fix=f"<{text}h or {text}m>",
            )
        return int(text)
    spans = _SPAN.findall(text)
    if not spans or _SPAN.sub("", text):
        raise InvalidValueError(
            "is not a duration", "seconds, or numbers with s, m, h, d or w: 90s, 1h30m, 7d"
        )
    return sum(int(number) * _SECONDS_PER[unit[0]] for number, unit in spans)


def choice(
    kind: type[enum.StrEnum], other_names: Mapping[str, enum.StrEnum] = _NO_NAMES
) -> Callable[[str], enum.StrEnum]:
    """Make a parser for the values of an enum, in any case; other words suggest their member."""
    members = {member.value.lower(): member for member in kind}

    def parse(text: str) -> enum.StrEnum:
        word = text.lower()
        if word in members:
            return members[word]
        close = difflib.get_close_matches(word[:64], members, n=1)
        close += [member for member in members if word and member.startswith(word)]
        meant = other_names.get(word) or (members[close[0]] if close else None)
        raise InvalidValueError(
            "is not one of the choices",
            f"one of {', '.join(kind)}",
            fix=meant.value if meant else "",
        )

    return parse


def choices(
    kind: type[_Choice],
    one: str,
    every: str,
    other_names: Mapping[str, enum.StrEnum] = _NO_NAMES,
) -> Callable[[str], tuple[_Choice, ...]]:
    """Make a parser for comma-separated values of an enum.

    `one`: what one of them is called, such as "an online check". `every`: what all of them are
    called, such as "checks".
    """
    known = choice(kind, other_names)

    def parse(text: str) -> tuple[_Choice, ...]:
        words = comma_list(text)
        wrong: dict[str, str] = {}
        found = []
        for word in words:
            try:
                found.append(str(known(word)))
            except InvalidValueError as error:
                wrong[word] = error.fix
                found.append(error.fix)
        for word, fix in wrong.items():
            raise InvalidValueError(
                f"has {shorten(word)}, which is not {one}",
                (f"did you mean {fix}? " if fix else "") + f"The {every} are {', '.join(kind)}",
                fix=",".join(dict.fromkeys(found)) if all(found) else "",
            )
        return tuple(map(kind, found))

    return parse


def option(left: deque[str], is_valued: Callable[[str], bool]) -> tuple[str, str, bool]:
    """Take an option from the words of a command line: `--name value` or `--name=value`.

    Its name, its value ("" for none), and whether a = ties the two together.
    """
    name, equals, value = left.popleft().partition("=")
    if is_valued(name) and not equals and left and not left[0].startswith("-"):
        value = left.popleft()
    return name, value, bool(equals)


def comma_list(text: str) -> list[str]:
    """Comma-separated items; blanks around them and one trailing comma are allowed."""
    if text.count(",") > _MOST_ITEMS:
        raise InvalidValueError("has too many items", f"at most {_MOST_ITEMS}")
    items = [item.strip() for item in text.split(",")]
    if len(items) > 1 and not items[-1]:
        items.pop()
    if not all(items):
        raise InvalidValueError("has an empty item", "separate items with single commas")
    return items


def mapping(text: str) -> dict[str, str]:
    """A map in the HCL form `{ a = "b" }`, as JSON `{"a": "b"}`, or as `a=b,c=d`."""
    if not text.startswith("{"):
        return _pairs(comma_list(text))
    try:
        found = json.loads(
            text,
            parse_int=str,
            parse_float=str,
            parse_constant=str,
            object_pairs_hook=_without_duplicates,
        )
    except (json.JSONDecodeError, RecursionError):
        found = _hcl_object(text)
    return {key: _scalar(key, value) for key, value in found.items()}


def mounts(text: str) -> list[dict[str, str]]:
    """`<bucket>:</mount/path>,...` as bucket and path."""
    found = []
    for item in comma_list(text):
        bucket, _, path = item.removeprefix("gs://").partition(":")
        if not path.startswith("/") or not bucket or item.startswith("gs://"):
            raise InvalidValueError(
                f"has {shorten(item)}, which is not a bucket with a mount path",
                "<bucket>:</mount/path>, separated by commas; the bucket without gs://",
                fix=_mounted(text),
            )
        found.append({"bucket": bucket, "path": path})
    return found


def _mounted(text: str) -> str:
    """The same mounts with absolute paths; a bucket that has none gets one by its name."""
    found = [_MOUNT.fullmatch(item) for item in comma_list(text)]
    if not all(found):
        return ""
    mounts = [(it["bucket"], it["path"] or f"mnt/{it['bucket']}") for it in found if it]
    return ",".join(f"{bucket}:/{path}" for bucket, path in mounts)


def shares(text: str) -> list[dict[str, str]]:
    """`</mount/path>:<TIER>[:<GB>],...` as path, tier and size_gb."""
    found = []
    for item in comma_list(text):
        path, *rest = (part.strip() for part in item.split(":"))
        if not 1 <= len(rest) <= 2 or not all(rest):  # noqa: PLR2004 - the tier, then the size
            raise InvalidValueError(
                f"has {shorten(item)}, which is not a mount path with a tier",
                "</mount/path>:<TIER> or </mount/path>:<TIER>:<GB>, separated by commas",
            )
        found.append({"path": path, **dict(zip(("tier", "size_gb"), rest, strict=False))})
    return found


def pools(text: str, keys: Iterable[str], other_names: Mapping[str, str]) -> list[dict[str, str]]:
    """`name=a,vm_type=...;name=b,...` as one map per node pool; other tools' keys suggest ours."""
    known = tuple(keys)
    if text.count(";") > _MOST_ITEMS:
        raise InvalidValueError("has too many pools", f"at most {_MOST_ITEMS}")
    found = [_pairs(comma_list(item)) for item in text.rstrip("; ").split(";")]
    for key in (key for pool in found for key in pool if key not in known):
        close = difflib.get_close_matches(key.lower()[:64], known, n=1)
        meant = other_names.get(key.lower()) or next(iter(close), "")
        raise InvalidValueError(
            f"has the key {shorten(key)}, which node pools do not have",
            f"did you mean {meant}?" if meant else f"the keys are {', '.join(known)}",
        )
    return found


def unquoted(text: str) -> str:
    """Remove one matching pair of quotes around the whole text.

    If there is a quote inside, the outer two are not a pair (`"a"="b"`), unless they enclose a map.
    """
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":  # noqa: PLR2004 - two quotes
        return text
    inside = text[1:-1]
    return text if text[0] in inside and not inside.lstrip().startswith("{") else inside


def is_utf8(text: str) -> bool:
    """Whether the text is valid UTF-8; bytes of an environment may not be."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def shorten(text: str, limit: int = 80) -> str:
    """Quote a text for a message: with control characters escaped, and cut if it is long."""
    text = masking.mask_forms(text)  # before the cut, which would leave half of a token
    return repr(text if len(text) <= limit else f"{text[: limit - 3]}...")


def _pairs(items: list[str]) -> dict[str, str]:
    pairs = []
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals):
            # Not echoed: the item may contain a credential.
            raise InvalidValueError(
                "has an item that is not key=value", "key=value, separated by commas"
            )
        pairs.append((unquoted(key), unquoted(value)))
    return _without_duplicates(pairs)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidValueError("has the same key twice", "each key can have only one value")
    return found


def _scalar(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidValueError(
        f"has a value of {shorten(key)} that is not text", "the values of a map must be text"
    )


_NO_MAP: Final = 'one of { a = "b", c = "d" }, {"a": "b", "c": "d"}, or a=b,c=d'


def _hcl_object(text: str) -> dict[str, object]:
    if len(text) > _MOST_HCL:
        raise InvalidValueError(
            "is not a map in JSON",
            f"a map of more than {_MOST_HCL} characters is read as JSON only",
        )
    # Imported here: the grammar takes longer to load than everything else, and few runs need it.
    import hcl2  # noqa: PLC0415
    from hcl2.utils import SerializationOptions  # noqa: PLC0415

    options = SerializationOptions(with_comments=False, preserve_heredocs=False)
    try:
        document = hcl2.loads(f"map = {text}\n", serialization_options=options)
    except Exception:  # noqa: BLE001 - its parser and serialisers raise whatever they stumble over
        raise InvalidValueError("is not a map", _NO_MAP) from None
    found = document.pop("map")
    if document or not isinstance(found, dict):
        raise InvalidValueError("is not a map", _NO_MAP)
    return {_hcl_key(key): _hcl_value(key, value) for key, value in found.items()}


_HCL_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_HCL_ESCAPE: Final = re.compile(
    r'\\(?:(?P<letter>[nrt"\\])|u(?P<u>[0-9A-Fa-f]{4})|U(?P<U>[0-9A-Fa-f]{8}))|(?P<twice>[$%])(?P=twice)\{',
)


def _hcl_key(key: str) -> str:
    if key.startswith('"'):
        return _hcl_text(key)
    if not re.fullmatch(r"[\w-]+", key):
        raise InvalidValueError(
            "has an expression as a key", "keys must be words, or text in double quotes"
        )
    return key


def _hcl_value(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value.startswith('"'):
        raise InvalidValueError(
            f"has an expression as the value of {shorten(key)}",
            "in the HCL form, text must be in double quotes",
        )
    unescaped = value.replace("$${", "").replace("%%{", "")
    if "${" in unescaped or "%{" in unescaped:
        raise InvalidValueError(
            f"has a template as the value of {shorten(key)}",
            "in the HCL form, ${ begins a template, which is not supported here; write $${ for the"
            " characters themselves, or use the JSON form",
        )
    return _hcl_text(value)


def _hcl_text(quoted: str) -> str:
    """The characters that an HCL string literal stands for."""

    def plain(found: re.Match[str]) -> str:
        if found["letter"]:
            return _HCL_ESCAPES[found["letter"]]
        if found["twice"]:
            return found["twice"] + "{"
        point = int(found["u"] or found["U"], 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:  # noqa: PLR2004 - bounds of Unicode
            raise InvalidValueError(f"has the escape {found[0]}, which is not a valid character")
        return chr(point)

    return _HCL_ESCAPE.sub(plain, quoted[1:-1])
