"""Reading the values of settings from the command line, the process environment and an env file.

The command line overrides the environment, which overrides the file; a blank value counts as unset.
What says which deployment is meant is never overridden so: a variable that an earlier session
exported would build or delete in another project than the file that is named (ADR 60).
`docker run --env-file` and python-dotenv treat quotes and comments differently; this module makes
the result the same either way.

Below it, settings as a record keeps them, in JSON, are read again by the rules of their texts.
Whoever may write to the bucket may write a record, so nothing in it is used unread.
"""

from __future__ import annotations

import codecs
import io
import re
import types
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from provision.codes import Code
from provision.errors import Problem
from provision.settings import masking, parsing, spelling
from provision.settings.masking import mask, mask_setting
from provision.settings.model import OPTIONS, Settings
from provision.settings.parsing import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

# A shell command is taken verbatim: its quotes and comments are for the shell.
_VERBATIM: Final = ("STARTUP_COMMAND", "JOB_COMMAND")
_VERBATIM_LINE: Final = re.compile(
    rf"^[ \t]*(?:export[ \t]+)?(?P<name>{'|'.join(_VERBATIM)})[ \t]*=(?P<value>[^\r\n]*)",
    re.MULTILINE,
)
_OTHER_SIGN: Final = re.compile(r"(?:export\s+)?(?P<name>\w+)\s*[:\s]\s*[^\s=].*")
"""NAME: value, as in YAML, or NAME value."""
_LISTED: Final = 5  # files that a message names
_TFVARS: Final = re.compile(
    r"^[ \t]*(resource_prefix|instance_groups|node_pools|compute_partitions)[ \t]*=", re.MULTILINE
)
"""What a terraform.tfvars of ai-infra-cluster-provisioning begins lines with, and no env.list."""
_BY_TFVARS: Final = {
    "project_id": "PROJECT_ID",
    "resource_prefix": "NAME_PREFIX",
    "zone": "ZONE",
    "machine_type": "VM_TYPE",
    "target_size": "INSTANCE_COUNT",
    "node_count": "INSTANCE_COUNT",
    "disk_size_gb": "DISK_SIZE_GB",
    "disk_type": "DISK_TYPE",
}
_MAX_FILE_BYTES: Final = 4 * 1024 * 1024
_IDENTIFIES: Final = frozenset(
    {"NAME_PREFIX", "ORCHESTRATOR_TYPE", "PROJECT_ID", "REGION", "TERRAFORM_GCS_PATH", "ZONE"}
)
"""The settings that say which deployment is meant."""
_PROXIES: Final = re.compile("(?i:(https?|no|all|ftp)_proxy)")  # what other programs read, too
_OF_CI: Final = frozenset({"JOB_NAME"})
"""What Jenkins calls its own job, and was a setting; a job of Run has it, too."""
OF_PROGRAMS: Final = frozenset({"HTTPS_PROXY", "NO_PROXY"})
"""The settings among them."""
_OTHERS: Final = re.compile(
    r"HOME|HOSTNAME|PATH|PWD|OLDPWD|SHLVL|SHELL|TERM|COLORTERM|USER|LOGNAME|LANG|LANGUAGE|TZ|_"
    r"|COLUMNS|LINES|container|NO_COLOR|FORCE_COLOR|NO_GCE_CHECK|NETRC|KUBECONFIG|EDITOR"
    r"|(?i:(https?|no|all|ftp)_proxy)|.+_CA_BUNDLE|SSL_CERT_.*|.*_SERVICE_HOST|.*_PORT(_.*)?"
    r"|CLOUD_CLOCK_\w+|API_ENDPOINT_OVERRIDE|STORAGE_EMULATOR_HOST"
    r"|(LC|XDG|TF|GOOGLE|GCE|CLOUDSDK|AIINFRA|KUBERNETES|PYTHON|PIP|DEBUGINFOD|OTEL|NVIDIA)_?.*"
)
"""What a container engine, Kubernetes, Python, gcloud and Terraform have in an environment."""


