# SPDX-License-Identifier: Apache-2.0
"""manifests/base is what is rendered, no more and no less."""

import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from policies.vendors import build_catalog
from reconciler.manifests.base import base_files
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.render import render

BASE = Path(__file__).parents[3] / "manifests" / "base"
OPTIONS = ManifestOptions(build_catalog())
UPDATE = "SLUICE_UPDATE_GOLDEN=1 .venv/bin/pytest tests/unit/manifests/test_base.py"


def test_the_base_in_the_tree_is_current() -> None:
    rendered = base_files(OPTIONS)
    if os.environ.get("SLUICE_UPDATE_GOLDEN"):
        for name, text in rendered.items():
            (BASE / name).write_text(text, encoding="utf-8")
    found = {path.name: path.read_text(encoding="utf-8") for path in BASE.iterdir()}
    assert found == dict(rendered), f"manifests/base is not what is rendered; run: {UPDATE}"


def built(path: Path) -> Iterator[object]:
    """Yield the objects of a file, or of a folder in the order of its kustomization."""
    if path.is_file():
        yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))
        return
    kustomization = yaml.safe_load((path / "kustomization.yaml").read_text(encoding="utf-8"))
    for name in kustomization["resources"]:
        yield from built(path / name)


def test_the_base_holds_every_object_in_the_order_of_its_kustomization() -> None:
    assert list(built(BASE)) == render(OPTIONS)
