# SPDX-License-Identifier: Apache-2.0
"""Documents that people keep as custom resources: further sources beside the files.

Objects that mirror a file are none: they say what the file says. What the server has added to an
object is taken off before it is read; what a document means is for the loader.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from typing import Final

from policies.documents.kinds import Kind
from policies.documents.source import SourceText
from policies.model.keys import API_VERSION, SOURCE_FILE, SOURCE_LABEL, STATE_PREFIX
from reconciler.kube import raw
from reconciler.kube.document_resources import API_KINDS, resource_of
from reconciler.kube.resources import Resource, Selection
from reconciler.kube.served import ServedSettings, ServedWatch, Server

_PAGE: Final = 500
_SETTINGS: Final = ServedSettings()
# Allowed in JSON and not in YAML, which documents are read as.
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def source_name(kind: Kind, name: str) -> str:
    """Return what problems call the document of an object."""
    return f"{kind.lower()}/{name} (in the API)"


def is_mirror(item: Mapping[str, object]) -> bool:
    """Tell whether an object mirrors a document of a file."""
    return raw.strings(item, "metadata", "labels").get(SOURCE_LABEL) == SOURCE_FILE


def to_source(kind: Kind, item: Mapping[str, object]) -> SourceText:
    """Return an object as the document that a person would have written.

    Kept are name and labels, which policies see, and everything beside `metadata` and `status`.
    """
    metadata = raw.mapping(item, "metadata")
    name, labels = raw.text(metadata, "name"), raw.strings(metadata, "labels")
    own = {key: value for key, value in labels.items() if not key.startswith(STATE_PREFIX)}
    content = {key: value for key, value in item.items() if key not in {"metadata", "status"}}
    document = {
        **content,
        "apiVersion": API_VERSION,
        "kind": str(kind),
        "metadata": {"name": name, **({"labels": own} if own else {})},
    }
    return SourceText(source_name(kind, name), _text(document), has_lines=False)


def _text(document: Mapping[str, object]) -> bytes:
    text = json.dumps(document, ensure_ascii=False, sort_keys=True)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _view(kind: Kind, item: Mapping[str, object]) -> SourceText | None:
    return None if is_mirror(item) else to_source(kind, item)


class ApiDocuments:
    """The documents in the API, kept current while `run` runs."""

    def __init__(self, server: Server, settings: ServedSettings = _SETTINGS) -> None:
        self._server = server
        self._views = {resource_of(kind): partial(_view, kind) for kind in API_KINDS}
        self._watch = ServedWatch(server, self._views, settings)

    async def run(self) -> None:
        """Follow the API until cancelled."""
        await self._watch.run()

    @property
    def is_synced(self) -> bool:
        """Whether everything has been listed once: until then it is not known what is missing."""
        return self._watch.is_synced

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Have `subscriber` called after every change."""
        self._watch.subscribe(subscriber)

    def sources(self) -> tuple[SourceText, ...]:
        """Return all documents by name, as they are known now."""
        return _ordered(self._watch.values())

    async def fresh(self) -> tuple[SourceText, ...]:
        """Return all documents by name from a consistent list of now. Raises ApiError."""
        found: list[SourceText] = []
        for resource in self._watch.served:
            found += [text async for text in self._list(resource)]
        return _ordered(found)

    async def _list(self, resource: Resource) -> AsyncIterator[SourceText]:
        view, token = self._views[resource], ""
        while True:
            page = await self._server.list_page(
                Selection(resource), limit=_PAGE, continue_token=token
            )
            for item in page.items:
                if (text := view(item)) is not None:
                    yield text
            token = page.continue_token
            if not token:
                return


def _ordered(sources: Iterable[SourceText]) -> tuple[SourceText, ...]:
    return tuple(sorted(sources, key=lambda source: source.name))
