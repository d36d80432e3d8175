"""What the provider refuses of a configuration before anything is planned.

The rules and their order are those of HashiCorp's plugin SDK, on which the provider is built: per
field, combinations first, then whether it may and must be there, then its values. A value that is
not known yet passes. Terraform itself has checked names, types and the numbers of blocks before.
"""

import base64
import binascii
import datetime as dt
import functools
import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Final

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.schema import Field
from rehearsal.provider.values import is_known

Path = tuple[str | int, ...]  # from the top: names of attributes and blocks, and indices of lists


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or only worth a warning."""

    summary: str  # what is wrong, in one line
    detail: str = ""  # more of it, or ""
    path: Path = ()  # where; empty for the whole block
    warning: bool = False  # whether it stops nothing


def validate(block: Mapping[str, Field], config: Mapping[str, Any]) -> list[Finding]:
    """All that is wrong with a configuration."""
    return list(_Validation(config).block(block, config, (), ()))


class _Validation:
    """One walk over one configuration, which the rules on combinations see whole."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def block(
        self, block: Mapping[str, Field], value: Mapping[str, Any], key: Path, path: Path
    ) -> Iterator[Finding]:
        """Findings of one block; a path goes as far as Terraform can point: not into a set."""
        for name, field in block.items():
            yield from self._field(field, value.get(name), (*key, name), (*path, name))

    def _field(self, field: Field, value: Any, key: Path, path: Path) -> Iterator[Finding]:
        if broken := self._combination(field, key):
            yield Finding("Invalid combination of arguments", broken, path)
        elif not _is_set(value):
            if "r" in field.flags and not field.repeated:
                text = f'The argument "{_dotted(key)}" is required, but no definition was found.'
                yield Finding("Missing required argument", text, path)
        elif not field.configurable:
            text = (
                f'Can\'t configure a value for "{_dotted(key)}": its value will be decided '
                "automatically based on the result of applying this configuration."
            )
            yield Finding("Value for unconfigurable attribute", text, path)
        else:
            yield from self._configured(field, value, key, path)

    def _configured(self, field: Field, value: Any, key: Path, path: Path) -> Iterator[Finding]:
        if field.deprecated:
            yield Finding("Argument is deprecated", _dotted(key), path, warning=True)
        if missing := self._missing_companions(field, key):
            yield Finding("Missing required argument", missing, path)
        elif conflict := self._conflict(field, key) if is_known(value) else "":
            yield Finding("Conflicting configuration arguments", conflict, path)
        elif isinstance(value, list):
            yield from self._elements(field, value, key, path)
        elif field.nesting and isinstance(value, Mapping):
            yield from self.block(field.block, value, key, path)
        elif value is not UNKNOWN:
            yield from _value(field, value, key, path)

    def _elements(
        self, field: Field, values: Sequence[Any], key: Path, path: Path
    ) -> Iterator[Finding]:
        # A dynamic block that is not known yet may still become another number of blocks.
        if is_known(values):
            yield from _count(field, len(values), key, path)
        for index, value in enumerate(values):
            if field.nesting and isinstance(value, Mapping):
                found = self.block(field.block, value, (*key, index), (*path, index))
                yield from found if field.nesting == "list" else _at(path, found)

    def _combination(self, field: Field, key: Path) -> str:
        if field.exactly_one_of:
            paths = sorted({*field.exactly_one_of, _dotted(key)})
            there = [each for each in paths if self._is_configured(each)]
            quoted = f"`{','.join(paths)}`"
            if not there and not any(self._get(each) is UNKNOWN for each in paths):
                return f'"{_dotted(key)}": one of {quoted} must be specified'
            if len(there) > 1:
                return (
                    f'"{_dotted(key)}": only one of {quoted} can be specified, but '
                    f"`{','.join(there)}` were specified."
                )
        if field.at_least_one_of:
            paths = sorted({*field.at_least_one_of, _dotted(key)})
            if not any(_is_set(self._get(each)) for each in paths):
                return f'"{_dotted(key)}": one of `{",".join(paths)}` must be specified'
        return ""

    def _missing_companions(self, field: Field, key: Path) -> str:
        paths = sorted({*field.required_with, _dotted(key)})
        if all(_is_set(self._get(each)) for each in paths):
            return ""
        return f'"{_dotted(key)}": all of `{",".join(paths)}` must be specified'

    def _conflict(self, field: Field, key: Path) -> str:
        others = (each for each in field.conflicts_with if self._is_configured(each))
        return next((f'"{_dotted(key)}": conflicts with {each}' for each in others), "")

    def _is_configured(self, path: str) -> bool:
        value = self._get(path)
        return _is_set(value) and value is not UNKNOWN

    def _get(self, path: str) -> Any:
        """The value at a path like "a.0.b": null where there is none, unknown below unknown."""
        value: Any = self._config
        for step in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list):
                value = value[int(step)] if int(step) < len(value) else None
        return value


