"""What the programs of jobs do, on VMs and in pods, so far as the simulation knows them.

Nothing is run. Of a shell's line, echo, sleep, exit, true, false and `test A != B` are known, and
JOB_INDEX; of a script in the
job's folder its calls of print, time.sleep, sys.exit and SystemExit with plain values, as if each
line were reached; but whether it exits inside of something, only a run would show. Anything else
that exists says nothing and takes a minute. Where one of these would have to be run to know how it
ends, and nothing here makes it fail, the course says so.
"""

import io
import posixpath
import re
import shlex
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_USUAL: Final = 60.0
_PYTHONS: Final = frozenset({"python", "python3", "torchrun"})
_SHELLS: Final = frozenset({"bash", "sh"})
_SETUP: Final = "aiinfra-setup"
"""The name of a shell that installs the packages of the program behind it."""
_NOT_FOUND: Final = 127
_TESTS: Final[Mapping[str, Callable[[Sequence[str]], bool]]] = {
    "true": lambda _: True,
    "false": lambda _: False,
    "test": lambda words: words[2:3] != ["!="] or words[1] != words[3],
}
_SILENT: Final = frozenset({"hostname", "nvidia-smi", "pip", "ls"})
_UNTRIED: Final = "would run here: "
_NOTHING: Final = "a rehearsal runs no program"
_JOB_INDEX: Final = re.compile(r"\$(?:JOB_INDEX\b|\{JOB_INDEX\})")
_CALL: Final = re.compile(
    r"""^(?:\s*print\((?P<quote>["'])(?P<said>.*?)(?P=quote)(?:,\s*flush=True)?\)
      |\s*(?:time\.)?sleep\((?P<seconds>[0-9.]+)\)
      |(?:(?:sys\.)?exit|raise\sSystemExit)\((?P<code>\d+)\))""",
    re.VERBOSE,
)


@dataclass
class Course:
    """What a program does."""

    seconds: float = 0.0  # how long it runs, in cloud time
    code: int = 0
    # what it writes, a line each, with the seconds after its begin
    said: list[tuple[float, str]] = field(default_factory=list)
    folder: str = ""  # where it runs
    why: str = ""  # what is to be said of its end; "" for nothing

    def say(self, line: str) -> None:
        """Write a line at this moment."""
        self.said.append((self.seconds, line))

    def fail(self, code: int, line: str) -> None:
        """End with a line."""
        self.say(line)
        self.code = code


def files_of(archive: bytes | None) -> dict[str, str]:
    """The texts of an archive, by their names; of programs by "./NAME", too."""
    found: dict[str, str] = {}
    if archive is None:
        return found
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for member in packed:
            content = packed.extractfile(member)
            if content is not None:
                found[member.name] = content.read().decode("utf-8", "replace")
                if member.mode & 0o111:
                    found[f"./{member.name}"] = found[member.name]
    return found


def of_task(command: Sequence[str], index: int | None) -> list[str]:
    """A command as the shell of this task reads it; None for a job without tasks."""
    return [it if index is None else _JOB_INDEX.sub(str(index), it) for it in command]


def course(
    command: Sequence[str],
    files: Mapping[str, str],
    name: str,
    folder: str = "",
    untried: str = "",
) -> Course:
    """What a command does in a folder.

    `files`: the folder: names -> texts. `folder`: where it is; "" for where VMs have it. `untried`:
    why nothing is run; "" where nothing ever is.
    """
    done = Course(folder=folder or f"/var/lib/aiinfra-job/{name}")
    _run(done, list(command), files, name)
    done.why = f"{done.why}{untried or _NOTHING}" if done.why and done.code == 0 else ""
    if done.why:
        own = command[6:] if command[3:4] == [_SETUP] else command
        line = f"This is a rehearsal: {shlex.join(own)} was not run here"
        done.said.insert(0, (0.0, line))
    return done


def _run(done: Course, words: list[str], files: Mapping[str, str], name: str) -> None:
    program = words[0].rpartition("/")[2]
    if words[3:4] == [_SETUP]:
        _with_packages(done, words[6:], files, name)
    elif program in _SHELLS and words[1:2] == ["-c"]:
        _line(done, words[2], files, name)
    elif program in _PYTHONS or program in _SHELLS:
        _interpreter(done, program, words[1:], files)
    elif "/" in words[0] and (own := posixpath.normpath(words[0])) in files:
        if f"./{own}" in files:
            _script(done, files[own])
        else:
            done.fail(126, f"{name}: line 1: {words[0]}: Permission denied")
    elif program in _TESTS:
        done.code = int(not _TESTS[program](words))
    elif program == "echo":
        done.say(" ".join(words[1:]))
    elif program == "sleep":
        done.seconds += float(words[1])
    elif program in _SILENT:
        _script(done, "")
    else:
        done.fail(_NOT_FOUND, f"{name}: line 1: {words[0]}: command not found")


def _with_packages(done: Course, words: list[str], files: Mapping[str, str], name: str) -> None:
    done.say("packages would be installed here: a rehearsal installs none")
    _run(done, words, files, name)
    if done.code == _NOT_FOUND and "/" not in words[0]:  # they may have brought it
        done.code, _ = 0, done.said.pop()
        _script(done, "")


def _interpreter(
    done: Course, program: str, words: Sequence[str], files: Mapping[str, str]
) -> None:
    scripts = [posixpath.normpath(it) for it in words if it.endswith((".py", ".sh"))]
    is_own = bool(scripts) and not scripts[0].startswith("/")
    if is_own and scripts[0] not in files:
        where = f"{done.folder}/{scripts[0]}"
        missing = f"can't open file '{where}': [Errno 2] No such file or directory"
        done.fail(2, f"{program}: {missing}")
    elif words[:1] == ["-c"]:
        _script(done, re.sub(r";\s*", "\n", words[1]))
    else:
        _script(done, files[scripts[0]] if is_own else "")


_PARTS = re.compile(
    r"""(;|&&|\|\||^)((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?!;|&&|\|\|).)+)""", re.DOTALL
)
"""What stands between two commands of a line, but in quotes, and the second of them."""


def _line(done: Course, line: str, files: Mapping[str, str], name: str) -> None:
    try:
        parts = [(between, shlex.split(part)) for between, part in _PARTS.findall(line)]
    except ValueError:  # as bash has it
        done.fail(2, f"{name}: -c: line 1: unexpected EOF while looking for matching quote")
        return
    for between, words in parts:
        if not words or between == ("||" if done.code == 0 else "&&"):
            continue
        if words[0] == "exit":
            done.code = int(words[1]) if "".join(words[1:2]).isdecimal() else done.code
            return
        done.code = 0
        _run(done, words, files, name)


def _script(done: Course, text: str) -> None:
    calls = [found for line in text.splitlines() if (found := _CALL.match(line))]
    done.why = _UNTRIED
    if not calls:
        done.seconds += _USUAL
    for call in calls:
        if call["code"] is not None:
            done.code = int(call["code"])
            return
        if call["seconds"] is not None:
            done.seconds += float(call["seconds"])
        else:
            done.say(call["said"])
