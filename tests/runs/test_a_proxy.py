"""By a company's proxy that reads TLS, at Google's own names: Python, Terraform, its provider."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import certifi
import pytest

from provision.codes import ExitCode
from provision.endpoints import Service
from rehearsal import session
from tests.intercepting import Company, Proxy
from tests.runs.conftest import Rehearsal, Rehearse

BUILDER = "builder@my-project.iam.gserviceaccount.com"
LOGIN = {
    "type": "authorized_user",
    "client_id": "gcloud",
    "client_secret": "none",
    "refresh_token": "1//renews",
}
"""What `gcloud auth application-default login` writes."""
_PROXY = {"HTTPS_PROXY", "https_proxy"}


@pytest.fixture
def company(tmp_path: Path) -> Company:
    """Who runs the proxy."""
    (tmp_path / "company").mkdir()
    return Company(tmp_path / "company")


@pytest.fixture
def behind(
    rehearse: Rehearse, company: Company, tmp_path: Path
) -> Iterator[tuple[Rehearsal, Proxy]]:
    """A rehearsal in which only the proxy leads to the cloud, by the names of Google's hosts."""
    made = rehearse(real=True)
    base = made.environ["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"].removesuffix("/compute/v1/")
    sites: dict[str, Path | str] = {}
    for service in Service:
        name, address, *_ = service.value
        real = urlsplit(address)
        path = session.ENDPOINTS[f"GOOGLE_{name}_CUSTOM_ENDPOINT"].removesuffix(real.path)
        sites[str(real.hostname)] = base + path
    sites["iamcredentials.googleapis.com"] = base + "/iamcredentials"
    sites["oauth2.googleapis.com"] = base
    for name in list(made.environ):
        # A provider from outside is led to the cloud by a proxy, too.
        if name.endswith(("_CUSTOM_ENDPOINT", "_ENDPOINT_OVERRIDE")) or name in _PROXY:
            del made.environ[name]
    (tmp_path / "company.pem").write_text(company.certificate)
    made.settings["CA_BUNDLE"] = str(tmp_path / "company.pem")
    with Proxy(company, sites) as proxy:
        made.settings["HTTPS_PROXY"] = proxy.url
        yield made, proxy


@pytest.mark.slow(
    sibling="::test_whose_certificate_nobody_knows_is_said_with_the_setting_that_mends_it"
)
def test_a_cluster_comes_and_goes_by_a_proxy_that_reads_tls(
    behind: tuple[Rehearsal, Proxy],
) -> None:
    rehearsal, proxy = behind

    created = rehearsal.run("Create")
    again = rehearsal.run("Plan", "--detailed-exitcode")
    destroyed = rehearsal.run("Destroy")

    assert [created.code, again.code, destroyed.code] == [0, 0, 0]
    assert {"compute.googleapis.com", "storage.googleapis.com"} <= proxy.asked
    # Destroy keeps the bucket that was made for the state, and nothing else.
    assert [it for it in rehearsal.resources() if "instance" in it] == []


def test_whose_certificate_nobody_knows_is_said_with_the_setting_that_mends_it(
    behind: tuple[Rehearsal, Proxy],
) -> None:
    rehearsal, _ = behind
    del rehearsal.settings["CA_BUNDLE"]

    ended = rehearsal.run("Create")

    assert ended.code == 4
    assert ended.problem["code"] == "untrusted"
    assert "CA_BUNDLE" in ended.problem["fix"]
    assert "retrying" not in ended.said


@pytest.mark.slow(
    sibling="::test_whose_certificate_nobody_knows_is_said_with_the_setting_that_mends_it"
)
def test_a_proxy_of_the_shell_is_terraforms_too_and_nobody_elses(
    behind: tuple[Rehearsal, Proxy], company: Company, tmp_path: Path
) -> None:
    rehearsal, proxy = behind
    del rehearsal.settings["CA_BUNDLE"]
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(Path(certifi.where()).read_text("utf-8") + company.certificate)
    rehearsal.environ |= dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), str(trusted))
    rehearsal.environ["HTTPS_PROXY"] = rehearsal.settings.pop("HTTPS_PROXY")

    planned = rehearsal.run("Plan")

    assert planned.code == 0, planned.said
    assert planned.document["settings"]["HTTPS_PROXY"] is None
    # Terraform's provider alone asks for this.
    assert "compute.googleapis.com" in proxy.asked
    looked = [it["path"] for it in rehearsal.requests()]
    assert any(it.endswith("/networks/default") for it in looked), looked


@pytest.mark.slow(sibling="::test_all_is_done_as_the_account_that_is_impersonated")
def test_a_login_is_renewed_by_terraform_too_as_the_account_that_is_impersonated(
    behind: tuple[Rehearsal, Proxy], tmp_path: Path
) -> None:
    rehearsal, proxy = behind
    login = tmp_path / "login.json"
    login.write_text(json.dumps(LOGIN))
    del rehearsal.environ["GOOGLE_OAUTH_ACCESS_TOKEN"]
    rehearsal.environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(login)
    rehearsal.settings["IMPERSONATE"] = BUILDER
    rehearsal.presume()

    created = rehearsal.run("Create")
    destroyed = rehearsal.run("Destroy")

    assert [created.code, destroyed.code] == [0, 0], created.said
    assert f"impersonating {BUILDER}" in created.said
    # Terraform's own backend and the provider among them.
    assert proxy.bearers["storage.googleapis.com"] == {f"ya29.as:{BUILDER}"}
    assert proxy.bearers["compute.googleapis.com"] == {f"ya29.as:{BUILDER}"}


@pytest.fixture
def as_builder(rehearse: Rehearse) -> Rehearsal:
    """A rehearsal in which another account does all that is done."""
    rehearsal = rehearse()
    rehearsal.settings["IMPERSONATE"] = BUILDER
    return rehearsal


def test_all_is_done_as_the_account_that_is_impersonated(as_builder: Rehearsal) -> None:
    as_builder.presume()

    planned = as_builder.run("Plan")

    assert planned.code == 0, planned.said
    assert f"impersonating {BUILDER}" in planned.said
    asked = [it["path"] for it in as_builder.requests()]
    assert sum(it.endswith(":generateAccessToken") for it in asked) == 1


def test_whom_nobody_may_impersonate_is_said_with_the_role(as_builder: Rehearsal) -> None:
    ended = as_builder.run("Create")

    assert ended.code == ExitCode.CREDENTIALS, ended.said
    assert "may not be impersonated" in ended.problem["what"]
    assert "roles/iam.serviceAccountTokenCreator" in ended.problem["fix"]
