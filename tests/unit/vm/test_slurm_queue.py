"""Lines of Slurm 24.11 as they came (2026-11-29), and what it is asked for."""

import pytest
from aiinfra_vm import slurm_queue
from aiinfra_vm.slurm_queue import Request

_END = "\x1f"


def _line(*fields: str, end: str = _END) -> str:
    return end.join((*fields, "\n"))


# JobID ArrayJobID ArrayTaskID UserName State NodeList NumNodes tres-per-node tres-per-job
# TimeLimit StartTime SubmitTime PriorityLong Reason Comment Name
QUEUE = "".join((
    _line("11", "11", "N/A", "aiinfra-job-01", "PENDING", "", "2", "gres/gpu:2", "N/A",
          "UNLIMITED", "1827470235", "1795934235", "4294901757", "Resources", "aiinfra:x:1", "x"),
    _line("31", "4", "2", "aiinfra-job-00", "RUNNING", "train-vm-2", "1", "gres/gpu:1", "N/A",
          "30:00", "1795934258", "1795934200", "4294901756", "None", "aiinfra:arr:3", "arr"),
    _line("12", "12", "N/A", "ana", "RUNNING", "train-vm-[3,1-2],a-07", "4", "N/A", "gres/gpu:3",
          "1:00:00", "1795934258", "1795934200", "7", "None", "aiinfra:x:9", "a | b"),
    _line("13", "13", "N/A", "aiinfra-job-02", "RUNNING", "a-07", "1", "N/A", "N/A",
          "1:00:00", "1795934258", "1795934200", "7", "None", "\xa0aiinfra:x:2", "sly"),
    # What sbatch was refused stays as a job that failed.
    _line("7", "7", "N/A", "aiinfra-job-01", "FAILED", "", "2", "gres/gpu:9", "N/A", "UNLIMITED",
          "1795934235", "1795934235", "5", "BadConstraints", "aiinfra:x:1", "x"),
    "half a name\n",
))  # fmt: skip


def test_jobs_of_run_are_known_by_their_comment_if_their_user_is_one_of_runs() -> None:
    waits, task, other, sly = slurm_queue.entries(QUEUE, _END)
    assert (waits.job, waits.attempt, waits.is_pending, waits.gpus) == ("x", 1, True, 4)
    assert (waits.since, waits.nodes) == (1795934235, ())
    assert (task.number, task.task, task.job, task.attempt) == ("4_2", 2, "arr", 3)
    assert (task.limit, task.reason, task.since) == ("30:00", "", 1795934258)
    assert (other.job, other.user, other.name, other.gpus) == ("", "ana", "a | b", 3)
    assert (sly.job, sly.name) == ("", "sly")
    assert other.nodes == ("train-vm-3", "train-vm-1", "train-vm-2", "a-07")


def test_a_line_that_a_user_has_written_is_none_of_slurms(monkeypatch: pytest.MonkeyPatch) -> None:
    times = ("1:00:00", "1795934258", "1795934200", "7", "None")

    def said(*command: str) -> str:
        end = command[-1].partition(":")[2].partition(",")[0]
        about = ("aiinfra-job-01", "RUNNING", "vm-1", "1", "N/A", "N/A", *times, "aiinfra:x:1", "x")
        forged = _line("--user=ben", "1", "N/A", *about)
        asked = ("ana", "PENDING", "", "1", f"gres/gpu:a\n{forged}\nb:1", "N/A", *times, "", "mine")
        other = ("ben", "RUNNING", "vm-1", "1", "N/A", "N/A", *times, "", "own")
        return _line("7", "7", "N/A", *asked, end=end) + _line("8", "8", "N/A", *other, end=end)

    monkeypatch.setattr(slurm_queue, "_said", said)

    assert [it.number for it in slurm_queue.jobs()] == ["8"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("train-vm-1", ["train-vm-1"]),
        ("a-[08-10,1]", ["a-08", "a-09", "a-10", "a-1"]),
        ("train-x7f2,train-9abc", ["train-x7f2", "train-9abc"]),
        ("a-[1-2]-b,c", ["a-1-b", "a-2-b", "c"]),
    ],
)
def test_a_list_of_hosts_keeps_slurms_order(text: str, names: list[str]) -> None:
    assert list(slurm_queue.hosts(text)) == names


def test_a_vm_is_told_once_however_many_partitions_have_it() -> None:
    rows = [
        ("train-vm-2", "idle", "gpu:4", "gpu:0(IDX:N/A)", "none"),
        ("train-vm-1", "mixed-", "gpu:h100:8(S:0-1)", "gpu:h100:3(IDX:0,4-5)", "none"),
        ("train-vm-1", "mixed-", "gpu:h100:8(S:0-1)", "gpu:h100:3(IDX:0,4-5)", "none"),
        ("train-vm-3", "down*", "gpu:4", "gpu:0", "Not responding"),
        ("train-vm-4", "draining", "(null)", "gpu:0", "aiinfra: 7 GPUs instead of 8"),
    ]
    found = slurm_queue.node_rows("".join(_line(*row) for row in rows), _END)
    assert [tuple(it) for it in found] == [
        ("train-vm-1", "mixed", "", 8, 3),
        ("train-vm-2", "idle", "", 4, 0),
        ("train-vm-3", "down", "it does not answer; Not responding", 4, 0),
        ("train-vm-4", "draining", "aiinfra: 7 GPUs instead of 8", 0, 0),
    ]


@pytest.mark.parametrize(
    ("told", "drains"),
    [
        ("idle|none\n", True),
        ("down*|Not responding\n", True),
        ("drained|aiinfra: 7 GPUs instead of 8\n", True),
        ("drained|ana: a new fan\n", False),
        ("draining*|ana: a new fan\n", False),
    ],
)
def test_whom_a_person_has_drained_is_drained_for_no_other_reason(
    told: str,
    drains: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []

    def said(*command: str) -> str:
        asked.append(command)
        return told

    monkeypatch.setattr(slurm_queue, "_said", said)

    slurm_queue.drain("vm-1", "aiinfra: Google takes this VM back (preemption)")

    assert ("scontrol" in [it[0] for it in asked]) is drains


def test_a_whole_vm_is_had_alone_and_a_part_of_one_is_not() -> None:
    whole = Request("train-1", 2, "aiinfra-job-07", 3, None, 8, None)
    options = slurm_queue.options(whole)
    assert {"--exclusive", "--mem=0", "--nodes=3", "--gpus-per-node=8"} <= set(options)
    assert {"--comment=aiinfra:train-1:2", "--no-requeue", "--time-min=30"} <= set(options)
    # Without the group, it would be root's.
    assert {"--uid=aiinfra-job-07", "--gid=aiinfra-job-07"} <= set(options)
    part = slurm_queue.options(whole._replace(gpus=2, minutes=17, array="0-63%8"))
    assert {"--gpus-per-node=2", "--time=17", "--array=0-63%8"} <= set(part)
    assert not {"--exclusive", "--mem=0", "--time-min=30"} & set(part)
    without = slurm_queue.options(whole._replace(all_gpus=0))
    assert not any("gpus" in it for it in without)
