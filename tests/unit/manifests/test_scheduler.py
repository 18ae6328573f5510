# SPDX-License-Identifier: Apache-2.0
"""What is rendered of the scheduler extender, for the cluster's own scheduler and for a second."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import sluice
from policies.vendors import build_catalog
from reconciler.cli.inputs import policies_from
from reconciler.cli.terminal import BAD_INPUT
from reconciler.manifests.scheduler_config import WEIGHT, managed_resources
from reconciler.runtime.loading import Compiler

_POLICIES = Path(__file__).resolve().parents[3] / "docs" / "examples" / "policies"


def _rendered(*arguments: str) -> dict[tuple[str, str], Any]:
    result = CliRunner().invoke(sluice.main, ["manifests", "--no-crds", *arguments])
    assert result.exit_code == 0, result.output
    documents = yaml.safe_load_all(result.stdout)
    return {(item["kind"], item["metadata"]["name"]): item for item in documents}


def _configuration(objects: dict[tuple[str, str], Any]) -> Any:
    return yaml.safe_load(objects["ConfigMap", "sluice-scheduler"]["data"]["scheduler.yaml"])


def test_without_the_option_nothing_of_a_scheduler_is_rendered() -> None:
    assert not any("extender" in name or "scheduler" in name for _, name in _rendered())


def test_the_extender_is_ignorable_quick_and_weighs_more_than_all_plugins() -> None:
    (entry,) = _configuration(_rendered("--scheduler", "default"))["extenders"]
    assert entry["ignorable"] is True
    assert entry["nodeCacheCapable"] is True
    assert entry["httpTimeout"] == "200ms"
    assert entry["weight"] == WEIGHT >= 150
    assert entry["enableHTTPS"] is True
    assert entry["urlPrefix"] == "https://sluice-extender.sluice.svc/scheduler"
    assert entry["tlsConfig"]["serverName"] == "sluice.sluice.svc"
    verbs = [entry[f"{verb}Verb"] for verb in ("filter", "prioritize", "preempt")]
    assert verbs == ["filter", "prioritize", "preempt"]


def test_every_name_that_a_profile_gives_is_managed_and_counted_by_the_scheduler_too() -> None:
    objects = _rendered("--scheduler", "default", "--settings", str(_POLICIES))
    (entry,) = _configuration(objects)["extenders"]
    managed = {each["name"] for each in entry["managedResources"]}
    given = {profile.resource for profile in policies_from(Compiler(), _POLICIES).profiles.values()}
    assert given <= managed
    assert not any(each["ignoredByScheduler"] for each in entry["managedResources"])


def test_names_that_policies_give_besides_are_managed_once() -> None:
    names = managed_resources(build_catalog(), ("example.com/gpu", "nvidia.com/gpu"))
    assert len(names) == len(set(names))
    assert {"nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "example.com/gpu"} <= {*names}
    assert "nvidia.com/mig-1g.10gb.me" in names


def test_a_second_scheduler_has_a_name_a_lease_and_rights_of_its_own() -> None:
    objects = _rendered("--scheduler", "second")
    configuration = _configuration(objects)
    assert configuration["profiles"] == [{"schedulerName": "sluice-scheduler"}]
    assert configuration["leaderElection"]["resourceName"] == "sluice-scheduler"
    assert ("Deployment", "sluice-scheduler") in objects
    assert ("ServiceAccount", "sluice-scheduler") in objects
    roles = {
        item["roleRef"]["name"]
        for (kind, _), item in objects.items()
        if kind == "ClusterRoleBinding"
    }
    assert {"system:kube-scheduler", "system:volume-scheduler", "sluice-extender"} <= roles


def test_the_webhooks_service_does_not_lead_to_extenders() -> None:
    objects = _rendered("--scheduler", "second")
    selector = objects["Service", "sluice"]["spec"]["selector"]
    for name in ("sluice-extender", "sluice-scheduler"):
        labels = objects["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        assert not selector.items() <= labels.items()


def test_the_environment_of_the_extender_is_taken_over() -> None:
    objects = _rendered("--scheduler", "default", "--extender-env", "PROMETHEUS_URL=http://p:9090")
    container = objects["Deployment", "sluice-extender"]["spec"]["template"]["spec"]["containers"][
        0
    ]
    assert {"name": "PROMETHEUS_URL", "value": "http://p:9090"} in container["env"]


def test_the_extender_is_given_the_documents_and_may_read_those_of_the_api() -> None:
    objects = _rendered("--scheduler", "default")
    spec = objects["Deployment", "sluice-extender"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "policies")
    assert f"--policies={mount['mountPath']}" in container["args"]
    (volume,) = (each for each in spec["volumes"] if each["name"] == "policies")
    assert volume["configMap"] == {"name": "sluice-policies", "optional": True}
    rules = objects["ClusterRole", "sluice-extender"]["rules"]
    (documents,) = (rule for rule in rules if rule["apiGroups"] == ["sluice.dev"])
    assert "gpupools" in documents["resources"]
    assert documents["verbs"] == ["list", "watch"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--extender-env", "PROMETHEUS_URL"),
        ("--extender-env", "1X=1"),
        ("--extender-url", "http://a"),
        ("--extender-url", "nonsense"),
    ],
)
def test_what_cannot_be_meant_is_not_rendered(option: str, value: str) -> None:
    arguments = ["manifests", "--scheduler", "default", option, value]
    result = CliRunner().invoke(sluice.main, arguments)
    assert result.exit_code == BAD_INPUT
    assert result.stderr.startswith(f"error: {option}")
