"""The plugin that Terraform starts: `python -m rehearsal.provider`."""

from rehearsal.provider.plugin import serve
from rehearsal.provider.server import Implementations


def implementations() -> Implementations:
    """The resource types and data sources of this package."""
    from rehearsal.provider.api import Api  # noqa: PLC0415 - validation needs none
    from rehearsal.provider.resources import DATA_SOURCES, RESOURCES  # noqa: PLC0415 - as above

    return Implementations(RESOURCES, DATA_SOURCES, Api)


if __name__ == "__main__":
    serve(implementations)
