"""Packing the folder for the VMs into one archive."""

from pathlib import Path
from typing import Final

COPY_FOLDER: Final = Path("/usr/aiinfra/copy")
"""The path in the container at which `docker run -v` mounts the folder."""
