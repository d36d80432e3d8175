from pathlib import Path
from urllib.parse import urlencode

import pytest

from rehearsal.cloud.store import Database
from tests.rehearsal.cloud.sending import States

NAMES = (
    "a-deployment/logs/1.log",
    "a-deployment/logs/old/2.log",
    "a-deployment/terraform/state/default.tflock",
    "a-deployment/vms/members/a.b.json",
    "team/b-deployment/vms/members/c.json",
)


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("**", NAMES),
        ("*", ()),
        ("a-deployment/logs/*.log", NAMES[:1]),
        ("a-deployment/logs/**.log", NAMES[:2]),
        ("a-deployment/{logs/*.log,terraform/state/default.tflock}", (NAMES[0], NAMES[2])),
        ("**/vms/members/*.json", NAMES[3:]),
        ("**/vms/members/?.json", NAMES[4:]),
        ("**/vms/members/[ab]*", NAMES[3:4]),
        ("**/vms/members/a,b.json", ()),
    ],
)
def test_a_pattern_stands_for_names_as_cloud_storage_has_it(
    glob: str, found: tuple[str, ...], tmp_path: Path
) -> None:
    bucket = States(Database(tmp_path / "cloud.sqlite"), "proj-a1")
    for name in NAMES:
        bucket.write(name)
    listed = bucket.listed(urlencode({"matchGlob": glob}))
    assert tuple(it["name"] for it in listed) == found
