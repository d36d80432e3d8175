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


def undelete(email: str, project: str, number: str = "", *, over: bool = False) -> str:
    """How an account comes back that was deleted less than 30 days ago.

    Google does that by its number alone, and not over another one of its address (IAM, "Delete and
    undelete service accounts"; its KB 000004665 deletes that one first).
    """
    seen = f"`gcloud projects get-iam-policy {project}` lists as deleted:serviceAccount:{email}"
    lines = [
        "within 30 days of its deletion bring it back by its number"
        + ("" if number else f", which is behind `?uid=` in what {seen}")
        + ":",
        *[f"gcloud iam service-accounts delete {email} --project {project}"] * over,
        f"gcloud iam service-accounts undelete {number or '<NUMBER>'} --project {project}",
    ]
    return "\n".join(lines)


def project_of(email: str) -> str:
    """The project whose account an address is; "" where it does not say, as Google's own don't."""
    domain = email.partition("@")[2]
    if not domain.endswith(_OWN):
        return ""
    name, _, scope = domain.removesuffix(_OWN).partition(".")
    return f"{scope}:{name}" if scope else name
