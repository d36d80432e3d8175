"""Whatever stands in an env.list: the whole program ends with a report, never with a traceback."""

import contextlib
import io
import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from provision import cli
from provision.settings import spelling
from provision.settings.model import Settings

VARIABLES = [*spelling.SETTINGS, *spelling.SPELLINGS]
GOOD = {
    name.upper(): [str(example) for example in about.examples or [""]]
    for name, about in Settings.model_fields.items()
}
LINES = st.sampled_from(VARIABLES).flatmap(
    lambda name: st.one_of(
        st.sampled_from(GOOD.get(name, ["yes"])),
        st.sampled_from([it for examples in GOOD.values() for it in examples]),
        st.text(max_size=30),
    ).map(lambda value: f"{name}={value}")
)
JUNK = st.text(alphabet="ZONE=\"'# \t\\$\x00\ufeff\r", max_size=20)
MANDATORY = "PROJECT_ID=my-project\nNAME_PREFIX=np\nZONE=us-central1-a\n"


@given(st.sampled_from(["", MANDATORY]), st.lists(LINES | JUNK, max_size=12))
def test_the_program_says_done_or_what_is_wrong(start: str, lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "env.list"
        path.write_bytes((start + "\n".join(lines)).encode(errors="surrogatepass"))
        out, err = io.StringIO(), io.StringIO()
        arguments = ["--offline", "--output", "json", "--env-file", str(path), "Validate"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(arguments, {})

    document = json.loads(out.getvalue())
    assert code in (0, 2), err.getvalue()
    assert document["exit_code"] == code
    assert bool(document["problems"]) == (code == 2)
    assert "Traceback" not in err.getvalue()
