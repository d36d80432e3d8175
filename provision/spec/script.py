"""What a job's command needs of the folder that travels and of the other machines.

It is looked at before anything costs.

A job begins in its copy of the folder, on VMs and in each container. So a relative path that is
not in it can't be there. Nothing is said of absolute paths, of programs that the machines or the
image have, nor of what comes behind an option or a word of shell that is not understood.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import posixpath
import re
import shlex
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Problem, SettingsError
from provision.settings import masking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from provision.settings.model import Settings
    from provision.spec.job import JobSpec

    WhyNot: TypeAlias = Callable[[str], tuple[str, str]]

_IN_FRONT: Final = re.compile(r"[A-Za-z_]\w*=.*|(.*/)?env|exec|nohup|time", re.DOTALL)
"""Words before a program that leave it what it is."""
_NEEDS_SHELL: Final = re.compile(r"[\s;&|<>()$`]|^[A-Za-z_]\w*=")
_EXPANDED: Final = re.compile(r"[$`*?\[{~]")
_NO_FILE: Final = "a job begins in its copy of the folder, which has no such file"
_LONGEST: Final = 200  # characters of a command that is said whole


@dataclass(frozen=True)
class _Launcher:
    """How a launcher reads the options before its script, as patterns of whole words."""

    flags: str  # options without a value
    valued: str  # options whose value is the next word
    module: str = r"(?!)"  # options that make the script a module


_PYTHON: Final = _Launcher(
    flags=r"-[bBdEiOqRsSuvx]+",
    valued=r"-[WX]|--check-hash-based-pycs",
    module=r"-[bBdEiOqRsSuvx]*m",
)
_SHELL: Final = _Launcher(
    flags=r"[-+][abefhiklmnprtuvxBCEHPT]+|--(login|noprofile|norc|posix|verbose)",
    valued=r"[-+][abefhiklmnprtuvx]*[oO]|--(rcfile|init-file)",
)
# By PyTorch's torch/distributed/run.py, and the pages of accelerate and DeepSpeed.
_TORCHRUN: Final = _Launcher(
    flags=r"--standalone|--[\w-]+=.*",
    valued=r"-[rt]|--(nnodes|nproc.per.node|rdzv.(backend|endpoint|id|conf)|max.restarts|role|tee"
    r"|monitor.interval|start.method|event.log.handler|log.dir|redirects|local.ranks.filter"
    r"|node.rank|master.(addr|port)|local.addr|logs.specs|numa.binding|signals.to.handle)",
    module=r"-m|--module",
)
_ACCELERATE: Final = _Launcher(
    flags=r"--(multi.gpu|cpu|use.fsdp|use.deepspeed|debug)|-q|--quiet|--[\w-]+=.*",
    valued=r"--(config.file|num.(processes|machines)|machine.rank|mixed.precision|gpu.ids"
    r"|main.process.(ip|port)|dynamo.backend|num.cpu.threads.per.process)",
    module=r"-m|--module",
)
_DEEPSPEED: Final = _Launcher(
    flags=r"--no.local.rank|--[\w-]+=.*",
    valued=r"-[Hie]|--(hostfile|include|exclude|num.(nodes|gpus)|master.(addr|port)|node.rank)",
    module=r"--module",
)
_LAUNCHERS: Final[Mapping[str, _Launcher]] = {
    **dict.fromkeys(("bash", "sh"), _SHELL),
    "torchrun": _TORCHRUN,
    "accelerate launch": _ACCELERATE,
    "deepspeed": _DEEPSPEED,
    "uv run": _Launcher(flags=r"(?!)", valued=r"(?!)"),
}
_MEET: Final = (
    "accelerate launch --multi_gpu --num_machines $NNODES --machine_rank $NODE_RANK"
    " --num_processes $((NNODES * NPROC_PER_NODE))"
    " --main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT SCRIPT"
)
# A launcher that would begin a program of its own on each machine -> the words by which it meets
# the others (in none of what is sought, if there are no such), and what to write.
_ALONE: Final[Mapping[str, tuple[str, str]]] = {
    "accelerate launch": (
        r"--num.machines(=.*)?|--config.file(=.*)?",
        f"torchrun SCRIPT, which runs its programs as well; or bash -c '{_MEET}'",
    ),
    "deepspeed": (r"--node.rank(=.*)?", "torchrun SCRIPT, with --deepspeed where it was"),
    # Without this one it calls torchrun --standalone (torchtune 0.6.1, _cli/run.py, 2026-11-29).
    "tune run": (
        r"--rdzv.endpoint(=.*)?",
        (
            "bash -c 'tune run --nnodes $NNODES --nproc_per_node $NPROC_PER_NODE"
            " --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT RECIPE'"
        ),
    ),
    "torchrun": (r"(?!--standalone).*", "remove --standalone"),
    # Each machine would send it to Slurm's queue, and the job would be over.
    "sbatch": (
        r"(?!)",
        "bash SCRIPT, with --nodes, --gpus and --time for its #SBATCH lines; or sbatch after Ssh",
    ),
}
_ALSO_TORCHRUN: Final = frozenset({"torch.distributed.run", "torch.distributed.launch"})


@dataclass(frozen=True)
class _Needed:
    """A path that a command needs; without a program before it, it is the program itself."""

    path: str
    program: str = ""
    is_module: bool = False
    is_bare: bool = False  # a program without a /, which is looked for along PATH alone


def require_there(
    spec: JobSpec, settings: Settings, entries: Mapping[str, int], why_not: WhyNot
) -> list[Problem]:
    """See that what a job's command begins with is in the folder that travels.

    `entries`: what travels: the path below the folder -> its type and permissions. `why_not`: why a
    path stays behind, and what takes it along; empty for those that do not.
    """
    words = spec.command
    if posixpath.normpath(words[0]) not in entries and not words[0].startswith("/"):
        _require_words(words)
    needed = _needed(words)
    found = _judged(needed, entries, why_not) if needed else None
    if needed is None or found is None:
        return []
    if words[1:] == ("-c", settings.job_command):
        found = dataclasses.replace(found, setting="JOB_COMMAND")
    has_image = spec.image is not None or settings.is_gke
    along_path = needed.is_bare or needed.program in {"bash", "sh"}
    if has_image and along_path and "/" not in needed.path:
        # A shell looks for a script along PATH, too, and images bring such scripts.
        return [dataclasses.replace(found, code=Code.NOT_CHECKED)]
    raise SettingsError.of([found])


def alone(spec: JobSpec, machines: int) -> list[Problem]:
    """A note on a launcher that knows nothing of the job's other machines, and ends with 0."""
    for words in _commands(spec.command) if machines > 1 else ():
        program, rest = _program(words)
        meets, fix = _ALONE.get(program, (".*", ""))
        before = list(itertools.takewhile(lambda it: not it.endswith(".py"), rest))
        by_others = any(re.fullmatch(meets, it) for it in before)
        is_alone = "--standalone" in before if program == "torchrun" else not by_others
        if fix and is_alone:
            return [
                Problem(
                    code=Code.NOTE,
                    what=f"{program} would train on each of {machines} machines alone",
                    why="as it is called it looks for no other machine: each begins a training of"
                    " its own and ends as if all were well, or waits for the others in vain",
                    fix=fix,
                )
            ]
    return []


