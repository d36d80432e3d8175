import re
from pathlib import Path

import pytest

from provision import cli
from provision.codes import ExitCode
from provision.command_line import Option, usage
from provision.settings import documentation
from provision.settings.choices import Action
from tests.conftest import Golden

ROOT = Path(__file__).parents[3]
GOLDENS = ROOT / "tests" / "golden" / "help"
SCREENS = {
    "overview": usage.overview(),
    **{str(action): usage.of_action(action) for action in Action},
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_help_is_as_its_golden_has_it(name: str, golden: Golden) -> None:
    golden.check(GOLDENS / f"{name.lower()}.txt", SCREENS[name])


def test_the_help_on_settings_is_as_its_golden_has_it(golden: Golden) -> None:
    golden.check(GOLDENS / "settings.txt", documentation.env_list_help())


@pytest.mark.parametrize("name", SCREENS)
def test_a_help_fits_a_screen_of_24_lines_and_80_columns(name: str) -> None:
    lines = SCREENS[name].splitlines()

    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_the_overview_explains_every_action_in_a_line_and_each_option_is_where_it_is_for() -> None:
    lines = SCREENS["overview"].splitlines()

    for action in Action:
        (line,) = [line for line in lines if line.startswith(f"  {action} ")]
        assert len(line.split()) > 3
    for option in Option:
        of_all = ["overview"] if option.actions == frozenset(Action) else []
        assert all(str(option) in SCREENS[it] for it in (*of_all, *map(str, option.actions)))


@pytest.mark.parametrize("action", Action)
def test_the_help_on_an_action_has_its_options_and_no_other(action: Action) -> None:
    usual, _, settings = SCREENS[str(action)].partition("Also in JOB_OPTIONS:")
    rows = [line.split()[0] for line in usual.splitlines() if line.startswith("  --")]
    shown = {row.partition("[")[0] for row in rows} | set(
        re.findall(r"--[a-z-]+(?=[,\n])", settings)
    )

    assert shown == {str(option) for option in Option if action in option.actions}


@pytest.mark.parametrize("action", Action)
def test_the_page_to_read_on_exists(action: Action) -> None:
    (page,) = [word for word in SCREENS[str(action)].split() if word.startswith("docs/")]

    assert (ROOT / page.rstrip(",")).is_file()


@pytest.mark.parametrize("topic", [*documentation.TOPICS, *(str(int(it)) for it in ExitCode)])
def test_each_name_of_the_reference_can_be_looked_up(
    topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--help", topic], {}) == 0
    said = capsys.readouterr().out
    assert topic == "settings" or said.startswith(f"{topic}  ")
    prose = [line for line in said.splitlines() if "=" not in line and "gcloud" not in line]
    assert max(map(len, prose)) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--help AUTOSTOP", "AUTOSTOP is IDLE_TIMEOUT here."),
        ("help max-run-duration", "MAX_RUN_DURATION  (default"),
        ("--help TEST_NODES", "is no setting any more: it is an option of Test"),
        ("--help JOB_TIME", "JOB_TIME is JOB_OPTIONS here."),
        ("--help GCS_PATH", "use TERRAFORM_GCS_PATH"),
        ("--help NFS_FILESTORE_LIST", "NFS_FILESHARE_LIST  (default"),
        ("--help cost-limit", "exit code 2; not without a change"),
        ("--help 7", "stock-out"),
    ],
)
def test_other_spellings_lead_to_what_they_mean(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words.split(), {}) == 0
    assert said in " ".join(capsys.readouterr().out.split()).replace(" (default", "  (default")


@pytest.mark.parametrize(
    ("topic", "fix"),
    [
        ("stokout", "did you mean stock-out?"),
        ("MAX_RUN_DURATIO", "did you mean MAX_RUN_DURATION?"),
        ("Delete", "did you mean Destroy?"),
        ("nonsense", "--help settings all settings"),
    ],
)
def test_what_cannot_be_looked_up_gets_the_nearest_name(
    topic: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--help", topic], {}) == 2
    assert fix in capsys.readouterr().err
