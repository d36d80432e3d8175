"""The folder that a run copies to the VMs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from provision import words
from provision.codes import Code
from provision.errors import SettingsError
from provision.files import COPY_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from provision.context import Context
    from provision.files.archive import Archive
    from provision.files.left_out import LeftOut
    from provision.spec.script import WhyNot


@contextlib.contextmanager
def packed(
    context: Context,
    *,
    takes_files: bool,
    to: str = "every VM",
    judge: Callable[[Mapping[str, int], WhyNot], None] = lambda *_: None,
) -> Iterator[Archive | None]:
    """Pack the folder for the VMs into a temporary archive.

    `judge`: looks at what travels, and at why the rest stays here, before anything is said.
    """
    if context.copy is not None and not context.copy.is_dir():
        raise SettingsError(
            f"There is no folder {context.copy} to copy to the VMs",
            code=Code.INVALID_FOLDER,
            fix="check the path after --copy; for a container, mount it with: docker run -v",
        )
    if not takes_files:
        if context.copy is not None:
            raise SettingsError(
                "--copy has no effect on GKE clusters: their pods mount buckets and shares instead",
                code=Code.WITHOUT_EFFECT,
                fix="remove --copy; GCS_MOUNT_LIST and NFS_FILESHARE_LIST set what pods can mount",
            )
        yield None
        return
    folder = context.copy or COPY_FOLDER
    if not folder.exists():
        judge({}, lambda _: ("no folder is copied, as none is named", "name it: --copy FOLDER"))
        yield None
        return
    from provision.files import archive as files  # noqa: PLC0415 - most runs have no folder
    from provision.files import private  # noqa: PLC0415 - as just said
    from provision.files.left_out import LeftOut  # noqa: PLC0415 - as just said

    with private.folder() as place:
        left_out = LeftOut.of(folder)
        archive = files.pack(folder, place, left_out)
        judge(archive.entries if archive else {}, left_out.why)
        for line in _told(folder, archive, left_out, to):
            context.console.progress(line)
        yield archive


def _told(folder: Path, archive: Archive | None, left_out: LeftOut, to: str) -> Iterator[str]:
    from provision.files.left_out import IGNORE_FILE  # noqa: PLC0415 - as above

    if archive is None:
        stays = left_out.names or left_out.by_git or left_out.links
        yield f"No file is copied: {folder} {'has none that travels' if stays else 'is empty'}"
    else:
        files_are = "file is" if archive.count == 1 else "files are"
        yield f"{archive.count} {files_are} copied to {to}, {archive.size:,} bytes in all"
    if left_out.names:
        yield (
            f"Not copied from {folder}: {words.listed(left_out.names)} (histories, env.list, .env"
            f" files, private keys, what tools make, what {IGNORE_FILE} names; a line !NAME there"
            " takes one along)"
        )
    if left_out.by_git:
        yield (
            f"Not copied from {folder}, by .gitignore: {words.listed(left_out.by_git)}; an"
            f" {IGNORE_FILE}, even an empty one, takes its place"
        )
    if left_out.links:
        yield (
            f"Not copied from {folder}: {words.listed(left_out.links)}, links that lead out of it,"
            " so that their targets would not be there"
        )
