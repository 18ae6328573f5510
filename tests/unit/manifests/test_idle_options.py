# SPDX-License-Identifier: Apache-2.0
"""An option of `sluice manifests` is used or refused, never passed over."""

import pytest
from click.testing import CliRunner

import sluice


@pytest.mark.parametrize(
    ("option", "value", "subject"),
    [
        ("--extender-url", "https://10.0.0.1", ["--scheduler", "default"]),
        ("--extender-env", "GPU_UTIL_THRESHOLD=0.9", ["--scheduler", "default"]),
        ("--scheduler-image", "registry.test/scheduler", ["--scheduler", "second"]),
        ("--exporter-image", "registry.test/exporter", ["--exporters"]),
        ("--monitoring-label", "release=prometheus", ["--monitoring"]),
    ],
)
def test_an_option_without_what_it_is_about_is_refused(
    option: str, value: str, subject: list[str]
) -> None:
    arguments = ["manifests", option, value]
    alone = CliRunner().invoke(sluice.main, arguments)
    assert alone.exit_code == 2
    assert f"error: {option} changes nothing without {subject[0]}\n" in alone.stderr
    assert not alone.stdout
    together = CliRunner().invoke(sluice.main, [*arguments, *subject])
    assert together.exit_code == 0, together.stderr
    assert value.partition("=")[0] in together.stdout