def _is_set(value: Any) -> bool:
    # To the SDK a list without elements, and hence a block that is not there, is no value.
    return value is not None and value != []


def _at(path: Path, findings: Iterator[Finding]) -> Iterator[Finding]:
    for found in findings:
        yield Finding(found.summary, found.detail, path, found.warning)


def _count(field: Field, count: int, key: Path, path: Path) -> Iterator[Finding]:
    text = f"Attribute {_dotted(key)} {{}} {{}} item {{}}, but config has {count} declared."
    if field.max and count > field.max:
        detail = text.format("supports", field.max, "maximum")
        yield Finding("Too many list items", detail, path)
    elif count < field.min:
        detail = text.format("requires", field.min, "minimum")
        yield Finding("Not enough list items", detail, path)


def _value(field: Field, value: Any, key: Path, path: Path) -> Iterator[Finding]:
    if field.enum and value not in field.enum:
        allowed = " ".join(f'"{each}"' for each in field.enum)
        yield Finding(f"expected {_dotted(key)} to be one of [{allowed}], got {value}", path=path)
    if field.check and (broken := problem(field.check, _dotted(key), value)):
        yield Finding(broken, path=path)


def _dotted(key: Path) -> str:
    return ".".join(map(str, key))


# ------------------------------------------------------------------ checks of single values

_DURATION: Final = r"[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)"
_IAM_MEMBER: Final = r".+:.+|project(?:Owners|Readers|Writers)|all(?:Authenticated)?Users"
_LOCAL_ASN: Final = (range(64512, 65536), range(4200000000, 4294967295), range(16550, 16551))


def problem(check: Sequence[Any], key: str, value: Any) -> str:
    """The message that the provider gives to a value; "" when it passes."""
    name, *arguments = check
    return CHECKS[name](key, value, *arguments)


def _in_range(key: str, value: float, least: int, greatest: int) -> str:
    if least <= value <= greatest:
        return ""
    return f"expected {key} to be in the range ({least} - {greatest}), got {value}"


def _at_least(key: str, value: float, least: int) -> str:
    return "" if value >= least else f"expected {key} to be at least ({least}), got {value}"


def _at_most_long(key: str, value: str, length: int) -> str:
    return "" if len(value) <= length else f'"{key}" cannot be longer than {length} characters'


def _regexp(key: str, value: str, pattern: str) -> str:
    if re.search(pattern.replace("$", r"\Z"), value):
        return ""
    return f'"{key}" ("{value}") doesn\'t match regexp "{pattern}"'


def _cluster_name(key: str, value: str) -> str:
    rules = (
        (len(value) <= 40, "cannot be longer than 40 characters"),  # noqa: PLR2004 - GKE's limit
        (
            re.fullmatch("[a-z0-9-]+", value),
            "can only contain lowercase letters, numbers and hyphens",
        ),
        (re.match("[a-z]", value), "must start with a letter"),
        (re.search(r"[a-z0-9]\Z", value), "must end with a number or a letter"),
    )
    return next((f'"{key}" {broken}' for passed, broken in rules if not passed), "")


