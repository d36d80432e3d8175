"""Stand-ins for gcloud and kubectl, where they open a shell on a VM or in a pod.

The real ones would look for the machine at Google. A line of shell that packs the folder of a job
is answered with that folder where programs are really run, else with the folder as it was sent
there; every other line, and a shell for a person, with why there is none.

Sources: `gcloud compute ssh --help`, `kubectl exec --help`: the exit code is that of the line; 1
where it was not run.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from rehearsal import session
from rehearsal.cloud import real_programs
from rehearsal.cloud.compute import startup_told
from rehearsal.cloud.compute.resources import INSTANCE
from rehearsal.cloud.storage import objects
from rehearsal.cloud.store import Database, Store

_NOT_RUN: Final = 1
_USER: Final = "owner_example_com"  # whom OS Login makes of the owner of each project here
_PACKS: Final = re.compile(
    r".*test -d (?P<folder>\S+) \|\| [^\n]*exit (?P<none>\d+)[^\n]*\n.*exit (?P<missing>\d+); \}\n"
    r".*tar -C \S+ -cf - (?P<path>.+)\n",
    re.DOTALL,
)


class _Packed(NamedTuple):
    content: bytes
    has_run: bool = False  # whether its program has


def _vm(words: Sequence[str]) -> tuple[str, _Packed | None, str]:
    """The line that a VM is to run, the folder of its job, and why not."""
    parser = argparse.ArgumentParser(prog="gcloud compute ssh")
    parser.add_argument("name")
    parser.add_argument("--project", required=True)
    parser.add_argument("--zone", required=True)
    parser.add_argument("--command", default="")
    parser.add_argument("--ssh-flag", action="append")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--tunnel-through-iap", action="store_true")
    asked = parser.parse_args([*words])
    path = f"projects/{asked.project}/zones/{asked.zone}/instances/{asked.name}"
    found = _asked(f"{os.environ['GOOGLE_COMPUTE_CUSTOM_ENDPOINT']}{path}")
    if found.get("status") != "RUNNING":
        state = found.get("status", "not there")
        return asked.command, None, f"ERROR: (gcloud.compute.ssh) {asked.name} is {state}"
    if asked.dry_run:
        sys.stdout.write(f"/usr/bin/ssh -t {_USER}@compute.{found['id']}\n")
        return asked.command, None, ""
    with _store() as store:
        named = (vm for _, vm in store.list(INSTANCE.stored) if vm["name"] == asked.name)
        bucket, folder = next(filter(None, map(startup_told.shared_folder, named)), ("", ""))
        name = Path(_folder(asked.command)).name
        job = objects.live(store, bucket, f"{folder}/jobs/{name}.json")
        if job is None:
            return asked.command, None, ""
        if (real := _real(store, bucket, folder, name, asked.name)) is not None:
            return asked.command, real, ""
        sent = json.loads(objects.content(store, job))["files"]
        return asked.command, _sent(store, bucket, f"{folder}/jobs/files/{sent}.tar.gz"), ""


def _real(store: Store, bucket: str, folder: str, job: str, vm: str) -> _Packed | None:
    """The folder in which a VM's program has really run; None where it has not."""
    said = (f"{folder}/vms/{it}.json" for it in (f"jobs/{job}/course", "job"))
    there = filter(None, (objects.live(store, bucket, it) for it in said))
    found = (json.loads(objects.content(store, it)) for it in there)
    nodes: list[Any] = next((it["nodes"] for it in found if it.get("name") == job), [])
    rank = next((it["rank"] for it in nodes if it["name"] == vm), None)
    place = Path(os.environ[session.FOLDER_VARIABLE], real_programs.PLACE)
    place = place / folder.rpartition("/")[2] / job
    # Tasks share the folder of their VM.
    place = next(place.glob(f"{vm}/0"), place / str(rank)) / "folder"
    if not place.is_dir():
        return None
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for it in sorted(place.iterdir()):
            archive.add(it, it.name)
    return _Packed(made.getvalue(), has_run=True)


