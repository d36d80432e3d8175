"""The name of the instance template is a hash of all that the template holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2

TEMPLATE = Path(__file__).parents[2] / "terraform/modules/gpu-mig/template.tf"
# The name is the hash itself; the rest says how Terraform treats the resource.
NOT_CONTENT = {"name", "lifecycle"}
# Where values come from: the object itself, or the part of it that a dynamic block goes through.
SOURCES = tuple(
    f"${{{name}."
    for name in (
        "local._template",
        "try([local._template",
        "access_config",
        "disk_encryption_key",
        "guest_accelerator",
        "max_run_duration",
        "network_interface",
        "reservation_affinity",
        "specific_reservation",
    )
)
# What the name goes by, with each value that no plan knows in its place.
LATE = {"metadata": "${merge(local._template.metadata, var.metadata)}"}


def _body() -> dict[str, Any]:
    (block,) = hcl2.loads(TEMPLATE.read_text(encoding="utf-8"))["resource"]
    body: dict[str, Any] = block['"google_compute_instance_template"']['"gpu"']
    return body


def _arguments(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every argument of a block, nested and dynamic blocks too, with where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith("__") and key not in NOT_CONTENT:
                yield from _arguments(inner, f"{path}.{key}".strip('."'))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from _arguments(inner, path)
    else:
        yield path, value


def test_every_argument_of_the_template_is_in_its_name() -> None:
    outside = {
        path: value for path, value in _arguments(_body()) if not str(value).startswith(SOURCES)
    }

    assert outside == LATE


def test_the_arguments_are_found_in_nested_and_dynamic_blocks() -> None:
    paths = [path for path, _ in _arguments(_body())]

    assert "disk.source_image" in paths
    assert len([path for path in paths if "access_config" in path]) == 2
