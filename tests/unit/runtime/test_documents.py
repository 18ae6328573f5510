# SPDX-License-Identifier: Apache-2.0
"""A directory of documents is followed, and only whole good sets are served."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from policies.documents.load import LoadResult
from policies.documents.source import SourceText
from reconciler.runtime import documents
from reconciler.runtime.document_files import Reading, read_documents
from reconciler.runtime.documents import DocumentState, DocumentWatcher, Timing
from reconciler.runtime.loading import Compiler
from tests.support.waiting import until

NEVER_SECONDS = 3600.0
NOTIFIED = Timing(settle_seconds=0.01, tick_seconds=0.1, poll_seconds=NEVER_SECONDS)
POLLED = Timing(settle_seconds=0.01, tick_seconds=0.02, poll_seconds=0.02)


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "policies"
    root.mkdir()
    (root / "a.yaml").write_text(tenant("a"))
    return root


def tenant(name: str) -> str:
    return f"""\
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec: {{namespaces: {{names: [{name}]}}}}
"""


def tenants(watcher: DocumentWatcher) -> set[str]:
    current = watcher.current()
    return set(current.tenants) if current else set()


def is_broken(watcher: DocumentWatcher) -> bool:
    return watcher.state.is_broken


def problems(watcher: DocumentWatcher) -> list[str]:
    return [str(problem) for problem in watcher.state.problems]


@asynccontextmanager
async def running(watcher: DocumentWatcher) -> AsyncIterator[DocumentWatcher]:
    await watcher.refresh()
    task = asyncio.create_task(watcher.run())
    try:
        yield watcher
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_nothing_is_served_before_the_first_load(root: Path, compiler: Compiler) -> None:
    watcher = DocumentWatcher(root, compiler.load)
    assert watcher.current() is None
    assert not is_broken(watcher)
    await watcher.refresh()
    assert tenants(watcher) == {"a"}


async def test_every_change_of_state_is_told(root: Path, compiler: Compiler) -> None:
    told: list[DocumentState] = []
    watcher = DocumentWatcher(root, compiler.load, on_change=told.append, timing=NOTIFIED)
    await watcher.refresh()
    await watcher.refresh()
    (root / "a.yaml").write_text("kind: Tennant\n")
    await watcher.refresh()
    assert [state.is_broken for state in told] == [False, True]
    assert told[-1] is watcher.state


async def test_a_broken_file_never_replaces_a_good_set(root: Path, compiler: Compiler) -> None:
    watcher = DocumentWatcher(root, compiler.load, timing=NOTIFIED)
    await watcher.refresh()
    good = watcher.current()
    (root / "b.yaml").write_text(tenant("b") + "  qota: {}\n")
    await watcher.refresh()
    assert watcher.current() is good
    assert is_broken(watcher)
    assert problems(watcher)
    assert all(problem.startswith("b.yaml:") for problem in problems(watcher))
    (root / "b.yaml").write_text(tenant("b"))
    await watcher.refresh()
    assert tenants(watcher) == {"a", "b"}
    assert not is_broken(watcher)
    new = watcher.current()
    assert good is not None
    assert new is not None
    assert new.generation != good.generation


@pytest.mark.parametrize("content", [None, ""])
async def test_a_file_that_cannot_be_read_or_an_emptied_directory_breaks_the_set(
    root: Path, compiler: Compiler, content: str | None
) -> None:
    watcher = DocumentWatcher(root, compiler.load, timing=NOTIFIED)
    await watcher.refresh()
    if content is None:
        (root / "b.yaml").symlink_to("nowhere")
    else:
        (root / "a.yaml").unlink()
    await watcher.refresh()
    assert tenants(watcher) == {"a"}
    assert is_broken(watcher)


async def test_a_first_set_that_is_broken_serves_nothing(root: Path, compiler: Compiler) -> None:
    (root / "a.yaml").write_text("]")
    watcher = DocumentWatcher(root, compiler.load, timing=NOTIFIED)
    await watcher.refresh()
    assert watcher.current() is None
    assert is_broken(watcher)


async def test_going_back_to_what_is_served_keeps_the_very_set(
    root: Path, compiler: Compiler
) -> None:
    watcher = DocumentWatcher(root, compiler.load, timing=NOTIFIED)
    await watcher.refresh()
    state = watcher.state
    (root / "a.yaml").write_text("]")
    await watcher.refresh()
    (root / "a.yaml").write_text(tenant("a"))
    await watcher.refresh()
    assert watcher.state == state
    assert watcher.current() is state.policy_set


async def test_the_same_content_is_not_loaded_again(root: Path, compiler: Compiler) -> None:
    loads: list[int] = []

    def load(sources: Sequence[SourceText]) -> LoadResult:
        loads.append(len(sources))
        return compiler.load(sources)

    watcher = DocumentWatcher(root, load, timing=NOTIFIED)
    await watcher.refresh()
    (root / "a.yaml").touch()
    (root / "README.md").write_text("not a document")
    await watcher.refresh()
    assert loads == [1]


async def test_each_problem_is_logged_once_until_it_comes_back(
    root: Path, compiler: Compiler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watcher = DocumentWatcher(root, compiler.load, timing=NOTIFIED)

    async def logged(text: str, name: str = "b.yaml") -> list[str]:
        caplog.clear()
        (root / name).write_text(text)
        await watcher.refresh()
        return [record.message for record in caplog.records if "b.yaml" in record.message]

    assert len(await logged("]")) == 1
    assert await logged(tenant("c"), "c.yaml") == []
    assert await logged(tenant("b")) == []
    assert len(await logged("]")) == 1


async def test_a_bug_in_the_loader_is_shown_and_ends_nothing(
    root: Path, compiler: Compiler, caplog: pytest.LogCaptureFixture
) -> None:
    def load(sources: Sequence[SourceText]) -> LoadResult:
        if len(sources) > 1:
            raise ZeroDivisionError
        return compiler.load(sources)

    watcher = DocumentWatcher(root, load, timing=NOTIFIED)
    async with running(watcher):
        (root / "b.yaml").write_text(tenant("b"))
        await until(lambda: is_broken(watcher))
        assert tenants(watcher) == {"a"}
        assert "ZeroDivisionError" in caplog.text
        assert problems(watcher) == [
            f"{root}: error: internal error while loading; the log has the traceback"
        ]
        (root / "b.yaml").unlink()
        await until(lambda: not is_broken(watcher))


async def test_reviews_go_on_while_a_set_is_being_loaded(root: Path, compiler: Compiler) -> None:
    started, may_end = threading.Event(), threading.Event()

    def load(sources: Sequence[SourceText]) -> LoadResult:
        if len(sources) > 1:
            started.set()
            assert may_end.wait(5)
        return compiler.load(sources)

    watcher = DocumentWatcher(root, load, timing=NOTIFIED)
    await watcher.refresh()
    (root / "b.yaml").write_text(tenant("b"))
    refresh = asyncio.create_task(watcher.refresh())
    await until(started.is_set)
    assert tenants(watcher) == {"a"}
    may_end.set()
    await refresh
    assert tenants(watcher) == {"a", "b"}


async def test_a_tree_that_is_being_written_is_waited_for(
    root: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[set[str]] = []

    def load(sources: Sequence[SourceText]) -> LoadResult:
        loaded.append({source.name for source in sources})
        return compiler.load(sources)

    steps: Iterator[Callable[[], object]] = iter(
        [
            lambda: (root / "b.yaml").write_text(tenant("b")),
            lambda: (root / "c.yaml").write_text(tenant("c")),
        ]
    )

    def read_then_change(path: Path) -> Reading:
        reading = read_documents(path)
        next(steps, lambda: None)()
        return reading

    monkeypatch.setattr(documents, "read_documents", read_then_change)
    watcher = DocumentWatcher(root, load, timing=NOTIFIED)
    await watcher.refresh()
    assert loaded == [{"a.yaml", "b.yaml", "c.yaml"}]


def edit_in_place(root: Path) -> None:
    (root / "a.yaml").write_text(tenant("new"))


def edit_by_rename(root: Path) -> None:
    """Do as editors do: a new file, the old one moved away, the new one in its place."""
    (root / ".a.yaml.swp").write_text(tenant("new"))
    (root / "a.yaml").rename(root / "a.yaml~")
    (root / ".a.yaml.swp").rename(root / "a.yaml")


def replace_by_directory(root: Path) -> None:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "deep" / "n.yaml").write_text(tenant("new"))
    (root / "a.yaml").unlink()


@pytest.mark.parametrize("change", [edit_in_place, edit_by_rename, replace_by_directory])
async def test_a_change_is_followed_at_once(
    root: Path, compiler: Compiler, change: Callable[[Path], None]
) -> None:
    async with running(DocumentWatcher(root, compiler.load, timing=NOTIFIED)) as watcher:
        change(root)
        await until(lambda: tenants(watcher) == {"new"})


async def test_changes_are_followed_in_directories_that_came_later(
    root: Path, compiler: Compiler
) -> None:
    async with running(DocumentWatcher(root, compiler.load, timing=NOTIFIED)) as watcher:
        replace_by_directory(root)
        await until(lambda: tenants(watcher) == {"new"})
        (root / "sub" / "deep" / "n.yaml").write_text(tenant("newer"))
        await until(lambda: tenants(watcher) == {"newer"})


async def test_the_swaps_of_a_mounted_config_map_are_followed(
    tmp_path: Path, compiler: Compiler
) -> None:
    root = tmp_path / "mounted"
    root.mkdir()
    (root / "t.yaml").symlink_to("..data/t.yaml")

    def swap(name: str) -> None:
        (root / f"..{name}").mkdir()
        (root / f"..{name}" / "t.yaml").write_text(tenant(name))
        old = (root / "..data").resolve() if (root / "..data").exists() else None
        (root / "..data_tmp").symlink_to(f"..{name}")
        (root / "..data_tmp").rename(root / "..data")
        if old is not None:
            (old / "t.yaml").unlink()
            old.rmdir()

    swap("first")
    async with running(DocumentWatcher(root, compiler.load, timing=NOTIFIED)) as watcher:
        for name in ("second", "third"):
            swap(name)
            await until(lambda name=name: tenants(watcher) == {name})  # type: ignore[misc] # bound
        assert not is_broken(watcher)


async def test_a_root_that_is_a_link_is_followed_when_it_is_swapped(
    tmp_path: Path, compiler: Compiler
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.yaml").write_text(tenant(name))
    (tmp_path / "current").symlink_to("first")
    watcher = DocumentWatcher(tmp_path / "current", compiler.load, timing=NOTIFIED)
    async with running(watcher):
        assert tenants(watcher) == {"first"}
        (tmp_path / "next").symlink_to("second")
        (tmp_path / "next").rename(tmp_path / "current")
        await until(lambda: tenants(watcher) == {"second"})


async def test_a_root_may_come_into_being_and_go_away(tmp_path: Path, compiler: Compiler) -> None:
    root = tmp_path / "later" / "policies"
    async with running(DocumentWatcher(root, compiler.load, timing=NOTIFIED)) as watcher:
        assert is_broken(watcher)
        root.mkdir(parents=True)
        (root / "a.yaml").write_text(tenant("a"))
        await until(lambda: tenants(watcher) == {"a"})
        root.rename(tmp_path / "gone")
        await until(lambda: is_broken(watcher))
        (tmp_path / "gone").rename(root)
        await until(lambda: not is_broken(watcher))
        assert tenants(watcher) == {"a"}


async def test_a_file_system_that_notifies_nobody_is_polled(
    root: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def only_ticks(*_: Path, rust_timeout: int, **__: object) -> AsyncIterator[set[object]]:
        while True:
            await asyncio.sleep(rust_timeout / 1000)
            yield set()

    monkeypatch.setattr(documents, "awatch", only_ticks)
    async with running(DocumentWatcher(root, compiler.load, timing=POLLED)) as watcher:
        edit_in_place(root)
        await until(lambda: tenants(watcher) == {"new"})


async def test_a_machine_without_watches_left_is_polled_and_says_so_once(
    root: Path,
    compiler: Compiler,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[int] = []

    async def no_watches(*_: Path, **__: object) -> AsyncIterator[set[object]]:
        calls.append(1)
        if calls:
            raise OSError("OS file watch limit reached")
        yield set()

    monkeypatch.setattr(documents, "awatch", no_watches)
    async with running(DocumentWatcher(root, compiler.load, timing=POLLED)) as watcher:
        edit_in_place(root)
        await until(lambda: tenants(watcher) == {"new"})
        await until(lambda: len(calls) > 3)
    assert caplog.text.count("they cannot be watched: OS file watch limit reached") == 1


class Elsewhere:
    """Documents that stand in no file, as a test would have them."""

    def __init__(self, *sources: SourceText, is_synced: bool = True) -> None:
        self.given = sources
        self.is_synced = is_synced
        self.subscribers: list[Callable[[], None]] = []

    def sources(self) -> tuple[SourceText, ...]:
        return self.given

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        self.subscribers.append(subscriber)

    def become(self, *sources: SourceText) -> None:
        self.given, self.is_synced = sources, True
        for subscriber in self.subscribers:
            subscriber()


def elsewhere(name: str, text: str = "") -> SourceText:
    return SourceText(f"tenant/{name} (in the API)", (text or tenant(name)).encode(), False)


async def test_files_and_documents_elsewhere_are_one_set(root: Path, compiler: Compiler) -> None:
    more = Elsewhere(elsewhere("b"))
    async with running(DocumentWatcher(root, compiler.load, more=more, timing=NOTIFIED)) as watcher:
        assert tenants(watcher) == {"a", "b"}
        first = watcher.current()
        more.become(elsewhere("b"), elsewhere("c"))
        await until(lambda: tenants(watcher) == {"a", "b", "c"})
        (root / "d.yaml").write_text(tenant("d"))
        await until(lambda: tenants(watcher) == {"a", "b", "c", "d"})
        more.become()
        await until(lambda: tenants(watcher) == {"a", "d"})
        assert first is not None
        assert watcher.current() is not first


async def test_half_a_set_is_not_served_while_the_rest_is_not_known(
    root: Path, compiler: Compiler
) -> None:
    more = Elsewhere(is_synced=False)
    async with running(DocumentWatcher(root, compiler.load, more=more, timing=NOTIFIED)) as watcher:
        assert watcher.current() is None
        assert not is_broken(watcher)
        more.become(elsewhere("b"))
        await until(lambda: tenants(watcher) == {"a", "b"})


async def test_a_broken_document_elsewhere_keeps_the_whole_old_set(
    root: Path, compiler: Compiler
) -> None:
    more = Elsewhere(elsewhere("b"))
    async with running(DocumentWatcher(root, compiler.load, more=more, timing=NOTIFIED)) as watcher:
        good = watcher.state
        more.become(elsewhere("b", tenant("b") + "  qota: {}\n"))
        await until(lambda: is_broken(watcher))
        assert watcher.current() is good.policy_set
        assert watcher.state.served == good.served
        assert [source.name for source in watcher.state.newest] == [
            "a.yaml",
            "tenant/b (in the API)",
        ]
        assert problems(watcher)[0].startswith("tenant/b (in the API): error: ")


async def test_unreadable_files_do_not_hide_what_was_read(root: Path, compiler: Compiler) -> None:
    watcher = DocumentWatcher(root, compiler.load, timing=NOTIFIED)
    await watcher.refresh()
    (root / "b.yaml").symlink_to("nowhere")
    await watcher.refresh()
    assert is_broken(watcher)
    assert [source.name for source in watcher.state.newest] == ["a.yaml"]


async def test_a_subscriber_is_told_until_it_ends_that(root: Path, compiler: Compiler) -> None:
    told: list[DocumentState] = []
    watcher = DocumentWatcher(root, compiler.load, timing=NOTIFIED)
    end = watcher.subscribe(told.append)
    await watcher.refresh()
    end()
    (root / "b.yaml").write_text(tenant("b"))
    await watcher.refresh()
    assert len(told) == 1
