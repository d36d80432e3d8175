"""A rehearsal: the program itself, in an environment whose Google Cloud is the simulated one.

Nothing in the program knows of it. What is done here could be done by hand: start the cloud, set
variables, start the program.
"""

import difflib
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn
from urllib.parse import urlsplit

from rehearsal import clock
from rehearsal.cloud import real_programs, scenarios
from rehearsal.cloud.facts import offers
from rehearsal.errors import CloudNotStarted, UnknownScenario
from rehearsal.presumption import named
from rehearsal.provider import given, mirror
from rehearsal.provider.given import Given

FOLDER_VARIABLE = "AIINFRA_REHEARSAL_FOLDER"
DATABASE = "cloud.sqlite"
LOG = "cloud.log"
MANIFESTS_VARIABLE = "AIINFRA_MANIFESTS"
MANIFESTS = Path(__file__).parent / "manifests"
"""What the simulated cluster needs of the add-ons, whose own manifests are part of the image."""

_PROGRAMS = ("gcloud", "kubectl")

_CLOCK_RATE = "0.02"  # fifty seconds of Google Cloud in one of ours

# What can lead to real credentials, a real project or a real endpoint, and what would mix up the
# real google provider with its stand-in: a cache of plugins goes by version alone.
_DROPPED = re.compile(
    r"(?:GOOGLE|GCLOUD|CLOUDSDK|GCE_METADATA|DEVSHELL)_.*"
    r"|STORAGE_EMULATOR_HOST(?:_GRPC)?|API_(?:ENDPOINT|VERSION)_OVERRIDE|NO_GCE_CHECK|KUBECONFIG"
    r"|USER_PROJECT_OVERRIDE"
    r"|TF_(?:CLI_CONFIG_FILE|REATTACH_PROVIDERS|PLUGIN_CACHE_.*)|TERRAFORM_CONFIG"
)

OF_TOKENS = "GOOGLE_IAM_CREDENTIALS_CUSTOM_ENDPOINT"
"""The variable of the API that answers with tokens."""

# As provider 7.45.0 reads them: Kubernetes Engine's client replaces the last part of the path,
# Monitoring's adds the version. Storage's also moves Python's client of this program.
ENDPOINTS = {
    "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": "/storage/v1/",
    "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT": "/cloudbilling/v1/",
    "GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT": "/cloudquotas/v1/",
    "GOOGLE_COMPUTE_CUSTOM_ENDPOINT": "/compute/v1/",
    "GOOGLE_CONTAINER_CUSTOM_ENDPOINT": "/container/v1/",
    "GOOGLE_FILESTORE_CUSTOM_ENDPOINT": "/file/v1/",
    "GOOGLE_IAM_BETA_CUSTOM_ENDPOINT": "/iam/v1/",
    OF_TOKENS: "/iamcredentials/v1/",
    "GOOGLE_KMS_CUSTOM_ENDPOINT": "/cloudkms/v1/",
    "GOOGLE_MONITORING_CUSTOM_ENDPOINT": "/monitoring/",
    "GOOGLE_ORG_POLICY_CUSTOM_ENDPOINT": "/orgpolicy/v2/",
    "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT": "/crm/v1/",
    "GOOGLE_RESOURCE_MANAGER_V3_CUSTOM_ENDPOINT": "/crm/v3/",
    "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT": "/secretmanager/v1/",
    "GOOGLE_SERVICE_USAGE_BETA_CUSTOM_ENDPOINT": "/serviceusage/v1beta1/",
    "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT": "/serviceusage/v1/",
    "GOOGLE_STORAGE_CUSTOM_ENDPOINT": "/storage/v1/",
    "KUBERNETES_CUSTOM_ENDPOINT": "/kubernetes/{endpoint}",
    "API_ENDPOINT_OVERRIDE": "",
}


def folder(environ: Mapping[str, str]) -> Path:
    """The folder that keeps the simulated cloud from one run to the next; made when missing."""
    home = environ.get("HOME") or str(Path.home())
    state = environ.get("XDG_STATE_HOME") or str(Path(home, ".local", "state"))
    usual = Path(state, "aiinfra-cluster", "rehearsal")
    found = Path(environ.get(FOLDER_VARIABLE) or usual)
    found.mkdir(mode=0o700, parents=True, exist_ok=True)
    return found


