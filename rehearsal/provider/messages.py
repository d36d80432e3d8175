"""The protocol's messages, made from schema, findings and errors."""

import json
import traceback
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tf.gen import tfplugin_pb2 as pb

from rehearsal.provider.schema import Field, Schema
from rehearsal.provider.validation import Finding, Path

_NESTING: Final = {
    "single": pb.Schema.NestedBlock.NestingMode.SINGLE,
    "list": pb.Schema.NestedBlock.NestingMode.LIST,
    "set": pb.Schema.NestedBlock.NestingMode.SET,
}

_BUGS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
)
"""What Python raises for a mistake in a program, never for an answer of Google's."""


def schema(it: Schema) -> Any:
    """The message for a type's schema."""
    message = pb.Schema(version=it.version)
    _fill(message.block, it.block)
    return message


def _fill(message: Any, block: Mapping[str, Field]) -> None:
    # Messages grow in place: protobuf copies those that are handed over, once per level.
    for name, field in block.items():
        if field.nesting:
            _add_block(message, name, field)
        else:
            _add_attribute(message, name, field)


def _add_attribute(message: Any, name: str, field: Field) -> None:
    message.attributes.add(
        name=name,
        type=json.dumps(field.type).encode(),
        required="r" in field.flags,
        optional="o" in field.flags,
        computed=field.computed,
        sensitive=field.sensitive,
        deprecated=field.deprecated,
    )


def _add_block(message: Any, name: str, field: Field) -> None:
    nested = message.block_types.add(
        type_name=name,
        nesting=_NESTING[field.nesting],
        min_items=field.min,
        max_items=field.max,
    )
    _fill(nested.block, field.block)


def path(steps: Path) -> Any:
    """The message for a place in a value."""
    return pb.AttributePath(
        steps=[
            pb.AttributePath.Step(element_key_int=step)
            if isinstance(step, int)
            else pb.AttributePath.Step(attribute_name=step)
            for step in steps
        ]
    )


def diagnostics(findings: Iterable[Finding]) -> list[Any]:
    """The messages for findings, in their order."""
    return [
        pb.Diagnostic(
            severity=pb.Diagnostic.WARNING if it.warning else pb.Diagnostic.ERROR,
            summary=it.summary,
            detail=it.detail,
            attribute=path(it.path) if it.path else None,
        )
        for it in findings
    ]


def finding(error: Exception) -> Finding:
    """What to say of an error: its own words, or that the stand-in has a bug."""
    if not isinstance(error, _BUGS):
        return Finding(str(error) or type(error).__name__)
    return Finding(
        f"Bug in the stand-in for the google provider: {type(error).__name__}: {error}",
        "The real provider is not to blame.\n\n" + "".join(traceback.format_exception(error)),
    )
