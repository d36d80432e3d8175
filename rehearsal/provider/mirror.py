"""Where Terraform finds the stand-in: a filesystem mirror, and the CLI configuration that names it.

The mirror's package is one shell script, the same bytes everywhere and for ever: Terraform writes a
checksum of the package into lock files, and refuses a package with another one. Everything that may
change is outside: the script starts the Python that `REHEARSAL_PYTHON` names, else the one that
`install` left beside the CLI configuration.
"""

import json
import os
import platform
import shlex
from pathlib import Path
from typing import Final

from rehearsal.provider import certificate

VERSION: Final = "7.45.0"
ADDRESS: Final = "registry.terraform.io/hashicorp/google"
NAME: Final = f"terraform-provider-google_v{VERSION}_x5"
"""The provider's executable, as HashiCorp names it."""
PLUGIN: Final = """\
#!/bin/sh
# The stand-in for the google provider. These bytes never change: lock files hold their checksum.
python="${REHEARSAL_PYTHON:-$(dirname "$TF_CLI_CONFIG_FILE")/python}"
exec "$python" -P -m rehearsal.provider
"""

_ARCHITECTURES: Final = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
}


def install(folder: Path, python: str) -> Path:
    """Write the mirror, the CLI configuration, and the way to Python."""
    folder = folder.resolve()
    executable(_package(folder) / NAME, PLUGIN)
    certificate.write(folder / "plugin.pem")
    executable(folder / "python", _launcher(python, folder / "plugin.pem"))
    return _written(folder)


def install_given(folder: Path, binary: Path, sha256: str) -> Path:
    """Write a mirror with a provider from outside, and the CLI configuration that names it.

    Beside the stand-in's, and one for each binary: rehearsals that share a folder may use another
    one at the same time. Its package has another checksum than the stand-in's, which no lock file
    minds: the roots' have the checksums of HashiCorp's zips alone, and Terraform holds an unpacked
    package to none of those.
    """
    place = folder.resolve() / "given" / sha256[:16]
    fresh = _package(place) / f".{NAME}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(binary.resolve())
    fresh.replace(fresh.with_name(NAME))
    return _written(place)


def _package(folder: Path) -> Path:
    """The mirror's only package, made when missing."""
    package = folder / "mirror" / ADDRESS / VERSION / platform_name()
    package.mkdir(parents=True, exist_ok=True)
    return package


def _written(folder: Path) -> Path:
    config = folder / "terraform.rc"
    config.write_text(_config(folder / "mirror"), encoding="utf-8")
    return config


def platform_name() -> str:
    """This machine, as Terraform names it ("linux_amd64")."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}_{_ARCHITECTURES.get(machine, machine)}"


def _launcher(python: str, pem: Path) -> str:
    """A script (no link: it would lose the virtual environment) that starts this package."""
    source = shlex.quote(str(Path(__file__).parents[2]))
    return (
        "#!/bin/sh\n"
        f'export PYTHONPATH={source}"${{PYTHONPATH:+:$PYTHONPATH}}"\n'
        f"export {certificate.VARIABLE}={shlex.quote(str(pem))}\n"
        f'exec {shlex.quote(python)} "$@"\n'
    )


def _config(mirror: Path) -> str:
    path = json.dumps(str(mirror))
    return f"""\
disable_checkpoint = true

provider_installation {{
  filesystem_mirror {{
    path    = {path}
    include = ["{ADDRESS}"]
  }}
  direct {{
    exclude = ["{ADDRESS}"]
  }}
}}
"""


def executable(path: Path, text: str) -> None:
    """Write a script in one step, since a Terraform may be starting it."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o755)
    fresh.replace(path)
