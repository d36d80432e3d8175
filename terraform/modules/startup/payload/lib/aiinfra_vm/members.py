"""The VMs of a cluster: what each says of itself in an object of its own, and how it is heard of.

What an object says is text that any program on any VM of the cluster could have written: it is
checked here to the letter, as it goes into files that root's shells read.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterable, Mapping, NamedTuple

from aiinfra_vm import metadata, storage

FOLDER = "members/"
"""Where the objects are, one a VM: members/NAME.json."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_INSTANCE = re.compile(r"[0-9]{1,20}")
_ACCOUNT = re.compile(r"[0-9]{0,32}")
_BOOT = re.compile(r"[-0-9a-f]{0,64}")
_KEY = re.compile(r"(?:ssh-ed25519|ecdsa-sha2-nistp256|ssh-rsa) [A-Za-z0-9+/]{16,1024}={0,3}")
_WORDS = re.compile(r"[ -~]{1,160}")
_MOST_KEYS = 4
_MOST_FAULTS = 4


class Health(NamedTuple):
    """How a VM is at present: what it complains of, a few words each."""

    faults: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()


WELL = Health()


class Member(NamedTuple):
    """One VM."""

    name: str  # its name, which a VM that its group makes again keeps
    instance_id: str  # its number, which such a VM gets again
    address: str  # that of its first interface
    boot: str  # the kernel's name for this boot
    key: str = ""  # the public half of its ssh key; "" where node ssh is off
    # the public keys that its sshd shows; none where node ssh is off
    host_keys: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # what its GPUs complain of, in words; see `gpu_health`
    account: str = ""  # the number of the account whose tokens it gets; "" where nobody says
    disks: tuple[str, ...] = ()  # what is full, or does not answer; see `disk_health`

    @classmethod
    def of(cls, document: Any) -> Member:
        """Make it from a document.

        Raises:
            ValueError: It is not what a VM writes.
        """
        if not isinstance(document, dict):
            raise ValueError("a member is an object")  # noqa: TRY004 - one error for all
        host_keys = document.get("host_keys", [])
        if not isinstance(host_keys, list) or len(host_keys) > _MOST_KEYS:
            raise ValueError("a member has a few host keys")
        faults, disks = document.get("faults", []), document.get("disks", [])
        if not all(isinstance(it, list) and len(it) <= _MOST_FAULTS for it in (faults, disks)):
            raise ValueError("a member has a few faults")
        return cls(
            matched(_NAME, document.get("name")),
            matched(_INSTANCE, document.get("instance_id")),
            address(document.get("address")),
            matched(_BOOT, document.get("boot")),
            matched(_KEY, document["key"]) if document.get("key") else "",
            tuple(matched(_KEY, key) for key in host_keys),
            tuple(matched(_WORDS, it) for it in faults),
            matched(_ACCOUNT, document.get("account", "")),
            tuple(matched(_WORDS, it) for it in disks),
        )

    def document(self) -> dict[str, Any]:
        """It as JSON has it."""
        lists = {it: list(getattr(self, it)) for it in ("host_keys", "faults", "disks")}
        return {**self._asdict(), **lists}


def matched(pattern: re.Pattern[str], value: object) -> str:
    """A text that a pattern describes as a whole.

    Raises:
        ValueError: It is another, or no text.
    """
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"not as it must be: {str(value)[:80]!r}")
    return value


def address(value: object) -> str:
    """An IPv4 address; one of IPv6 may end with a text that is no address.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(value, str):
        raise ValueError("an address is a text")  # noqa: TRY004 - one error for all that is wrong
    return str(ipaddress.IPv4Address(value))


def parse(text: bytes, name: str) -> Member:
    """What an object says of the VM whose name it has.

    Raises:
        ValueError: It is not what that VM writes.
    """
    member = Member.of(storage.decoded(text))
    if member.name != name:
        raise ValueError(f"the object of {name} speaks of {member.name}")
    return member


def myself(key: str = "", host_keys: Iterable[str] = ()) -> Member:
    """This VM.

    Raises:
        OSError: The metadata server does not answer.
    """
    try:
        account = matched(_ACCOUNT, metadata.account())
    except (OSError, ValueError):
        account = ""
    return Member(
        metadata.get("instance/name"),
        metadata.get("instance/id"),
        metadata.get("instance/network-interfaces/0/ip"),
        _BOOT_ID.read_text("utf-8").strip(),
        key,
        tuple(host_keys),
        account=account,
    )


class Heartbeat:
    """This VM's own object: made at its first beat, its metadata changed at each other.

    `notes`: what it always says there, which the tool reads of all VMs with one list.
    """

    def __init__(
        self,
        folder: storage.Folder,
        member: Member,
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._folder = folder
        self._member = member
        self._notes = notes
        self._made: storage.Version | None = None

    def beat(self, health: Health = WELL, startup: str | None = None) -> None:
        """Say that this VM lives, and how it is.

        `startup`: what it tells of its start-up when that is done, beside the guest attribute: one
        list of these objects has that of all VMs, where Google answers for one at a time.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
        """
        if health != (self._member.faults, self._member.disks):
            self._member, self._made = self._member._replace(**health._asdict()), None
        notes = {**self._notes, "startup": startup}
        if self._made is not None:
            self._made = self._folder.touch(self._made, notes)
        if self._made is None:  # the first, or somebody has taken this VM for gone
            name = f"{FOLDER}{self._member.name}.json"
            self._made = self._folder.write(name, self._member.document())
            if self._made is not None and (startup is not None or self._notes):
                self._made = self._folder.touch(self._made, notes)


class Watch:
    """Which members live: those whose objects have changed while somebody watched.

    Only the watcher's own clock counts, and of a pause between its looks no more than usual ones
    have: it saw nobody meanwhile. What it sees for the first time lives: objects of members that
    are gone are deleted. `expiry`: seconds without a change after which a member is gone; half as
    many more where half of all say nothing, as then rather something is amiss that all need.
    """

    def __init__(self, expiry: float) -> None:
        self._expiry = expiry
        self._seen: dict[str, tuple[storage.Version, float]] = {}
        self._moment = float("-inf")
        self._watched = 0.0

    def look(
        self, listed: Iterable[storage.Version], moment: float
    ) -> tuple[list[storage.Version], list[storage.Version]]:
        """The objects of members that live, and of those that are gone."""
        self._watched += min(moment - self._moment, self._expiry / 8)
        self._moment = moment
        now = {}
        for version in listed:
            seen = self._seen.get(version.name)
            is_same = seen is not None and seen[0] == version
            now[version.name] = seen if is_same and seen else (version, self._watched)
        self._seen = now
        silence = {version: self._watched - since for version, since in now.values()}
        late = sum(seconds > self._expiry / 2 for seconds in silence.values())
        patience = 1.5 if late > 1 and late * 2 >= len(silence) else 1.0
        gone = [it for it, seconds in silence.items() if seconds > self._expiry * patience]
        lost = {version.name for version in gone}
        return [version for name, (version, _) in now.items() if name not in lost], gone
