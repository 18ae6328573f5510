# SPDX-License-Identifier: Apache-2.0
"""One catalog and CEL environment for all tests of documents; both are immutable."""

import pytest

from policies.cel import Environment
from policies.cel.environment import build_environment
from policies.vendors import Catalog, build_catalog
from tests.unit.documents.loading import Loader, loader


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return build_catalog()


@pytest.fixture(scope="session")
def environment() -> Environment:
    return build_environment()


@pytest.fixture(scope="session")
def load_texts(catalog: Catalog, environment: Environment) -> Loader:
    return loader(catalog, environment)
