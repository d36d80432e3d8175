"""The checks of single values that the schema's fields name, in the provider's words."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import ipaddress
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DURATION: Final = r"[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)"
_IAM_MEMBER: Final = r".+:.+|project(?:Owners|Readers|Writers)|all(?:Authenticated)?Users"
_LOCAL_ASN: Final = (range(64512, 65536), range(4200000000, 4294967295), range(16550, 16551))


def problem(check: Sequence[Any], key: str, value: Any) -> str:
    """What is wrong with a value.

    Returns the message that the provider gives, or "" when the value passes.
    """
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


def _full_hour(key: str, value: str) -> str:
    if re.fullmatch(r"(?:[01]\d|2[0-3]):00", value):
        return ""
    return f'"{key}" must be in the format HH:00, got: {value}'


def _time_of_day(key: str, value: str) -> str:
    if re.fullmatch(r"(?:[01]\d|2[0-3]):[0-5]\d", value):
        return ""
    return f'"{key}" ("{value}") must be in the format HH:mm (RFC3339)'


def _timestamp(_key: str, value: str) -> str:
    layout = "2006-01-02T15:04:05Z07:00"
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)", value):
        try:
            dt.datetime.fromisoformat(value)
        except ValueError as error:
            return f'parsing time "{value}": {error}'
        return ""
    return f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'


def _duration(key: str, value: str) -> str:
    if re.fullmatch(_DURATION, value):
        return ""
    return f'"{key}" is not a valid duration: time: invalid duration "{value}"'


def _private_asn(key: str, value: int) -> str:
    if any(value in asns for asns in _LOCAL_ASN):
        return ""
    return (
        f'expected "{key}" to be a RFC6996-compliant Local ASN:\nmust be either in the private ASN '
        "ranges: [64512..65534], [4200000000..4294967294];\nor be the value of [16550], "
        f"got {value}"
    )


def _major_minor(key: str, value: str) -> str:
    if re.fullmatch(r"\d+\.\d+", value):
        return ""
    return f"invalid value for {key} (desired_emulated_version must be in major.minor format)"


def _json(key: str, value: str) -> str:
    try:
        json.loads(value)
    except ValueError as error:
        return f'"{key}" contains an invalid JSON: {error}'
    return ""


def _credentials(_key: str, value: str) -> str:
    # The provider takes the text of a key, or the name of a file that has it.
    if not value.lstrip().startswith("{") and Path(value).expanduser().is_file():
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


def _jwt(key: str, value: str) -> str:
    if re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]*", value):
        return ""
    return f'"{key}" is not a valid JWT format'


def _service_account_email(key: str, value: str) -> str:
    if re.fullmatch(r"[^@\s]+@[^@\s]+\.iam\.gserviceaccount\.com", value):
        return ""
    return (
        f'"{key}" is not a valid service account email address '
        "(expected format: name@project-id.iam.gserviceaccount.com)"
    )


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


CHECKS: Final[dict[str, Callable[..., str]]] = {
    "at_least": _at_least,
    "at_most_long": _at_most_long,
    "base64": _base64,
    "cidr": _cidr,
    "cidr_or_empty": _cidr_or_empty,
    "cluster_name": _cluster_name,
    "credentials": _credentials,
    "duration": _duration,
    "full_hour": _full_hour,
    "iam_member": _iam_member,
    "json": _json,
    "jwt": _jwt,
    "major_minor": _major_minor,
    "private_asn": _private_asn,
    "range": _in_range,
    "regexp": _regexp,
    "service_account_email": _service_account_email,
    "time_of_day": _time_of_day,
    "timestamp": _timestamp,
}
"""What a check's name means: from key, value and the check's arguments to the message."""
