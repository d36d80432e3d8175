"""The codes by which programs tell results apart: of runs, and of their problems and notes."""

from __future__ import annotations

import enum
import functools
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class ExitCode(enum.IntEnum):
    """The program's exit codes; docs/reference/command-line.md has a table of the descriptions."""

    description: str

    def __new__(cls, value: int, description: str) -> Self:
        """Store the description with the number."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    DONE = 0, "done"
    UNEXPECTED = 1, "unexpected: a bug in this program"
    USAGE = 2, "command line or settings"
    CREDENTIALS = 3, "no usable Google credentials"
    CHECK = 4, "an online check failed or could not be made; nothing was changed"
    STATE = 5, "state: bucket, lock, or a state of another kind or owner"
    TERRAFORM = 6, "Terraform failed, or a request to Google beside it"
    CAPACITY = 7, "no machines: stock-out, quota, a failed request, or a wait that was given up"
    CLUSTER = 8, "part of the cluster failed, was lost, or could not be removed"
    WAITING = 75, "still waiting for capacity; everything is kept"
    INTERRUPTED = 130, "interrupted (SIGINT, Ctrl-C)"
    TERMINATED = 143, "terminated (SIGTERM, docker stop; SIGHUP, a closed terminal)"


_GOOGLES: Final = "4 5 6 7 8 75"
"""Google refuses at any moment of a run, and the moment decides the exit code."""


class _Row(NamedTuple):
    """What `codes.tsv` says of a code."""

    exits: tuple[ExitCode, ...]
    is_retryable: bool
    meaning: str
    remedy: str


class Code(enum.StrEnum):
    """What a problem or note is about: a name that stays, while the words may be improved.

    Each has a row in `codes.tsv`, of which docs/reference/problems.md is generated.
    """

    # ---------------------------------------------------------------- command line and settings
    DISK_FULL = "disk-full"
    INVALID_COMMAND_LINE = "invalid-command-line"
    INVALID_ENV_FILE = "invalid-env-file"
    AMBIGUOUS_ENV_FILE = "ambiguous-env-file"
    UNKNOWN_SETTING = "unknown-setting"
    RETIRED_SETTING = "retired-setting"
    MISSING_SETTING = "missing-setting"
    INVALID_VALUE = "invalid-value"
    CONFLICTING_SETTINGS = "conflicting-settings"
    TEAM_RULE = "team-rule"
    WITHOUT_EFFECT = "without-effect"
    NOT_OFFERED = "not-offered"
    COST_LIMIT = "cost-limit"
    PRICE_UNKNOWN = "price-unknown"
    INVALID_FOLDER = "invalid-folder"
    UNSAFE_ENDPOINT = "unsafe-endpoint"
    MANIFESTS_MISSING = "manifests-missing"
    REHEARSAL_UNAVAILABLE = "rehearsal-unavailable"
    APPROVAL_NEEDED = "approval-needed"
    DECLINED = "declined"
    # ---------------------------------------------------------------- credentials
    NO_CREDENTIALS = "no-credentials"
    CREDENTIALS_REFUSED = "credentials-refused"
    UNREACHABLE = "unreachable"
    UNTRUSTED = "untrusted"
    # ---------------------------------------------------------------- Google's refusals
    GOOGLE_REFUSED = "google-refused"
    PROJECT_NOT_FOUND = "project-not-found"
    BILLING_OFF = "billing-off"
    API_OFF = "api-off"
    PERMISSION_MISSING = "permission-missing"
    MAY_ONLY_LOOK = "may-only-look"
    POLICY_FORBIDS = "policy-forbids"
    QUOTA_EXCEEDED = "quota-exceeded"
    STOCK_OUT = "stock-out"
    RESERVATION_FULL = "reservation-full"
    RESERVATION_UNUSABLE = "reservation-unusable"
    INCOMPATIBLE_REQUEST = "incompatible-request"
    NO_FREE_ADDRESSES = "no-free-addresses"
    RESOURCE_NOT_FOUND = "resource-not-found"
    ACCOUNT_GONE = "account-gone"
    IN_USE = "in-use"
    IMAGE_UNSUITABLE = "image-unsuitable"
    ZONE_DOWN = "zone-down"
    # ---------------------------------------------------------------- state
    BUCKET_MISSING = "bucket-missing"
    BUCKET_UNSAFE = "bucket-unsafe"
    STATE_LOCKED = "state-locked"
    STALE_LOCK = "stale-lock"
    STATE_FOREIGN = "state-foreign"
    STATE_UNREADABLE = "state-unreadable"
    STATE_LOST = "state-lost"
    NAME_TAKEN = "name-taken"
    STORAGE_FAILED = "storage-failed"
    NO_CLUSTER = "no-cluster"
    NO_JOB = "no-job"
    # ---------------------------------------------------------------- Terraform
    TERRAFORM_FAILED = "terraform-failed"
    TERRAFORM_MISSING = "terraform-missing"
    NOT_REMOVED = "not-removed"
    # ---------------------------------------------------------------- capacity
    CAPACITY_REFUSED = "capacity-refused"
    GAVE_UP = "gave-up"
    WAITING = "waiting"
    # ---------------------------------------------------------------- the cluster
    STARTUP_FAILED = "startup-failed"
    IMAGE_NOT_MADE = "image-not-made"
    TEST_FAILED = "test-failed"
    OUT_OF_DATE = "out-of-date"
    MACHINES_GONE = "machines-gone"
    NOT_IN_ORDER = "not-in-order"
    NOT_IN_TIME = "not-in-time"
    KUBERNETES_FAILED = "kubernetes-failed"
    JOB_FAILED = "job-failed"
    NOT_CONFIRMED = "not-confirmed"
    # ---------------------------------------------------------------- the end
    INTERRUPTED = "interrupted"
    UNEXPECTED = "unexpected"
    # ---------------------------------------------------------------- notes
    NOTE = "note"
    NEWER_TOOL = "newer-tool"
    NOT_CHECKED = "not-checked"
    CHOSEN = "chosen"
    ENDS_SOON = "ends-soon"
    STILL_RUNNING = "still-running"
    STILL_BILLED = "still-billed"
    DEGRADED = "degraded"
    SLOWER = "slower"
    WITHOUT_GPU = "without-gpu"
    NO_URL = "no-url"
    SECRETS_UNREADABLE = "secrets-unreadable"
    NOT_KEPT = "not-kept"

    @property
    def meaning(self) -> str:
        """What it means."""
        return _rows()[self].meaning

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _rows()[self].remedy

    @property
    def exits(self) -> tuple[ExitCode, ...]:
        """The exit codes of runs that fail with it; none if it is only ever a note.

        A note of a run that succeeds may have any code.
        """
        return _rows()[self].exits

    @property
    def is_retryable(self) -> bool:
        """Whether the same action with the same settings can succeed later, without any change.

        A program may then retry after a while. Of others somebody has to change something first:
        settings, rights, quota, code.
        """
        return _rows()[self].is_retryable


@functools.cache
def _rows() -> Mapping[Code, _Row]:
    """Code -> its row; most runs need none."""
    lines = Path(__file__).with_name("codes.tsv").read_text("utf-8").splitlines()[1:]
    exit_codes = {str(int(it)): it for it in ExitCode}
    found = {}
    for code, exits, retryable, meaning, remedy in (line.split("\t") for line in lines):
        numbers = exits.replace("google", _GOOGLES).replace("-", "").split()
        known = tuple(exit_codes[number] for number in numbers)
        found[Code(code)] = _Row(known, retryable == "yes", meaning, remedy)
    return MappingProxyType(found)
