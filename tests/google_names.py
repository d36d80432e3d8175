"""Names of Google's that we use: fields, values, paths, methods, permissions, metrics of quotas.

Each function lists what we use, and `unknown` what of it Google's descriptions do not have.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from provision.catalogue import machines
from provision.google import resources
from provision.preflight import quotas
from rehearsal.cloud import compute, discovery, server
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.wire import GoogleError
from tests.google_documents import APIS, TREE, document, values
from tests.google_enums import ENUMS
from tests.runs import rights

_VALUES: Final = r"""[({\[\s]*(?P<values>"[A-Z][A-Z0-9_]*"(?:,\s*"[A-Z][A-Z0-9_]*")*)"""
_FIELD: Final = re.compile(r"""(?:(?:\.get\(|\[)"|(?=[^\n]*":)")(?P<key>[a-z]+[A-Z]\w*)"[\]:,)]""")
_GIVEN: Final = re.compile(rf"""\"(?P<key>\w+)"(?::|\]?\)? (?:=|==|!=|in|not in) |, ){_VALUES}""")
_PERMISSION: Final = re.compile(
    r'"(?P<name>(?:compute|container|file|iam|monitoring|orgpolicy|resourcemanager|serviceusage'
    r"|storage)\.(?!googleapis)[a-z]\w*)"
    r'(?:": (?P<verbs>"[a-zA-Z ]+"(?:\s+"[a-zA-Z ]+")*)|\.(?P<verb>[a-z]\w+)")'
)
_PATH: Final = re.compile(r'f"(?P<path>projects/{[^"]*)"')
_HOLE: Final = "{}"
_PROGRAM: Final = "provision"
_CLOUD: Final = ("rehearsal/cloud", "rehearsal/provider")
_OF_KUBERNETES: Final = ("provision/kinds/gke/kubernetes", "rehearsal/cloud/kubernetes")
"""Objects of Kubernetes have fields of their own."""
_ERROR: Final = "code"
"""The code of an error is a text: Google lists none of them."""


@functools.cache
def _texts(folder: str) -> Mapping[str, str]:
    return {
        file.relative_to(TREE).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted((TREE / folder).rglob("*.py"))
    }


def _found(pattern: re.Pattern[str], *folders: str) -> Iterator[tuple[str, re.Match[str]]]:
    """What is found in the modules of folders, but for those about Kubernetes, with the module."""
    for folder in folders:
        for file, text in _texts(folder).items():
            if not file.startswith(_OF_KUBERNETES):
                yield from ((file, match) for match in pattern.finditer(text))


# ------------------------------------------------------------------ fields and their values


def _schemas(node: Any) -> Iterator[Mapping[str, Any]]:
    """The properties of all schemas, however deep."""
    if isinstance(node, dict):
        # One of the fields may be called "properties".
        if node.get("type") == "object" and "properties" in node:
            yield node["properties"]
        for inner in node.values():
            yield from _schemas(inner)


@functools.cache
def _of_google() -> Mapping[str, frozenset[str]]:
    """The fields of all APIs -> the values of their enums; none for a field of another type."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for api in APIS:
        for properties in _schemas(document(api)["schemas"]):
            for name, schema in properties.items():
                found[name].update(schema.get("items", schema).get("enum", ()))
    return {name: frozenset(them) for name, them in found.items()}


def fields() -> dict[str, set[str]]:
    """The fields that the program reads and writes, where their names have a capital."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file, match in _found(_FIELD, _PROGRAM):
        found[match["key"]].add(file)
    return found


def field_values() -> dict[str, set[str]]:
    """What program and simulated cloud give to fields that are enums: "status=RUNNING"."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file, match in _found(_GIVEN, _PROGRAM, *_CLOUD):
        if (key := match["key"]) != _ERROR and _of_google().get(key):
            for value in re.findall(r"\w+", match["values"]):
                found[f"{key}={value}"].add(file)
    return found


# ------------------------------------------------------------------ methods and their paths


def paths() -> dict[str, set[str]]:
    """The paths that the program asks for, with {} for what is put in."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in resources.ALL:
        if row.lookup is not None:
            found[re.sub(r"{\w+}", _HOLE, row.look.path)].add(row.type)
            found[row.look.list_path(_HOLE).replace("/-/", f"/{_HOLE}/")].add(row.type)
    for file, match in _found(_PATH, _PROGRAM):
        found[re.sub(r"{[^}]*}", _HOLE, match["path"]).partition("?")[0]].add(file)
    return found


def is_path(path: str) -> bool:
    """Whether some method of Google's has that path, or one that begins with it."""
    return any(_begins(path.split("/"), known) for known in _known_paths())


@functools.cache
def _known_paths() -> frozenset[tuple[str, ...]]:
    return frozenset(method.segments for api in APIS for method in discovery.api(api)._methods)


def _begins(path: list[str], known: tuple[str, ...]) -> bool:
    return len(path) <= len(known) and all(map(_fits, path, known))


def _fits(ours: str, of_google: str) -> bool:
    ours, _, verb = ours.partition(":")
    name, _, verb_of_google = of_google.partition(":")
    if verb and verb != verb_of_google:
        return False
    return _HOLE in ours or "{" in name or ours == name


def methods() -> dict[str, set[str]]:
    """The methods that the simulated cloud answers, by API and Google's name."""
    found = {f"compute.v1 {it}": {"compute"} for it in compute.METHODS}
    for mount in server.MOUNTS:
        name, _, attribute = mount.service.partition(":")
        served = getattr(importlib.import_module(f"rehearsal.cloud.{name}"), attribute)
        if isinstance(served, Routes) and served.api:
            for path in served.paths:
                found[f"{served.api} {path}"] = {name}
    return found


def is_method(method: str) -> bool:
    """Whether Google has a method of the simulated cloud's."""
    api, what = method.split(" ", 1)
    if " " not in what:
        return what in discovery.api(api).names()
    verb, path = what.split(" ")
    try:
        return bool(discovery.api(api).match(verb, re.sub(r"{\w+}", "x", path)))
    except GoogleError:
        return False


# ------------------------------------------------------------------ permissions and quotas


def permissions() -> dict[str, set[str]]:
    """The permissions that the program names: "collection": "verbs", or whole ones."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file, match in _found(_PERMISSION, _PROGRAM):
        for verb in re.findall(r"\w+", match["verbs"] or match["verb"]):
            found[f"{match['name']}.{verb}"].add(file)
    return found


@functools.cache
def of_methods() -> frozenset[str]:
    """The permissions that Google's methods take, by the rule with which it names most."""
    return frozenset(
        permission
        for api in APIS
        for method in discovery.api(api).names()
        if "." in method
        for permission in rights._translated(api.partition(".")[0], method)
    )


def metrics() -> dict[str, set[str]]:
    """The metrics of Compute Engine's quotas that the online checks ask for."""
    found = {"CPUS": {"N1"}}
    found |= {it.cpu_quota: {it.name} for it in machines.OTHER_SERIES.values()}
    for gpu in machines.GPUS.values():
        for metric in (quotas._preemptible(gpu), quotas._on_demand(gpu)):
            found[metric.name] = {gpu.name}
    for metric in quotas._OF_RESOURCES.values():
        found[metric.name] = {"networks"}
    fixed = {quotas._LOCAL_SSD, quotas._LOCAL_SSD_PER_FAMILY, quotas._PREEMPTIBLE_LOCAL_SSD}
    fixed |= {quotas._ADDRESSES, *quotas._DISKS.values()}
    fixed |= {quotas._PREEMPTIBLE_CPUS, "INSTANCES", "CPUS_ALL_REGIONS", "GPUS_ALL_REGIONS"}
    return found | {it: {"every machine"} for it in fixed}


def compared() -> dict[str, Collection[str]]:
    """What is compared, by what it is."""
    return {
        "values of the enums that we tell apart": [
            f"{it.place}={value}" for it in ENUMS for value in values(it.place)
        ],
        "fields that the program uses": fields(),
        "values that program and simulated cloud give to such enums": field_values(),
        "paths that the program asks for": paths(),
        "methods of the simulated cloud": methods(),
        "permissions": permissions(),
        "metrics of quotas": metrics(),
    }


def unknown() -> dict[str, dict[str, set[str]]]:
    """What of it Google's descriptions do not have, and who uses it."""

    def without(found: Mapping[str, set[str]], known: Any) -> dict[str, set[str]]:
        return {name: where for name, where in found.items() if not known(name)}

    def is_value(pair: str) -> bool:
        key, _, value = pair.partition("=")
        return value in _of_google()[key]

    return {
        "fields": without(fields(), _of_google().__contains__),
        "values": without(field_values(), is_value),
        "paths": without(paths(), is_path),
        "methods": without(methods(), is_method),
        "permissions": without(permissions(), of_methods().__contains__),
        "metrics": without(metrics(), set(values("compute.v1 Quota.metric")).__contains__),
    }
