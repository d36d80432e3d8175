"""Whatever stands in the bucket, on a VM or in an answer: read as its type, or refused in words."""

import contextlib
import copy
import dataclasses
import json
import re
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests
from google.oauth2.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from provision.codes import Code
from provision.documents import plain
from provision.errors import ProvisionError, SettingsError, StateError
from provision.google.api import GoogleApi, Service
from provision.kinds.gke.kubernetes import kueue, run_jobs
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.kinds.gke.left_behind import Fate, Traces
from provision.kinds.status import shares
from provision.kinds.vms import agent, instances, status, testing
from provision.kinds.vms.agent import Answer
from provision.kinds.vms.instances import Vm
from provision.kinds.vms.jobs import VmJobs
from provision.kinds.vms.startup import Startup
from provision.screens import jobs as screen
from provision.settings import candidates
from provision.settings import values as rules
from provision.settings.model import Settings
from provision.spec.rules import team
from provision.state import location, lost_record, terraform_state
from provision.state.liveness import Machine, Note
from provision.state.objects import Writer
from provision.state.record import ForeignRecordError, Record
from provision.terraform import configuration
from provision.terraform.lock import Lock
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests import stored
from tests.kubernetes import samples
from tests.unit.memory_folder import MemoryFolder, watching
from tests.unit.state.test_record import WHOLE

RECORD = dataclasses.replace(
    WHOLE,
    settings={
        "INSTANCE_COUNT": 2,
        "VM_TYPE": "a2-highgpu-2g",
        "DISK_TYPE": "pd-ssd",
        "DISK_SIZE_GB": 100,
        "GPU_COUNT": 2,
        "PROTECT": False,
        "RESERVATION_NAME": "r",
        "GCS_MOUNT_LIST": [{"bucket": "data", "path": "/mnt/data"}],
        "NFS_FILESHARE_LIST": [{"path": "/mnt/nfs", "tier": "BASIC_SSD", "size_gb": 2560}],
        "METADATA": {"a": "b"},
        "IMAGE_MIRROR": ["us-docker.pkg.dev/my-project/mirror"],
    },
)
RECORD_TEXT = json.loads(RECORD.document())
ATTRIBUTES = {
    "id": "projects/my-project/x",
    "description": "aiinfra-cluster=0123456789ab gs://b/np-deployment",
    "labels": {"aiinfra-cluster": "0123456789ab"},
    "name": "np-3",
    "project": "my-project",
    "region": "us-central1",
    "zone": "us-central1-a",
    "min_master_version": "1.33.5-gke.1080000",
}
STATE: dict[str, Any] = {
    "version": 4,
    "terraform_version": "1.11.4",
    "serial": 7,
    "outputs": {
        "image": {"value": {"project": "p", "family": "f", "name": "n"}},
        "group": {"value": {"size": 2}, "sensitive": False},
    },
    "resources": [
        {
            "module": "module.group",
            "mode": "managed",
            "type": f"google_{kind}",
            "name": "x",
            "provider": 'provider["registry.terraform.io/hashicorp/google"]',
            "instances": [{"index_key": 0, "attributes": ATTRIBUTES}],
        }
        for kind in (
            *("compute_instance_group_manager", "compute_resize_request", "compute_subnetwork"),
            "container_cluster",
        )
    ],
}
LOCK = {"ID": "1-2", "Operation": "apply", "Who": "ann@laptop", "Created": "2026-11-21"}
NOTE = json.loads(
    Note(
        machine=Machine(host="h", boot="b", files="f"), alive="/run/x/alive", lock_id="1"
    ).document()
)
AWAY = {"name": "np-vm-2", "rank": 1, "present": False, "since": "2026-11-21T00:00:00Z"}
ROSTER = {"members": [{"name": "np-vm-1", "rank": 0, "present": True}, AWAY]}
CHECK = {
    "gpus": [{"name": "A100", "driver": "580", "ecc_volatile": 0, "repair_failed": False}],
    "error": "",
    "diagnostic": {"ran": True, "failures": ["x"], "error": ""},
    "fabric": {"kind": "tcpxo", "faults": ["x"]},
    "interfaces": [{"name": "eth0", "up": True, "mtu": 8896}],
    "local_ssd": {"disks": 2, "mounted": True},
}
MEASURED = {
    "measured": True,
    "networks": ["Socket"],
    "nccl": "2.28",
    "rows": [{"size": 1 << 30, "out_of_place": 0.1, "in_place": 0.1, "wrong": 0}],
}
ANSWER = {"state": "done", "detail": "x", "answer": {**CHECK, **MEASURED}}
STARTUP = {
    "state": "failed",
    "step": "command",
    "at": "2026-11-21T00:00:00Z",
    "number": 1,
    "steps": {
        "command": {"state": "failing", "detail": "x", "attempt": 2, "failures": 3, "code": 1}
    },
    "gpu_check": {"gpus": 2, "names": ["A100"], "driver": "580", "ecc_errors": 0, "interfaces": 1},
    "fabric": {"kind": "gib"},
}
PRICES = json.loads(
    '{"sources": {"a": {"date": "2026-11-21", "text": "x"}},'
    ' "prices": [["nat", "on-demand", "a", "us-central1 0.1 * 0.2"]]}'
)
PAGE = {"items": [{"name": "np", "zone": "z"}], "nextPageToken": ""}
GUEST = {"queryValue": {"items": [{"namespace": "a", "key": "startup", "value": "{}"}]}}
_VM: dict[str, Any] = {"name": "np-vm-1", "status": "RUNNING", "machine_type": "a2-highgpu-2g"}
VM = Vm(**_VM, interfaces=1, attached={}, remaining=None, notebook=None)