@dataclass(frozen=True)
class Given:
    """One value that somebody gave."""

    name: str  # the variable as the user wrote it; or the option
    raw: str  # the value as it was read
    text: str  # the value as its field parses it
    team: str = ""  # which file of a team gave it, and whom to ask; "" where a user did

    def written(self, value: str) -> str:
        """How to give another value."""
        return f"{self.name}{' ' if self.name.startswith('-') else '='}{value}"


@dataclass(frozen=True)
class Reading:
    """What was read."""

    # field -> its value from the source with the highest precedence
    given: dict[str, Given] = field(default_factory=dict)
    # unknown names, contradicting values, invalid lines
    problems: list[Problem] = field(default_factory=list)
    # what may have been read differently than it was meant
    notes: list[Problem] = field(default_factory=list)
    # name that is no setting -> what it means: field -> value, None if it is not one of the
    # setting's
    misnomers: dict[str, dict[str, Given | None]] = field(default_factory=dict)
    readable: bool = True  # false if an env file was named and could not be read

    def as_meant(self) -> Reading:
        """The same with the values of misnomers, where nobody gave one by the right name.

        By these the rest is judged: a wrong name is one problem, and what the default of the
        setting that it means would not go with is none.
        """
        meant = {name: it for each in self.misnomers.values() for name, it in each.items() if it}
        return replace(self, given=meant | self.given)

    def unclear(self) -> set[str]:
        """The fields that misnomers mean, and for which none has a value."""
        meant = {name for each in self.misnomers.values() for name in each}
        return meant - self.as_meant().given.keys()


def _note(setting: str, what: str, why: str = "", fix: str = "") -> Problem:
    return Problem(code=Code.AMBIGUOUS_ENV_FILE, setting=setting, what=what, why=why, fix=fix)


def _bad_line(what: str, why: str, fix: str) -> Problem:
    return Problem(code=Code.INVALID_ENV_FILE, what=what, why=why, fix=fix)


def _conflict(setting: str, what: str, why: str, fix: str) -> Problem:
    return Problem(code=Code.CONFLICTING_SETTINGS, setting=setting, what=what, why=why, fix=fix)


def read(environ: Mapping[str, str], env_file: Path | None, flags: Mapping[str, str]) -> Reading:
    """Collect the values of all settings from all sources.

    `environ`: the process environment. Other programs' variables are ignored; but in the image,
    outside of a CI system, what a container engine was given was meant for this program, and is
    treated as a file's. `flags`: variable, or option -> value from the command line, with the
    highest precedence.
    """
    reading = Reading()
    lines: dict[str, str] = {}
    if env_file is not None:
        try:
            text = _text_of(env_file, reading)
            if env_file.suffix == ".tfvars" or _TFVARS.search(text):
                return Reading(problems=[_of_terraform(env_file, text)], readable=False)
            lines = _assignments(text, reading)
        except (OSError, ValueError) as error:
            return Reading(problems=[_unreadable(env_file, error)], readable=False)
    named = {
        spelling.setting_of(name)
        for it in (lines, environ, flags)
        for name in it
        if it[name].strip()
    }
    is_ours = bool(environ.get("AIINFRA_IMAGE")) and not environ.get("CI")
    meant = {it: environ[it] for it in environ if is_ours and not _OTHERS.fullmatch(it)} | lines
    for name in dict.fromkeys((*lines, *environ)):
        if not _is_clear(name, environ.get(name, ""), meant.get(name, ""), named, reading):
            _add_unknown(name, reading, stops=name in lines and not _OTHERS.fullmatch(name))
    # A blank value counts as unset, so a source with lower precedence can set it.
    values: dict[str, str] = {}
    for source in (lines, _but_for_others(environ), flags):
        values |= {name: value for name, value in source.items() if value.strip()}
    for name in sorted(filter(spelling.is_known, values), key=flags.__contains__):
        _take(name, values[name], reading, strongest=name in flags)
    _take_options(flags, reading)
    others = _but_for_others(environ)
    _compare(lines, {name: others[name] for name in others if name not in flags}, reading)
    return reading


