# SPDX-License-Identifier: Apache-2.0
"""All cases in one list."""

from typing import Final

from tests.integration.monitoring.cases.cards import CARDS
from tests.integration.monitoring.cases.health import HEALTH
from tests.integration.monitoring.cases.models import MODELS
from tests.integration.monitoring.cases.reviews import REVIEWS
from tests.integration.monitoring.cases.telemetry import TELEMETRY
from tests.integration.monitoring.cases.tenants import TENANTS
from tests.integration.monitoring.cases.writing import WRITING

CASES: Final = (*CARDS, *TELEMETRY, *MODELS, *TENANTS, *REVIEWS, *HEALTH, *WRITING)
