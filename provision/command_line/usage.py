"""The help, on one screen for each action; and the scripts that shells run."""

from __future__ import annotations

import functools
import re
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from provision.command_line.options import FORMATS, OF_A_JOB, Option
from provision.settings.choices import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_WIDTH: Final = 80
_STARTS: Final = (
    ("usage: ", "aiinfra"),
    ("   or: ", "docker run -it --env-file env.list IMAGE"),
)
"""How the program is started: as a command, and as a container."""
_WRAPPER: Final = "wrapper"  # what the image answers with a shell script that runs it
_COMPLETION: Final = "completion"
_FILES: Final = {
    Option.ENV_FILE: "_files",
    Option.REPORT: "_files",
    Option.COPY: "_files -/",
}
"""Options whose value is a file or a folder of this machine -> how zsh finds them."""


class _About(NamedTuple):
    """The help about an action: its row in `actions.tsv`."""

    behind: str  # what may stand behind the action; "" for nothing
    line: str
    story: str
    page: str


@functools.cache
def _about() -> Mapping[Action, _About]:
    lines = Path(__file__).with_name("actions.tsv").read_text("utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {
        Action(action): _About("" if behind == "-" else behind, *rest)
        for action, behind, *rest in rows
    }


def overview() -> str:
    """The overview, on one screen."""
    return _text(
        [
            *_usage("ACTION"),
            "",
            "Turn an env.list into a GPU cluster on Google Cloud, and remove it again.",
            "",
            "actions, in upper or lower case:",
            *_table((str(action), _about()[action].line) for action in Action),
            *_paragraph(
                f"Options of all actions: {', '.join(_COMMON)}; those of one: ACTION --help."
                " More: --help settings, --help NAME for one of them; docs/ of the repository"
            ),
        ]
    )


def of_action(action: Action) -> str:
    """The help about an action, with its options."""
    about = _about()[action]
    own = _options(action)
    # On one screen: what they are stands in docs/how-to/run.md.
    of_a_job = [it for it in own if it in OF_A_JOB and action is Action.RUN]
    return _text(
        [
            *_usage(action, about.behind),
            *([] if of_a_job else [""]),
            *_paragraph(about.story),
            *([] if of_a_job else [""]),
            "options:",
            *_table((it.form, it.words) for it in own if it not in of_a_job),
            *_paragraph(f"Also in JOB_OPTIONS: {', '.join(of_a_job)}" if of_a_job else ""),
            *([] if of_a_job else [""]),
            *_paragraph(
                f"More: {about.page}, and --help settings for the settings in an env.list."
            ),
        ]
    )


def script(argv: Sequence[str], image: str | None) -> str | None:
    """The script that a command line asks for: the image's wrapper, or a shell's completion."""
    match list(argv):
        case [word] if word == _WRAPPER and image:
            return wrapper(image)
        case [word, shell] if word == _COMPLETION and shell in _SHELLS:
            return _SHELLS[shell]()
        case _:
            return None


def wrapper(image: str) -> str:
    """A shell script that runs an image by docker or podman, with what it needs of the machine."""
    script = Path(__file__).with_name("wrapper.sh").read_text(encoding="utf-8")
    return script.replace("@IMAGE@", image)


def _usage(action: str, behind: str = "") -> Iterator[str]:
    for begin, program in _STARTS:
        yield f"{begin}{program} {action} [OPTION]... {behind}".rstrip()


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False)


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    kept = list(rows)
    column = max(len(name) for name, _ in kept) + 4
    for name, words in kept:
        yield from textwrap.wrap(
            words,
            _WIDTH,
            initial_indent=f"  {name}".ljust(column),
            subsequent_indent=" " * column,
            break_on_hyphens=False,
        )


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _options(action: Action) -> list[Option]:
    return [option for option in Option if action in option.actions]


def _any_case(action: Action) -> str:
    """A pattern of bash and zsh: an action may begin with a small letter."""
    return f"[{action[0]}{action[0].lower()}]{action[1:]}"


