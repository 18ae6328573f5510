# SPDX-License-Identifier: Apache-2.0
"""All rules in one list: what manifests/alerts and the reference page are made of."""

from collections.abc import Iterator
from typing import Final

from reconciler.monitoring.alerts.cards import CARDS
from reconciler.monitoring.alerts.health import CERTIFICATES, HEALTH
from reconciler.monitoring.alerts.models import MODELS
from reconciler.monitoring.alerts.reviews import REVIEWS
from reconciler.monitoring.alerts.telemetry import TELEMETRY
from reconciler.monitoring.alerts.tenants import TENANTS
from reconciler.monitoring.records import RECORDS
from reconciler.monitoring.rules import Alert, Group, Record

GROUPS: Final[tuple[Group, ...]] = (
    *RECORDS,
    *(CARDS, TELEMETRY, MODELS, TENANTS, REVIEWS, HEALTH, CERTIFICATES),
)


def alerts() -> Iterator[Alert]:
    """Yield every alert."""
    return (rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert))


def records() -> Iterator[Record]:
    """Yield every recording rule."""
    return (rule for group in GROUPS for rule in group.rules if isinstance(rule, Record))