def environment(
    base_url: str, folder: Path, environ: Mapping[str, str], provider: Given | None = None
) -> dict[str, str]:
    """Make the environment in which every client of Google's finds the simulated cloud.

    `folder`: keeps what the clients need: configuration, the stand-in provider. `provider`: what
    Terraform is to run in place of the stand-in; None for what the environment names, if it does.

    Raises:
        ProviderNotUsable: The provider that the environment names can't be run.
    """
    host = urlsplit(base_url).netloc
    kept = {name: value for name, value in environ.items() if not _DROPPED.fullmatch(name)}
    return {
        **with_clock(kept),
        **{name: base_url + path for name, path in ENDPOINTS.items()},
        **_identity(host, folder),
        **no_proxy(environ),
        FOLDER_VARIABLE: str(folder),
        clock.FILE_VARIABLE: str(folder / clock.FILE),
        MANIFESTS_VARIABLE: environ.get(MANIFESTS_VARIABLE) or str(MANIFESTS),
        **_provider(base_url, folder, provider or given.find(environ, folder)),
        "PYTHONPATH": python_path(environ),
        "PATH": _programs(folder, environ.get("PATH", os.defpath)),
    }


def _provider(base_url: str, folder: Path, provider: Given | None) -> dict[str, str]:
    """Which google provider Terraform finds: the stand-in, or one from outside."""
    if provider is None:
        return {"TF_CLI_CONFIG_FILE": str(mirror.install(folder, sys.executable))}
    config = mirror.install_given(folder, provider.binary, provider.sha256)
    # To log whose its token is, it asks openidconnect.googleapis.com, which no variable moves. The
    # cloud is no proxy and refuses: the question goes nowhere, and no work waits for its answer.
    return {
        "TF_CLI_CONFIG_FILE": str(config),
        given.VARIABLE: str(provider.binary),
        "HTTPS_PROXY": base_url,
        "https_proxy": base_url,
    }


def _programs(folder: Path, path: str) -> str:
    """A PATH in which the programs come first that answer in place of Google's own."""
    place = (folder / "bin").resolve()
    place.mkdir(exist_ok=True)
    for name in _PROGRAMS:
        line = f'exec {shlex.quote(sys.executable)} -P -m rehearsal.shells {name} "$@"'
        mirror.executable(place / name, f"#!/bin/sh\n{line}\n")
    return os.pathsep.join([str(place), *(it for it in path.split(os.pathsep) if it != str(place))])


