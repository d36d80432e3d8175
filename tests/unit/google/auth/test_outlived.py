import pytest

from provision.google import auth


@pytest.mark.parametrize(("wait", "is_told"), [(1800, 0), (2700, 0), (3600, 1), (6 * 3600, 1)])
def test_a_token_that_may_end_within_a_wait_is_told_of_before(wait: int, is_told: int) -> None:
    found = auth.outlived({auth.TOKEN: "ya29.x"}, wait)
    assert (found is not None) == is_told
    if found:
        assert "ya29" not in f"{found.what}{found.why}{found.fix}"
        assert "application-default login" in found.fix


def test_credentials_that_renew_themselves_are_told_of_never() -> None:
    assert auth.outlived({auth.FILE: "/keys/k.json"}, 6 * 3600) is None
