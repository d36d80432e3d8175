"""Which settings changed since the last Create, in the words of an env.list."""

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
        ("KMS_KEY", 70 * "k", None, "set -> unset"),
        ("KMS_KEY", None, 70 * "k", "unset -> set"),
    ],
)
def test_a_change_reads_like_the_setting(setting: str, before: Any, now: Any, words: str) -> None:
    assert _words({setting: before}, {setting: now}, setting) == [f"{setting} {words}"]


def test_what_is_the_same_follows_from_another_or_only_a_run_needs_is_no_change() -> None:
    # As a record has it from JSON.
    assert _words({"AUTHORIZED_CIDR": ["1.2.3.4/32"]}, {"AUTHORIZED_CIDR": ("1.2.3.4/32",)}) == []
    before = {"VM_TYPE": "a2-highgpu-2g", "GPU_COUNT": 2}
    now = {"VM_TYPE": "a2-highgpu-1g", "GPU_COUNT": 1}
    assert _words(before, now, "VM_TYPE") == ["VM_TYPE a2-highgpu-2g -> a2-highgpu-1g"]
    assert len(_words(before, now, "VM_TYPE", "GPU_COUNT")) == 2
    before, now = {"CAPACITY_TIMEOUT": 1, "NEW": 1}, {"CAPACITY_TIMEOUT": 2, "OTHER": 2}
    assert _words(before, now, "CAPACITY_TIMEOUT", "OTHER") == []
    # A default that is back is named.
    assert _words({"LABELS": {"team": "a"}}, {"LABELS": {}}) == ["LABELS - team"]


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
