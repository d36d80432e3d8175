"""The plugin that Terraform starts: `python -m provision.rehearsal.provider`."""

from __future__ import annotations

from provision.rehearsal.provider.plugin import serve
from provision.rehearsal.provider.server import Implementations


def implementations() -> Implementations:
    """The resource types and data sources of this package."""
    from provision.rehearsal.provider.api import Api  # noqa: PLC0415 - validation needs none
    from provision.rehearsal.provider.resources import (  # noqa: PLC0415 - as above
        DATA_SOURCES,
        RESOURCES,
    )

    return Implementations(RESOURCES, DATA_SOURCES, Api)


if __name__ == "__main__":
    serve(implementations)
