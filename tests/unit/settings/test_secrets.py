import pytest

from tests.unit.conftest import Given

S = "projects/my-project/secrets"


@pytest.mark.parametrize("version", [":12", "/versions/12"], ids=["short", "as Google writes it"])
def test_a_secret_is_of_a_project_and_of_a_version(given: Given, version: str) -> None:
    other = f"projects/example.com:p-other/secrets/B_-{version}"
    settings = given(STARTUP_COMMAND="true", SECRETS=f"A={S}/a, _b2={other}").loaded.settings

    assert settings is not None
    assert [(it.name, it.path, it.version) for it in settings.secrets or ()] == [
        ("A", f"{S}/a", "latest"),
        ("_b2", "projects/example.com:p-other/secrets/B_-", "12"),
    ]


@pytest.mark.parametrize(
    "wrong",
    f"""A=hf_the-secret-itself
A={S}/a,B=the-secret-itself
{S}/a
A={S}/a:0
A={S}/a/versions/0
A-B={S}/a
PATH={S}/a
LD_PRELOAD={S}/a
A={S}/a,A={S}/b
A=projects/P/secrets/a
{",".join(f"A{number}={S}/a{number}" for number in range(21))}""".splitlines(),
)
def test_what_names_no_secret_is_refused(given: Given, wrong: str) -> None:
    problem = given(STARTUP_COMMAND="true", SECRETS=wrong).problem("SECRETS")
    assert "the-secret-itself" not in problem.what + problem.why


@pytest.mark.parametrize("others", [{}, {"ORCHESTRATOR_TYPE": "ray"}, {"STARTUP_COMMAND": "ls"}])
def test_secrets_go_to_jobs_where_there_is_no_command_and_one_may_have_many_names(
    given: Given, others: dict[str, str]
) -> None:
    assert not given(SECRETS=f"A={S}/a", **others).loaded.problems
    many = ",".join(f"A{number}={S}/a" for number in range(21))
    assert not given(SECRETS=many, **others).loaded.problems


RANDOM = "a1b2c3d4e5f60718293a4b5c"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("STARTUP_COMMAND", f"docker run -e WANDB_API_KEY={RANDOM} image"),
        ("STARTUP_COMMAND", f"pip install git+https://me:ghp_{RANDOM}@example.com/x"),
        ("METADATA", f"api-key={RANDOM}"),
        ("JOB_ENV", f"A=b,HF_TOKEN=hf_{RANDOM}"),
    ],
)
def test_a_credential_in_what_is_stored_with_the_cluster_is_noted_and_not_told(
    given: Given, variable: str, value: str
) -> None:
    note = given(**{variable: value}).note(variable)

    assert "SECRETS=NAME=projects/" in note.fix
    assert RANDOM not in str(note)


@pytest.mark.parametrize(
    "command",
    [
        "export K=$(gcloud secrets versions access 1 --secret=wandb-key-of-team-2)",
        f"train --token $TOKEN_{RANDOM} --key-file=/run/{RANDOM} --tokenizer=meta-llama-3-8b-32k",
        f"git checkout {RANDOM}",
    ],
)
def test_where_a_command_finds_its_credential_is_none(given: Given, command: str) -> None:
    assert not given(STARTUP_COMMAND=command).noted
