import re

import pytest

from provision.catalogue import gcsfuse

USUAL = ("implicit-dirs", "dir-mode=777", "file-mode=777", "metadata-cache-ttl-secs=60")


def test_without_wishes_everybody_writes_and_what_others_wrote_is_seen_in_a_minute() -> None:
    assert gcsfuse.on_vms((), None) == USUAL
    assert gcsfuse.in_pods((), None) == USUAL


@pytest.mark.parametrize("of", [gcsfuse.on_vms, gcsfuse.in_pods])
def test_the_users_options_win_and_come_once(of: type) -> None:
    given = ("implicit-dirs=false", "dir-mode=755", "uid=1000", "ro=true")

    assert of(given, None) == (
        "implicit-dirs=false", "dir-mode=755", "file-mode=777", "metadata-cache-ttl-secs=60",
        "uid=1000", "ro",
    )  # fmt: skip
    assert "ro=false" not in of(("ro=false",), None)


def test_the_cache_of_vms_is_on_the_local_ssds_and_that_of_pods_where_the_driver_has_it() -> None:
    parallel = "file-cache-enable-parallel-downloads"
    cache = ("cache-dir=/mnt/localssd/gcsfuse", "file-cache-max-size-mb=102400", parallel)

    assert gcsfuse.on_vms((), 100) == (*USUAL, *cache)
    # The driver drops cache-dir, and turns its cache on by this form alone.
    assert gcsfuse.in_pods((), 100) == (*USUAL, parallel, "file-cache:max-size-mb:102400")
    assert f"{parallel}=false" in gcsfuse.in_pods((f"{parallel}=false",), 100)


def test_no_option_ends_a_field_of_fstab_or_is_what_gkes_driver_drops() -> None:
    # DisallowedFlags of its sidecar_mounter_config.go at 5fcdc04.
    dropped = {
        "cache-dir", "config-file", "foreground", "kernel-params-file", "key-file", "log-file",
        "log-format", "o", "prometheus-port", "reuse-token-from-url", "temp-dir", "token-url",
    }  # fmt: skip
    assert not dropped & set(gcsfuse.OPTIONS)
    assert all(re.fullmatch("[a-z][a-z-]*", name) for name in gcsfuse.OPTIONS)
    assert not any(kind.takes(value) for kind in gcsfuse.Kind for value in ("a,b", "a b", "", "\n"))
