"""Licences of what comes with the program: the page has each, the image's list NTIA's minimum."""

import importlib.util
import json
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TREE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sbom", TREE / "image/sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_what_is_pinned_with_its_licence(sbom: ModuleType) -> None:
    page = (TREE / "THIRD_PARTY.md").read_text(encoding="utf-8")
    assert sbom.renewed(page, TREE) == page, "make docs renews it"
    assert "| Terraform | 1.15.8 | BUSL-1.1 |" in page


def test_the_list_has_ntias_minimum_a_licence_and_an_identifier_for_each(
    sbom: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("google-auth", "google-cloud-storage", "requests", "PyYAML")
    some = [metadata.distribution(name) for name in names]
    monkeypatch.setattr(metadata, "distributions", lambda: some)
    monkeypatch.setattr(sbom, "_DPKG", _dpkg(tmp_path / "dpkg"))
    monkeypatch.setattr(sbom, "_DOCUMENTS", tmp_path / "doc")
    release = {"ID": "debian", "VERSION_ID": "13"}
    monkeypatch.setattr(sbom.platform, "freedesktop_os_release", lambda: release)
    (tmp_path / "doc/libc6").mkdir(parents=True)
    (tmp_path / "doc/libc6/copyright").write_text("Format: x\nLicense: LGPL-2.1+\nLicense: GPL-2\n")
    (tmp_path / "terraform").write_bytes(b"")

    sbom.main(f"{tmp_path}/list.json", "1.2.3", f"terraform=1.15.8={tmp_path}/terraform")

    document: dict[str, Any] = json.loads((tmp_path / "list.json").read_text())
    about = document["metadata"]
    assert about["timestamp"]
    assert about["authors"]
    assert about["component"]["version"] == "1.2.3"
    by_name = {it["name"]: it for it in document["components"]}
    assert by_name.keys() == {*names, "libc6", "libgcc-s1", "terraform", "python"}
    for name, it in by_name.items():
        assert it["supplier"]["name"], name
        assert it["version"], name
        assert it["purl"].startswith("pkg:"), name
        assert it["licenses"], name
    needs = {it["ref"]: it["dependsOn"] for it in document["dependencies"]}
    refs = {it["bom-ref"] for it in document["components"]}
    assert set(needs["image"]) == refs
    assert needs.keys() == {"image", *refs}
    assert by_name["google-auth"]["bom-ref"] in needs[by_name["google-cloud-storage"]["bom-ref"]]
    assert needs[by_name["libc6"]["bom-ref"]] == [by_name["libgcc-s1"]["bom-ref"]]
    libc = "pkg:deb/debian/libc6@2.41-12%2Bb1?arch=amd64&distro=debian-13&upstream=glibc"
    assert by_name["libc6"]["purl"] == libc
    licences = [it["license"]["name"] for it in by_name["libc6"]["licenses"]]
    assert licences == ["GPL-2", "LGPL-2.1+"]
    assert by_name["terraform"]["cpe"] == "cpe:2.3:a:hashicorp:terraform:1.15.8:*:*:*:*:*:*:*"
    assert by_name["terraform"]["licenses"] == [{"expression": "BUSL-1.1"}]


def _dpkg(folder: Path) -> Path:
    (folder / "info").mkdir(parents=True)
    common = "Status: install ok installed\nArchitecture: amd64\nMaintainer: GNU Libc <x@y>\n"
    (folder / "status").write_text(
        f"Package: libc6\n{common}Source: glibc (2.41-12)\nVersion: 2.41-12+b1\n"
        "Depends: libgcc-s1 (>= 3), not-there | other\nDescription: C\n more: words\n\n"
        f"Package: libgcc-s1\n{common}Version: 1:14.2\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
    )
    return folder


def test_a_package_whose_licence_nobody_has_looked_at_stops_the_build(
    sbom: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "METADATA").write_text("Name: x\nVersion: 1\nLicense: SSPL-1.0\n")
    found = metadata.Distribution.at(tmp_path)
    with pytest.raises(ValueError, match=r"x 1 says no licence that is known: .*SSPL-1\.0"):
        sbom.licence(found)
