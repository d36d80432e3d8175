import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from provision.errors import SettingsError
from provision.files import archive as files
from provision.files.left_out import LeftOut

Pack: TypeAlias = Callable[..., tuple[list[str], list[str]]]
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"
ACCOUNT = json.dumps({"type": "service_account", "private_key": KEY})


@pytest.fixture
def sorted_out(tmp_path: Path) -> Pack:
    """Make a folder of files, pack it: what travels, and what stays."""

    def pack(**contents: str) -> tuple[list[str], list[str]]:
        folder, into = tmp_path / "copy", tmp_path / "run"
        into.mkdir()
        for name, content in contents.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        left_out = LeftOut.of(folder)
        archive = files.pack(folder, into, left_out)
        if archive is None:
            return [], left_out.names
        with tarfile.open(archive.path) as packed:
            return packed.getnames(), left_out.names

    return pack


SECRET = {
    **dict.fromkeys(
        """.git/config
src/.git/config
.env
src/.env.local
tls/server.pem
tls/server.key
.ssh/id_rsa
id_ed25519
.netrc
home/.netrc
.git-credentials
.aws/credentials
kaggle.json
.kaggle/kaggle.json
terraform.tfstate
terraform.tfstate.backup
infra/prod.tfstate
.ssh/config
.ssh/known_hosts
home/.docker/config.json
.kube/config
home/.config/gcloud/credentials.db
gcloud/legacy_credentials/me/.boto
.cache/huggingface/token
home/.huggingface/token
.pypirc
.terraform.d/credentials.tfrc.json
prod.tfvars
prod.auto.tfvars.json
putty.ppk
store.jks
secrets.env
env.list
clusters/prod.env.list
.pgpass
.bash_history""".splitlines(),
        "{}",
    ),
    "deploy": KEY,
    "deploy.txt": "\n" + KEY,
    "account.json": ACCOUNT,
    "adc.json": json.dumps({"type": "authorized_user", "refresh_token": "x"}),
    "deploy/aws.ini": f"[default]\naws_secret_access_key = {40 * 'a'}\n",
    ".npmrc": "//registry.example/:_authToken=npm_abc\n",
    # What gcloud auth application-default login --impersonate-service-account writes.
    "imp.json": json.dumps({"type": "impersonated_service_account"}),
    "wif.json": json.dumps({"type": "external_account_authorized_user"}),
    "edge.json": json.dumps({"type": "gdch_service_account"}),
    "client_secret_1.json": json.dumps({"installed": {"client_secret": "x"}}),
    "token.json": json.dumps({"token": "x", "refresh_token": "x"}),
    "pip.conf": "[global]\nindex-url = https://ana:secret@pypi.example/simple\n",
    "uv.toml": 'extra-index-url = "https://:secret@pypi.example/simple"\n',
    "putty": "PuTTY-User-Key-File-3: ssh-ed25519\n",
}
ENVIRONMENTS = """.venv/bin/python
src/venv/lib/x.py
mine/pyvenv.cfg
src/env/conda-meta/history
__pycache__/a.pyc
src/__pycache__/a.pyc
web/node_modules/a/index.js
.mypy_cache/a
.pytest_cache/a
.ruff_cache/a
.ipynb_checkpoints/a.ipynb""".splitlines()
NONE = {
    **dict.fromkeys(("environment.yaml", ".gitignore", "id_rsa.pub"), "x"),
    **dict.fromkeys(("list.json", "tokenizer.json"), "[]"),
    "empty": "",
    "main.tf": 'backend "gcs" {}',
    "keyboard.py": "key = '-----BEGIN PRIVATE KEY-----'",
    "config.json": json.dumps({"type": "module"}),
    "broken.json": '{"type": "service_account"',
    "schema.json": '{"type": ["object", "null"]}',
    ".npmrc": "engine-strict=true\n//registry.example/:_authToken=${NPM_TOKEN}\n",
    "boto.py": 'aws_secret_access_key = os.environ["AWS_SECRET_ACCESS_KEY"]',
    "messages.json": json.dumps({"errors": {"client_secret": ["is wrong"]}}),
    "pip.conf": "[global]\nindex-url = https://${WHO}:${SECRET}@pypi.example/simple\n",
    "fetch.py": 'url = "https://ana:secret@pypi.example"',
}


