# SPDX-License-Identifier: Apache-2.0
"""The generated table of Pod fields."""

from tests.support.generate_pod_schema import TARGET, render


def test_the_table_of_pod_fields_is_what_the_installed_client_says() -> None:
    command = "python -m tests.support.generate_pod_schema"
    assert TARGET.read_text(encoding="utf-8") == render(), f"rewrite it with: {command}"
