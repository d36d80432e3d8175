"""Whether secrets are where they belong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings import masking
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


def _in_the_open(case: Case) -> Iterator[Finding]:
    """A credential in what is stored with the cluster."""
    it = case.settings
    maps = {"metadata": it.metadata, "job_env": it.job_env}
    texts = {"startup_command": it.startup_command, "job_command": it.job_command}
    texts |= {field: "\n".join(map("=".join, values.items())) for field, values in maps.items()}
    for field, text in texts.items():
        if masking.credentials(text or ""):
            yield Finding(
                note=True,
                code=Code.NOTE,
                field=field,
                what="has what looks like a credential",
                why="it is stored with the cluster, where everybody reads it who may look at that",
                fix="keep it in Secret Manager: SECRETS=NAME=projects/<project>/secrets/<secret>"
                " gives it to STARTUP_COMMAND and jobs as a variable",
            )


RULES: Final = (Rule(("startup_command", "metadata", "job_command", "job_env"), _in_the_open),)
