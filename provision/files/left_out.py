"""What of the copied folder stays behind: keys, what tools make, and what its owner names.

Everybody who may log in on a VM, or read the state's bucket, can read what travels. So what is
nearly always a secret stays, unless the folder's `.aiinfraignore` takes it back with a `!`; that
file has the syntax of a `.gitignore` and can name more. Where there is none, the folder's
`.gitignore`s name more, and take nothing back: what git may see is not what others may see.
"""

from __future__ import annotations

import fnmatch
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

IGNORE_FILE: Final = ".aiinfraignore"
"""The file, at the top of the folder, that names what else stays behind."""

_USUAL: Final = (
    f"/{IGNORE_FILE}",
    *(".git", ".env*", "*.env", "env.list", "*.env.list"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.ppk", "*.jks"),
    *("id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*", "!*.pub"),
    # Below: where tools keep what they log in with, by their own documentation. Whole folders
    # where all in them is private; of others, such as .docker, the one file.
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", "**/.config/gcloud", "**/.config/gh"),
    *("credentials.db", "access_tokens.db", "legacy_credentials", ".boto", ".s3cfg", "rclone.conf"),
    *(".netrc", "_netrc", ".git-credentials", "**/.docker/config.json", ".vault-token"),
    *(".pypirc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".htpasswd", ".databrickscfg"),
    *("**/.cargo/credentials*", "**/.streamlit/secrets.toml", "kubeconfig", "*.kubeconfig"),
    *("kaggle.json", ".kaggle", "**/huggingface/token", "**/huggingface/stored_tokens"),
    *("**/.huggingface/token", ".*_history"),
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".terraform.d", ".terraformrc"),
    # Below: what tools make for one machine, and make again on another.
    *(".venv", "venv/", ".pixi", ".tox", ".nox", "node_modules", "__pycache__", ".DS_Store"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
)
_GITS: Final = ".gitignore"
_OF_AN_ENVIRONMENT: Final = ("pyvenv.cfg", "conda-meta")
"""What is at the top of Python's virtual environments and of conda's, whatever they are called."""

_LOOKED_AT: Final = 64 * 1024  # bytes; a key is smaller, and whatever is larger is not read twice

# Of PEM, of PuTTY, and of Java's two kinds of key stores.
_PRIVATE_KEY: Final = re.compile(
    rb"\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----"
    rb"|PuTTY-User-Key-File-\d|\xfe\xed\xfe\xed|\xce\xce\xce\xce"
)
# Of AWS, in whatever file; of npm and of pip's index, unless it is a variable that has it.
_SECRET_LINE: Final = re.compile(
    rb"^\s*aws_secret_access_key\s*[=:]\s*[\"']?[A-Za-z0-9/+]{40}\b"
    rb"|:_(?:authToken|auth|password)\s*=\s*[^\s$]"
    rb"|^\s*(?:extra-)?index-url\s*=\s*[\"']?https?://[^\s/:@]*:[^\s/:@$]+@",
    re.MULTILINE | re.IGNORECASE,
)
# Values of "type" in the JSON files in which Google's tools keep credentials: those that
# google-auth's load_credentials_from_file takes (2.x).
_GOOGLES: Final = {
    "service_account",
    "authorized_user",
    "external_account",
    "external_account_authorized_user",
    "impersonated_service_account",
    "gdch_service_account",
}
_SECRET_KEYS: Final = {"refresh_token", "client_secret"}
"""Keys by which any tool's JSON is one that it logs in with (OAuth 2.0, RFC 6749)."""


class LeftOut:
    """Decides what stays behind, and remembers it.

    `names`: What stays, in the order of the decisions; a folder ends with a slash. `by_git`: What
    stays as a `.gitignore` names it, likewise. `links`: Links that stay as they lead out of the
    folder.
    """

    def __init__(self, folder: Path, rules: Patterns, *, follows_git: bool) -> None:
        self._folder = folder
        self._rules = rules
        self._follows_git = follows_git
        self._gits: dict[str, Patterns] = {}
        self.names: list[str] = []
        self.by_git: list[str] = []
        self.links: list[str] = []

    @classmethod
    def of(cls, folder: Path) -> LeftOut:
        """By the usual rules and the folder's own."""
        file = folder / IGNORE_FILE
        follows_git = not file.exists()
        try:
            own = [] if follows_git else file.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"{file} can't be read",
                code=Code.INVALID_FOLDER,
                why=str(error),
                fix="one pattern a line, as in a .gitignore, in UTF-8",
            ) from error
        return cls(folder, Patterns([*_USUAL, *own]), follows_git=follows_git)

    def takes(self, path: Path, name: str, size: int, *, is_folder: bool) -> bool:
        """Whether something stays behind; `size` is 0 for whatever has no content of its own."""
        stays = self._rules.keep_back(name, is_folder=is_folder)
        if stays is None:
            stays = _is_environment(path) if is_folder else 0 < size <= _LOOKED_AT and _is_key(path)
        by_git = not stays and self._follows_git and self._git_ignores(name, is_folder=is_folder)
        if stays or by_git:
            (self.by_git if by_git else self.names).append(f"{name}/" if is_folder else name)
        return stays or by_git

    def why(self, name: str) -> tuple[str, str]:
        """Why a path stays behind, and what takes it along; empty if nothing here keeps it."""
        ways = {name[:end] for end, char in enumerate(f"{name}/") if char == "/"}
        for it in self.by_git:
            if it.removesuffix("/") in ways:
                own = f"an {IGNORE_FILE}, even an empty one, takes the place of {_GITS}"
                return f"{_GITS} leaves {it} out", own
        for it in self.links:
            if it in ways:
                return f"{it} is a link that leads out of the folder", "copy what it leads to"
        for it in self.names:
            if it.removesuffix("/") in ways:
                bare = it.removesuffix("/")
                line = literal(bare, is_folder=bare != it)
                rules = f"{IGNORE_FILE}, or a rule for all folders, leaves {it} out"
                instead = f", which takes the place of {_GITS}" if any(self._gits.values()) else ""
                return rules, f"take it along, by this line in {IGNORE_FILE}{instead}: !{line}"
        return "", ""

    def line(self, name: str, *, is_folder: bool = False) -> str:
        """What leaves something out, for the end of a fix."""
        is_gits = any(self._gits.values())
        file = f"{_GITS}, or in an {IGNORE_FILE} in its place" if is_gits else IGNORE_FILE
        return f"leave it out, by this line in {file}: {literal(name, is_folder=is_folder)}"

    def _git_ignores(self, name: str, *, is_folder: bool) -> bool:
        """As git decides: by the nearest file that says something of it."""
        above = name
        while above:
            above = above.rpartition("/")[0]
            if above not in self._gits:
                self._gits[above] = _read(self._folder / above / _GITS)
            own = name[len(above) :].removeprefix("/")
            stays = self._gits[above].keep_back(own, is_folder=is_folder)
            if stays is not None:
                return stays
        return False


def _read(file: Path) -> Patterns:
    """The patterns of a file, in any encoding; none if there is none or it can't be read."""
    try:
        text = file.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError:
        text = ""
    return Patterns(text.split("\n"))


def _is_environment(folder: Path) -> bool:
    try:
        return any((folder / it).exists() for it in _OF_AN_ENVIRONMENT)
    except OSError:
        return False  # whoever packs it says so


def _is_key(path: Path) -> bool:
    try:
        content = path.read_bytes()
    except OSError:
        return False  # whoever packs it says so
    if _PRIVATE_KEY.match(content) or _SECRET_LINE.search(content):
        return True
    if not content.lstrip().startswith(b"{"):
        return False
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        return False
    # The type may be a list, as in a JSON schema.
    if str(document.get("type")) in _GOOGLES:
        return True
    # Google's file of an OAuth client has all below "installed" or "web".
    below = [it for it in document.values() if isinstance(it, dict)]
    return any(isinstance(it.get(key), str) for it in (document, *below) for key in _SECRET_KEYS)


_ANY: Final = "**"  # stands for any number of parts of a path


@dataclass(frozen=True)
class _Pattern:
    parts: Sequence[str]
    stays: bool
    only_folders: bool


class Patterns:
    """The patterns of one `.gitignore`, or of several that count as one, matched as git does.

    Each path is matched alone. Whoever walks a tree asks for each folder, and does not enter one
    that stays. So a pattern says nothing of what is below what it matches: else `*`, `!*/`, `!*.py`
    would keep every program back.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        found = (_parsed(line) for line in lines if not line.startswith("#"))
        self._last_first = [it for it in found if it.parts][::-1]
        # Most names end like no pattern: one look at them costs a tenth of one at each.
        ends = [fnmatch.translate(it.parts[-1]) for it in self._last_first]
        self._ends = re.compile("|".join(ends))

    def __bool__(self) -> bool:
        return bool(self._last_first)

    def keep_back(self, name: str, *, is_folder: bool) -> bool | None:
        """Whether something stays behind, by the last pattern that matches; None if none does."""
        names = name.split("/")
        if not self._ends.match(names[-1]):
            return None
        for it in self._last_first:
            if (is_folder or not it.only_folders) and _match(it.parts, names):
                return it.stays
        return None


def literal(name: str, *, is_folder: bool) -> str:
    """The pattern that matches this path and no other."""
    escaped = re.sub(r"([\\*?\[]| $)", r"\\\1", name)
    printable = "".join(char if char.isprintable() else "?" for char in escaped)
    return f"/{printable}{'/' if is_folder else ''}"


def _parsed(line: str) -> _Pattern:
    text = re.sub(r"(?<!\\) +$", "", line.removesuffix("\r"))
    named = text.removeprefix("!")
    bare = named.removesuffix("/")
    # With a slash in it, a pattern is a path from here; without, a name anywhere below.
    parts = bare.removeprefix("/").split("/") if "/" in bare else [_ANY, bare] if bare else []
    return _Pattern([_part(it) for it in parts], stays=named == text, only_folders=bare != named)


def _part(text: str) -> str:
    """A part as `fnmatch` reads it, which knows no backslash, and `[!` alone as a negation."""
    plain = re.sub(r"\\(.)", lambda it: f"[{it[1]}]" if it[1] in "*?[" else it[1], text)
    return _ANY if re.fullmatch(r"\*\*+", text) else plain.replace("[^", "[!")


def _match(parts: Sequence[str], names: Sequence[str]) -> bool:
    if not parts or not names:
        return not parts and not names
    if parts[0] != _ANY:
        return fnmatch.fnmatchcase(names[0], parts[0]) and _match(parts[1:], names[1:])
    # At the end it is whatever is below; elsewhere it may be nothing, too.
    return len(parts) == 1 or any(_match(parts[1:], names[it:]) for it in range(len(names)))
