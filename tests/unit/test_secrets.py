"""A credential of a known form never leaves, wherever in the settings it stands."""

import contextlib
import io
import json
import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from provision import cli
from provision.console import Console
from provision.settings.masking import Lines, Veil
from provision.terraform.log import Log
from tests.unit.test_any_env_list import MANDATORY

LETTERS = string.ascii_letters + string.digits


def _token(before: str, length: int, alphabet: str = LETTERS) -> st.SearchStrategy[str]:
    """A form: what it begins with, and so many characters."""
    return st.text(alphabet, min_size=length, max_size=length).map(lambda it: before + it)


FORMS = st.one_of(
    *(_token("hf_", 34), _token("ghp_", 36), _token("gho_", 36), _token("github_pat_", 82)),
    *(_token("AIza", 35), _token("ya29.", 60), _token("sk-proj-9", 60), _token("glpat-", 20)),
    *(_token("xoxb-1234-", 24), _token("xoxp-1234-", 24)),
    _token("sk-", 48).filter(lambda it: any(letter.isdigit() for letter in it)),
    _token("AKIA", 16, string.ascii_uppercase + string.digits),
)


def _bare(length: int) -> st.SearchStrategy[str]:
    """A secret without a form; a digit, so that it is no word that the program says itself."""
    return _token("", length).filter(lambda it: any(letter.isdigit() for letter in it))


SECRETS = st.one_of(
    FORMS.map(lambda it: (it, it)),
    _bare(24).map(lambda it: (it, f"-----BEGIN RSA PRIVATE KEY-----\\n{it}\\n-----END")),
    _bare(12).map(lambda it: (it, f"https://me:{it}@example.com/x")),
    _bare(12).map(lambda it: (it, f"Authorization: Basic {it}")),
    _bare(24).map(lambda it: (it, f"-H Authorization:{it}")),
)
"""What must not be seen, and the text that it stands in."""
PLACES = """METADATA=colour={}
METADATA=colour=blue {} red
METADATA={{ "a" = "b", "colour" = "{}" }}
METADATA={{"colour": "{}"}}
METADATA={}=blue
METADATA={}
METADATA=startup-script={}
STARTUP_COMMAND=run {} now
STARTUP_COMMAND=run '{}'
STARTUP_COMMAND=echo "{}" | run -
STARTUP_COMMAND={}
LABELS=team={}
LABELS={}=ml
LABELS={}
METADATTA=colour={}
STARTUP_COMMAND {}""".splitlines()


def _said(line: str, action: str) -> str:
    """All that the program writes with this line in its env.list."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "env.list"
        path.write_text(f"{MANDATORY}{line}\n", encoding="utf-8")
        out, err = io.StringIO(), io.StringIO()
        arguments = ["--offline", "--output", "json", "--env-file", str(path), action]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(arguments, {})
    json.loads(out.getvalue())
    return out.getvalue() + err.getvalue()


@given(SECRETS, st.sampled_from(PLACES))
@example(("hf_" + "a1" * 17, "hf_" + "a1" * 17), "LABELS=team={}")
@example(("aB3dE6fG8hJ1", "https://me:aB3dE6fG8hJ1@example.com/x"), "LABELS=team={}")
def test_a_secret_is_in_nothing_that_is_said(secret: tuple[str, str], place: str) -> None:
    hidden, written = secret

    # In small letters neither: a proposal for a label is written so.
    assert hidden.lower() not in _said(place.format(written), "Validate").lower()


@given(
    _bare(12),
    st.sampled_from(
        [
            "METADATA=colour={}",
            "METADATA=colour=blue {} red,team=b",
            'METADATA={{"colour": "{}"',
            "METADATA=aiinfra-x={}",
            "STARTUP_COMMAND=run {} now",
            "STARTUP_COMMAND={}",
            "STARTUP_COMMAND=run {}\nstartup-command=run other",
            "ORCHESTRATOR_TYPE=gke\nSTARTUP_COMMAND=run {}",
        ]
    ),
)
def test_a_command_and_values_of_metadata_are_in_nothing_that_is_said(
    value: str, place: str
) -> None:
    assert value not in _said(place.format(value), "Validate")


@given(SECRETS, st.lists(st.integers(1, 40), min_size=1), st.sampled_from(["shown", "kept"]))
def test_a_secret_is_in_no_line_of_terraform_however_it_comes(
    secret: tuple[str, str], cuts: list[int], what: str
) -> None:
    hidden, written = secret
    text = f"é: creating\n  + value = {written}\nError: no\n".replace("\\n", "\n").encode()
    shown: list[str] = []
    log = Log(shown.append, Veil())

    done = 0
    for cut in [*cuts, len(text)]:
        log.write(text[done : done + cut])
        done += cut
    log.end()

    told = log.text if what == "kept" else "".join(shown)
    assert told.startswith("é: creating\n")
    assert hidden not in told


def test_what_the_settings_hide_is_hidden_in_the_words_of_others() -> None:
    veil = Veil()
    veil.learn(["run --token first-of-all"], [{"db-password": "second of all", "team": "blue"}])

    told = veil("Invalid value 'second of all' for blue; first-of-all")

    assert told == "Invalid value '***' for blue; ***"


def test_words_of_others_that_are_no_secret_stay() -> None:
    text = """pip install hf_transfer
the token: expired
401: Bearer token is missing
https://example.com/a@b
my-disk-with-a-long-name-0123456789
AIza"""
    assert [Veil()(line) for line in text.splitlines()] == text.splitlines()


def test_a_stream_without_an_end_of_line_is_not_lost() -> None:
    lines = Lines(Veil())

    assert lines.feed("one\ntwo") == "one\n"
    assert lines.end() == "two"


def test_a_traceback_has_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.veil.learn([], [{"token": "first-of-all"}])
    try:
        int("first-of-all")
    except ValueError:
        console.traceback()

    told = capsys.readouterr().err
    assert "with base 10: '***'" in told
