# SPDX-License-Identifier: Apache-2.0
"""The policy documents of an extender that is a process of its own: files, and those of the API.

What they say of pods is decided elsewhere; here they say how nodes are ranked.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from reconciler.kube.served import Server
from reconciler.runtime.api_documents import ApiDocuments
from reconciler.runtime.documents import DocumentState, DocumentWatcher
from reconciler.runtime.loading import Compiler
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.tasks import Activity


class OwnDocuments:
    """Documents of a directory and of the cluster, followed while the activities run."""

    def __init__(self, directory: Path, server: Server, metrics: Metrics) -> None:
        self._metrics = metrics
        self.api = ApiDocuments(server)
        self.watcher = DocumentWatcher(
            directory, Compiler().load, more=self.api, on_change=self._changed
        )

    def activities(self) -> Mapping[str, Activity]:
        """Return what has to run."""
        return {"policy documents": self.watcher.run(), "API documents": self.api.run()}

    def _changed(self, state: DocumentState) -> None:
        # Not which set it is: by that an alert knows that somebody decides on pods.
        if state.is_broken:
            self._metrics.policies_broken()
        else:
            self._metrics.policies_sound(time.time())
