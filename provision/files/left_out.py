"""What of the copied folder stays behind: histories, keys, and what its owner names.

Everybody who may log in on a VM, or read the state's bucket, can read what travels. So what is
nearly always a secret stays, unless the folder's `.aiinfraignore` takes it back with a `!`; that
file has the syntax of a `.gitignore` and can name more.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from pathspec import GitIgnoreSpec

IGNORE_FILE: Final = ".aiinfraignore"
"""The file, at the top of the folder, that names what else stays behind."""

_USUAL: Final = (
    f"/{IGNORE_FILE}",
    *(".git", ".env*", "*.pem", "*.key", "*.p12", "*.pfx"),
    *("id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*", "!*.pub"),
    # Below: where tools keep what they log in with, by their own documentation. Whole folders
    # where all in them is private; of others, such as .docker, the one file.
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", "**/.config/gcloud", "**/.config/gh"),
    *("credentials.db", "access_tokens.db", "legacy_credentials", ".boto", ".s3cfg", "rclone.conf"),
    *(".netrc", "_netrc", ".git-credentials", "**/.docker/config.json", ".vault-token"),
    *(".pypirc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".htpasswd", ".databrickscfg"),
    *("**/.cargo/credentials*", "**/.streamlit/secrets.toml", "kubeconfig", "*.kubeconfig"),
    *("kaggle.json", ".kaggle", "**/huggingface/token", "**/huggingface/stored_tokens"),
    *("**/.huggingface/token", "*.tfstate", "*.tfstate.*", ".*_history"),
)
_LOOKED_AT: Final = 64 * 1024
"""Bytes; a key is smaller, and whatever is larger is not read twice."""

_PRIVATE_KEY: Final = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----")
# Of AWS, in whatever file; of npm, unless it is the name of a variable that has it.
_SECRET_LINE: Final = re.compile(
    rb"^\s*aws_secret_access_key\s*[=:]\s*[\"']?[A-Za-z0-9/+]{40}\b"
    rb"|:_(?:authToken|auth|password)\s*=\s*[^\s$]",
    re.MULTILINE | re.IGNORECASE,
)
# Values of "type" in the JSON files in which Google's tools keep credentials.
_GOOGLES: Final = {"service_account", "authorized_user"}


class LeftOut:
    """Decides what stays behind, and remembers it.

    Attributes:
        names: What stays, in the order of the decisions; a folder ends with a slash.
    """

    def __init__(self, rules: GitIgnoreSpec) -> None:
        self._rules = rules
        self.names: list[str] = []

    @classmethod
    def of(cls, folder: Path) -> LeftOut:
        """By the usual rules and the folder's own.

        Raises:
            SettingsError: The folder's own can't be read.
        """
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - most runs copy nothing

        file = folder / IGNORE_FILE
        try:
            own = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            return cls(GitIgnoreSpec.from_lines([*_USUAL, *own]))
        except (OSError, ValueError, re.error) as error:
            raise SettingsError(
                f"{file} can't be read",
                code=Code.INVALID_FOLDER,
                why=str(error),
                fix="one pattern a line, as in a .gitignore, in UTF-8",
            ) from error

    def takes(self, path: Path, name: str, size: int, *, is_folder: bool) -> bool:
        """Whether something stays behind.

        Args:
            path: Where it is.
            name: Its path below the folder.
            size: Bytes, of a file; 0 for whatever has no content of its own.
            is_folder: Whether it is a folder, which stays with all that is in it.
        """
        shown = f"{name}/" if is_folder else name
        stays = self._rules.check_file(shown).include
        if stays is None:
            stays = not is_folder and 0 < size <= _LOOKED_AT and _is_key(path)
        if stays:
            self.names.append(shown)
        return bool(stays)


def _is_key(path: Path) -> bool:
    try:
        content = path.read_bytes()
    except OSError:
        return False  # whoever packs it says so
    if _PRIVATE_KEY.match(content) or _SECRET_LINE.search(content):
        return True
    if not content.lstrip().startswith(b"{") or b'"type"' not in content:
        return False
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        return False
    # The type may be a list, as in a JSON schema.
    return isinstance(document, dict) and str(document.get("type")) in _GOOGLES