def _cidr(key: str, value: str) -> str:
    try:
        if "/" in value:
            ipaddress.ip_interface(value)
            return ""
    except ValueError:
        pass
    return f'"{key}" is not a valid IP CIDR range: invalid CIDR address: {value}'


def _cidr_or_empty(key: str, value: str) -> str:
    if not value or not _cidr(key, value):
        return ""
    return (
        f"expected {key} to contain a valid Value, got: {value} "
        f"with err: invalid CIDR address: {value}"
    )


def _timestamp(_key: str, value: str) -> str:
    layout = "2006-01-02T15:04:05Z07:00"
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)", value):
        try:
            dt.datetime.fromisoformat(value)
        except ValueError as error:
            return f'parsing time "{value}": {error}'
        return ""
    return f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'


def _private_asn(key: str, value: int) -> str:
    if any(value in asns for asns in _LOCAL_ASN):
        return ""
    return (
        f'expected "{key}" to be a RFC6996-compliant Local ASN:\nmust be either in the private ASN '
        "ranges: [64512..65534], [4200000000..4294967294];\nor be the value of [16550], "
        f"got {value}"
    )


def _json(key: str, value: str) -> str:
    try:
        json.loads(value)
    except ValueError as error:
        return f'"{key}" contains an invalid JSON: {error}'
    return ""


def _credentials(_key: str, value: str) -> str:
    # The provider takes the text of a key, or the name of a file that has it.
    if not value.lstrip().startswith("{") and File(value).expanduser().is_file():
        return ""
    try:
        json.loads(value)
    except ValueError as error:
        return f"JSON credentials are not valid: {error}"
    return ""


def _base64(_key: str, value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        return "Failed to decode (base64) customer_encryption, expecting valid base64 encoded key"
    return ""


def _iam_member(key: str, value: str) -> str:
    if value.startswith("deleted:"):
        return (
            f"invalid value for {key} (Terraform does not support IAM members for deleted "
            "principals)"
        )
    if re.search(_IAM_MEMBER, value):
        return ""
    return (
        f'invalid value "{value}" for {key} (IAM members must have one of the values outlined '
        "here: https://cloud.google.com/billing/docs/reference/rest/v1/Policy#Binding)"
    )


_FORMS: Final = {
    "duration": (_DURATION, '"{key}" is not a valid duration: time: invalid duration "{value}"'),
    "full_hour": (
        r"(?:[01]\d|2[0-3]):00",
        '"{key}" must be in the format HH:00, got: {value}',
    ),
    "jwt": (r"[\w-]+\.[\w-]+\.[\w-]*", '"{key}" is not a valid JWT format'),
    "major_minor": (
        r"\d+\.\d+",
        "invalid value for {key} (desired_emulated_version must be in major.minor format)",
    ),
    "service_account_email": (
        r"[^@\s]+@[^@\s]+\.iam\.gserviceaccount\.com",
        (
            '"{key}" is not a valid service account email address (expected format:'
            " name@project-id.iam.gserviceaccount.com)"
        ),
    ),
    "time_of_day": (
        r"(?:[01]\d|2[0-3]):[0-5]\d",
        '"{key}" ("{value}") must be in the format HH:mm (RFC3339)',
    ),
}
"""What a whole value has to look like, and the provider's words if it does not."""


def _form(pattern: str, words: str, key: str, value: str) -> str:
    return "" if re.fullmatch(pattern, value) else words.format(key=key, value=value)


CHECKS: Final[dict[str, Callable[..., str]]] = {
    **{name: functools.partial(_form, *row) for name, row in _FORMS.items()},
    "at_least": _at_least,
    "at_most_long": _at_most_long,
    "base64": _base64,
    "cidr": _cidr,
    "cidr_or_empty": _cidr_or_empty,
    "cluster_name": _cluster_name,
    "credentials": _credentials,
    "iam_member": _iam_member,
    "json": _json,
    "private_asn": _private_asn,
    "range": _in_range,
    "regexp": _regexp,
    "timestamp": _timestamp,
}
"""What a check's name means: from key, value and the check's arguments to the message."""
