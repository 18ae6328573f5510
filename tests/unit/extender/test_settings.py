# SPDX-License-Identifier: Apache-2.0
"""The extender is set up by the environment as well as by flags, and says what it cannot read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import sluice
from policies.model.placement import Spreading
from policies.placement.rooms import Picking
from reconciler.cli.terminal import BAD_INPUT
from reconciler.runtime.starting import StartError
from reconciler.telemetry.kinds import SourceKind
from webhook.extender.command import FLAGS, read_settings
from webhook.extender.settings import settings_from_environment


def test_without_any_variable_the_defaults_hold() -> None:
    found = settings_from_environment({})
    assert found.placement.model.limits.threshold == 800
    assert found.telemetry.weights.utilisation == 0.7
    assert found.telemetry.source is SourceKind.NONE
    assert found.placement.model.spreading.strategy is Spreading.PACK


def test_every_variable_is_taken() -> None:
    found = settings_from_environment(
        {
            "PROMETHEUS_URL": "http://prometheus:9090",
            "GPU_UTIL_THRESHOLD": "0.9",
            "GPU_UTIL_WEIGHT": "0.5",
            "SLUICE_PLACEMENT_STRATEGY": "auto",
            "SLUICE_SPREAD_ABOVE": "0.6",
            "SLUICE_MEMORY_HEADROOM_MIB": "512",
            "SLUICE_ASSUME_SECONDS": "15",
            "SLUICE_DEVICE_PICKING": "Packed",
        }
    )
    assert found.telemetry.source is SourceKind.PROMETHEUS
    assert found.telemetry.weights.memory == 0.5
    model, spreading = found.placement.model, found.placement.model.spreading
    assert (model.limits.threshold, model.limits.headroom_mib) == (900, 512)
    assert (model.assume_seconds, model.picking) == (15, Picking.PACKED)
    assert (spreading.strategy, spreading.spread_above) == (Spreading.AUTO, 600)


def test_a_flag_wins_over_its_variable() -> None:
    flags = dict.fromkeys(FLAGS) | {"threshold": "0.5"}
    assert (
        read_settings(flags, {"GPU_UTIL_THRESHOLD": "0.9"}).placement.model.limits.threshold == 500
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("GPU_UTIL_THRESHOLD", value) for value in ("x", "80", "-1", "nan", "inf")),
        ("GPU_UTIL_WEIGHT", "2"),
        ("SLUICE_PLACEMENT_STRATEGY", "Best"),
        ("SLUICE_MEMORY_HEADROOM_MIB", "1e99"),
        ("SLUICE_ASSUME_SECONDS", "forever"),
        ("SLUICE_DEVICE_PICKING", "Any"),
    ],
)
def test_a_variable_that_cannot_be_meant_is_told_by_its_name(name: str, value: str) -> None:
    with pytest.raises(StartError, match=name):
        read_settings({}, {name: value})


def test_a_process_that_cannot_start_says_why_in_a_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        sluice.main,
        ["extender", "--kubeconfig", str(tmp_path / "none"), "--threshold", "80"],
    )
    assert result.exit_code == BAD_INPUT
    assert result.stderr == "sluice: GPU_UTIL_THRESHOLD is '80'; it goes from 0 to 1\n"
