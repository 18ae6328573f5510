# SPDX-License-Identifier: Apache-2.0
"""A cluster at work for a Prometheus to see: pods that borrow, wait, are taken back and refused."""

import http.client
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from tests.controlplane import ControlPlane
from tests.controlplane.extender import ExtenderProcess

NODE: Final = "h100-shared"
"""Of the fleet: eight cards, each shared by four."""
BORROWER: Final = "shown-borrower"
OWNER: Final = "shown-owner"
_SHARES: Final = 32
_GUARANTEED: Final = 8
_MOST_AT_ONCE: Final = 8
"""Pods of the owner: enough that some have to be given back what they are guaranteed."""

Json = dict[str, Any]

DOCUMENTS: Final = f"""
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {BORROWER}}}
spec:
  namespaces: {{selector: {{matchLabels: {{tenant: {BORROWER}}}}}}}
  quota: {{gpus: {{guarantee: 1, ceiling: 8}}}}
  cohort: main
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {OWNER}}}
spec:
  namespaces: {{selector: {{matchLabels: {{tenant: {OWNER}}}}}}}
  quota: {{gpus: {{guarantee: {_GUARANTEED}, ceiling: {_GUARANTEED}}}}}
  cohort: main
---
apiVersion: sluice.dev/v1alpha1
kind: ReclaimPolicy
metadata: {{name: quick}}
spec: {{cohorts: [main], notice: 1s}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {{name: slice-4}}
spec: {{mode: TimeSlice, replicas: 4, products: [NVIDIA-H100-80GB-HBM3]}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: slices}}
spec: {{order: 1, rewrite: {{profile: slice-4}}}}
"""


class Scene:
    """Two namespaces of tenants, and one of nobody."""

    def __init__(self, plane: ControlPlane, extender: ExtenderProcess) -> None:
        self._plane = plane
        self._extender = urlsplit(extender.url)
        ending = secrets.token_hex(3)
        self._namespaces = {
            tenant: f"{tenant}-{ending}" for tenant in (BORROWER, OWNER, "shown-nobody")
        }
        self._made = 0

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Have the borrower fill all shares and one pod more wait, until the block ends."""
        try:
            for tenant, namespace in self._namespaces.items():
                self._plane.create_namespace(namespace, {"tenant": tenant})
            self._fill()
            yield
        finally:
            names = self._namespaces.values()
            self._plane.kubectl("delete", "namespace", *names, "--wait=false", check=False)

    def go_on(self) -> None:
        """Have a little more of everything happen, for as long as it takes."""
        self._made += 1
        self._create(OWNER, f"own-{self._made}")
        self._end(OWNER, f"own-{self._made - _MOST_AT_ONCE}")
        self._create("shown-nobody", "refused", is_refused=True)
        self._ask("filter")
        self._ask("prioritize")

    def _fill(self) -> None:
        self._create(BORROWER, *(f"lent-{number}" for number in range(_SHARES + 1)))

    def _create(self, tenant: str, *names: str, is_refused: bool = False) -> None:
        pods = {"apiVersion": "v1", "kind": "List", "items": [_pod(name) for name in names]}
        done = self._plane.kubectl(
            *("create", "-n", self._namespaces[tenant], "--filename=-"), stdin=pods, check=False
        )
        assert (done.returncode != 0) is is_refused, done.stderr

    def _end(self, tenant: str, name: str) -> None:
        options = ("--ignore-not-found", "--grace-period=0", "--force", "--wait=false")
        self._plane.kubectl("delete", "pod", name, "-n", self._namespaces[tenant], *options)

    def _ask(self, verb: str) -> None:
        connection = http.client.HTTPConnection(self._extender.netloc, timeout=5)
        try:
            body = json.dumps({"Pod": _pod("asked"), "NodeNames": [NODE]})
            connection.request("POST", f"/scheduler/{verb}", body)
            answer = connection.getresponse()
            assert answer.status == http.client.OK, answer.read()
            answer.read()
        finally:
            connection.close()


def _pod(name: str) -> Json:
    limits = {"nvidia.com/gpu": 1}
    container = {"name": "main", "image": "x", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}"} if name == "asked" else {"name": name},
        "spec": {"containers": [container]},
    }