def _but_for_others(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment without a proxy that is nobody's setting.

    A shell's own proxy is often one of this machine alone, and may have a password; it does not go
    to VMs. It is a setting where the others came in the same way, as with docker's --env-file; but
    not where docker's own configuration gave both spellings, nor in a CI system (ADR 78).
    """
    is_file = bool(environ.get("NAME_PREFIX", "").strip()) and not environ.get("CI")
    return {
        name: value
        for name, value in environ.items()
        if name not in OF_PROGRAMS or (is_file and environ.get(name.lower()) != value)
    }


def _compare(lines: Mapping[str, str], environ: Mapping[str, str], reading: Reading) -> None:
    """Say what the environment has otherwise than the file that is named."""
    overridden = []
    for name in filter(spelling.is_known, lines):
        here, there = (_bare(name, source.get(name, "")) for source in (lines, environ))
        if not here.strip() or not there.strip() or _meaning(here) == _meaning(there):
            continue
        field_name = spelling.SETTINGS[spelling.setting_of(name)]
        old, new = (shorten(mask_setting(field_name, it)) for it in (here, there))
        if name in _IDENTIFIES:
            reading.problems.append(
                _conflict(
                    name,
                    f"is {old} in the file and {new} in the environment",
                    "it says which deployment is meant, so neither is taken",
                    f"unset {name} in the shell, or write the right value to the file",
                )
            )
        else:
            overridden.append(f"{name} ({old} in the file, {new} taken)")
    if overridden:
        told = f"The environment overrides the file: {', '.join(overridden)}"
        reading.notes.append(_note("", told, fix="unset what is not meant"))


def _text_of(env_file: Path, reading: Reading) -> str:
    with env_file.open("rb") as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise ValueError(f"it has more than {_MAX_FILE_BYTES} bytes")
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not {'UTF-16' if is_wide else 'UTF-8'}") from None
    if "\0" in text:
        raise ValueError("it is not a text file")
    if is_wide:
        # PowerShell 5 writes such files by > and Out-File.
        name = env_file.name
        what = f"{name} is UTF-16, as PowerShell's > writes it; it was read as that"
        fix = f"in PowerShell: (Get-Content {name}) | Set-Content -Encoding utf8 {name}"
        others = "docker run --env-file and other tools can't read it"
        reading.notes.append(_note("", what, others, fix))
    return text


def _unreadable(env_file: Path, error: OSError | ValueError) -> Problem:
    reason = error.strerror if isinstance(error, OSError) else None
    fix = "use a text file with NAME=value lines" + ("" if reason else ", in UTF-8")
    if isinstance(error, FileNotFoundError):
        there = sorted(it.name for it in env_file.parent.glob("*.list"))[:_LISTED]
        fix = f"its folder has {', '.join(map(shorten, there))}" if there else "check its name"
    return _bad_line(
        f"{shorten(str(env_file))} can't be read as an env file", reason or str(error), fix
    )


def _of_terraform(env_file: Path, text: str) -> Problem:
    """Say what an env.list has in place of a terraform.tfvars: of names that stand in it once."""
    code = re.sub(r"(#|//).*", "", text)
    found = re.findall(r"\b(\w+)[ \t]*=[ \t]*\"?([\w.-]+)", code)
    named = [(_BY_TFVARS[name], value) for name, value in found if name in _BY_TFVARS]
    once = [name for name, _ in named]
    known = [f"{name}={value}" for name, value in named if once.count(name) == 1]
    known += ["ORCHESTRATOR_TYPE=gke"] if re.search(r"\bnode_pools\b", code) else []
    write = f"write {' '.join(known)} to an env.list, a line each" if known else "write an env.list"
    if "VM_TYPE" not in once:
        write += ", with VM_TYPE=a3-highgpu-8g for `create a3`, or what you want"
    return _bad_line(
        f"{shorten(str(env_file))} is a file of Terraform's, as ai-infra-cluster-provisioning had",
        "an env.list says what to make: NAME=value lines with the names of settings",
        f"{write}; docs/how-to/from-ai-infra-cluster-provisioning.md has the rest, line by line",
    )


def _assignments(text: str, reading: Reading) -> dict[str, str]:
    """Parse an env file: variable -> value; adds to the problems and notes of the reading."""
    # The parser behind dotenv_values; unlike that, it reports line numbers and errors.
    from dotenv.parser import parse_stream  # noqa: PLC0415 - only needed with a file

    found: dict[str, str] = {}
    seen: dict[str, int] = {}

    def assign(name: str, value: str, line: int) -> None:
        if name in found and found[name] != value:
            told = f"is set on lines {seen[name]} and {line} to different values"
            reading.notes.append(_note(name, told, "the last one is used"))
        found[name] = value
        seen[name] = line

    for shell_line in _VERBATIM_LINE.finditer(text):
        assign(shell_line["name"], shell_line["value"], text.count("\n", 0, shell_line.start()) + 1)
    for binding in parse_stream(io.StringIO(_VERBATIM_LINE.sub("", text))):
        line = binding.original.line
        source = binding.original.string.strip()
        if binding.error or (binding.key is not None and "\n" in source):
            reading.problems.append(_no_assignment(line, source))
        elif binding.key is not None and binding.value is not None:
            assign(binding.key, binding.value, line)
        elif binding.key is not None:
            told = f"has no = on line {line}, so it sets nothing"
            reading.notes.append(_note(binding.key, told))
    return found


def _no_assignment(line: int, source: str) -> Problem:
    if "\n" in source:
        return _bad_line(
            f"a quote on line {line} is not closed on that line",
            "a value can't span several lines",
            "close the quote, or remove it",
        )
    other = _OTHER_SIGN.fullmatch(source)
    name = other["name"].upper() if other else ""
    return _bad_line(
        f"line {line} is not NAME=value: {shorten(mask(source))}",
        "every line is NAME=value, a comment or blank",
        f"write {name}= before the value"
        if spelling.is_known(name)
        else "begin a comment with #, and remove quotes",
    )


def _is_clear(
    name: str, in_environ: str, in_file: str, given: Collection[str], reading: Reading
) -> bool:
    """Add the problem of a misnomer; False for what was meant for us, and nobody knows."""
    if spelling.is_known(name) or not (in_environ + in_file).strip():
        return True
    if name in spelling.WITHOUT_EFFECT:
        return True
    if not in_file.strip() and (_PROXIES.fullmatch(name) or name in _OF_CI):
        return True
    problem = spelling.misnomer(name, in_file, in_environ, given)
    if problem:
        reading.problems.append(problem)
        reading.misnomers[name] = _meant(spelling.meant_by(name), problem)
    return problem is not None or not in_file.strip()


def _add_unknown(name: str, reading: Reading, *, stops: bool) -> None:
    """Stop where a file that is read has the name; the image's environment may be others', too."""
    what, why, fix = "is not a setting", "it is ignored", "remove it"
    if stops:
        what += ": it would be ignored"
        why = "--help settings has all of them; JOB_ENV has what jobs find in their environment"
        fix += ", or put # before it"
    problem = Problem(code=Code.UNKNOWN_SETTING, setting=name, what=what, why=why, fix=fix)
    (reading.problems if stops else reading.notes).append(problem)


def _meant(setting: str, problem: Problem) -> dict[str, Given | None]:
    """What the fix of a misnomer's problem would set; without a value, if it has none to show."""
    fixed = Reading()
    for name, text in problem.alternatives.settings.items():
        _take(name, text, fixed, strongest=False)
    unknown = setting and not fixed.given
    return {spelling.SETTINGS[setting]: None} if unknown else {**fixed.given}


def _take(name: str, raw: str, reading: Reading, *, strongest: bool) -> None:
    """Add one value to the reading, under the field that it sets."""
    other = spelling.SPELLINGS.get(name)
    field_name = spelling.SETTINGS[other.setting if other else name]
    text = _text(name, raw, reading)
    if not text:
        return
    # Of what is neither yes nor no the field reports what is wrong with it.
    if other and other.opposite and isinstance(is_on := _meaning(text), bool):
        text = "no" if is_on else "yes"
    first = reading.given.get(field_name)
    if first and not strongest and _meaning(first.text) != _meaning(text):
        new, old = (shorten(mask_setting(field_name, it)) for it in (raw, first.raw))
        reading.problems.append(
            _conflict(
                name,
                f"{new} contradicts {first.name}, {old}",
                f"both set {field_name.upper()}",
                f"remove one of them; {field_name.upper()} is the setting's own name",
            )
        )
        return
    reading.given[field_name] = Given(name=name, raw=raw, text=text)


def _take_options(flags: Mapping[str, str], reading: Reading) -> None:
    """Add the values of the options that the action has."""
    action = reading.given["action"].text.capitalize() if "action" in reading.given else ""
    for name, text in flags.items():
        field_name = OPTIONS.get(f"{action} {name}")
        if field_name:
            reading.given[field_name] = Given(name=name, raw=text, text=text.strip())


def _text(name: str, raw: str, reading: Reading) -> str:
    if name in _VERBATIM:
        raw = raw.rstrip("\r\n")  # a Windows line ending is not part of the command
        if parsing.unquoted(raw.strip()) != raw.strip():
            why = "it is used verbatim, so the shell sees one quoted word"
            note = _note(name, "begins and ends with a quote", why, "remove the outer quotes")
            reading.notes.append(note)
        return raw
    bare = _bare(name, raw)
    if bare != raw.strip():
        what = "had quotes around its value; they were removed"
        why = "docker run --env-file passes quotes on as part of the value"
        reading.notes.append(_note(name, what, why, "remove the quotes"))
    return bare


def _bare(name: str, raw: str) -> str:
    """A value without the quotes and blanks around it; a command as it is."""
    return raw.rstrip("\r\n") if name in _VERBATIM else parsing.unquoted(raw.strip()).strip()


def _meaning(text: str) -> object:
    """The value by which two spellings of one setting are compared."""
    try:
        return parsing.boolean(text)
    except parsing.InvalidValueError:
        return text


def sound(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings whose values fit; one that this version does not know is kept as it is."""
    return dict(_sound(values))


def misfit(error: ValueError) -> str:
    """What of a document does not fit its type, in words."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _sound(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        field = Settings.model_fields.get(name.lower())
        if field is None:
            yield name, value
            continue
        if value is None or value == masking.MASK:
            if type(None) in get_args(field.annotation):
                yield name, value
            continue
        kind: Any = field.annotation
        if field.metadata:
            kind = Annotated[(kind, *field.metadata)]
        # Parts of a value are read one by one; a value without parts is read as its text was.
        reader = TypeAdapter(_without_parsers(kind) if isinstance(value, list | dict) else kind)
        try:
            found = reader.validate_python(_texts(value), context=values)
        except (ValueError, TypeError, AttributeError):
            continue  # the rules take texts, and stumble over parts that are none
        yield name, reader.dump_python(found, mode="json")


def _without_parsers(kind: Any) -> Any:
    """A type without what takes a whole text apart."""
    if get_origin(kind) is Annotated:
        inner, *about = get_args(kind)
        rules = [rule for rule in about if not isinstance(rule, BeforeValidator)]
        return Annotated[(_without_parsers(inner), *rules)] if rules else _without_parsers(inner)
    if get_origin(kind) in {Union, types.UnionType}:
        return Union[tuple(map(_without_parsers, get_args(kind)))]  # noqa: UP007 - of a tuple
    return kind


def _texts(value: Any) -> Any:
    """A value with each part as its text."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return str(value)
        case list():
            return [_texts(one) for one in value]
        case dict():
            return {key: _texts(one) for key, one in value.items()}
        case _:
            return value
