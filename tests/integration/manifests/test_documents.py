# SPDX-License-Identifier: Apache-2.0
"""What becomes of the user's documents when an installation is rendered and applied anew."""

from pathlib import Path

from reconciler.manifests.render import render_groups
from tests.integration.manifests.installation import Installation, as_list

_APPLY = ("apply", "--server-side", "--filename=-")


def test_documents_that_were_applied_since_outlive_another_rendering(
    installation: Installation, tmp_path: Path
) -> None:
    """As README applies them: by a field manager of their own, from which kubectl takes nothing."""
    options, kubectl = installation.options(), installation.control_plane.kubectl
    wanted = {"settings.yaml": "# the user's\n", "tenants.yaml": "# the user's\n"}
    for file, content in wanted.items():
        (tmp_path / file).write_text(content)
    name = (f"{options.name}-policies", "-n", options.namespace)
    groups = render_groups(options)
    installation.apply([*groups["namespace"], *groups["policies"]])
    made = kubectl(
        *("create", "configmap", *name, f"--from-file={tmp_path}"),
        *("--dry-run=client", "--output=yaml"),
    )
    kubectl(*_APPLY, "--field-manager=policies", "--force-conflicts", stdin=made.stdout)

    refused = kubectl(*_APPLY, stdin=as_list(groups["policies"]), check=False)

    assert 'conflict with "policies": .data.settings.yaml' in refused.stderr
    assert installation.control_plane.get("configmap", *name)["data"] == wanted