def with_clock(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with a clock that suits a rehearsal, unless the caller has set one."""
    return {**environ, clock.VARIABLE: environ.get(clock.VARIABLE) or _CLOCK_RATE}


def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    scenario: str,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> NoReturn:
    """Become the program in a rehearsal's environment.

    The process stays the same, so signals, the terminal and the exit code are the program's. The
    cloud is a process beside it that ends when this one does. `scenario`: what the cloud is to
    practise: names with commas between; "" for nothing. `settings`: variable -> text. What they
    name, and the program does not make, is made.

    Raises:
        UnknownScenario: There is no such scenario.
        CloudNotStarted: It ended before it served.
        ProviderNotUsable: The provider that it is to run with can't be run.
    """
    check_scenario(scenario)
    place = folder(environ)
    provider = wanted_provider(place, environ, scenario)
    is_new = not (place / DATABASE).exists()
    base_url, presumed = _start_cloud(place, environ, scenario, settings)
    rehearsed = environment(base_url, place, environ, provider)
    if is_new:
        sys.stderr.write(
            f"This is a rehearsal: Google Cloud is simulated{_pace(rehearsed)}, and kept in\n"
            f"  {place}\n  (to forget it: aiinfra-rehearsal forget)\n"
        )
    sys.stderr.write(not_as_google(scenario) + cut_off(argv, scenario))
    if provider is not None:
        sys.stderr.write(f"Terraform runs the google provider {provider.about}.\n")
    if presumed:
        sys.stderr.write(f"{presumed}\n")
    sys.stderr.flush()
    os.execve(  # noqa: S606 - this very program, no shell
        sys.executable, [sys.executable, "-m", "provision", *argv], rehearsed
    )


def _pace(environ: Mapping[str, str]) -> str:
    """How fast time goes; "" where nothing takes any."""
    seconds = round(3600 * clock.rate(environ))
    return f", an hour of it in {seconds} seconds" if seconds else ""


def not_as_google(scenario: str) -> str:
    """A line about what makes a rehearsal pass that Google would refuse; "" where nothing does."""
    if offers.EVERYWHERE not in scenarios.parse(scenario):
        return ""
    return (
        f"Under the scenario {offers.EVERYWHERE} every zone has every machine type, in every way:"
        " Google may refuse what passes here.\n"
    )


def cut_off(argv: Sequence[str], scenario: str) -> str:
    """A line about programs that end as soon as the command does; "" where nothing is cut off."""
    own = itertools.takewhile(lambda it: it != "--", argv)
    if real_programs.SCENARIO not in scenarios.parse(scenario) or "--detach" not in own:
        return ""
    return (
        "With --detach the programs of the job end with this command, as they would not on Google:"
        " leave it out, or rehearse by aiinfra-rehearsal serve.\n"
    )


def check_scenario(scenario: str) -> None:
    """Refuse a scenario that is not known: UnknownScenario names those that are."""
    try:
        scenarios.parse(scenario)
    except ValueError as error:
        # All that there are follow behind it; `fix` has those that are near, if any is.
        why = str(error).partition(";")[0]
        raise UnknownScenario(
            f"The scenario {scenario!r} can't be rehearsed", why=why, fix=_meant(scenario)
        ) from error


def _meant(scenario: str) -> str:
    """The scenarios whose names are nearest; docs/how-to/rehearse.md says what each does."""
    close = difflib.get_close_matches(scenario, scenarios.SCENARIOS, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"use one of {', '.join(scenarios.SCENARIOS)}; docs/how-to/rehearse.md explains them"


def wanted_provider(folder: Path, environ: Mapping[str, str], scenario: str) -> Given | None:
    """What runs in place of the stand-in, if anything; ProviderNotUsable if it can't be run."""
    return given.find(environ, folder, wanted=given.SCENARIO in scenarios.parse(scenario))


def _start_cloud(
    folder: Path, environ: Mapping[str, str], scenario: str, settings: Mapping[str, str]
) -> tuple[str, str]:
    """Start the cloud, which ends with this process; its base URL, and what is presumed there."""
    # Anybody may read a command line, so what names nothing stays out of it.
    naming = {name: text for name, text in settings.items() if name in named.SETTINGS}
    reading, writing = os.pipe()
    # The write end outlives our exec and is closed by the end of the process alone. Nothing that
    # the program starts inherits it: subprocess closes what it is not told to pass on.
    os.set_inheritable(writing, True)
    command = [
        *(sys.executable, "-m", "rehearsal.cloud"),
        *("--database", str(folder / DATABASE)),
        *("--scenario", scenario),
        *("--presume", json.dumps(naming)),
        *("--exit-with-fd", str(reading)),
    ]
    with (folder / LOG).open("ab") as log:
        cloud = subprocess.Popen(  # noqa: S603 - our own program
            command,
            env=with_clock(environ) | {"PYTHONPATH": python_path(environ)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(reading,),
            start_new_session=True,  # Ctrl-C is for the program: it needs the cloud to clean up
        )
    os.close(reading)
    line = b""
    if cloud.stdout is not None:  # which it never is, with PIPE
        with cloud.stdout as ready:
            line = ready.readline()
    if not line:
        os.close(writing)
        cloud.wait()
        raise CloudNotStarted(
            "The simulated cloud did not start", why=f"its log, {folder / LOG}, tells why"
        )
    ready = json.loads(line)
    return str(ready["base_url"]), str(ready["presumed"])


def _identity(host: str, folder: Path) -> dict[str, str]:
    """Who the clients are: a VM's service account, by the simulated metadata server."""
    configuration = folder / "gcloud"
    configuration.mkdir(mode=0o700, exist_ok=True)
    return {
        "GCE_METADATA_HOST": host,
        "GCE_METADATA_IP": host,
        "GCE_METADATA_ROOT": host,
        # On a real VM google-auth would speak TLS, with the VM's certificate, to this one too.
        "GCE_METADATA_MTLS_MODE": "none",
        "GOOGLE_API_USE_CLIENT_CERTIFICATE": "false",
        # google-auth and gcloud look for a person's credentials here before they ask the metadata
        # server. Go's libraries look in the home folder, whatever is said here: a token that is
        # given outright keeps Terraform's backend and provider from looking at all.
        "CLOUDSDK_CONFIG": str(configuration),
        "GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.rehearsal",
    }


def no_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """Loopback is reached directly; libraries differ in which of the two names they read."""
    before = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    value = ",".join(filter(None, [before, "127.0.0.1", "localhost"]))
    return {"NO_PROXY": value, "no_proxy": value}


def python_path(environ: Mapping[str, str]) -> str:
    """The PYTHONPATH with which what starts in another folder, as a plugin does, finds us."""
    root = str(Path(__file__).parents[1])
    before = environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([root, *(path for path in before if path not in ("", root))])
