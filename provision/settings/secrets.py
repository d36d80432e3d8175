"""Secrets of Secret Manager that the user's command gets."""

# No deferred annotations: pydantic reads them as it makes the class.

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from provision.catalogue import limits
from provision.settings import parsing
from provision.settings.parsing import InvalidValueError, shorten
from provision.settings.values import ProjectId

LATEST: Final = "latest"
"""The version that is the newest whenever a VM starts."""

_FORM: Final = "NAME=projects/<project>/secrets/<secret>, or with :<version> behind it"
_NAME: Final = "[A-Za-z0-9_-]{1,255}"
_VERSION: Final = "latest|[1-9][0-9]{0,9}"
_REFERENCE: Final = re.compile(
    rf"projects/(?P<project>[^/]+)/secrets/(?P<secret>{_NAME})"
    rf"(?:(?::|/versions/)(?P<version>{_VERSION}))?"
)
# What a shell or its programs rest on is no place for a secret.
_HELD: Final = re.compile(
    r"PATH|HOME|IFS|SHELL|BASH_ENV|ENV|LD_.*|PYTHON(PATH|HOME)|.*_PROXY", re.IGNORECASE
)


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name) or _HELD.fullmatch(name):
        raise InvalidValueError(
            f"has the name {shorten(name)}",
            "a variable's: letters, digits and underscores, and none that the shell rests on",
        )
    return name


class Secret(BaseModel):
    """A variable of the command's environment, and the secret that it gets."""

    model_config = ConfigDict(frozen=True)

    name: Annotated[str, AfterValidator(_variable)]
    project: ProjectId
    secret: Annotated[str, Field(pattern=f"^{_NAME}$")]  # its name there
    version: Annotated[str, Field(pattern=f"^({_VERSION})$")] = LATEST  # a number, or `LATEST`

    @property
    def path(self) -> str:
        """The secret's path in Secret Manager."""
        return f"projects/{self.project}/secrets/{self.secret}"


def _parsed(text: str) -> list[dict[str, str]]:
    found = []
    for item in parsing.comma_list(text):
        name, equals, reference = (part.strip() for part in item.partition("="))
        match = _REFERENCE.fullmatch(reference)
        if not equals or match is None:
            # Not echoed: it may be the secret itself.
            raise InvalidValueError(
                "has an item that names no secret", f"{_FORM}; separated by commas"
            )
        _variable(name)
        found.append({"name": name, **{k: v for k, v in match.groupdict().items() if v}})
    return found


def _together(secrets: tuple[Secret, ...]) -> tuple[Secret, ...]:
    names = [secret.name for secret in secrets]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidValueError(f"has the name {shorten(twice[0])} twice", "one secret each")
    paths = {secret.path for secret in secrets}
    if len(paths) > limits.SECRETS:
        raise InvalidValueError(
            f"has {len(paths)} secrets",
            f"at most {limits.SECRETS}: Google takes no more conditions on one role of an account",
        )
    return secrets


Secrets = Annotated[tuple[Secret, ...], BeforeValidator(_parsed), AfterValidator(_together)]
