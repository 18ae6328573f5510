# SPDX-License-Identifier: Apache-2.0
"""What a reconciler says at its own port."""

import json
import urllib.error
import urllib.request
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.ports import HOST


def metric(port: int, name: str) -> float:
    """Return the value of a metric without labels."""
    for family in text_string_to_metric_families(_read(port, "/metrics")[1]):
        for sample in family.samples:
            if sample.name == name:
                return sample.value
    raise AssertionError(f"there is no metric {name}")


def readiness(port: int) -> tuple[int, dict[str, bool]]:
    """Return the status of /readyz, and which conditions hold."""
    status, text = _read(port, "/readyz")
    body: Any = json.loads(text)
    return status, {each["name"]: each["ok"] for each in body["conditions"]}


def _read(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
