"""A google provider from outside, in the place of the stand-in.

`REHEARSAL_PROVIDER` names the file: the binary, or the zip in which HashiCorp publishes it. In the
project's image it lies where Terraform finds it at work, and the scenario `real-provider` takes it
from there. It is judged by its name, as Terraform does, and by whether it starts here.
"""

import hashlib
import os
import re
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rehearsal.errors import ProviderNotUsable
from rehearsal.provider import mirror

VARIABLE: Final = "REHEARSAL_PROVIDER"  # the environment variable that names the file
SCENARIO: Final = "real-provider"  # the scenario that wants one, the image's if no other is named
IMAGE: Final = Path("/usr/local/share/terraform/providers")
"""Where the project's image keeps Terraform's providers (its Dockerfile)."""

_BINARY: Final = re.compile(rf"terraform-provider-google_v{re.escape(mirror.VERSION)}(_x\d+)?")
_ZIP: Final = re.compile(
    rf"terraform-provider-google_{re.escape(mirror.VERSION)}_(?P<platform>[a-z]+_[a-z0-9]+)\.zip"
)
_COOKIE: Final = "TF_PLUGIN_MAGIC_COOKIE"
"""By this variable a plugin knows that Terraform starts it."""
_START: Final = 60
"""Seconds in which a plugin that nobody may start by hand has said so, on a busy machine."""
_FIX: Final = (
    f"give the google provider {mirror.VERSION}, the binary or HashiCorp's zip of it:"
    f" {VARIABLE}=/folder/{mirror.NAME}"
)

# sha256 of the zips of 7.45.0, one for each platform: HashiCorp's signed SHA256SUMS, as Terraform
# wrote them into the roots' lock files ("zh:").
_PUBLISHED: Final = frozenset(
    {
        "0f33485d068e39b1661d4ad789dfac353134b99cb5746e463e7719c053d70c06",
        "162335c448b15125924c3451dc0a411635138c00e36784d9586b9df61bc8a3d7",
        "172c9e4902e9a01b1111bbbb9063a47804ec5f4207b2221df9c398239ff3b350",
        "39acce0806f1aeca106ea529053778681e332f3f895c21c6a6a9fb267bed1058",
        "58dadd7b96b7b706e2995a04f356862be7cfd6b55f6257464c8b10986abf8efa",
        "7230a5e49abed243317b9de0ee7fd365b4a2775b532a5d66006b39c4703978ac",
        "a1b60814ee9a0726c0cd43d36da2cee3db97ec296ee66b111a7e603997de9122",
        "a454c09162ccd342e101704dca4b0eedc2d11939ac48ebd7b7d505a96c1933e6",
        "ad6fdf73e072f510a7d8e2b70f9e1021d08b9076eae146b420f333905708c982",
        "de1de65b909c99430f8bef092718b75dc5c777e98daf474a2215621f35095bb8",
        "f569b65999264a9416862bca5cd2a6177d94ccb0424f3a4ef424428912b9cb3c",
        "fb1b9d1ea7bc79b7409f02aa7c19ba39afa22dbead69e83ae7eb2691ac5c2426",
    }
)


@dataclass(frozen=True)
class Given:
    """A provider that Terraform can start here."""

    binary: Path  # the executable file
    sha256: str  # of that file, in hex
    about: str  # what a person is told of it


def find(environ: Mapping[str, str], folder: Path, *, wanted: bool = False) -> Given | None:
    """The provider that the environment names, checked; None for the stand-in.

    Raises:
        ProviderNotUsable: The file that is named is not this version's, or can't be started here;
            or one is wanted, none is named, and the image's is not there.
    """
    named = environ.get(VARIABLE)
    if named:
        return check(Path(named).expanduser().absolute(), folder)
    if not wanted:
        return None
    package = IMAGE / mirror.ADDRESS / mirror.VERSION / mirror.platform_name()
    found = [path for path in package.glob("*") if _BINARY.fullmatch(path.name)]
    if not found:
        raise ProviderNotUsable(
            f"The scenario {SCENARIO!r} finds no google provider",
            why=f"it takes the one of the project's image, and there is none in {package}",
            fix=f"rehearse in the image; or {_FIX}",
        )
    return check(found[0], folder)


def check(file: Path, folder: Path) -> Given:
    """Refuse (ProviderNotUsable) what is no provider of this version, or does not start here."""
    if not file.is_file():
        raise _refused(file, "there is no such file")
    origin = ""
    binary = file
    if match := _ZIP.fullmatch(file.name):
        if match["platform"] != mirror.platform_name():
            why = f"it is for {match['platform']}, and this machine is {mirror.platform_name()}"
            raise _refused(file, why)
        digest = _sha256(file)
        published = digest in _PUBLISHED
        origin = " of HashiCorp's zip" if published else " of a zip that is none of HashiCorp's"
        binary = _unpacked(file, folder / "unpacked" / digest[:16])
    elif not _BINARY.fullmatch(file.name):
        why = (
            f"its name has to be {mirror.NAME} or terraform-provider-google_{mirror.VERSION}"
            f"_{mirror.platform_name()}.zip: that is how Terraform, too, tells a version"
        )
        raise _refused(file, why)
    _start(binary, file)
    digest = _sha256(binary)
    return Given(binary, digest, f"{binary}{origin} (sha256 {digest})")


def _unpacked(file: Path, place: Path) -> Path:
    """The binary of a zip; one that was unpacked before is used again."""
    try:
        with zipfile.ZipFile(file) as packed:
            names = [name for name in packed.namelist() if _BINARY.fullmatch(name)]
            if len(names) != 1:
                raise _refused(file, f"it does not hold {mirror.NAME}")
            binary = place / names[0]
            if not binary.exists():
                place.mkdir(parents=True, exist_ok=True)
                # In one step: another rehearsal may be unpacking the same.
                fresh = place / f".{names[0]}.{os.getpid()}"
                fresh.write_bytes(packed.read(names[0]))
                fresh.chmod(0o755)
                fresh.replace(binary)
    except zipfile.BadZipFile as error:
        raise _refused(file, f"it is no zip: {error}") from error
    return binary


def _start(binary: Path, file: Path) -> None:
    """Start the plugin as nobody should: without Terraform's cookie it ends at once."""
    if not os.access(binary, os.X_OK):
        raise _refused(file, "it may not be executed", fix=f"chmod +x {file}")
    environ = {name: it for name, it in os.environ.items() if name != _COOKIE}
    try:
        done = subprocess.run(  # noqa: S603 - what the caller wants to run
            [binary], env=environ, capture_output=True, timeout=_START, check=False
        )
    except subprocess.TimeoutExpired as error:
        why = f"started by hand it still ran after {_START} s, and no plugin of Terraform's does"
        raise _refused(file, why) from error
    except OSError as error:
        why = f"this machine ({mirror.platform_name()}) can't start it: {error.strerror}"
        raise _refused(file, why) from error
    if b"plugin" not in (done.stdout + done.stderr).lower():
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
        why = f"started by hand it does not say that it is a plugin, but: {said or 'nothing'}"
        raise _refused(file, why)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _refused(file: Path, why: str, *, fix: str = _FIX) -> ProviderNotUsable:
    what = f"{file} can't be the google provider {mirror.VERSION} of a rehearsal"
    return ProviderNotUsable(what, why=why, fix=fix)
