"""Which settings changed since the last Create, in the words of an env.list."""

from __future__ import annotations

from typing import Any

import pytest

from provision.lifecycle import plan_document
from provision.settings import masking


def _words(before: dict[str, Any], now: dict[str, Any], *given: str) -> list[str]:
    found = plan_document.changed_settings(before, now, given)
    return [f"{one.setting} {one.words}" for one in found]


@pytest.mark.parametrize(
    ("setting", "before", "now", "words"),
    [
        ("VM_TYPE", "a2-highgpu-2g", "a2-highgpu-1g", "a2-highgpu-2g -> a2-highgpu-1g"),
        ("INSTANCE_COUNT", 2, 3, "2 -> 3"),
        ("ENABLE_SPOT", False, True, "no -> yes"),
        ("IMAGE_NAME", None, "my-image", "unset -> my-image"),
        ("LABELS", {}, {"team": "research"}, "+ team=research"),
        ("LABELS", {"team": "a", "x": "1"}, {"team": "b"}, "team=a -> b, - x"),
        ("METADATA", None, {"token": "***"}, "+ token"),
        ("METADATA", {"script": "short"}, {"script": 70 * "x"}, "script changed"),
        ("STARTUP_COMMAND", "one", "one\ntwo", "changed"),
        ("METADATA", {"a": "b"}, "{{", "changed"),
    ],
)
def test_a_change_reads_like_the_setting(setting: str, before: Any, now: Any, words: str) -> None:
    assert _words({setting: before}, {setting: now}, setting) == [f"{setting} {words}"]


def test_a_list_that_a_record_has_from_json_is_the_same_as_a_tuple() -> None:
    assert _words({"AUTHORIZED_CIDR": ["1.2.3.4/32"]}, {"AUTHORIZED_CIDR": ("1.2.3.4/32",)}) == []


def test_a_default_that_follows_another_setting_is_not_named_beside_it() -> None:
    before = {"VM_TYPE": "a2-highgpu-2g", "GPU_COUNT": 2}
    now = {"VM_TYPE": "a2-highgpu-1g", "GPU_COUNT": 1}
    assert _words(before, now, "VM_TYPE") == ["VM_TYPE a2-highgpu-2g -> a2-highgpu-1g"]
    assert len(_words(before, now, "VM_TYPE", "GPU_COUNT")) == 2


def test_a_default_that_is_back_is_named() -> None:
    assert _words({"LABELS": {"team": "a"}}, {"LABELS": {}}) == ["LABELS - team"]


def test_what_only_a_run_needs_is_no_change_of_the_cluster() -> None:
    before, now = {"CAPACITY_TIMEOUT": 1, "NEW": 1}, {"CAPACITY_TIMEOUT": 2, "OTHER": 2}
    assert _words(before, now, "CAPACITY_TIMEOUT", "OTHER") == []


@pytest.mark.parametrize("old", ["in clear", "sealed"])
def test_a_record_with_commands_in_clear_compares_as_one_with_sealed_ones(old: str) -> None:
    clear = {
        "STARTUP_COMMAND": "wandb login planted-1; curl -u me:planted-2 https://example.com",
        "METADATA": {"colour": "planted-3", "token": "***", "empty": ""},
    }
    sealed = masking.seal_settings(clear)
    before = clear if old == "in clear" else sealed

    assert _words(before, sealed, *clear) == []
    now = masking.seal_settings({"STARTUP_COMMAND": "planted-4", "METADATA": {"colour": "blue"}})
    assert _words(before, now, *clear) == [
        "STARTUP_COMMAND changed",
        "METADATA colour changed, - token, - empty",
    ]
