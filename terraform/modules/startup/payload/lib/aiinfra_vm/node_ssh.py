"""ssh between the VMs of one group, as a user who may do nothing that others may not.

Each VM makes a key pair of its own, and no private key ever leaves it: the public halves travel by
members and roster. Whoever could write those could let themselves in as this user, and no further:
it is nobody's administrator, and a key is good only from the address of the VM that it belongs to.
So whatever is in the user's home is made and read as that user: links there lead root nowhere.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aiinfra_vm.peers import put

if TYPE_CHECKING:
    from aiinfra_vm.roster import Roster

USER = "aiinfra"
CONFIGURATION = "/etc/aiinfra/ssh"
"""What root writes: who is let in, and who the others are."""

_HOST_KEYS = Path("/etc/ssh")
_HOST_KEY_TYPES = ("ed25519", "ecdsa")
_SECONDS = 60
_SERVER = Path("/etc/ssh/sshd_config.d/50-aiinfra.conf")
_SERVER_MAIN = Path("/etc/ssh/sshd_config")
_SERVER_TEXT = f"""\
# Only the VMs of this group come in as this user, by the keys that they made.
Match User {USER}
  AuthenticationMethods publickey
  AuthorizedKeysFile {CONFIGURATION}/authorized_keys
  AuthorizedKeysCommand none
  AuthorizedPrincipalsCommand none
  TrustedUserCAKeys none
  AllowAgentForwarding no
  X11Forwarding no
Match all
"""
_CLIENT_TEXT = f"""\
# Written by the tool: for the VMs of this group.
Host *
  IdentityFile ~/.ssh/id_ed25519
  GlobalKnownHostsFile {CONFIGURATION}/known_hosts
  StrictHostKeyChecking yes
  LogLevel ERROR
"""


def authorized_keys(roster: Roster) -> str:
    """The VMs that are let in, each from its own address."""
    return "".join(
        f'from="{seat.member.address}",no-agent-forwarding,no-X11-forwarding'
        f" {seat.member.key} {USER}@{seat.member.name}\n"
        for seat in roster.seats
        if seat.member.key
    )


def known_hosts(roster: Roster) -> str:
    """The keys by which the VMs are known, under name and address."""
    return "".join(
        f"{seat.member.name},{seat.member.address} {key}\n"
        for seat in roster.seats
        for key in seat.member.host_keys
    )


def admit(roster: Roster, folder: Path) -> None:
    """Let in the VMs of a roster and nobody else."""
    put(folder / "known_hosts", known_hosts(roster))
    put(folder / "authorized_keys", authorized_keys(roster))


# $1 is what the user's ssh is told.
_MAKE_KEY = """
umask 077
mkdir -p ~/.ssh
[ -e ~/.ssh/id_ed25519 ] || ssh-keygen -q -t ed25519 -N '' -C "$(id -un)" -f ~/.ssh/id_ed25519
[ -e ~/.ssh/config ] || printf %s "$1" >~/.ssh/config
"""


def published() -> tuple[str, tuple[str, ...]]:
    """The public key of this VM's user, and those of its sshd; nothing where none is set up."""
    try:
        pwd.getpwnam(USER)
        key = _without_comment(_as_user("cat ~/.ssh/id_ed25519.pub"))
    except (KeyError, OSError, ValueError, subprocess.SubprocessError):
        return "", ()
    files = (_HOST_KEYS / f"ssh_host_{kind}_key.pub" for kind in _HOST_KEY_TYPES)
    return key, tuple(_without_comment(it.read_text("utf-8")) for it in files if it.exists())


def _without_comment(line: str) -> str:
    return " ".join(line.split()[:2])


def _as_user(script: str, *arguments: str) -> str:
    """Run a script of sh as the user, in its home; what it prints.

    Raises:
        OSError, subprocess.SubprocessError: It fails, or waits for something.
    """
    home = f"HOME={pwd.getpwnam(USER).pw_dir}"
    command = ["runuser", "-u", USER, "--", "env", "-i", home, f"PATH={os.defpath}", "sh", "-euc"]
    done = subprocess.run(  # noqa: S603 - constants
        [*command, script, "sh", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, cwd="/", timeout=_SECONDS,
    )  # fmt: skip
    return done.stdout.decode()


def _make_user() -> None:
    """The user with a home, locked but for keys."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        command = ["useradd", "--create-home", "--user-group", "--shell", "/bin/bash", USER]
        subprocess.run(command, check=True)  # noqa: S603 - a constant


def _configure_server() -> None:
    """Tell sshd, which goes on as it was if it would not take the text."""
    if "sshd_config.d" not in _SERVER_MAIN.read_text("utf-8"):
        raise OSError(f"{_SERVER_MAIN} includes no folder: this image's sshd is left as it is")
    _SERVER.parent.mkdir(exist_ok=True)
    before = _SERVER.read_text("utf-8") if _SERVER.exists() else None
    if before == _SERVER_TEXT:
        return
    put(_SERVER, _SERVER_TEXT)
    try:
        # With a home for sshd's own process, where systemd makes that only on demand.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        subprocess.run(["sshd", "-t"], check=True)  # noqa: S607 - the image's own
    except subprocess.CalledProcessError:
        _SERVER.unlink()
        raise
    for unit in ("ssh.service", "sshd.service"):
        command = ["systemctl", "try-reload-or-restart", unit]
        subprocess.run(command, check=False)  # noqa: S603 - a constant; images have one of them


def _close() -> None:
    """Let nobody in any more, on a VM that had it once."""
    if _SERVER.exists():
        put(Path(CONFIGURATION, "authorized_keys"), "")


def main() -> int:
    """`open` or `close`."""
    if sys.argv[1] == "close":
        _close()
        return 0
    try:
        _make_user()
        # The user's key pair, once in the VM's life, and how its ssh finds the others.
        _as_user(_MAKE_KEY, _CLIENT_TEXT)
        Path(CONFIGURATION).mkdir(parents=True, exist_ok=True)
        _configure_server()
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"no ssh between the nodes: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