@pytest.mark.parametrize("name", [*SECRET, *ENVIRONMENTS])
def test_what_is_nearly_always_a_secret_or_made_by_tools_for_one_machine_stays(
    sorted_out: Pack, name: str
) -> None:
    travels, stays = sorted_out(**{name: SECRET.get(name, "x"), "train.py": "x"})

    assert "train.py" in travels
    assert name not in travels
    assert any(name.startswith(it) for it in stays)


@pytest.mark.parametrize("name", NONE)
def test_what_is_none_travels(sorted_out: Pack, name: str) -> None:
    assert sorted_out(**{name: NONE[name]}) == ([name], [])


def test_the_folders_own_file_names_more_and_takes_back(sorted_out: Pack) -> None:
    rules = "# big\n/data/\n*.log\n!keep.log\n!certs/ca.pem\n"
    others = dict.fromkeys(("data/a", "sub/data/a", "b.log", "keep.log"), "x")
    keys = dict.fromkeys(("certs/ca.pem", "certs/other.pem"), KEY)

    travels, stays = sorted_out(**{".aiinfraignore": rules}, **others, **keys)

    assert travels == ["certs", "certs/ca.pem", "keep.log", "sub", "sub/data", "sub/data/a"]
    assert sorted(stays) == [".aiinfraignore", "b.log", "certs/other.pem", "data/"]


def test_a_folder_that_is_not_private_loses_the_private_file_alone(sorted_out: Pack) -> None:
    contents = {".docker/config.json": "{}", ".docker/Dockerfile": "x"}

    assert sorted_out(**contents) == ([".docker", ".docker/Dockerfile"], [".docker/config.json"])


def test_what_stays_is_not_judged(sorted_out: Pack, tmp_path: Path) -> None:
    (tmp_path / "copy" / ".git").mkdir(parents=True)
    (tmp_path / "copy" / ".git" / "away").symlink_to("/etc/passwd")

    assert sorted_out(a="x") == (["a"], [".git/"])


def test_an_environment_can_be_taken_along(sorted_out: Pack) -> None:
    contents = {".aiinfraignore": "!.venv\n!mine/\n"}
    contents |= {".venv/pyvenv.cfg": "x", "mine/pyvenv.cfg": "x"}

    assert sorted_out(**contents)[1] == [".aiinfraignore"]


def test_gits_files_name_more_where_the_folder_has_no_list_of_its_own(tmp_path: Path) -> None:
    contents = {
        ".gitignore": "data/\n*.ckpt\n!.env.example\n",
        "src/.gitignore": "!best.ckpt\n*.log\n",
    }
    for name in ("data/a", "a.ckpt", "src/best.ckpt", "src/b.log", "b.log", ".env.example"):
        contents[name] = "x"
    into = tmp_path / "run"
    for folder in (tmp_path / "by_git", tmp_path / "by_its_own"):
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
    (folder / ".aiinfraignore").write_text("")
    into.mkdir()

    by_git = LeftOut.of(tmp_path / "by_git")
    files.pack(tmp_path / "by_git", into, by_git)
    assert sorted(by_git.by_git) == ["a.ckpt", "data/", "src/b.log"]
    assert by_git.names == [".env.example"], "what git may see is not what others may see"

    by_its_own = LeftOut.of(folder)
    files.pack(folder, into, by_its_own)
    assert by_its_own.by_git == []


def test_rules_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    (tmp_path / ".aiinfraignore").write_bytes(b"\xff")

    with pytest.raises(SettingsError) as caught:
        LeftOut.of(tmp_path)
    assert ".aiinfraignore" in str(caught.value)