TRACES = {
    "networks": ["projects/my-project/global/networks/np-net"],
    "stems": ["x1y2z3w4"],
    "volumes": {"projects/my-project/locations/us-central1-a/instances/pvc-1": "Delete"},
}
FACTS = json.loads(samples.FLEX_QUEUED_ULTRA.document())
ASKED: dict[str, Any] = {"name": "train-1", "nodes": 2, "restarts": 1}
ASKED |= {"submitted": "2026-11-23T10:00:00.000Z", "gpus": 1}
ASKED["array"] = {"first": 0, "last": 3, "most": 2}
FAILURE = {"vm": "np-vm-1", "rank": 1, "code": 137, "cause": "out of memory", "tail": "x"}
COURSE = {
    "name": "train-1",
    "state": "failed",
    "why": "x",
    "nodes": [{"name": "np-vm-1"}],
    "attempt": 1,
    "began": 1.0,
    "since": 2.0,
    "failure": FAILURE,
    "events": ["x"],
    "tasks": {"waiting": 1, "running": 1, "succeeded": 1, "failed": 1, "cancelled": 0},
}
ON_RAY = {"jobs": [{"name": "raysubmit_x", "state": "RUNNING", "since": 1764000000.5}]}
QUEUED = {"name": "12", "user": "ana", "title": "a.sh", "state": "PENDING", "why": "Resources"}
BY_SLURM = {"jobs": [{**QUEUED, "since": "2026-11-29T10:00:00Z", "nodes": 2, "gpus": 16}]}
TASK = {"attempt": 1, "instance_id": "7", "phase": "ended", "code": 1, "ran": 9.0, "at": 1.0}

QUEUE_NODE = {"name": "np-vm-1", "state": "mixed", "reason": "", "gpus": 8, "gpus_in_use": 3}
QUEUE = {"at": 1.0, "head": "np-vm-1", "nodes": [QUEUE_NODE]}

