import re
import time
from typing import Final

import pytest

from provision.settings import masking

INLINE: Final = [
    "curl -u me:s3cr3tpw https://example.com",
    "curl -sSfu 'me:s3cr3t pw' https://example.com",
    "curl --user=me:s3cr3tpw https://example.com",
    "curl --proxy-user me:s3cr3tpw https://example.com",
    "wandb login s3cr3tpw",
    "wandb login --relogin s3cr3tpw",
    "mysql -uroot -ps3cr3tpw my_db",
    "mysqldump -h db -p's3cr3t pw' my_db",
    "sshpass -p s3cr3tpw ssh me@host",
    "docker login -u me -p s3cr3tpw registry.example.com",
    "redis-cli -h db -a s3cr3tpw ping",
    "ngrok config add-authtoken s3cr3tpw",
    "aws configure set aws_secret_access_key s3cr3tpw",
]
SECRETS: Final = [*INLINE, "MYSQL_PWD=s3cr3tpw mysql", "run --password s3cr3tpw"]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("export API_KEY=abc; run", "export API_KEY=***; run"),
        ("run --token abc --verbose", "run --token *** --verbose"),
        ("run --api-key=abc", "run --api-key=***"),
        ('TOKEN="a b c" run', 'TOKEN="***" run'),
        ("HF_TOKEN='a b", "HF_TOKEN='***'"),
        ('{"db_password": "x y", "b": "c"}', '{"db_password": "***", "b": "c"}'),
        ("curl https://me:pw@host/path", "curl https://***@host/path"),
        ('curl -H "Authorization: Bearer a.b"', 'curl -H "Authorization: Bearer ***"'),
        ("curl --url=https://h/?token=abc", "curl --url=https://h/?token=***"),
        ("client_secret:abc", "client_secret:***"),
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str, masked: str) -> None:
    assert masking.mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "python3 train.py --tokenizer gpt2 --key1=5",
        "the token is a word here",
        "git clone https://example.com/a@b",
        "docker run -u 1000:1000 image",
        'docker run -u "$(id -u):$(id -g)" image',
        "mysql -p my_db",
        "wandb login",
        "sort -u names",
        "mkdir -p folder; cp -p a b",
        "",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert masking.mask(text) == text


def test_what_is_sealed_tells_one_value_from_another_and_nothing_of_a_telling_key() -> None:
    for key in ("token", "apiKey", "SSH_KEY", "ssh-keys", "my-secret", "passwd"):
        assert masking.seal({key: "a b c"}) == {key: "***"}
    for key in ("key1", "keyboard", "team", "tokenizer"):
        (found,) = masking.seal({key: "a b c"}).items()
        assert found[0] == key
        assert re.fullmatch(r"\*\*\* \([0-9a-f]{4}\)", found[1])
    first, second = masking.seal("train --epochs 3"), masking.seal("train --epochs 4")

    assert first != second
    assert masking.seal(first) == first
    assert masking.seal("train --epochs 3") == first
    assert [masking.seal(it) for it in ("", None)] == ["", None]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_bare_word_that_a_program_takes_for_a_credential_is_masked_and_in_no_fingerprint(
    secret: str,
) -> None:
    assert masking.seal(f"run; {secret}") == masking.seal(f"run; {masking.mask(secret)}")
    assert masking.mask(masking.mask(secret)) == masking.mask(secret)
    masked = masking.mask(f"set -e; {secret} && train")
    assert masked.startswith("set -e; ")
    assert masked.endswith(" && train")
    assert "s3cr3t" not in masked
    assert " pw" not in masked
    # Words of others are searched for it, too.
    assert secret not in INLINE or "s3cr3t" not in masking.mask_forms(f"it said: {secret}")


@pytest.mark.parametrize(
    "part",
    [
        *("a=", "://a", '"', "\\", 'key="', "-a ", "bearer ", "a.", "mysql ", " -u"),
        *("wandb login -", "az login "),
    ],
)
def test_masking_takes_no_longer_than_its_input_deserves(part: str) -> None:
    text = part * (100_000 // len(part))

    started = time.thread_time()  # of the processor: however busy the machine is
    masking.mask(text)

    assert time.thread_time() - started < 10
