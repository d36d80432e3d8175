"""Settings as a record keeps them, in JSON: read again by the rules of their texts.

Whoever may write to the bucket may write a record, so nothing in it is used unread.
"""

# No deferred annotations: the types of the settings are taken apart here.

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from provision.settings.model import Settings


def sound(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings whose values fit; one that this version does not know is kept as it is.

    `values`: setting -> effective value, as `intake` dumps it and JSON keeps it.
    """
    return dict(_sound(values))


def misfit(error: ValueError) -> str:
    """What of a document does not fit its type, in words."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _sound(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        field = Settings.model_fields.get(name.lower())
        if field is None:
            yield name, value
            continue
        if value is None:
            if type(None) in get_args(field.annotation):
                yield name, None
            continue
        kind: Any = field.annotation
        if field.metadata:
            kind = Annotated[(kind, *field.metadata)]
        # Parts of a value are read one by one; a value without parts is read as its text was.
        reader = TypeAdapter(_without_parsers(kind) if isinstance(value, list | dict) else kind)
        try:
            found = reader.validate_python(_texts(value), context=values)
        except (ValueError, TypeError, AttributeError):
            continue  # the rules take texts, and stumble over parts that are none
        yield name, reader.dump_python(found, mode="json")


def _without_parsers(kind: Any) -> Any:
    """A type without what takes a whole text apart."""
    if get_origin(kind) is Annotated:
        inner, *about = get_args(kind)
        rules = [rule for rule in about if not isinstance(rule, BeforeValidator)]
        return Annotated[(_without_parsers(inner), *rules)] if rules else _without_parsers(inner)
    if get_origin(kind) in {Union, types.UnionType}:
        return Union[tuple(map(_without_parsers, get_args(kind)))]  # noqa: UP007 - of a tuple
    return kind


def _texts(value: Any) -> Any:
    """A value with each part as its text."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return str(value)
        case list():
            return [_texts(one) for one in value]
        case dict():
            return {key: _texts(one) for key, one in value.items()}
        case _:
            return value
