# SPDX-License-Identifier: Apache-2.0
"""manifests/base is what is rendered, no more and no less."""

import os
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


def test_the_base_holds_every_object_in_the_order_of_its_kustomization() -> None:
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text(encoding="utf-8"))
    found = [
        document
        for name in kustomization["resources"]
        for document in yaml.safe_load_all((BASE / name).read_text(encoding="utf-8"))
    ]
    assert found == render(OPTIONS)