def _require_words(words: Sequence[str]) -> None:
    whole = words[0] if len(words) == 1 else shlex.join(words)
    if not _NEEDS_SHELL.search(words[0]):
        return
    shown = masking.mask(f"bash -c {shlex.quote(whole)}")
    is_short = len(shown) <= _LONGEST and shown.isprintable()
    raise SettingsError(
        "The first word behind -- is no program, but words for a shell",
        code=Code.INVALID_COMMAND_LINE,
        why="no shell reads a job's command: what stands in one pair of quotes is one word",
        fix=f"Run -- {shown if is_short else 'bash -c COMMAND'}",
    )


def _needed(words: Sequence[str]) -> _Needed | None:
    """The path that a command begins with; None if that is not known."""
    words = list(itertools.dropwhile(_IN_FRONT.fullmatch, words))
    if not words:
        return None
    if "/" in words[0] and words[0][0] not in "/~":
        return _Needed(words[0])
    if words[0].endswith((".py", ".sh")):
        return _Needed(words[0], is_bare=True)
    program, rest = _program(words)
    if re.fullmatch(r"python[\d.]*", program):
        return _script(_PYTHON, program, rest)
    if _is_line(program, rest):
        return _needed(_first_command(rest[1]))
    launcher = _LAUNCHERS.get(program)
    return _script(launcher, program, rest) if launcher else None


