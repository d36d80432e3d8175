"""The addresses of service accounts, and the projects that they name."""

from __future__ import annotations

from typing import Final

_OWN: Final = ".iam.gserviceaccount.com"


def of_project(name: str, project: str) -> str:
    """The address of a project's account; example.com:p turns around: p.example.com."""
    return f"{name}@{'.'.join(reversed(project.split(':')))}{_OWN}"


def default(number: str) -> str:
    """The address of Compute Engine's default account in the project of a number."""
    return f"{number}-compute@developer.gserviceaccount.com"


def project_of(email: str) -> str:
    """The project whose account an address is; "" where it does not say, as Google's own don't."""
    domain = email.partition("@")[2]
    if not domain.endswith(_OWN):
        return ""
    name, _, scope = domain.removesuffix(_OWN).partition(".")
    return f"{scope}:{name}" if scope else name
