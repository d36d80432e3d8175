"""An outage while a Destroy looks and sweeps: neither nothing, nor for good."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from provision.codes import Code
from provision.errors import TerraformError
from provision.google.api import GoogleApiError, Service
from provision.lifecycle import consent, marked

RECORD = SimpleNamespace(project_id="p", cluster_id="0123456789ab")


class Google:
    """Answers with an error."""

    def __init__(self, code: int) -> None:
        self.code = code

    def fail(self, *_: object, **__: object) -> NoReturn:
        raise GoogleApiError(self.code, "no", "https://x/")

    pages = delete = fail


def test_machines_that_google_does_not_tell_of_are_not_none() -> None:
    out_of_order, closed = (cast("Any", SimpleNamespace(api=Google(it))) for it in (503, 403))
    with pytest.raises(GoogleApiError) as caught:
        consent._machines(out_of_order, cast("Any", RECORD))
    assert caught.value.problems[0].code is Code.UNREACHABLE
    # Who may not list them is asked as if there were some.
    assert consent._machines(closed, cast("Any", RECORD)) is None


@pytest.mark.parametrize(("code", "told"), [(503, Code.UNREACHABLE), (409, Code.NOT_REMOVED)])
def test_what_an_outage_kept_may_be_removed_later(code: int, told: Code) -> None:
    with pytest.raises(TerraformError) as caught:
        marked._delete(cast("Any", Google(code)), Service.COMPUTE, "x", in_use_is_fine=False)
    (problem,) = caught.value.problems
    assert problem.code is told
    assert "again" in problem.fix