def _program(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The program that words begin with, of two words where the second is its command."""
    words = list(itertools.dropwhile(_IN_FRONT.fullmatch, words))
    program = posixpath.basename(words[0]) if words else ""
    if program in {"accelerate", "tune", "uv"}:
        return " ".join([program, *words[1:2]]), words[2:]
    return program, words[1:]


def _is_line(program: str, rest: Sequence[str]) -> bool:
    """Whether a shell is given a line to run."""
    is_asked = re.fullmatch(r"-[a-z]*c", "".join(rest[:1]))
    return program in {"bash", "sh"} and is_asked is not None and len(rest) > 1


def _commands(words: Sequence[str]) -> Iterator[list[str]]:
    """The commands of a line of shell; else the words."""
    program, rest = _program(words)
    if not _is_line(program, rest):
        yield list(words)
        return
    for is_between, command in itertools.groupby(_tokens(rest[1]), _is_operator):
        if not is_between:
            yield list(command)


def _first_command(line: str) -> list[str]:
    """The words with which a line of shell begins, as far as no shell changes them."""
    plain = itertools.takewhile(lambda it: not _EXPANDED.search(it), _tokens(line))
    return list(itertools.takewhile(lambda it: not _is_operator(it), plain))


def _is_operator(token: str) -> bool:
    return not set(token) - set("();<>|&")


def _tokens(line: str) -> list[str]:
    """The words and operators of a line of shell; none of one that no shell would read."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return []


def _script(launcher: _Launcher, program: str, words: Sequence[str]) -> _Needed | None:
    is_module = is_value = False
    for at, word in enumerate(words):
        if is_value:
            is_value = False
        elif re.fullmatch(launcher.module, word):
            is_module = True
        elif re.fullmatch(launcher.valued, word):
            is_value = True
        elif re.fullmatch(launcher.flags, word):
            pass
        elif word.startswith(("-", "+", "/", "~")):
            return None
        elif is_module and word in _ALSO_TORCHRUN:
            return _script(_TORCHRUN, program, words[at + 1 :])
        elif is_module:
            return _Needed(word.replace(".", "/"), program, is_module=True)
        elif word.endswith((".py", ".sh")):
            return _Needed(word, program)
        else:
            return _needed(words[at:]) if program == "uv run" else None
    return None


def _judged(needed: _Needed, entries: Mapping[str, int], why_not: WhyNot) -> Problem | None:
    """What is wrong with what a command needs; None for nothing."""
    path = posixpath.normpath(needed.path)
    above = [path[:end] for end, char in enumerate(path) if char == "/"]
    if any(stat.S_ISLNK(entries.get(it, 0)) for it in above):
        return None
    if needed.is_module:
        # Only of a package that is in the folder it is known where Python looks.
        is_there = any(it == path or it.startswith((f"{path}.", f"{path}/")) for it in entries)
        if is_there or f"{path.partition('/')[0]}/__init__.py" not in entries:
            return None
        path = f"{path}.py"
    mode = entries.get(path)
    whose = f"which {needed.program} is to run," if needed.program else "the job's program,"
    run = f"{'python' if path.endswith('.py') else 'bash'} {shlex.quote(path)}"
    if needed.is_bare:
        if mode is None:
            return None
        what = f"{path}, {whose} is in the folder, and not looked for there"
        why, fix = "without a / it is looked for along PATH alone", f"Run -- {run}"
    elif mode is None:
        what = f"{path}, {whose} is not among the files that are copied for the job"
        why, fix = _missing(path, needed, entries, why_not)
    elif not needed.program and stat.S_ISREG(mode) and not mode & 0o111:
        what = f"{path}, {whose} may not be executed"
        why = "it has no permission to be, and is copied as it is"
        fix = f"chmod +x {shlex.quote(path)}; or run it as: {run}"
    else:
        return None
    return Problem(code=Code.INVALID_COMMAND_LINE, what=what, why=why, fix=fix)


def _missing(
    path: str, needed: _Needed, entries: Mapping[str, int], why_not: WhyNot
) -> tuple[str, str]:
    """Why a path is not there, and what fixes that."""
    whole = "a file of the machines or of the image needs its whole path"
    stays, fix = why_not(path)
    if stays:
        return stays, fix
    if path.startswith("../"):
        return "it is outside of the folder", f"run it in a folder that has it; {whole}"
    near = _nearest(path, [it for it, mode in entries.items() if not stat.S_ISDIR(mode)])
    if not near:
        return (
            _NO_FILE if entries else "the folder is empty, or nothing of it travels",
            f"correct the path, or run it in the folder that has it: --copy FOLDER; {whole}",
        )
    if needed.is_module:
        near = near.removesuffix(".py").replace("/", ".")
    elif not needed.program and "/" not in near:
        near = f"./{near}"
    return _NO_FILE, f"did you mean {near}? Else, {whole}"


def _nearest(path: str, names: Sequence[str]) -> str:
    last = posixpath.basename(path)
    same = [it for it in names if posixpath.basename(it) == last]
    alike = [it for it in names if posixpath.splitext(it)[1] == posixpath.splitext(path)[1]]
    return min(same, key=len, default="") or next(
        iter(difflib.get_close_matches(path, alike, n=1)), ""
    )
