# SPDX-License-Identifier: Apache-2.0
"""Which files of a tree are documents, that each counts once, and that a reading is consistent."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.runtime import document_files
from reconciler.runtime.document_files import Reading, read_documents
from reconciler.runtime.document_tree import Limits, Scan, scan


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def texts(reading: Reading) -> dict[str, str]:
    assert reading.problems == ()
    return {source.name: source.text.decode() for source in reading.sources}


def problems(root: Path, limits: Limits | None = None) -> list[str]:
    return [str(problem) for problem in read_documents(root, limits).problems]


def mount_config_map(root: Path, version: str, files: dict[str, str]) -> None:
    """Write a ConfigMap as the kubelet's atomic writer does: payload, swap of the link, links."""
    payload = root / f"..{version}"
    for name, text in files.items():
        path = payload / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "..data_tmp").symlink_to(payload.name)
    (root / "..data_tmp").rename(root / "..data")
    for name in {name.split("/")[0] for name in files}:
        link = root / name
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}")


def test_documents_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, b_yaml="b", a_json="a", sub__c_yml="c", sub__deep__D_YAML="d")
    reading = read_documents(tmp_path)
    assert list(texts(reading).items()) == [
        ("a.json", "a"),
        ("b.yaml", "b"),
        ("sub/c.yml", "c"),
        ("sub/deep/D.YAML", "d"),
    ]


def test_hidden_files_and_other_endings_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, a_yaml="a", _git__b_yaml="b", README_md="c", a_yaml_swp="d")
    (tmp_path / ".hidden.yaml").write_text("e")
    (tmp_path / "a.yaml~").write_text("f")
    (tmp_path / ".#a.yaml").symlink_to("user@host.1234:5678")
    assert texts(read_documents(tmp_path)) == {"a.yaml": "a"}


def test_a_single_file_can_be_named(tmp_path: Path) -> None:
    write(tmp_path, a_yaml="a", b_yaml="b")
    reading = read_documents(tmp_path / "a.yaml")
    assert texts(reading) == {"a.yaml": "a"}
    assert reading.directories == {tmp_path}


def test_a_mounted_config_map_counts_each_file_once(tmp_path: Path) -> None:
    mount_config_map(tmp_path, "2031_05_17.1", {"a.yaml": "a", "sub/b.yaml": "b"})
    reading = read_documents(tmp_path)
    assert texts(reading) == {"a.yaml": "a", "sub/b.yaml": "b"}
    assert tmp_path in reading.directories


def test_a_swapped_config_map_is_read_from_its_new_payload_alone(tmp_path: Path) -> None:
    mount_config_map(tmp_path, "1", {"a.yaml": "old", "gone.yaml": "old"})
    mount_config_map(tmp_path, "2", {"a.yaml": "new", "added.yaml": "new"})
    # The kubelet takes the link of a removed file away only after the swap.
    assert (tmp_path / "gone.yaml").is_symlink()
    assert texts(read_documents(tmp_path)) == {"a.yaml": "new", "added.yaml": "new"}


def test_a_config_map_may_be_mounted_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "tenants").mkdir()
    mount_config_map(tmp_path / "tenants", "1", {"a.yaml": "a"})
    write(tmp_path, b_yaml="b")
    assert texts(read_documents(tmp_path)) == {"tenants/a.yaml": "a", "b.yaml": "b"}


def test_a_root_that_is_a_link_is_followed_and_its_place_watched(tmp_path: Path) -> None:
    write(tmp_path, worktrees__1__p__a_yaml="a")
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "current").symlink_to("../worktrees/1")
    reading = read_documents(tmp_path / "git" / "current" / "p")
    assert texts(reading) == {"a.yaml": "a"}
    assert reading.directories == {tmp_path / "worktrees" / "1" / "p", tmp_path / "git"}


def test_a_file_or_directory_that_is_linked_twice_counts_once(tmp_path: Path) -> None:
    write(tmp_path, real__a_yaml="a")
    (tmp_path / "again").symlink_to("real")
    (tmp_path / "z.yaml").symlink_to("real/a.yaml")
    assert [source.text for source in read_documents(tmp_path).sources] == [b"a"]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    write(tmp_path, sub__a_yaml="a")
    (tmp_path / "sub" / "up").symlink_to("..")
    (tmp_path / "sub" / "self").symlink_to(".")
    assert texts(read_documents(tmp_path)) == {"sub/a.yaml": "a"}


def test_a_linked_files_directory_is_watched(tmp_path: Path) -> None:
    write(tmp_path, elsewhere__a_yaml="a", root__b_yaml="b")
    (tmp_path / "root" / "a.yaml").symlink_to("../elsewhere/a.yaml")
    reading = read_documents(tmp_path / "root")
    assert texts(reading) == {"a.yaml": "a", "b.yaml": "b"}
    assert reading.directories == {tmp_path / "root", tmp_path / "elsewhere"}


