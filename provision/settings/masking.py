"""Masking what looks like a credential, before anything is printed, logged or stored.

What counts: keys that say so (token, secret, password, key and their kin), the forms of well-known
tokens and keys, headers that carry them, and the user part of URLs. In what users wrote, names and
forms are searched (`mask`); in words of others, of Terraform and Google, only the forms
(`mask_forms`) and what was found in the settings (`Veil`), as a "token: expired" is worth reading.
A guess by names can miss one, so it is not the only protection: commands and metadata, where people
do put credentials, are not shown at all, but as a mask and a fingerprint (`seal`, ADR 44).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MASK: Final = "***"
"""What replaces a credential."""

PRIVATE: Final = frozenset({"job_command", "job_env", "metadata", "notify", "startup_command"})
"""The settings whose values are in nothing that is shown or kept; of a map the keys are."""
_SECRET: Final = frozenset({"notify"})
"""Those of them that are credentials as a whole: not even a fingerprint is left."""

_SEALED: Final = re.compile(r"\*\*\*(?: \([0-9a-f]{4}\))?")
_TELLING: Final = re.compile(
    r"token(?!iz)|secret|passw(?:or)?d|_pwd|passphrase|credential", re.IGNORECASE
)
# "key" as a word or at the end of a word: api_key and ApiKey2 match, key1 and keyboard do not.
_KEY: Final = re.compile(
    r"(?:^|[^A-Za-z0-9])keys?(?:$|[^A-Za-z0-9])|[A-Za-z0-9]keys?\d*(?:$|[^A-Za-z0-9])",
    re.IGNORECASE,
)
# Of each match the group "kept" stays, and the rest is hidden.
_URL_USER: Final = re.compile(r"(?P<kept>[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^/?#\s'\"@]{1,4096}(?=@)")
_AUTHORIZATION: Final = re.compile(r"(?P<kept>\b(?:bearer|basic)\s+)[^\s'\"]+", re.IGNORECASE)

# By whom: Hugging Face; GitHub, both kinds; Google, API keys and access tokens; OpenAI, Anthropic
# and others; GitLab; Slack; AWS; JSON web tokens. The lengths are below the real ones, and above
# those of words that begin alike, such as the package hf_transfer.
_FORMS: Final = re.compile(
    r"""(?P<kept>)(?:
        hf_[A-Za-z0-9]{16,}
      | gh[opsur]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{16,}
      | AIza[\w-]{20,} | ya29\.[\w.-]{10,}
      | (?<![A-Za-z0-9])sk-(?=[A-Za-z_-]{0,64}[0-9])[\w-]{16,}
      | glpat-[\w-]{16,}
      | xox[a-z]-[A-Za-z0-9-]{8,}
      | (?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/-]{8,}
      | A[KS]IA[0-9A-Z]{16}
      | eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*
    )""",
    re.VERBOSE | re.ASCII,
)
# Where programs take a credential as a bare word. By whom: curl and its kin (not a container's
# user, of numbers); Weights & Biases, ngrok, aws; clients of MySQL; sshpass, logins, Redis.
_INLINE: Final = re.compile(
    r"""(?P<kept>
        (?<!\S)(?:-[A-Za-z]{0,8}[uU]|--(?:proxy-)?user)[\s=]{0,8}(?P<quote>["'])?(?!\d+:\d+\b)
          [\w.@%+$\\{}-]{1,256}:
      | \b(?:wandb\s{1,8}login|authtoken|aws_secret_access_key)\s{1,8}(?:-\S{1,64}\s{1,8}){0,4}
      | \b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\n|;&]{0,200}?\s-p
      | \b(?:sshpass|(?:docker|podman|az)\s{1,8}login|redis-cli)\b[^\n|;&]{0,200}?\s-[pa]\s{1,8}
    )
    (?(quote)[^"'\n]{1,4096}|(?:"[^"\n]{1,4096}|'[^'\n]{1,4096}|[^\s'"|;&]+))""",
    re.VERBOSE,
)
_PEM_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{1,64}-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{1,64}-----")
_URL_PASSWORD: Final = re.compile(
    r"(?P<kept>[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^/?#\s'\":@]{0,4096}:[^/?#\s'\"@]{1,4096}(?=@)"
)
# A scheme that is known stays; of an unknown one nobody can tell whether it is the credential.
_HEADER: Final = re.compile(
    r"""(?P<kept>\b(?:proxy-)?authorization["']?\s{0,8}[:=]\s{0,8}["']?
          (?:(?:bearer|basic|digest|token|negotiate)\s{1,8})?+)
        [^\s'"\\,;}*][^\s'"\\]*(?:[ ][^\s'"\\]+)?""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER: Final = re.compile(r"(?P<kept>\bbearer\s{1,8})[\w.~+/=-]{16,}", re.IGNORECASE)
_SHORTEST: Final = 8
"""Characters of a value that is hidden wherever it turns up: a shorter one is part of words."""

_LEAST: Final = 16  # characters of what is called a credential where that is said to somebody
_RANDOM: Final = re.compile(r"(?![$`~./<({*]|[a-z]{2,8}://|projects/)(?:\D*\d){3}")
"""Not the variable or the file that has it, and with as many digits as no name has."""

# A name and "=" or ":", or an option and blanks; then a quoted or a bare value. Lengths are limited
# so that hostile input takes only linear time.
_NAME: Final = re.compile(
    r"""(?<![\w.-])(?:-{0,2}["']?([A-Za-z_][\w.-]{0,127})["']?\s{0,8}[=:]\s{0,8}
                  |--?([A-Za-z][\w.-]{0,127})\s{1,8})""",
    re.VERBOSE,
)
_VALUE: Final = re.compile(r"""(["'])(?:\\.|(?!\1)[^\\])*\1?|[^\s,;}&|"']+""", re.DOTALL)


def is_telling(key: str) -> bool:
    """Whether the name of a key suggests that its value is a credential."""
    return _TELLING.search(key) is not None or _KEY.search(key) is not None


def mask(text: str) -> str:
    """The text (a command, a message, a URL) without the parts that look like credentials."""
    return _mask(text, [])


def _mask(text: str, found: list[str]) -> str:
    """The masked text; what is hidden is added to what was found."""
    text = _mask_forms(text, found)
    text = _cover(_URL_USER, text, found)
    text = _cover(_AUTHORIZATION, text, found)
    return _mask_assignments(text, found)


def _cover(pattern: re.Pattern[str], text: str, found: list[str]) -> str:
    def masked(match: re.Match[str]) -> str:
        found.append(match[0].removeprefix(match["kept"]).strip("\"'"))
        return match["kept"] + MASK

    return pattern.sub(masked, text)


def credentials(text: str) -> list[str]:
    """What in a text is probably a credential itself."""
    found: list[str] = []
    _mask(text, found)
    parts = [part for whole in found for part in whole.split(MASK)]
    return [it for it in parts if len(it) >= _LEAST and _RANDOM.match(it)]


def mask_setting(field: str, text: str) -> str:
    """The text of a setting's value for a message: all of it is hidden where it is private."""
    return MASK if field in PRIVATE else mask(text)


def seal(value: Any) -> Any:
    """What stands for a private value: a mask, and what tells it from another value.

    The fingerprint is that of the masked text: what looks like a credential is in no fingerprint.
    It is short, so that many a guess fits it. What is sealed stays as it is, and so does nothing.
    """
    match value:
        case str() if value and not _SEALED.fullmatch(value):
            known = mask(value).encode("utf-8", "surrogatepass")
            return f"{MASK} ({hashlib.sha256(known).hexdigest()[:4]})"
        case dict():
            return {key: MASK if is_telling(key) else seal(one) for key, one in value.items()}
        case _:
            return value


def seal_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, the private ones sealed."""
    return {
        name: (MASK if value and name.lower() in _SECRET else seal(value))
        if name.lower() in PRIVATE
        else value
        for name, value in values.items()
    }


def mask_forms(text: str) -> str:
    """The text without what has the form of a credential, whatever stands before it.

    For words of others: what is no credential is left as it is.
    """
    return _mask_forms(text, [])


def _mask_forms(text: str, found: list[str]) -> str:
    if "-----BEGIN " in text:
        text = _mask_pem(text)
    for pattern in (_FORMS, _URL_PASSWORD, _HEADER, _BEARER, _INLINE):
        text = _cover(pattern, text, found)
    return text


def mask_tree(value: Any, by: Callable[[str], str] = mask_forms) -> Any:
    """A document as JSON has it, every text in it masked, keys too."""
    match value:
        case str():
            return by(value)
        case dict():
            return {mask_tree(key, by): mask_tree(inner, by) for key, inner in value.items()}
        case list() | tuple():
            return [mask_tree(inner, by) for inner in value]
        case _:
            return value


class Veil:
    """Hides credentials in what others say: their forms, and those that the settings have."""

    def __init__(self) -> None:
        self._known: re.Pattern[str] | None = None

    def learn(self, texts: Iterable[str], maps: Iterable[Mapping[str, str]]) -> None:
        """Hide what `mask` hides in these texts from now on, and them as a whole.

        A single word is not hidden as a whole, unless its key tells: others say it, too.
        """
        found: list[str] = []
        for text in texts:
            _mask(text, found)
            found += [text] if " " in text else []
        for key, value in (item for values in maps for item in values.items()):
            if is_telling(key):
                found.append(value)
            else:
                _mask(value, found)
                found += [] if value.isalpha() else [value]
        parts = {part for whole in found for part in whole.split(MASK)}
        told = sorted({it for it in parts if len(it) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, told))) if told else None

    def __call__(self, text: str) -> str:
        """The text without credentials."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return mask_forms(text)


class Lines:
    """A stream of text behind a veil, line by line, as a credential may come in two pieces."""

    def __init__(self, veil: Veil) -> None:
        self._veil = veil
        self._rest = ""
        self._in_pem = False

    def feed(self, text: str) -> str:
        """The lines that are complete now."""
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        return "".join(map(self._line, (whole + newline).splitlines(keepends=True)))

    def end(self) -> str:
        """What is left."""
        rest, self._rest = self._rest, ""
        return self._line(rest)

    def _line(self, line: str) -> str:
        if self._in_pem:
            end = _PEM_END.search(line)
            self._in_pem = end is None
            return self._veil(line[end.end() :]) if end else ""
        begins = [found.end() for found in _PEM_BEGIN.finditer(line)]
        self._in_pem = bool(begins) and _PEM_END.search(line, begins[-1]) is None
        masked = self._veil(line)
        return masked + "\n" if self._in_pem else masked


def _mask_pem(text: str) -> str:
    kept, done = [], 0
    for begin in _PEM_BEGIN.finditer(text):
        if begin.start() < done:
            continue
        end = _PEM_END.search(text, begin.end())
        kept += [text[done : begin.start()], MASK]
        done = end.end() if end else len(text)
    return "".join(kept) + text[done:]


def _mask_assignments(text: str, found: list[str]) -> str:
    kept, done = [], 0
    for name in _NAME.finditer(text):
        if name.start() < done or not is_telling(name[1] or name[2]):
            continue
        value = _VALUE.match(text, name.end())
        if value is None:
            continue
        quote = value[1] or ""
        found.append(value[0].strip(quote) if quote else value[0])
        kept += [text[done : name.end()], quote, MASK, quote]
        done = value.end()
    return "".join(kept) + text[done:]
