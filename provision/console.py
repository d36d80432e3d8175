"""The only module that prints.

Results go to stdout; progress, notes and problems to stderr. With `--output json` stdout is one
document and nothing else, and with `--output ndjson` one event a line. On a terminal the stages
that go on stand in its last rows; elsewhere each is a line when it ends, or has news.
Colours follow the terminal, NO_COLOR and FORCE_COLOR (rich).
Whatever is said goes through a veil that hides credentials, and is made printable: much of it is
the words of others.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TextIO, cast

from provision import words
from provision.documents import plain, problem
from provision.documents.events import (
    EventKind,
    MessageEvent,
    MilestoneEvent,
    NoteEvent,
    Output,
    ProblemEvent,
    StageEvent,
    WaitingEvent,
    stamp,
)
from provision.errors import Interrupted
from provision.screens import layout
from provision.screens import progress as progress_lines
from provision.screens.layout import Line
from provision.settings import masking
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console as RichConsole
    from rich.text import Text

    from provision.codes import Code
    from provision.documents.events import Event
    from provision.errors import Problem

_MOST_LINES = 10  # the maximum number of lines of a why; the JSON and Terraform's log have all

_LOOK: Final = 0.5  # seconds between two looks for signals while somebody is asked
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST: Final = "\x1b[J"
"""What terminals know (ECMA-48): go to the first place, empty the rest of a line, of the screen."""
_ROW: Final = "\r\x1b[2K"
_UP: Final = "\x1b[1A\x1b[2K"
_WITHOUT_CODES: Final = frozenset({"", "dumb", "unknown"})
"""Values of TERM for terminals that only print."""
_NOT_IN_THE_IMAGE: Final = re.compile(r"\bgcloud (?!auth\b)[a-z]|\bkubectl ")
_ELSEWHERE: Final = (
    "gcloud and kubectl: run them in Cloud Shell or on your own machine; this image has"
    " nothing of them but gcloud auth"
)


class Console:
    """Prints everything that the program prints.

    `output`: what stdout is for; results as text are not printed among JSON. `in_image`: whether
    this is the container image, which has few of the commands that fix something. `clock`: What
    stands still while somebody is asked. `asked`: The seconds (of ours) for which answers were
    waited for. `listener`: gets each milestone, masked; `hang_up`: ends it.
    """

    def __init__(self, *, output: Output = Output.TEXT, in_image: bool = False) -> None:
        self._output = output
        self._as_json = output is not Output.TEXT
        self._in_image = in_image
        self._out = _Outlet(sys.stdout)
        self._to_stderr = _Outlet(sys.stderr)
        # Signs of life come from a thread of their own.
        self._guard = threading.RLock()
        self._live = self._live_rows() if _is_possible(sys.stderr, os.environ) else None
        self._asks = False
        self.veil = masking.Veil()
        self.clock = Clock()
        self.asked = 0.0
        self._said: set[str] = set()
        self.listener: Callable[[Mapping[str, Any]], None] = lambda _: None
        self.hang_up: Callable[[], None] = lambda: None

    def _live_rows(self) -> Live:
        def print_line(line: Line, end: str) -> None:
            self._err.print(_styled(line.text, style=line.look.value), end=end)

        return Live(self._to_stderr.write, print_line, self._columns)

    def _lines(self, said: str) -> str:
        """A text as it may be shown; its newlines stay."""
        return words.printable(self.veil(said))

    def _line(self, said: str) -> str:
        """A text of one line as it may be shown."""
        return words.printable_line(self.veil(said))

    @contextlib.contextmanager
    def _above(self) -> Iterator[None]:
        """Print above the rows of what goes on; one thread at a time."""
        with self._guard:
            if self._live:
                self._live.erase()
            try:
                yield
            finally:
                if self._live and not self._asks:
                    self._live.draw()

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Leave the terminal alone while somebody is asked."""
        with self._guard:
            self._asks = True
            if self._live:
                self._live.erase()
        self.clock.stand()
        began = time.monotonic()
        try:
            yield
        except Interrupted:
            self._err.print()  # what follows is no answer
            raise
        finally:
            self.asked += time.monotonic() - began
            self._asks = False

    @functools.cached_property
    def _err(self) -> RichConsole:
        from rich.console import Console as RichConsole  # noqa: PLC0415 - a result needs no style

        # soft_wrap: a line is a line, whatever the terminal's width, so that it can be copied.
        return RichConsole(
            file=cast("IO[str]", self._to_stderr), highlight=False, markup=False, soft_wrap=True
        )

    @functools.cached_property
    def _to_stdout(self) -> RichConsole:
        from rich.console import Console as RichConsole  # noqa: PLC0415 - as above

        return RichConsole(
            file=cast("IO[str]", self._out), highlight=False, markup=False, soft_wrap=True
        )

    @staticmethod
    def _columns() -> int | None:
        """The columns of the terminal; None if nothing that is printed goes to one."""
        for stream in (sys.stderr, sys.stdout):
            try:
                if stream.isatty():
                    return os.get_terminal_size(stream.fileno()).columns
            except (OSError, ValueError):
                continue
        return None

    @property
    def opens_shells(self) -> bool:
        """Whether a person sits at a terminal, on a machine that is not the image."""
        return self.is_terminal and not self._in_image

    @property
    def is_terminal(self) -> bool:
        """Whether there is a terminal, so that a person can be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def unwritten(self) -> OSError | None:
        """Why a result could not be written; a closed pipe does not count."""
        error = self._out.error
        return None if isinstance(error, BrokenPipeError) else error

    @property
    def colours(self) -> bool:
        """Whether output to stderr may be in color."""
        return self._err.color_system is not None and not self._err.no_color

    def result(self, text: str) -> None:
        """Print the action's result."""
        if not self._as_json:
            with self._above():
                self._out.write(self._lines(text.rstrip("\n")) + "\n")
                self._out.flush()

    def output(self, text: str) -> None:
        """Print what a program on the cluster says: whole lines, to stdout; beside JSON to stderr.

        A line that a program wrote over itself, as progress bars do, becomes several.
        """
        lines = self._lines(text.replace("\r\n", "\n").replace("\r", "\n"))
        outlet = self._to_stderr if self._as_json else self._out
        with self._above():
            outlet.write(lines)
            outlet.flush()

    def help(self, text: str) -> None:
        """Print the help as text, even with `--output json`."""
        self._out.write(text.rstrip("\n") + "\n")
        self._out.flush()

    def document(self, document: Mapping[str, Any]) -> None:
        """Print the run's JSON document, with `--output json`; with ndjson it is the last event."""
        match self._output:
            case Output.TEXT:
                return
            case Output.JSON:
                text = self._as_text(document, indent=2)
            case Output.NDJSON:
                event = {"event": EventKind.RESULT, "time": stamp(time.time()), **document}
                text = self._as_text(event)
        with self._above():
            self._out.write(text + "\n")
            self._out.flush()

    def _as_text(self, document: Mapping[str, Any], indent: int | None = None) -> str:
        """A document as JSON in ASCII alone, in which nothing acts on a terminal."""
        text = json.dumps(masking.mask_tree(document, self.veil), indent=indent)
        return text.replace("\x7f", "\\u007f")

    def happened(self, event: Event) -> None:
        """Print an event as a line of `--output ndjson`, and what people see of it."""
        if self._output is Output.NDJSON:
            text = self._as_text(plain(event))
            with self._above():
                self._out.write(text + "\n")
                self._out.flush()
        match event:
            case MilestoneEvent():
                self.listener(masking.mask_tree(plain(event), self._lines))
            case StageEvent(stage=stage) if stage.ended:
                self.show(progress_lines.ended(stage, self.width))
            case WaitingEvent(stage=name) if not self._asks and (name is None or not self._live):
                # On a terminal a stage has its rows already; what is between two has none.
                told = progress_lines.news if event.is_news else progress_lines.sign_of_life
                self.show(told(event, self.width))

    def refresh(self, stages: Sequence[WaitingEvent]) -> None:
        """Write the rows of the stages that go on again, on a terminal."""
        if self._live is None:
            return
        rows = [
            layout.Line(self._line(row.text), row.look)
            for row in progress_lines.live(stages, self.width - 1)
        ]
        with self._guard:
            if not self._asks:
                self._live.become(rows)

    @property
    def width(self) -> int:
        """The columns to lay out lines for: those of the terminal, and 100 where there is none."""
        return layout.width_of(self._columns())

    def show(self, lines: Iterable[Line], *, as_result: bool = False) -> None:
        """Print lines that a screen has laid out.

        `as_result`: whether they are the action's result, for stdout; with `--output json` they go
        to stderr like the others.
        """
        if as_result and not self._as_json and not sys.stdout.isatty():
            self.result("\n".join(self._line(line.text) for line in lines))
            return
        printer = self._to_stdout if as_result and not self._as_json else self._err
        with self._above():
            for line in lines:
                printer.print(_styled(self._line(line.text), style=line.look.value))

    @property
    def redraws(self) -> bool:
        """Whether a screen can be drawn over itself: a result goes to a terminal."""
        return not self._as_json and sys.stdout.isatty()

    def redraw(self, lines: Sequence[Line]) -> None:
        """Draw lines over the whole terminal; what is too long for it is cut at its end."""
        room = shutil.get_terminal_size().lines - 2
        shown = list(lines[:room])
        if len(lines) > room:
            more = (
                f"... {len(lines) - room + 1} more lines: make the window higher, or leave out"
                " --watch"
            )
            shown = [*lines[: room - 1], layout.Line(more, layout.Look.FAINT)]
        with self._to_stdout.capture() as drawn:
            self.show(shown, as_result=True)
        # Line by line over what is there: a screen that is emptied first flickers.
        self._out.write(_HOME + drawn.get().replace("\n", _REST_OF_LINE + "\n") + _REST)
        self._out.flush()

    def progress(self, text: str) -> None:
        """Print a progress message."""
        with self._above():
            for line in self._laid_out(self._line(text), "", "  "):
                self._err.print(_styled(line, style="bold"))
        self.happened(MessageEvent(time=stamp(time.time()), words=text))

    def once(self, text: str) -> None:
        """Print a progress message, unless this run has said it already."""
        if text not in self._said:
            self._said.add(text)
            self.progress(text)

    def problems(self, problems: Sequence[Problem], heading: str) -> None:
        """Print the problems that made the run fail."""
        with self._above():
            self._err.print(_styled(heading, style="bold red"))
            self._list(problems)
        for one in problems:
            self.happened(ProblemEvent(time=stamp(time.time()), problem=problem.of(one)))

    def notes(self, notes: Sequence[Problem], *, but: Code | None = None) -> None:
        """Print notes, which did not make the run fail."""
        shown = [it for it in notes if but is None or it.code is not but]
        if shown:
            with self._above():
                self._err.print(_styled("Worth knowing:", style="bold yellow"))
                self._list(shown)
        for one in notes:
            self.happened(NoteEvent(time=stamp(time.time()), note=problem.of(one)))

    def traceback(self) -> None:
        """Print the traceback of an exception that is a bug of this program."""
        with self._err.capture() as told:
            self._err.print_exception(show_locals=False)
        with self._above():
            self._to_stderr.write(words.printable(self.veil(told.get()), colours=self.colours))

    def raw(self, text: str) -> None:
        """Write another program's output to stderr, with its colours; it went through the veil."""
        with self._above():
            self._to_stderr.write(words.printable(text, colours=self.colours))
            self._to_stderr.flush()

    def ask(self, question: str) -> bool:
        """Ask a person on the terminal; returns whether the answer is "yes"."""
        told = self._line(question) + ' Type "yes" to confirm: '
        with self._asking():
            self._err.print(_styled(told, style="bold"), end="")
            answer = _typed().strip().lower()
            if answer == "y":  # a habit from other questions: neither agrees nor refuses
                self._err.print(_styled('Type the whole word "yes": ', style="bold"), end="")
                answer = _typed().strip().lower()
        return answer == "yes"

    def go_on(self, question: str) -> bool:
        """Ask a person on the terminal whether to go on, which Enter alone agrees to."""
        with self._asking():
            self._err.print(_styled(self._line(question) + " [Y/n] ", style="bold"), end="")
            answer = _typed()
        # Without a newline it is the end of the input: nobody has agreed.
        return bool(answer) and answer.strip().lower() in {"", "y", "yes"}

    def _laid_out(self, text: str, first: str, rest: str) -> list[str]:
        """A text in lines: on a terminal they break at blanks; elsewhere a line is a line."""
        if not self._err.is_terminal:
            return [first + text]
        return [line.text for line in layout.wrapped(text, self.width, first=first, rest=rest)]

    def _list(self, problems: Sequence[Problem]) -> None:
        for one in problems:
            name = self._line(one.setting)
            setting = f"{name}  " if name else ""
            what = self._laid_out(setting + self._line(one.what), "  ", "      ")
            for number, text in enumerate(what):
                line = _styled(text)
                if number == 0 and text.startswith(f"  {name}"):
                    line.stylize("bold", 2, 2 + len(name))
                self._err.print(line)
            for part, value in (("why", one.why), ("fix", one.fix)):
                lines = self._lines(value).splitlines()
                # A fix is whole: it is what somebody types, or sends to others.
                if part == "why" and len(lines) > _MOST_LINES:
                    rest = words.counted(len(lines) - _MOST_LINES, "more line")
                    more = f"... and {rest}, in the JSON and the log"
                    lines = [*lines[:_MOST_LINES], more]
                lead = f"      {part}: "
                for paragraph in lines:
                    for text in self._laid_out(paragraph, lead, " " * 11):
                        line = _styled(text)
                        line.stylize("dim", 0, 11)
                        self._err.print(line)
                    lead = " " * 11
        if self._in_image and any(_NOT_IN_THE_IMAGE.search(it.fix) for it in problems):
            self._err.print(_styled(f"  {_ELSEWHERE}", style="dim"))


