"""Package sources of a VM: Debian's own packages, and small ones in place of Google's and NVIDIA's.

A folder of sources has for each a folder below it, which apt reads as a file: or an https: source,
and `key.asc`, the key that all are signed with. apt, dpkg and the key are real; what the packages
do when they are installed and run is little.
"""

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import debian


@dataclass(frozen=True)
class Package:
    """A package."""

    name: str
    # what it needs, by the names of fields: Depends, Recommends, Conflicts
    relations: Mapping[str, str] = field(default_factory=dict)
    # path -> text; those in folders of programs may be run
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)  # path -> what it leads to


_BIND = """#!/bin/bash
# mount.TYPE WHAT WHERE -o OPTIONS: a folder of this machine, in place of one far away.
printf '%s\\n' "${0##*/} $*" >>/calls
mkdir -p "/simulated/storage/$1" && exec mount --bind "/simulated/storage/$1" "$2"
"""
_HOSTENGINE = """\
[Unit]
Description=NVIDIA DCGM service
[Service]
ExecStart=/usr/bin/nv-hostengine -n --service-account nvidia-dcgm
[Install]
WantedBy=multi-user.target
"""
_LIBRARY = "usr/lib/x86_64-linux-gnu/libdcgm.so"
_DCGM = "datacenter-gpu-manager-4"

GOOGLE = (
    Package(
        "gcsfuse",
        {"Depends": "mount"},
        {"usr/bin/gcsfuse": "#!/bin/bash\n", "sbin/mount.gcsfuse": _BIND},
    ),
)
# Which package has what: DCGM cmake/packaging.cmake and scripts/verify_package_contents, 4.6.0.
NVIDIA = (
    Package(
        f"{_DCGM}-core",
        {"Conflicts": "datacenter-gpu-manager"},
        {
            f"{_LIBRARY}.4": "",
            "usr/bin/nv-hostengine": "#!/bin/bash\nexec sleep infinity\n",
            "usr/bin/dcgmi": "#!/bin/bash\n"
            'printf "%s\\n" "dcgmi $*" >>/calls\n'
            "[[ -e /usr/lib/x86_64-linux-gnu/libdcgmmoduleprofiling.so.4 ]] || exit 1\n"
            'echo "GPU 0     0.250"\n',
            "lib/systemd/system/nvidia-dcgm.service": _HOSTENGINE,
        },
    ),
    Package(f"{_DCGM}-dev", {"Depends": f"{_DCGM}-core"}, links={_LIBRARY: "libdcgm.so.4"}),
    Package(
        f"{_DCGM}-cuda12", {"Depends": f"{_DCGM}-core", "Recommends": f"{_DCGM}-proprietary-cuda12"}
    ),
    Package(
        f"{_DCGM}-cuda13", {"Depends": f"{_DCGM}-core", "Recommends": f"{_DCGM}-proprietary-cuda13"}
    ),
    Package(
        f"{_DCGM}-proprietary",
        {"Depends": f"{_DCGM}-core"},
        {"usr/lib/x86_64-linux-gnu/libdcgmmoduleprofiling.so.4": ""},
    ),
    Package(f"{_DCGM}-proprietary-cuda12", {"Depends": f"{_DCGM}-proprietary"}),
    Package(f"{_DCGM}-proprietary-cuda13", {"Depends": f"{_DCGM}-proprietary"}),
    Package("datacenter-gpu-manager", files={"usr/bin/dcgmi": "#!/bin/bash\n"}),
)

# In the folder of a source: a list of its packages, signed by the key beside the folder. A suite
# of "" is a source without one, whose line ends with "./" or "/".
_INDEX = """
mkdir -p "/mnt/$source" && cd "/mnt/$source"
if [ -n "$suite" ]; then
  list=main/binary-amd64/Packages top=dists/$suite
  mkdir -p "$top/main/binary-amd64"
else
  list=Packages top=.
fi
for package in *.deb; do
  dpkg-deb --field "$package"
  printf 'Filename: %s\\nSize: %s\\nSHA256: %s\\n\\n' "$package" \\
    "$(stat --format %s "$package")" "$(sha256sum <"$package" | cut -d ' ' -f 1)"
done >"$top/$list"
cd "$top"
printf 'Suite: %s\\nComponents: main\\nArchitectures: amd64\\nDate: %s\\nSHA256:\\n %s %s %s\\n' \\
  "$suite" "$(LC_ALL=C date -u -R)" "$(sha256sum <"$list" | cut -d ' ' -f 1)" \\
  "$(stat --format %s "$list")" "$list" >Release
mkdir -p -m 700 /tmp/gpg
export GNUPGHOME=/tmp/gpg
if [ ! -e /mnt/key.secret ]; then
  gpg --quiet --batch --passphrase '' --quick-generate-key 'Packages of tests' ed25519 sign never
  gpg --quiet --batch --armor --export >/mnt/key.asc
  gpg --quiet --batch --armor --export-secret-keys >/mnt/key.secret
fi
gpg --quiet --batch --import /mnt/key.secret
gpg --quiet --batch --yes --clearsign --output InRelease Release
rm -rf /tmp/gpg
"""
_BUILD = """
mkdir -p /tmp/package/DEBIAN
cp -a "/mnt/$package/." /tmp/package
chmod -R go-w /tmp/package
dpkg-deb --root-owner-group --build /tmp/package "/mnt/$source/"
rm -rf /tmp/package
"""
RECIPE = (repr((GOOGLE, NVIDIA)), _INDEX, _BUILD)
"""Of what the sources are made: another recipe makes other ones."""

_PROGRAMS = ("bin", "sbin")


def index(root: Path, sources: Path, source: str, suite: str = "") -> None:
    """Make a folder with packages a source."""
    debian.run_in(root, _named(source=source, suite=suite) + _INDEX, sources)


def make(root: Path, sources: Path, release: str) -> None:
    """Make the sources that stand in for Google's and NVIDIA's, for a release."""
    for source, suite, packages in (
        ("google", f"gcsfuse-{release}", GOOGLE),
        ("nvidia", "", NVIDIA),
    ):
        (sources / source).mkdir()
        for package in packages:
            _lay_out(package, sources / "package")
            debian.run_in(root, _named(source=source, package="package") + _BUILD, sources)
        index(root, sources, source, suite)
    shutil.rmtree(sources / "package")


def _lay_out(package: Package, folder: Path) -> None:
    """Lay a package out as dpkg-deb takes it."""
    shutil.rmtree(folder, ignore_errors=True)
    control = {
        "Package": package.name,
        "Version": "1:4.6.0-1",
        "Architecture": "amd64",
        "Maintainer": "Tests",
        **package.relations,
        "Description": "stand-in",
    }
    (folder / "DEBIAN").mkdir(parents=True)
    lines = "".join(f"{name}: {value}\n" for name, value in control.items())
    (folder / "DEBIAN/control").write_text(lines)
    for path, text in package.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if file.parent.name in _PROGRAMS else 0o644)
    for path, target in package.links.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(target)


def _named(**values: str) -> str:
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
