# SPDX-License-Identifier: Apache-2.0
"""The dashboard: its rows from top to bottom, and what people choose by."""

import json
from typing import Final

from reconciler.monitoring.dashboard.cards import CARDS
from reconciler.monitoring.dashboard.cluster import CLUSTER
from reconciler.monitoring.dashboard.grafana import dashboard
from reconciler.monitoring.dashboard.panels import Row, Variable
from reconciler.monitoring.dashboard.processes import RECONCILER, WEBHOOK
from reconciler.monitoring.dashboard.tenants import TENANTS

FILE: Final = "sluice.json"

ROWS: Final[tuple[Row, ...]] = (CLUSTER, TENANTS, CARDS, WEBHOOK, RECONCILER)
VARIABLES: Final = (
    Variable("tenant", "Tenant", "sluice_tenant_guarantee_gpus", "tenant"),
    Variable("model", "Model", "sluice_gpus_capacity_milli", "model"),
)


def dashboard_text() -> str:
    """Return the dashboard as Grafana imports it."""
    return json.dumps(dashboard("sluice", "Sluice", ROWS, VARIABLES), indent=2) + "\n"
