"""How a VM goes out: what is written at a boot, and that the next one leaves nothing of it."""

from pathlib import Path

from aiinfra_vm import blocks, outbound

MIRROR = "https://mirror.example.com/apt"


def test_all_hosts_but_googles_are_below_the_mirror() -> None:
    for url, found in {
        "http://packages.example.org/debian": f"{MIRROR}/packages.example.org/debian",
        "http://us-central1.gce.archive.ubuntu.com/ubuntu": f"{MIRROR}/archive.ubuntu.com/ubuntu",
        "https://nvidia.github.io/stable": f"{MIRROR}/nvidia.github.io/stable",
        "https://packages.cloud.google.com/apt": "https://packages.cloud.google.com/apt",
        "https://us-apt.pkg.dev/doc": "https://us-apt.pkg.dev/doc",
        f"{MIRROR}/x": f"{MIRROR}/x",
    }.items():
        assert outbound.mirrored(url, MIRROR) == found
        assert outbound.mirrored(url, None) == url


def test_a_block_is_written_over_and_leaves_nothing() -> None:
    for before in ("", "a\n", "a\nb\n"):
        once = blocks.with_block(before, ["x", "y"])
        assert once.startswith(before)
        assert blocks.with_block(once, ["z"]) == blocks.with_block(before, ["z"])
        assert blocks.with_block(once, ()) == before


def test_package_sources_are_as_they_were_once_there_is_no_mirror(tmp_path: Path) -> None:
    sources = tmp_path / "etc/apt/sources.list.d"
    sources.mkdir(parents=True)
    (tmp_path / "var/lib/aiinfra").mkdir(parents=True)
    texts = {
        "debian.sources": "URIs: http://packages.example.org/debian http://security.example.org\n",
        "google.list": "deb https://packages.cloud.google.com/apt gcsfuse main\n",
    }
    for name, text in texts.items():
        (sources / name).write_text(text)

    for mirror in (MIRROR, MIRROR, "https://other.example.com"):
        outbound._rewrite_sources(tmp_path, mirror)
        assert (sources / "debian.sources").read_text() == (
            f"URIs: {mirror}/packages.example.org/debian {mirror}/security.example.org\n"
        )
    outbound._rewrite_sources(tmp_path, None)

    assert {it.name: it.read_text() for it in sources.iterdir()} == texts
    assert list((tmp_path / "var/lib/aiinfra").iterdir()) == []
