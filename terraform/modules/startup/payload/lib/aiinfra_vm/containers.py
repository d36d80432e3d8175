"""Runs a job's program in a container: root tells docker so, and the program is not root.

Its environment goes through a file that only root can read: on the command line everybody would see
its values, and in docker's own environment a job's LD_PRELOAD would act as root.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, Iterable, Mapping, Sequence

from aiinfra_vm import metadata, outbound, report

if TYPE_CHECKING:
    import pwd
    from pathlib import Path

NAME = "aiinfra-job"
"""The container, of which a VM has one at a time; a runner that was killed may have left it."""

_SECONDS = 2400  # that docker, the toolkit and the image may take together
_LIBRARIES = "LD_LIBRARY_PATH"
_OF_THE_VM = frozenset(
    {"PATH", "LANG", "SHELL", "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"}
)
"""What an image has of its own."""
_DEVICES = ("/dev/infiniband", "/dev/dmabuf_import_helper")
"""What GPUs' networks open, beside what NVIDIA's runtime brings."""
_FOLDERS = ("/dev/aperture_devices", "/var/lib/tcpxo", "/usr/local/gib", "/mnt/localssd")
# Before the image's own libraries: the plugin of the GPUs' network, with the NCCL that it needs.
_BEGIN = (
    'if [ -n "${AIINFRA_LIBRARIES-}" ]; then'
    ' export LD_LIBRARY_PATH="$AIINFRA_LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi;'
    ' exec "$@"'
)


class Unusable(Exception):  # noqa: N818 - a state of the world, in words for its reader
    """The image, or what runs it, can't be had on this VM."""


def prepare(image: str, step: str = "containers") -> None:
    """Bring docker, NVIDIA's runtime and the image, as far as this VM lacks them.

    Raises:
        Unusable: They can't be had.
        OSError: The metadata server does not answer.
    """
    script = metadata.get("instance/attributes/startup-script")
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        done = subprocess.run(  # noqa: S603 - what each boot runs
            ["/bin/bash", file.name, "step", step, str(_SECONDS)],
            env={**os.environ, "JOB_IMAGE": image},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise Unusable(report.tail(done.stdout) or f"the step {step} ended with {done.returncode}")


def environment(values: Mapping[bytes, bytes], file: Path) -> None:
    """Write what the program gets of the job's environment, for root alone.

    Raises:
        Unusable: A value has more than one line, which such a file can't have.
    """
    lines = b""
    for name, value in values.items():
        if b"\n" in value:
            raise Unusable(
                f"{name.decode()} has more than one line, which no container can be given"
            )
        if name.decode() not in _OF_THE_VM:
            own = b"AIINFRA_LIBRARIES" if name.decode() == _LIBRARIES else name
            lines += own + b"=" + value + b"\n"
    file.touch(0o600)
    file.chmod(0o600)
    file.write_bytes(lines)


def command(  # noqa: PLR0913, PLR0917 - all that a container has
    image: str,
    words: Sequence[str],
    folder: Path,
    user: pwd.struct_passwd | None,
    groups: Iterable[int],
    file: Path,
    mounts: Iterable[str],
    *,
    has_gpus: bool,
) -> list[str]:
    """The command that runs a program in a container."""
    found = ["docker", "run", "--rm", "--init", f"--name={NAME}", "--network=host", "--ipc=host"]
    found += ["--ulimit=memlock=-1", "--ulimit=nofile=1048576", "--security-opt=no-new-privileges"]
    found += [f"--env-file={file}", f"--workdir={folder}"]
    shared = [str(folder), *mounts]
    if user is not None:
        found += [f"--user={user.pw_uid}:{user.pw_gid}"]
        found += [f"--group-add={group}" for group in groups if group != user.pw_gid]
        shared.append(user.pw_dir)
    if has_gpus:
        found += ["--gpus=all"]
    found += [f"--device={it}" for it in _DEVICES if os.path.exists(it)]  # noqa: PTH110 - a device
    # Programs find it by variables of the job's environment, in images that have it elsewhere too.
    if os.environ.get("SSL_CERT_FILE") == outbound.BUNDLE:
        found += [f"--volume={outbound.BUNDLE}:{outbound.BUNDLE}:ro"]
    shared += [it for it in _FOLDERS if os.path.isdir(it) and it not in shared]  # noqa: PTH112 - as above
    found += [f"--volume={it}:{it}" for it in shared]
    return [*found, image, "sh", "-c", _BEGIN, "sh", *words]


def remove() -> None:
    """End the container, if there is one."""
    try:
        subprocess.run(  # noqa: S603 - a constant
            ["docker", "rm", "--force", NAME],  # noqa: S607 - the system's own
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return  # there is no docker, or it hangs