def test_an_empty_tree_is_an_error_since_nobody_wants_one(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert problems(tmp_path) == [f"{tmp_path}: error: holds no documents (*.yaml, *.yml, *.json)"]


def test_a_root_that_is_missing_is_an_error_and_its_parent_is_watched(tmp_path: Path) -> None:
    reading = read_documents(tmp_path / "not" / "there")
    assert [str(problem) for problem in reading.problems] == [
        f"{tmp_path}/not/there: error: No such file or directory"
    ]
    assert reading.directories == {tmp_path}


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_dangling(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_loop, "Too many levels of symbolic links"),
        (make_dangling, "No such file or directory"),
        (os.mkfifo, "not a file"),
    ],
)
def test_a_document_that_cannot_be_read_is_an_error(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    write(tmp_path, a_yaml="a")
    make(tmp_path / "b.yaml")
    assert problems(tmp_path) == [f"b.yaml: error: {message}"]


def test_a_root_in_a_circle_is_an_error(tmp_path: Path) -> None:
    make_loop(tmp_path / "root")
    (problem,) = problems(tmp_path / "root")
    assert problem.endswith(("Symlink loop", "Too many levels of symbolic links"))


def test_each_limit_is_an_error_that_says_which(tmp_path: Path) -> None:
    write(tmp_path, a_yaml="aaaa", b_yaml="bbbb", sub__sub__c_yaml="c")
    assert problems(tmp_path, Limits(files=2)) == [
        f"{tmp_path}: error: holds more than 2 documents"
    ]
    assert problems(tmp_path, Limits(entries=3)) == [
        f"{tmp_path}: error: holds more than 3 entries"
    ]
    assert problems(tmp_path, Limits(depth=2)) == [
        f"{tmp_path}: error: holds directories more than 2 deep"
    ]
    assert problems(tmp_path, Limits(file_bytes=3)) == [
        "a.yaml: error: larger than 3 bytes",
        "b.yaml: error: larger than 3 bytes",
    ]
    assert problems(tmp_path, Limits(total_bytes=7)) == [
        "b.yaml: error: together the documents are larger than 7 bytes"
    ]


def test_the_digest_tells_names_and_contents_apart(tmp_path: Path) -> None:
    digests = set()
    for number, files in enumerate(
        ({"a_yaml": "xy"}, {"a_yaml": "x", "b_yaml": "y"}, {"ax_yaml": "y"}, {"a_yaml": "x"})
    ):
        write(tmp_path / str(number), **files)
        digests.add(read_documents(tmp_path / str(number)).digest)
    assert len(digests) == 4
    assert read_documents(tmp_path / "0").digest == read_documents(tmp_path / "0").digest


def swap_after_scan(
    monkeypatch: pytest.MonkeyPatch, changes: list[Callable[[], None]]
) -> list[int]:
    """Let the tree change right behind each scan, as long as there are changes left."""
    calls: list[int] = []

    def changing_scan(root: Path, limits: Limits) -> Scan:
        found = scan(root, limits)
        calls.append(len(changes))
        if changes:
            changes.pop(0)()
        return found

    monkeypatch.setattr(document_files, "scan", changing_scan)
    return calls


def test_a_config_map_that_is_swapped_during_reading_is_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount_config_map(tmp_path, "1", {"a.yaml": "old", "b.yaml": "old"})

    def swap() -> None:
        mount_config_map(tmp_path, "2", {"a.yaml": "new", "b.yaml": "new"})
        for path in (tmp_path / "..1").iterdir():
            path.unlink()

    swap_after_scan(monkeypatch, [swap])
    assert texts(read_documents(tmp_path)) == {"a.yaml": "new", "b.yaml": "new"}


def test_a_plain_tree_that_changes_during_reading_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a_yaml="old", b_yaml="old")
    calls = swap_after_scan(
        monkeypatch, [lambda: write(tmp_path, a_yaml="newer"), (tmp_path / "b.yaml").unlink]
    )
    assert texts(read_documents(tmp_path)) == {"a.yaml": "newer"}
    assert len(calls) == 4


def test_a_tree_that_never_rests_is_an_error_and_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[Callable[[], None]] = [
        lambda n=n: write(tmp_path, a_yaml="x" * n)  # type: ignore[misc] # a default binds n now
        for n in range(20)
    ]
    swap_after_scan(monkeypatch, changes)
    assert problems(tmp_path) == [f"{tmp_path}: error: changed again and again while it was read"]
