"""What can go wrong between the provider and Google, in the real provider's words."""

import json
from typing import Any

_RETRIED_CODES = frozenset({429, 500, 502, 503})


class GoogleApiError(Exception):
    """An error that Google answered, worded as the Go client does."""

    def __init__(self, code: int, body: bytes) -> None:
        self.code = code
        self.body = body.decode(errors="replace")
        error = _error(body)
        self.message: str = error.get("message") or ""
        self.errors: list[dict[str, Any]] = error.get("errors") or []
        self.details: list[Any] = error.get("details") or []
        super().__init__(self._text())

    @property
    def reasons(self) -> frozenset[str]:
        """The reasons that the error names ("alreadyExists")."""
        return frozenset(str(error.get("reason", "")) for error in self.errors)

    @property
    def temporary(self) -> bool:
        """Whether provider 7.45.0 sends the same request again after this (recorded traffic)."""
        if self.code in _RETRIED_CODES:
            return True
        if self.code == 409:  # noqa: PLR2004 - Conflict
            return "operationInProgress" in self.reasons
        if self.code == 400:  # noqa: PLR2004 - Bad Request
            return "resourceNotReady" in self.reasons and "networks" in self.body
        if self.code == 403:  # noqa: PLR2004 - Forbidden
            return _is_rate_limit(self)
        return False

    def _text(self) -> str:
        if not self.message and not self.errors:
            return f"googleapi: got HTTP response code {self.code} with body: {self.body}"
        text = f"googleapi: Error {self.code}: {self.message}"
        if self.details:
            text += f"\nDetails:\n{json.dumps(self.details, indent=2, sort_keys=True)}\n"
        if not self.errors:
            return text.strip()
        if len(self.errors) == 1 and self.errors[0].get("message") == self.message:
            return f"{text}, {self.errors[0].get('reason', '')}"
        lines = (f"Reason: {e.get('reason')}, Message: {e.get('message')}\n" for e in self.errors)
        return f"{text}\nMore details:\n{''.join(lines)}"


class ProviderError(Exception):
    """What the provider says when something failed; the text is complete."""


class OperationError(Exception):
    """A long-running operation that ended with errors; the text is their messages'."""


class Cancelled(Exception):  # noqa: N818 - somebody's wish, not a failure
    """Terraform was interrupted while the provider waited."""

    def __init__(self) -> None:
        super().__init__("unable to finish polling, context has been cancelled")


class CredentialsMissing(Exception):  # noqa: N818 - says what is missing
    """There is no token: none was given, and no metadata server gives one."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(
            "Attempted to load application default credentials since neither `credentials` nor"
            " `access_token` was set in the provider block.  No credentials loaded. To use your"
            " gcloud credentials, run 'gcloud auth application-default login'.  Original error:"
            f" {cause}"
        )


def _error(body: bytes) -> dict[str, Any]:
    """The error object of an answer; {} when it is none of Google's."""
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def _is_rate_limit(error: GoogleApiError) -> bool:
    """The two kinds of 403 that are no refusal but a pace too fast."""
    per_minute = "Quota exceeded for quota metric" in error.body and "per minute" in error.body
    return per_minute or "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED" in error.body
