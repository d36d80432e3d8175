"""The users' own labels, VM metadata, variables of jobs, and the secrets that these can get."""

# No deferred annotations: pydantic reads them as it makes the class.

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
)

from provision.catalogue import limits
from provision.settings import masking, parsing
from provision.settings.parsing import InvalidValueError, shorten
from provision.settings.values import ProjectId

RESERVED_METADATA: Final[Mapping[str, str]] = {
    "startup-script": "use STARTUP_COMMAND",
    "startup-script-url": "use STARTUP_COMMAND, or a script in the copied folder",
    "enable-guest-attributes": "remove it: it is always on, as VMs report their status with it",
    "proxy-mode": "use ENABLE_NOTEBOOK",
}
"""Metadata key that the tool itself uses -> what to do instead."""

OWN_METADATA: Final = "aiinfra-"
"""The prefix of the keys with which the tool configures the start-up of the VMs."""

_KIB: Final = 1024


def _metadata(values: Mapping[str, str]) -> None:
    for key in values:
        instead = RESERVED_METADATA.get(key.lower())
        if key.lower().startswith(OWN_METADATA):
            instead = (
                f"choose another name: keys with the prefix {OWN_METADATA} configure the start-up"
            )
        if instead:
            raise InvalidValueError(
                f"has the key {shorten(key)}, which this tool uses itself", instead
            )
        if not (re.fullmatch(r"[A-Za-z0-9_-]+", key) and len(key) <= limits.METADATA_KEY):
            raise InvalidValueError(
                f"has the key {shorten(key)}",
                f"1 to {limits.METADATA_KEY} letters, digits, hyphens and underscores",
            )
    if not all(map(parsing.is_utf8, values.values())):
        raise InvalidValueError("has a value that is not UTF-8 text", "values must be UTF-8 text")
    size = sum(len(value.encode()) for value in values.values())
    if size > limits.USERS_METADATA_BYTES:
        raise InvalidValueError(
            f"has {size} bytes of values",
            f"at most {limits.USERS_METADATA_BYTES // _KIB} KiB ({limits.USERS_METADATA_BYTES}"
            f" bytes): Google takes {limits.METADATA_BYTES // _KIB} KiB for a VM, and the tool"
            " needs the rest; put what is long into a file, and copy its folder to the VMs with"
            " --copy",
        )


CLUSTER_LABEL: Final = "aiinfra-cluster"
"""The label that the tool adds to all its resources."""

_USER_LABELS: Final = 62  # of Google's 64: one is the tool's, one the provider's


def _labels(values: Mapping[str, str]) -> None:
    if len(values) > _USER_LABELS:
        raise InvalidValueError(
            f"has {len(values)} labels",
            f"at most {_USER_LABELS}; the others of Google's 64 are needed by the tool",
        )
    for key, value in values.items():
        if key == CLUSTER_LABEL:
            raise InvalidValueError(
                f"has the key {shorten(key)}", "this tool sets that label to the cluster's ID"
            )
        if not (_is_label(key) and key[:1].isalpha()):
            raise InvalidValueError(
                f"has the key {shorten(key)}",
                "1 to 63 lower-case letters, digits, _ and -, with a letter first",
                fix=_fixed(values),
            )
        if value and not _is_label(value):
            raise InvalidValueError(
                f"has the value {shorten(value)} of {key}",
                "at most 63 lower-case letters, digits, _ and -",
                fix=_fixed(values),
            )


def _fixed(values: Mapping[str, str]) -> str:
    """The same labels in letters that Google takes; "" where that makes two of them one."""
    # What is hidden as it was written would be seen in small letters.
    if any(masking.mask(it) != it for it in (*values, *values.values())):
        return ""
    fixed = {_as_label(key).lstrip("-_0123456789"): _as_label(it) for key, it in values.items()}
    is_whole = len(fixed) == len(values) and all(fixed) and CLUSTER_LABEL not in fixed
    return ",".join(f"{key}={it}" for key, it in fixed.items()) if is_whole else ""


def _as_label(text: str) -> str:
    return re.sub("[^a-z0-9_-]+", "-", text[:500].lower()).strip("-")[:63].rstrip("-")


def _is_label(text: str) -> bool:
    return 1 <= len(text) <= 63 and all(  # noqa: PLR2004 - Google's limit
        letter in "_-" or (letter.isalnum() and letter == letter.lower()) for letter in text
    )