def _typed() -> str:
    """The line that somebody types; a signal ends the wait for it at any moment.

    One that comes between Python's last look for signals and the read would wait with it.
    """
    with contextlib.suppress(OSError, ValueError):  # no file, as in a test
        while not select.select([sys.stdin], [], [], _LOOK)[0]:
            pass
    return sys.stdin.readline()


def _styled(text: str, style: str = "") -> Text:
    from rich.text import Text  # noqa: PLC0415 - as above

    return Text(text, style=style)


class _Outlet:
    """A stream whose errors do not stop the run: a closed terminal or pipe, a full disk."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, what: Callable[[], object]) -> None:
        try:
            what()
        except OSError as error:
            self.error = self.error or error
            # Otherwise flushing the rest of the buffer would fail again at interpreter exit.
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _is_possible(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether rows can be rewritten: on a terminal that knows how to."""
    return stream.isatty() and environ.get("TERM", "").lower() not in _WITHOUT_CODES


class Live:
    """The last rows of a terminal, which are rewritten as time goes by.

    The cursor stays where it is and is never hidden, so there is nothing that a killed run leaves
    to be restored.

    `print_line`: prints a line with its look; the second argument is what follows it. `columns`:
    asks for the terminal's columns; None if it does not say.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        print_line: Callable[[Line, str], None],
        columns: Callable[[], int | None],
    ) -> None:
        self._write = write
        self._print = print_line
        self._columns = columns
        self._drawn = 0
        self._rows: tuple[Line, ...] = ()

    def become(self, rows: Sequence[Line]) -> None:
        """Show these rows in the place of those that are there."""
        if tuple(rows) != self._rows or not self._drawn:
            self.erase()
            self._rows = tuple(rows)
            self.draw()

    def erase(self) -> None:
        """Take the rows off the terminal, so that something else can be printed in their place."""
        if self._drawn:
            self._write(_ROW + _UP * (self._drawn - 1))
        self._drawn = 0

    def draw(self) -> None:
        """Show the rows, below all that was printed before."""
        # A row that fills the last column makes some terminals begin another.
        room = (self._columns() or 1 << 16) - 1
        for number, row in enumerate(self._rows, 1):
            end = "" if number == len(self._rows) else "\n"
            self._print(Line(row.text[:room], row.look), end)
            self._drawn = number