STORED = stored.found()
DONE = {"at": "2026-11-28T20:00:00Z", "action": "Create", "version": "0.1.0"}
DONE |= {"who": "me@laptop", "ended": "done", "hourly": "3.97"}
SAMPLES: dict[str, tuple[Any, dict[str, Any]]] = {
    "deployment.json": (RECORD_TEXT, {}),
    "terraform/state/default.tfstate": (STATE, {}),
    "terraform/state/default.tflock": (LOCK, {"url": "gs://b/lock"}),
    "runs/{}.json": (NOTE, {}),
    "cluster.json": (FACTS, {"record": RECORD}),
    "leftovers.json": (TRACES, {"record": RECORD}),
    "connection.json": ({"vms": [{"name": "np-vm-1", "rank": 0}]}, {}),
    "prices.json": (PRICES, {}),
    "history.json": ({"lines": [DONE]}, {}),
    "jobs/{}.json": (ASKED, {}),
    "jobs/index.json": ({"jobs": [{"name": "train-1", "cancelled": False}]}, {}),
    "jobs/cancelled/{}": ("2026-11-23T10:00:00.000Z", {}),
    "vms/group.json": ({"instance_count": 2}, {}),
    "vms/idle.json": ({"at": 1.0}, {}),
    "vms/job.json": (COURSE, {}),
    "vms/jobs/{}/course.json": (COURSE, {}),
    "vms/members/{}.json": ({"name": "np-vm-1"}, {}),
    "vms/results/{}/{}.json": (ANSWER, {}),
    "vms/roster.json": (ROSTER, {}),
    "vms/slurm/nodes.json": (QUEUE, {}),
    "vms/jobs/{}/nodes/task-{}.json": (TASK, {}),
    "vms/slurm/jobs.json": (BY_SLURM, {}),
    "ray/jobs.json": (ON_RAY, {}),
    "pods/jobs/{}/began.json": ({"began": 1.0, "why": "x"}, {}),
    "pods/jobs/{}/attempts/{}": ("", {}),
    "pods/jobs/{}/ends/{}/{}.json": (FAILURE, {}),
    "{}/jobs/{}/logs/{}/{}/{}": ("epoch 1", {}),
    "logs/{}.log": ("Apply complete!", {}),
    "{}": ("NAME_PREFIX=np", {}),
}
"""What is well in each object, and what its reader needs beside it."""
TEMPLATES = ['${file("/etc/passwd")}', "%{ if true }x%{ endif }", "$${a}", "us-central1/x?a=b#"]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 10**30, 1e308, -0.0, 2**63, 5e-324]),
    st.sampled_from([[], {}, [[]], [None], {"": {}}, "", "..", "a/b", "\x1b[2J", "\x00", "\u202e"]),
    st.sampled_from(TEMPLATES),
    st.text(max_size=10),
    st.lists(st.integers() | st.text(max_size=3), max_size=3),
)
JUNK = [
    "", "null", "[]", "7", '"x"', "[" * 100_000, '{"a":' * 50_000, "{", '{"a": NaN}', "\ufeff{}",
    '{"a": 1e999}', '{"a": ' + "9" * 5000 + "}", '{"a": "\\ud800"}', "\x00",
]  # fmt: skip


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a document: what it is in, and the key or number there."""
    keys: Any = document.keys() if isinstance(document, dict) else range(len(document))
    for key in list(keys):
        yield document, key
        if isinstance(document[key], dict | list):
            yield from _places(document[key])


@st.composite
def _damaged(draw: DrawFn, whole: Any) -> bytes:
    """The document with some damage: of its values, its keys, its text, its bytes, or all of it."""
    if isinstance(whole, str):
        return draw(st.binary() | st.text().map(str.encode))
    document = copy.deepcopy(whole)
    for _ in range(draw(st.integers(0, 3))):
        inside, key = draw(st.sampled_from(list(_places(document)) or [({"": 0}, "")]))
        match draw(st.sampled_from(["value", "gone", "key"])):
            case "value":
                inside[key] = copy.deepcopy(draw(ODD))  # it may be damaged in its turn
            case "key" if isinstance(inside, dict):
                inside[draw(st.sampled_from([*TEMPLATES, "x", "\x1b"]))] = inside.pop(key)
            case _:
                del inside[key]
    text = json.dumps(document)
    name, value = json.dumps(draw(st.sampled_from(sorted(whole)))), json.dumps(draw(ODD))
    forms = [
        text.encode(),
        text[: draw(st.integers(0, len(text)))].encode(),
        f"{{{name}: {value}, {text[1:]}".encode(),
        f"{text[:-1]}, {name}: {value}}}".encode(),
        draw(st.sampled_from(JUNK)).encode(),
        draw(st.binary(max_size=40)),
        text.encode("utf-16"),
    ]
    return draw(st.sampled_from([forms[0], *forms]))


def _read(name: str, content: bytes) -> Any:
    """What the program gets of an object."""
    one, (_, about) = STORED[name], SAMPLES[name]
    parts = ["1"] * one.name.count("{}")
    return MemoryFolder({one.at(*parts): content}).read(one, *parts, **about)


def _require_fit(record: Record) -> None:
    """Each field that goes into paths, configurations and commands has its form."""
    rules._project_id(record.project_id)
    rules._name_prefix(record.name_prefix)
    candidates.check_one(record.zone)
    rules._region(record.region)
    assert re.fullmatch(r"[\w-]+", record.kind)
    assert re.fullmatch(r"[\w-]+", record.cluster_id)
    assert isinstance(record.last_request, int)
    for text in (*record.image, *record.image.values(), record.gke_version):
        assert text is None or re.fullmatch(r"[a-z0-9][a-z0-9.:-]*", text)
    assert Record.parse(record.document()) == record
    status.mode(record)
    shares(record)
    assert record.settings.get("PROTECT", False) in {True, False}


def test_every_object_of_the_bucket_is_tried_with_a_sample_that_can_be_read() -> None:
    assert SAMPLES.keys() == STORED.keys()
    for name, (sample, _) in SAMPLES.items():
        text = sample if isinstance(sample, str) else json.dumps(sample)
        assert _read(name, text.encode()) or not text, name


@pytest.mark.parametrize("name", STORED)
@given(data=st.data())
def test_an_object_of_the_bucket_is_read_as_its_type_or_refused(
    name: str, data: st.DataObject
) -> None:
    content = data.draw(_damaged(SAMPLES[name][0]))
    try:
        _read(name, content)
    except ForeignRecordError:
        assert name == location.RECORD
    except StateError as error:
        # What machines write they may write wrongly: that is no reason to stop.
        assert STORED[name].writer in {Writer.PROGRAM, Writer.TERRAFORM}
        (problem,) = error.problems
        assert problem.code is Code.STATE_UNREADABLE
        assert problem.fix


@given(_damaged(RECORD_TEXT))
def test_a_record_has_only_what_its_settings_allow(content: bytes) -> None:
    with contextlib.suppress(ForeignRecordError):
        record = _read("deployment.json", content)
        if record is not None:
            _require_fit(record)


@given(_damaged(FACTS))
def test_pods_are_made_of_what_the_settings_allow_whatever_is_kept_of_a_cluster(
    content: bytes,
) -> None:
    try:
        facts: ClusterFacts = _read("cluster.json", content)
    except StateError:
        return
    assert facts.project == RECORD.project_id
    json.dumps(kueue.objects(facts))
    for pool in facts.pools:
        asked = samples.wanted(dataclasses.replace(facts, pools=(pool,)))
        made = json.dumps(facts.mirrored(run_jobs.JOB_SET.build(facts, asked)))
        images = re.findall(r'"image": "([^"]+)"', made)
        assert images
        assert all(it.startswith("us-docker.pkg.dev/my-project/mirror/") for it in images)
        assert '"serviceAccountName": "np-workload"' in made


@given(_damaged(TRACES))
def test_traces_are_of_this_cluster_or_cannot_be_read(content: bytes) -> None:
    try:
        found: Traces = _read("leftovers.json", content)
    except StateError:
        return
    assert dataclasses.replace(found, stems=frozenset(), volumes={}, networks=frozenset()) == (
        dataclasses.replace(Traces.of(RECORD, ()), volumes={})
    )
    assert all(
        re.fullmatch(r"projects/my-project/global/networks/np-.*", it) for it in found.networks
    )
    assert all(re.fullmatch(r"[a-z0-9-]{8,}", it) for it in found.stems)
    for path in found.volumes:
        assert ".." not in path
        assert found.fate({"name": path, "description": "x"}) in {Fate.UNPROVEN, None}
    assert Traces.parse(found.document(), RECORD) == found


@given(_damaged(STATE))
def test_a_state_is_read_or_said_to_be_damaged(content: bytes) -> None:
    try:
        state = _read("terraform/state/default.tfstate", content)
        rebuilt = lost_record.rebuild(state, RECORD)
    except (StateError, ValueError):
        return
    if rebuilt is not None:
        _require_fit(rebuilt)
    terraform_state.is_empty(state)
    terraform_state.outputs(state)
    terraform_state.of_type(state, "google_compute_subnetwork")
    for found in (
        terraform_state.known(state),
        terraform_state.addresses(state),
        terraform_state.providers(state),
    ):
        assert all(isinstance(one, str) for one in found)
    terraform_state.untainted(state, terraform_state.addresses(state))


@given(_damaged(LOCK))
def test_a_lock_is_always_somebodys_and_its_id_fits_into_a_command(content: bytes) -> None:
    lock: Lock = _read("terraform/state/default.tflock", content)

    assert lock.url == "gs://b/lock"
    assert re.fullmatch(r"[A-Za-z0-9-]+", lock.id)
    assert lock.error().problems
    assert lock.stale_error().problems


@given(_damaged(NOTE))
def test_a_note_names_a_file_that_only_a_run_has(content: bytes) -> None:
    note = _read("runs/{}.json", content)
    if note is not None:
        assert re.fullmatch(r"/[^\0]*/alive", note.alive)
        assert all(isinstance(it, str) for it in (note.lock_id, *vars(note.machine).values()))
        here = Machine(host=socket.gethostname(), boot="", files="")
        note.is_over(here)


@given(_damaged(ROSTER))
def test_ranks_are_whole_numbers_of_names(content: bytes) -> None:
    folder = MemoryFolder({"vms/roster.json": content})
    found = agent.heard(cast("Any", SimpleNamespace(folder=folder))).seats

    assert all(type(seat.rank) in {int, type(None)} for seat in found.values())
    assert all(isinstance(name, str) for name in found)
    assert all(len(fault) <= 160 for seat in found.values() for fault in seat.faults)


@given(_damaged(ANSWER))
def test_a_vms_answer_is_judged_whatever_it_says(content: bytes) -> None:
    answer: Answer = _read("vms/results/{}/{}.json", content)
    plan = testing.plan([VM, VM])
    assert plan is not None

    assert isinstance(answer.failure, str)
    json.dumps(plain(instances.judge(VM, answer.answer)))
    outcome = testing.outcome(plan, (VM.name,), {VM.name: answer})
    assert outcome.bandwidth is None or outcome.bandwidth > 0 or outcome.why


@given(_damaged(STARTUP))
def test_a_guest_attribute_is_a_start_up_whatever_it_says(content: bytes) -> None:
    startup = Startup.of({"startup": content.decode("utf-8", "replace")})

    for text in (startup.state, startup.step, startup.words, startup.detail):
        assert isinstance(text, str)
    assert startup.fails_often in {True, False}
    json.dumps(plain(status._startup(startup)))
    if startup.gpu_check is not None:
        json.dumps(plain(instances.reported(VM, startup.gpu_check)))


@given(_damaged(PRICES))
def test_kept_prices_are_prices_or_no_list(content: bytes) -> None:
    found = _read("prices.json", content)
    if found is None:
        return
    for item, way in found.rows:
        price = found.find(item, "us-central1", way)
        assert price is None or price.usd.is_finite()


@pytest.mark.parametrize(
    "name",
    [
        *("jobs/train-1.json", "jobs/index.json", "vms/job.json", "ray/jobs.json"),
        *("vms/jobs/train-1/course.json", "vms/jobs/train-1/nodes/task-1.json"),
    ],
)
@given(data=st.data())
def test_jobs_are_told_of_and_cancelled_whatever_stands_of_them(
    name: str, data: st.DataObject
) -> None:
    files: dict[str, str | bytes] = {"jobs/train-1.json": json.dumps(ASKED)}
    files["vms/jobs/train-1/course.json"] = json.dumps(COURSE)
    sample = SAMPLES[name.replace("train-1", "{}").replace("task-1", "task-{}")][0]
    jobs = VmJobs(MemoryFolder(files | {name: data.draw(_damaged(sample))}), Clock(), watching())

    found = [it for it in map(jobs.find, jobs.names()) if it]
    json.dumps(plain(found))
    assert screen.lines(found)
    assert "train-1" in jobs.names()
    assert all(screen.whole(jobs.whole(it)) for it in found)
    for one in found:
        with contextlib.suppress(SettingsError):
            jobs.cancel(one)
    assert all(isinstance(it, str) for it in jobs.unfinished())


def _api(content: bytes, urls: list[str] | None = None) -> GoogleApi:
    answer = requests.Response()
    answer.status_code = 200
    answer._content = content
    api = GoogleApi(Credentials("token"), {}, Progress(Clock(0), lambda _: None))

    def request(_: str, url: str, **__: object) -> requests.Response:
        if urls is not None:
            urls.append(url)
        return answer

    api._session = cast("Any", SimpleNamespace(request=request))
    return api


@given(_damaged(PAGE))
def test_a_page_of_google_has_objects_or_is_an_outage(content: bytes) -> None:
    # A page that goes on for ever is asked for as long as it says so.
    pages = _api(content).pages("GET", "projects/p/zones", "items", {})
    with contextlib.suppress(ProvisionError):
        for _ in range(5):
            assert isinstance(next(pages, {}), dict)


@given(_damaged(GUEST))
def test_guest_attributes_are_texts_by_their_keys_or_an_outage(content: bytes) -> None:
    with contextlib.suppress(ProvisionError):
        found = _api(content).guest_attributes("projects/p/zones/z/instances/i", "a")
        assert all(isinstance(it, str) for pair in found.items() for it in pair)


@given(st.text(max_size=30) | st.lists(st.sampled_from(["..", "a", "?", "#", "%2F"])).map("/".join))
def test_a_path_leads_where_its_parts_say(path: str) -> None:
    urls: list[str] = []
    api = _api(b"{}", urls)

    with contextlib.suppress(ProvisionError):
        api.get(Service.COMPUTE, f"projects/p/{path}/x")

    for url in urls:
        sent = requests.Request("GET", url).prepare().path_url
        assert sent.startswith("/compute/v1/projects/p/")
        assert sent.count("/") == f"/compute/v1/projects/p/{path}/x".count("/")
        assert "?" not in sent


@given(st.text(alphabet='${%}a"\\') | st.sampled_from(TEMPLATES) | st.text())
def test_no_text_of_a_configuration_is_a_template(text: str) -> None:
    found = configuration.literal({"a": [text]})["a"][0]

    # As Terraform reads it: a doubled sign before a brace stands for itself.
    assert not re.search(r"(?<![$])[$]\{|(?<!%)%\{", found)
    assert re.sub(r"([$%])\1\{", r"\1{", found) == text


PARTS = ["contact", "never", "state_writers", "defaults", "locked", "at_most", "allowed", "x"]
NAMES = ["VM_TYPE", "INSTANCE_COUNT", "MACHINES", "LABELS", "PROTECT", "TEAM_DEFAULTS", "zone", ""]
TEAM_WORDS = st.one_of(ODD, st.just(["domain:example.com"]), st.just(["VM_TYPE"]), st.just("4"))
A_LINE = st.tuples(st.sampled_from(NAMES), TEAM_WORDS)


@given(
    parts=st.dictionaries(st.sampled_from(PARTS), TEAM_WORDS, max_size=4),
    tables=st.dictionaries(st.sampled_from(PARTS[3:]), st.lists(A_LINE, max_size=3), max_size=3),
    rest=st.just("") | st.text(max_size=20),
)
def test_a_teams_file_is_rules_or_is_said_to_be_none(
    parts: dict[str, Any], tables: dict[str, list[tuple[str, Any]]], rest: str
) -> None:
    lines = [f"{key} = {json.dumps(value)}" for key, value in parts.items()]
    for table, inside in tables.items():
        lines += [f"[{table}]", *(f'"{name}" = {json.dumps(value)}' for name, value in inside)]
    try:
        found = team.parse("\n".join([*lines, rest]), "/etc/team.toml")
    except team.InvalidTeamError:
        return
    assert all(it.partition(":")[0] in {"domain", "serviceAccount"} for it in found.state_writers)
    assert set(found.never) <= Settings.model_fields.keys()
