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
        ("--scheduler-calls", "one", ["--scheduler", "default"]),
        ("--exporter-image", "registry.test/exporter", ["--exporters"]),
        ("--exporter-runtime-class", "crun-gpu", ["--exporters"]),
        ("--exporter-web-config", "exporters-web", ["--exporters"]),
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


@pytest.mark.parametrize(("asker", "usual"), [("default", "two"), ("second", "one")])
def test_a_scheduler_that_asks_once_is_told_of_the_one_verb(asker: str, usual: str) -> None:
    arguments = ["manifests", "--no-crds", "--scheduler", asker]
    found = {
        calls: CliRunner().invoke(sluice.main, [*arguments, "--scheduler-calls", calls]).stdout
        for calls in ("one", "two")
    }
    assert CliRunner().invoke(sluice.main, arguments).stdout == found[usual]
    once, twice = found["one"], found["two"]
    assert "filterVerb: choose" in once
    assert "prioritizeVerb" not in once
    assert "filterVerb: filter" in twice
    assert "prioritizeVerb: prioritize" in twice


@pytest.mark.parametrize("asker", [(), ("--scheduler", "default")])
def test_the_image_of_a_second_scheduler_is_refused_without_one(asker: tuple[str, ...]) -> None:
    arguments = ["manifests", "--scheduler-image", "registry.test/scheduler"]
    alone = CliRunner().invoke(sluice.main, [*arguments, *asker])
    assert alone.exit_code == 2
    assert alone.stderr == "error: --scheduler-image changes nothing without --scheduler second\n"
    together = CliRunner().invoke(sluice.main, [*arguments, "--scheduler", "second"])
    assert together.exit_code == 0, together.stderr
    assert "registry.test/scheduler" in together.stdout


def test_the_number_of_reconcilers_is_refused_unless_they_are_apart() -> None:
    arguments = ["manifests", "--no-crds", "--reconcilers", "2"]
    together = CliRunner().invoke(sluice.main, arguments)
    assert together.exit_code == 2
    assert together.stderr == "error: --reconcilers changes nothing without --processes apart\n"
    apart = CliRunner().invoke(sluice.main, [*arguments, "--processes", "apart"])
    assert apart.exit_code == 0, apart.stderr
