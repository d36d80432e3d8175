"""How the program itself goes out: the variables that requests, Terraform and curl read."""

from pathlib import Path

import pytest

from provision import outgoing
from provision.errors import SettingsError
from provision.intake import load
from tests.unit.conftest import MANDATORY
from tests.unit.kinds.cases import problem_of

COMPANY = Path(__file__).parents[1] / "company.pem"


def _use(environ: dict[str, str], **settings: str) -> str | None:
    found = load(MANDATORY | settings).settings
    assert found is not None
    return outgoing.use(found, environ)


def test_without_settings_the_environment_stays_as_it_is() -> None:
    environ = {"https_proxy": "http://me:s3cret@mine:1", "REQUESTS_CA_BUNDLE": "/x"}

    assert _use(environ) is None
    assert environ == {"https_proxy": "http://me:s3cret@mine:1", "REQUESTS_CA_BUNDLE": "/x"}


def test_the_proxy_of_the_settings_counts_in_both_spellings_and_one_in_lower_case_before_it() -> (
    None
):
    environ = {"HTTPS_PROXY": "http://of-the-shell:1", "NO_PROXY": "x"}
    _use(environ, HTTPS_PROXY="http://proxy:3128", NO_PROXY=".example.com")
    assert environ["https_proxy"] == environ["HTTPS_PROXY"] == "http://proxy:3128"
    assert environ["no_proxy"] == environ["NO_PROXY"]
    around = environ["no_proxy"].split(",")
    assert {".example.com", "169.254.169.254", "127.0.0.1"} <= set(around)
    # This program's own beside that of the VMs.
    environ = {"https_proxy": "http://me:s3cret@mine:1", "no_proxy": "mine.example.com"}
    _use(environ, HTTPS_PROXY="http://of-the-vms:3128")
    assert environ["https_proxy"] == environ["HTTPS_PROXY"] == "http://me:s3cret@mine:1"
    assert environ["no_proxy"].startswith("mine.example.com,")


def test_the_companys_certificates_count_beside_those_that_did_before(tmp_path: Path) -> None:
    before = tmp_path / "before.pem"
    before.write_text("what counted before\n")
    environ = {"SSL_CERT_FILE": str(before)}

    assert _use(environ, CA_BUNDLE=str(COMPANY)) == COMPANY.read_text()

    (file,) = {environ[it] for it in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")}
    assert Path(file).read_text() == "what counted before\n\n" + COMPANY.read_text()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("hello", "no certificates"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no certificates"),
        ("-----BEGIN EC PRIVATE KEY-----", "private key"),
        (17_000 * "x", "16 KiB"),
        (b"\xff\xfe", "not a text file"),
    ],
)
def test_what_is_no_bundle_of_certificates_is_refused(
    tmp_path: Path, text: str | bytes | None, why: str
) -> None:
    file = tmp_path / "bundle.pem"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    problem = problem_of(SettingsError, _use, {}, CA_BUNDLE=str(file))
    assert problem.setting == "CA_BUNDLE"
    assert why in problem.why


def test_the_first_line_of_a_run_says_whose_way_out_it_takes() -> None:
    given = {
        "IMPERSONATE": "builder@my-project.iam.gserviceaccount.com",
        "HTTPS_PROXY": "http://proxy:3128",
        "CA_BUNDLE": "/company.pem",
    }
    found, plain = load(MANDATORY | given).settings, load(MANDATORY).settings
    assert found is not None
    assert plain is not None
    assert outgoing.how(plain) == ""
    assert outgoing.how(found) == (
        ", as builder@my-project.iam.gserviceaccount.com (IMPERSONATE), through http://proxy:3128"
        " (HTTPS_PROXY), trusting /company.pem (CA_BUNDLE)"
    )
    found = load(MANDATORY | {"NOTIFY": "https://chat.example.com/s3cret"}).settings
    assert found is not None
    assert outgoing.how(found) == ", telling chat.example.com (NOTIFY)"