def _pod(words: Sequence[str]) -> tuple[str, _Packed | None, str]:
    """The same of a pod."""
    parser = argparse.ArgumentParser(prog="kubectl exec")
    parser.add_argument("name")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--container", required=True)
    parser.add_argument("-it", action="store_true")
    cut = words.index("--")
    asked = parser.parse_args(words[:cut])
    line = words[-1]
    known = json.loads(Path(os.environ["KUBECONFIG"]).read_text("utf-8"))
    server = known["clusters"][0]["cluster"]["server"]
    pod = _asked(f"{server}/api/v1/namespaces/{asked.namespace}/pods/{asked.name}")
    if (pod.get("status") or {}).get("phase") != "Running":
        why = f'error: unable to upgrade connection: container not found ("{asked.container}")'
        return line, None, why
    for container in pod["spec"]["initContainers"]:
        told = container["command"]
        if "fetch" in told:
            with _store() as store:
                return line, _sent(store, *told[told.index("fetch") + 1 :]), ""
    return line, _sent_nothing(), ""


def _asked(url: str) -> dict[str, Any]:
    """What the simulated cloud answers; {} where there is no such thing."""
    request = urllib.request.Request(url, headers={"Authorization": "Bearer rehearsal"})  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
            return dict(json.load(answer))
    except urllib.error.HTTPError:
        return {}


@contextlib.contextmanager
def _store() -> Any:
    database = Database(Path(os.environ[session.FOLDER_VARIABLE], session.DATABASE))
    with contextlib.closing(database), database.transaction() as store:
        yield store


def _sent(store: Store, bucket: str, name: str) -> _Packed:
    found = objects.live(store, bucket, name)
    return _sent_nothing() if found is None else _Packed(objects.content(store, found))


def _sent_nothing() -> _Packed:
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    return _Packed(empty.getvalue())


def _folder(line: str) -> str:
    found = _PACKS.fullmatch(line)
    return found["folder"] if found else ""


def _run(line: str, sent: _Packed | None, out: IO[bytes]) -> int:
    """Do what a line says where it packs a folder; its exit code."""
    packs = _PACKS.fullmatch(line)
    if packs is None:
        sys.stderr.write("This is a rehearsal: there is no machine to open a shell on\n")
        return _NOT_RUN
    if sent is None:
        return int(packs["none"])
    path = shlex.split(packs["path"])[0].removeprefix("./")
    with tarfile.open(fileobj=io.BytesIO(sent.content)) as packed:
        own = [it for it in packed if not path or f"{it.name}/".startswith(f"{path}/")]
        if path and not own:
            names = {it.name.partition("/")[0] for it in packed}
            sys.stderr.write("".join(f"{it}\n" for it in sorted(names)))
            return int(packs["missing"])
        if not sent.has_run:
            words = "no program ran, so this is what was sent there"
            sys.stderr.write(f"This is a rehearsal: {words}\n")
        with tarfile.open(fileobj=out, mode="w|") as made:
            for it in own:
                content = packed.extractfile(it) if it.isreg() else None
                it.name = f"./{it.name}"
                made.addfile(it, content)
    return 0


def main(name: str, *words: str) -> int:
    """Answer as the program of this name."""
    asks = {"gcloud": ("compute", "ssh"), "kubectl": ("exec",)}[name]
    if words[: len(asks)] != asks:
        sys.stderr.write(f"This is a rehearsal: {shlex.join((name, *words))} was not run\n")
        return _NOT_RUN
    rest = words[len(asks) :]
    line, sent, why = _vm(rest) if name == "gcloud" else _pod(rest)
    if "--dry-run" in rest and not why:
        return 0
    if why:
        sys.stderr.write(f"{why}\n")
        return _NOT_RUN
    return _run(line, sent, sys.stdout.buffer)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
