# SPDX-License-Identifier: Apache-2.0
"""`make generate`: writes every file that is made from others. Tests check that each is current."""

from collections.abc import Callable
from pathlib import Path

from policies.documents import reference
from policies.vendors import build_catalog
from reconciler.manifests.alert_files import alert_files
from reconciler.manifests.base import base_files
from reconciler.manifests.crds import crd_files
from reconciler.manifests.options import ManifestOptions
from reconciler.monitoring import reference as monitoring_reference
from reconciler.monitoring.dashboard.catalog import FILE, dashboard_text
from reconciler.runtime import metrics_reference
from tests.support import fleets, generate_cel_reference, generate_pod_schema, reasons_reference

ROOT = Path(__file__).resolve().parents[2]

FILES: tuple[tuple[str, Callable[[], str]], ...] = (
    ("policies/cel/data/pod.json", generate_pod_schema.render),
    ("docs/images/map.svg", fleets.picture),
    ("docs/reference/alerts.md", monitoring_reference.render),
    (f"manifests/dashboards/{FILE}", dashboard_text),
    ("docs/reference/cel.md", generate_cel_reference.render),
    ("docs/reference/metrics.md", metrics_reference.render),
    ("docs/reference/policies.md", reference.render),
    ("docs/reference/reasons.md", reasons_reference.render),
)


def generated() -> dict[str, str]:
    """Return the text of every generated file by its path in the tree."""
    options = ManifestOptions(build_catalog())
    base = base_files(options)
    texts = {path: render() for path, render in FILES}
    texts |= {f"manifests/base/{name}": text for name, text in base.items()}
    texts |= {f"manifests/alerts/{name}": text for name, text in alert_files(options).items()}
    return texts | {f"manifests/crds/{name}": text for name, text in crd_files().items()}


def main() -> None:
    """Write what differs, and say so."""
    for path, text in generated().items():
        file = ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {path}")  # noqa: T201 - what it is for


if __name__ == "__main__":
    main()