def _bash() -> str:
    """Also for the bash 3.2 of macOS."""
    start = " ".join([*Action, *_COMMON])
    small = " ".join(map(str.lower, Action))
    return _text(
        [
            '# In ~/.bashrc: eval "$(aiinfra completion bash)"',
            "_aiinfra() {",
            "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words word i",
            f"  words='{start}'",
            f"  [[ $cur == [a-z]* ]] && words='{small}'",
            "  COMPREPLY=()",
            "  for ((i = 1; i < COMP_CWORD; i++)); do",
            "    case ${COMP_WORDS[i]} in",
            "      --) return ;;",
            *(f"      {_any_case(it)}) words='{' '.join(_options(it))}' ;;" for it in Action),
            "    esac",
            "  done",
            "  # bash takes --output=json apart.",
            "  [[ $cur == = ]] && cur=",
            "  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}",
            "  case $prev in",
            f"    {Option.OUTPUT}) words='{' '.join(FORMATS)}' ;;",
            f"    {'|'.join(it for it in Option if it.needs_value and it is not Option.OUTPUT)})",
            "      return ;;",
            "  esac",
            "  while IFS= read -r word; do",
            '    COMPREPLY+=("$word")',
            '  done < <(compgen -W "$words" -- "$cur")',
            "}",
            "# Where none of these fits, a file may.",
            "complete -o default -F _aiinfra aiinfra",
        ]
    )


def _zsh() -> str:
    def spec(option: Option) -> str:
        words = re.sub(r"([\\[\]:])", r"\\\1", option.words)
        value = ""
        if option.needs_value:
            choices = f"({' '.join(FORMATS)})" if option is Option.OUTPUT else ""
            value = f":{option.metavar.partition('[')[0]}:{choices or _FILES.get(option, ' ')}"
        return shlex.quote(f"{option}[{words}]{value}")

    def specs(options: Iterable[Option]) -> str:
        return " ".join(map(spec, options))

    lines = {it: re.sub(r"(\W)", r"\\\1", _about()[it].line) for it in Action}
    actions = " ".join(f"{it}\\:{line}" for it, line in lines.items())
    return _text(
        [
            "#compdef aiinfra",
            '# In ~/.zshrc, after compinit: eval "$(aiinfra completion zsh)"',
            "_aiinfra() {",
            "  local word",
            f"  local -a specs=({specs(_COMMON)} {shlex.quote(f'*:action:(({actions}))')})",
            "  for word in ${words[2,CURRENT-1]}; do",
            "    case $word in",
            "      --) _default; return ;;",
            *(f"      {_any_case(it)}) specs=({specs(_options(it))} '*: :') ;;" for it in Action),
            "    esac",
            "  done",
            "  _arguments $specs",
            "}",
            "compdef _aiinfra aiinfra",
        ]
    )


def _fish() -> str:
    def line(when: str, *rest: str) -> str:
        return f"complete -c aiinfra{f' -n {shlex.quote(when)}' if when else ''} {' '.join(rest)}"

    def option(when: str, it: Option) -> str:
        value: tuple[str, ...] = ()
        if it.needs_value:
            files = "-r -F" if it in _FILES else "-x"
            value = (f"-x -a '{' '.join(FORMATS)}'",) if it is Option.OUTPUT else (files,)
        return line(when, f"-l {it.lstrip('-')} -d {shlex.quote(it.words)}", *value)

    both = " ".join(f"{it} {it.lower()}" for it in Action)
    return _text(
        [
            "# In ~/.config/fish/config.fish: aiinfra completion fish | source",
            line("", "-f"),
            *(
                line(
                    f"not __fish_seen_subcommand_from {both}",
                    f"-a {it} -d {shlex.quote(_about()[it].line)}",
                )
                for it in Action
            ),
            *(option("", it) for it in _COMMON),
            *(
                option(f"__fish_seen_subcommand_from {action} {action.lower()}", it)
                for action in Action
                for it in _options(action)
                if it not in _COMMON
            ),
            line(f"__fish_seen_subcommand_from {Action.RUN} {Action.RUN.lower()}", "-F"),
        ]
    )


def _powershell() -> str:
    def words(of: Iterable[str]) -> str:
        return ", ".join(f"'{it}'" for it in of)

    return _text(
        [
            "# In $PROFILE: aiinfra completion powershell | Out-String | Invoke-Expression",
            "Register-ArgumentCompleter -Native -CommandName aiinfra -ScriptBlock {",
            "  param($wordToComplete, $commandAst, $cursorPosition)",
            "  $options = @{",
            *(f"    '{it}' = @({words(_options(it))})" for it in Action),
            "  }",
            "  $action, $null = @($commandAst.CommandElements | ForEach-Object { [string]$_ } |",
            "    Where-Object { $options.ContainsKey($_) -and $_ -ne $wordToComplete })",
            "  $words = if ($action) { $options[$action] } else {",
            f"    {words([*Action, *_COMMON])}",
            "  }",
            '  $words | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object {',
            "    [System.Management.Automation.CompletionResult]::new($_)",
            "  }",
            "}",
        ]
    )


_COMMON: Final = [option for option in Option if option.actions == frozenset(Action)]
_SHELLS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish, "powershell": _powershell}
"""Shell -> the script by which it completes actions, options and an option's few values."""
