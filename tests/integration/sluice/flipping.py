# SPDX-License-Identifier: Apache-2.0
"""Two whole sets of documents, A and B, of which nothing of one fits to anything of the other.

They say who rewrote a pod in three places: the policy's name, the profile's resource, and the
warning of a second policy. So a decision by a mixture of both would show.
"""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.integration.sluice.objects import MIG, SHARED, Json
from tests.integration.sluice.running import Running

TENANT: Final = "team-flip"
_FOLDER: Final = "flip"

_DOCUMENTS: Final = {
    "tenant.yaml": """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: team-flip, labels: {set: SET}}
spec: {namespaces: {selector: {matchLabels: {tenant: team-flip}}}}
""",
    "profile.yaml": """
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: flip}
spec: FORM
""",
    "rewrite.yaml": """
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: rewrite-SET}
spec:
  order: 1
  match: {tenants: [team-flip], when: [{name: set, expression: 'tenant.labels["set"] == "SET"'}]}
  rewrite: {profile: flip}
""",
    "stamp.yaml": """
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: stamp-SET}
spec:
  order: 2
  match: {tenants: [team-flip]}
  validate: [{name: stamp, expression: "false", message: this is set SET}]
  enforcement: Warn
""",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the sets, and what it makes of a pod."""

    name: str
    resource: str
    documents: Mapping[str, str]

    @property
    def matched(self) -> list[str]:
        """Return the policies that match, in their order."""
        return [f"rewrite-{self.name}", f"stamp-{self.name}"]

    def is_in(self, warnings: tuple[str, ...]) -> bool:
        """Tell whether both warnings of this set, and none of another, were given."""
        first, second = warnings
        by = f"by policy rewrite-{self.name}"
        return (
            first.startswith(f"sluice: nvidia.com/gpu 1 -> {self.resource} 1 ")
            and first.endswith(by)
            and f"this is set {self.name}" in second
        )


def _side(name: str, resource: str, form: str) -> Side:
    texts = {
        file: text.replace("SET", name).replace("FORM", form) for file, text in _DOCUMENTS.items()
    }
    return Side(name, resource, texts)


A: Final = _side("a", SHARED, "{mode: TimeSlice, replicas: 4}")
B: Final = _side(
    "b", MIG, "{mode: MIG, mig: {profile: 1g.10gb}, products: [NVIDIA-H100-80GB-HBM3]}"
)


class Place(Protocol):
    """Where documents lie, and how they are replaced."""

    def put(self, side: Side) -> None:
        """Have this set there in place of any other, in one step."""
        ...


class OneFile:
    """All documents in one file, which an editor replaces by renaming a new one over it."""

    def __init__(self, sluice: Running) -> None:
        self._sluice = sluice

    def put(self, side: Side) -> None:
        """Write them beside the file, and rename."""
        self._sluice.write(f"{_FOLDER}/all.yaml", "---".join(side.documents.values()))


class Mounted:
    """A file for each document, laid out and replaced as the kubelet does with a ConfigMap.

    Source: Kubernetes pkg/volume/util/atomic_writer.go.
    """

    def __init__(self, sluice: Running) -> None:
        self._folder = sluice.policies / _FOLDER
        self._number = itertools.count()

    def put(self, side: Side) -> None:
        """Write a new directory, switch `..data` to it, and remove the old one."""
        link = self._folder / "..data"
        old = link.resolve() if link.is_symlink() else None
        new = self._folder / f"..{next(self._number)}"
        new.mkdir()
        for name, text in side.documents.items():
            (new / name).write_text(text, encoding="utf-8")
        beside = self._folder / "..data_tmp"
        beside.symlink_to(new.name)
        beside.replace(link)
        for name in side.documents:
            if not (self._folder / name).is_symlink():
                (self._folder / name).symlink_to(f"..data/{name}")
        if old is not None:
            for file in old.iterdir():
                file.unlink()
            old.rmdir()


@contextmanager
def folder(sluice: Running) -> Iterator[Path]:
    """Have a folder for the sets among the documents; it is removed in the end."""
    path = sluice.policies / _FOLDER
    path.mkdir()
    try:
        yield path
    finally:
        aside = sluice.policies.with_name("flip-aside")
        path.rename(aside)
        for found in sorted(aside.rglob("*"), reverse=True):
            if found.is_dir() and not found.is_symlink():
                found.rmdir()
            else:
                found.unlink()
        aside.rmdir()
        sluice.follow()


def side_of(pod: Json) -> Side:
    """Return whose form a pod has."""
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    return A if A.resource in limits else B
