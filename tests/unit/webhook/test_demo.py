# SPDX-License-Identifier: Apache-2.0
"""`make run` as a newcomer uses it: look at the answers, edit a policy, end it."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    return shutil.copytree(ROOT / "docs" / "examples" / "policies", tmp_path / "policies")


@pytest.fixture
def demo(policies: Path, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    choices = (f"--policies={policies}", f"--dir={tmp_path / 'run'}", "--port=0")
    with subprocess.Popen(
        [sys.executable, ROOT / "sluice.py", "demo", *choices],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
        process.kill()


def read_until(process: "subprocess.Popen[str]", start: str) -> str:
    """Return the next line of the output that starts so; the test's timeout is the deadline."""
    assert process.stdout is not None
    line = next((line for line in process.stdout if line.startswith(start)), None)
    assert line is not None, f"the output ended without {start!r}"
    return line.rstrip()


def test_what_an_edit_has_led_to_is_told(demo: "subprocess.Popen[str]", policies: Path) -> None:
    first = read_until(demo, "serving generation ").split()[2]
    read_until(demo, "serving until Ctrl-C")
    file = policies / "policies.yaml"
    text = file.read_text()

    file.write_text(text.replace("order: 10\n", "order: 11\n", 1))

    second = read_until(demo, "serving generation ").split()[2]
    assert second != first
    file.write_text(text)
    assert read_until(demo, "serving generation ").split()[2] == first
    demo.send_signal(signal.SIGINT)
    demo.wait()


def test_a_second_demo_says_that_one_runs_already(
    demo: "subprocess.Popen[str]", policies: Path, tmp_path: Path
) -> None:
    read_until(demo, "serving until Ctrl-C")
    directory = tmp_path / "run"
    second = subprocess.run(
        [
            *(sys.executable, ROOT / "sluice.py", "demo", "--port=0"),
            *(f"--policies={policies}", f"--dir={directory}"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert second.returncode == 2
    assert second.stderr == (
        f"sluice: a demo runs already in {directory}; end it with Ctrl-C, or start another with "
        "--dir and --port of its own\n"
    )
