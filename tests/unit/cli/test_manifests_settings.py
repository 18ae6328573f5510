# SPDX-License-Identifier: Apache-2.0
"""`sluice manifests --settings`: the API server asks for the kinds that the settings name too."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sluice import main

SETTINGS = """\
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {name: cluster}
spec:
  workloads:
  - {group: example.com, resource: models, kind: Model, templates: [{path: spec.template}]}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "settings.yaml"
    file.write_text(SETTINGS)
    return file


def rules(*arguments: str) -> list[Any]:
    result = CliRunner().invoke(main, ["manifests", *arguments])
    assert result.exit_code == 0, result.output
    return [
        rule
        for item in yaml.safe_load_all(result.output)
        for entry in item.get("webhooks", ())
        for rule in entry["rules"]
    ]


def test_kinds_of_the_settings_are_added_to_the_known_ones(settings: Path) -> None:
    known, all_rules = rules(), rules("--settings", str(settings.parent))

    added = [rule for rule in all_rules if rule not in known]
    assert [(r["apiGroups"], r["resources"], r["apiVersions"]) for r in added] == [
        (["example.com"], ["models"], ["*"])
    ]
    assert [rule for rule in known if rule not in all_rules] == []


def test_documents_that_cannot_be_served_are_bad_input(settings: Path) -> None:
    settings.write_text(SETTINGS.replace("spec.template", "spec..template"))
    result = CliRunner().invoke(main, ["manifests", "--settings", str(settings)])

    assert result.exit_code == 2
    assert "spec.workloads[0].templates[0].path: must be a path such as" in result.output
    assert "kind: Namespace" not in result.output
