"""Chromium from the system's own packages, and a page in it that is driven by its protocol.

Debian's and Ubuntu's packages are fetched as anybody may, and unpacked beside the system, not into
it. Commands go through a pipe: no port, no library.
"""

import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests import debian
from tests.running import ran

PACKAGES: Final = ("chromium-headless-shell", "fonts-dejavu-core")
_OTHERS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_FONTS: Final = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>{fonts}</dir><cachedir>{cache}</cachedir>
<match><test name="family" compare="not_eq"><string>monospace</string></test>
<edit name="family" mode="append" binding="weak"><string>DejaVu Sans</string></edit></match>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""
"""The widest of the usual fonts: what fits in it fits in all."""


class NoChromiumError(Exception):
    """There is none here, and none can be fetched."""


def find() -> tuple[Path, Mapping[str, str]]:
    """The program, and what its environment needs on top.

    Raises:
        NoChromiumError: It is not installed, and the system has no packages of it.
    """
    there = next(filter(None, map(shutil.which, _OTHERS)), None)
    if there is not None:
        return Path(there), {}
    with debian.made_once("chromium") as (folder, missing):
        if missing:
            _unpack(folder)
    (program,) = folder.glob("system/usr/lib/chromium*/chromium-headless-shell")
    libraries = {str(file.parent) for file in (folder / "system").rglob("*.so*")}
    return program, {
        "LD_LIBRARY_PATH": ":".join(sorted(libraries)),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
    }


def _unpack(folder: Path) -> None:
    if shutil.which("apt-get") is None:
        raise NoChromiumError("install Chromium: there is no apt-get to fetch its packages with")
    packages = folder / "packages"
    (packages / "partial").mkdir(parents=True)
    # Lists of our own: the system's may be missing or old, and only root may renew them.
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    apt = [
        *("apt-get", "--quiet", "--yes", "--option", f"Dir::State::Lists={lists}"),
        *("--option", "Dir::Cache::pkgcache=", "--option", "Dir::Cache::srcpkgcache="),
    ]
    subprocess.run([*apt, "update"], capture_output=True, check=False)  # the next one tells
    plan = [*apt, "--no-install-recommends", "--print-uris", "install", *PACKAGES]
    listed = ran(plan)
    if listed.returncode:
        raise NoChromiumError(f"install Chromium: {listed.stderr.strip()}")
    names = [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("'")]
    fetch = [*apt, "download", *(name.split("_")[0] for name in names)]
    subprocess.run(fetch, cwd=packages, capture_output=True, check=True)
    for package in packages.glob("*.deb"):
        unpack = ["dpkg-deb", "--extract", str(package), str(folder / "system")]
        subprocess.run(unpack, check=True)
    shutil.rmtree(packages)
    shutil.rmtree(lists)
    fonts = folder / "system/usr/share/fonts"
    text = _FONTS.format(fonts=fonts, cache=folder / "font-cache")
    (folder / "fonts.conf").write_text(text, encoding="utf-8")


class Browser:
    """A running Chromium with one page."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.requested: list[str] = []
        """The URLs of all requests of the page so far."""
        self.complaints: list[str] = []
        """What the browser wrote into the console of the page."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, and wait for its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == number:
                assert "error" not in told, f"{method}: {told['error']}"
                return dict(told["result"])

    def show(self, file: Path, *, width: int, dark: bool = False, scripts: bool = True) -> None:
        """Open a file, and wait until all of it is there."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.requested.clear()
        self.complaints.clear()
        self.command("Page.navigate", url=file.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """What an expression in JavaScript comes to; the page's own scripts stay off."""
        done = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def picture(self, file: Path) -> None:
        """Keep a picture of the whole page."""
        taken = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def printed(self) -> int:
        """How many pages of paper (A4, which is less high than Letter when it lies) it takes."""
        made = self.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(made["data"])))

    def _next(self) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self._rest:
            read = os.read(self._reading, 1 << 20)
            assert read, "Chromium has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        match told.get("method"):
            case "Network.requestWillBeSent":
                self.requested.append(told["params"]["request"]["url"])
            case "Log.entryAdded":
                self.complaints.append(told["params"]["entry"]["text"])
            case _:
                pass
        return told


@contextlib.contextmanager
def running(profile: Path) -> Iterator[Browser]:
    """Chromium without a window, which ends with the block.

    Raises:
        NoChromiumError: As `find`.
    """
    program, environ = find()
    to_it, from_it = os.pipe(), os.pipe()
    command = [
        *("bash", "-c", f'exec 3<&{to_it[0]} 4>&{from_it[1]}; exec "$@"', "bash"),
        *(str(program), "--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}"),
        # What is shown is ours, and a sandbox takes rights that a container may not have.
        *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--disable-background-networking", "--no-first-run"),
    ]
    chromium = subprocess.Popen(
        command,
        env={**os.environ, "HOME": str(profile), **environ},
        pass_fds=(to_it[0], from_it[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_it[0])
    os.close(from_it[1])
    try:
        yield Browser(from_it[0], to_it[1])
    finally:
        # It ends when nobody can command it any more.
        os.close(to_it[1])
        with contextlib.suppress(subprocess.TimeoutExpired):
            chromium.wait(10)
        chromium.kill()
        chromium.wait()
        os.close(from_it[0])