def _environment(values: Mapping[str, str]) -> None:
    for name, value in values.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise InvalidValueError(
                f"has the name {shorten(name)}", "letters, digits and _, and no digit first"
            )
        if "\0" in value or not parsing.is_utf8(value):
            raise InvalidValueError("has a value that is no text", "text in UTF-8")


def _frozen(
    check: Callable[[Mapping[str, str]], None],
) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    """A check that hands on what it has looked at, and that nobody can change any more."""

    def checked(values: Mapping[str, str]) -> Mapping[str, str]:
        check(values)
        return MappingProxyType(values)

    return checked


_Pairs = Annotated[
    Mapping[str, str],
    BeforeValidator(parsing.mapping),
    PlainSerializer(dict, return_type=dict[str, str]),
]
Metadata = Annotated[_Pairs, AfterValidator(_frozen(_metadata))]
Environment = Annotated[_Pairs, AfterValidator(_frozen(_environment))]
Labels = Annotated[_Pairs, AfterValidator(_frozen(_labels))]

LATEST: Final = "latest"
"""The version that is the newest whenever a VM starts."""

_REFERS: Final = "NAME=projects/<project>/secrets/<secret>, or with :<version> behind it"
_THEIR_NAME: Final = "[A-Za-z0-9_-]{1,255}"
_VERSION: Final = "latest|[1-9][0-9]{0,9}"
_REFERENCE: Final = re.compile(
    rf"projects/(?P<project>[^/]+)/secrets/(?P<secret>{_THEIR_NAME})"
    rf"(?:(?::|/versions/)(?P<version>{_VERSION}))?"
)
# What a shell or its programs rest on is no place for a secret.
_HELD: Final = re.compile(
    r"PATH|HOME|IFS|SHELL|BASH_ENV|ENV|LD_.*|PYTHON(PATH|HOME)|.*_PROXY", re.IGNORECASE
)


def _secrets_variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name) or _HELD.fullmatch(name):
        raise InvalidValueError(
            f"has the name {shorten(name)}",
            "a variable's: letters, digits and underscores, and none that the shell rests on",
        )
    return name


class Secret(BaseModel):
    """A variable of the command's environment, and the secret that it gets."""

    # The settings' own validator has the rules of this one: few need one that reads it alone.
    model_config = ConfigDict(frozen=True, defer_build=True)

    name: Annotated[str, AfterValidator(_secrets_variable)]
    project: ProjectId
    secret: Annotated[str, Field(pattern=f"^{_THEIR_NAME}$")]  # its name there
    version: Annotated[str, Field(pattern=f"^({_VERSION})$")] = LATEST  # a number, or `LATEST`

    @property
    def path(self) -> str:
        """The secret's path in Secret Manager."""
        return f"projects/{self.project}/secrets/{self.secret}"

    @property
    def resource(self) -> str:
        """The version's path there."""
        return f"{self.path}/versions/{self.version}"


def secret_of(name: str, reference: str, project: str) -> Secret:
    """The secret that a variable gets; one of this project may be named without it.

    `reference`: "" for a secret of the variable's own name.

    Raises:
        ValueError: It names none, or no variable.
    """
    text = reference or name
    found = _referred(name, text if "/" in text else f"projects/{project}/secrets/{text}")
    return Secret.model_validate(found)


def _parsed(text: str) -> list[dict[str, str]]:
    found = []
    for item in parsing.comma_list(text):
        name, equals, reference = (part.strip() for part in item.partition("="))
        found.append(_referred(name, reference if equals else ""))
    return found


def _referred(name: str, reference: str) -> dict[str, str]:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        # Not echoed: it may be the secret itself.
        raise InvalidValueError(
            "has an item that names no secret", f"{_REFERS}; separated by commas"
        )
    _secrets_variable(name)
    return {"name": name, **{k: v for k, v in match.groupdict().items() if v}}


def _together(secrets: tuple[Secret, ...]) -> tuple[Secret, ...]:
    names = [secret.name for secret in secrets]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidValueError(f"has the name {shorten(twice[0])} twice", "one secret each")
    paths = {secret.path for secret in secrets}
    if len(paths) > limits.SECRETS:
        raise InvalidValueError(
            f"has {len(paths)} secrets",
            f"at most {limits.SECRETS}: Google takes no more conditions on one role of an account",
        )
    return secrets


Secrets = Annotated[tuple[Secret, ...], BeforeValidator(_parsed), AfterValidator(_together)]
