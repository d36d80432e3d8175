"""Values whose shape is another's: Terraform's variables and outputs, and what settings hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = (
        "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
    )
else:
    # What the schema says of it.
    Json = Any


SettingValues: TypeAlias = Mapping[str, Json]
"""Setting -> its effective value, with secrets masked; null where it has none."""

TerraformVariables: TypeAlias = Mapping[str, Json]
"""Variable of the Terraform root -> its value, with secrets masked."""

TerraformOutputs: TypeAlias = Mapping[str, Json]
"""Output of the Terraform root -> its value."""
