"""Terraform's configuration in JSON, where each text is a template (`*.tf.json`).

Values of variables (`*.tfvars.json`) and the settings of a backend are none, and must not be
escaped: tests/terraform/test_literals.py asks Terraform itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_TEMPLATE: Final = re.compile(r"([$%])(?=\{)")


def literal(document: Any) -> Any:
    """A configuration whose texts mean themselves, not templates (JSON Configuration Syntax)."""
    match document:
        case str():
            return _TEMPLATE.sub(r"\1\1", document)
        case Mapping():
            return {literal(key): literal(value) for key, value in document.items()}
        case list() | tuple():
            return [literal(one) for one in document]
        case _:
            return document
