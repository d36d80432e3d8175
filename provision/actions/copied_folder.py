"""The folder that a run copies to the VMs."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from provision.errors import SettingsError
from provision.files import archive as files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.context import Context


@contextlib.contextmanager
def packed(context: Context, *, takes_files: bool) -> Iterator[files.Archive | None]:
    """The folder that travels to the VMs, packed, for as long as it is needed.

    Args:
        context: The run.
        takes_files: Whether such a cluster has VMs to copy to.

    Raises:
        SettingsError: A folder that was named is not there, or can't travel.
    """
    if context.copy is not None and not context.copy.is_dir():
        raise SettingsError(
            f"There is no folder {context.copy} to copy to the VMs",
            fix="check what follows --copy; in a container, mount it with: docker run -v",
        )
    if not takes_files:
        if context.copy is not None:
            raise SettingsError(
                "--copy has no VMs to copy to: a GKE cluster's pods mount buckets and shares",
                fix="leave it out; GCS_MOUNT_LIST and NFS_FILESHARE_LIST say what pods can mount",
            )
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="aiinfra-files-") as place:
        archive = files.pack(context.copy or files.COPY_FOLDER, Path(place))
        if archive is not None:
            context.console.progress(
                f"{archive.count} files ({archive.size / 1e6:.1f} MB) travel to every VM"
            )
        yield archive
