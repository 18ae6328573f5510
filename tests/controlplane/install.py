# SPDX-License-Identifier: Apache-2.0
"""Writes everything that the components read at their start: certificates, tokens, configuration.

It starts nothing.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from tests.controlplane.access import Kubectl, Server, write_kubeconfig, write_private
from tests.controlplane.components import (
    ADMIN_USER,
    CONTROLLER_MANAGER_USER,
    SCHEDULER_USER,
    Files,
    Layout,
    Options,
    Ports,
    scheduler_config,
)
from tests.controlplane.pki import Authority, signing_keys
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.programs import HERE


@dataclass(frozen=True, slots=True)
class Installation:
    """One control plane's files and secrets, ready to start."""

    layout: Layout
    server: Server
    authority: Authority
    token: str
    kubectl: Kubectl


def install(
    options: Options, binaries: Mapping[str, Path], directory: Path, now: datetime
) -> Installation:
    """Write all files below `directory`, with ports that are free now and new secrets."""
    files = Files(directory)
    ports = Ports(*free_ports(6))
    authority = Authority.create(now)
    server = Server(f"https://{HOST}:{ports.apiserver}", authority.certificate)
    layout = Layout(binaries, ports, files, options)
    _write_keys(files, authority, now)
    token = _write_users(files, server)
    files.scheduler_config.write_text(yaml.safe_dump(scheduler_config(layout)), encoding="utf-8")
    files.stages.write_text(_stages(), encoding="utf-8")
    return Installation(layout, server, authority, token, Kubectl(binaries["kubectl"], directory))


def _write_keys(files: Files, authority: Authority, now: datetime) -> None:
    files.ca.write_bytes(authority.certificate)
    leaf = authority.serving(now)
    files.certificate.write_bytes(leaf.certificate)
    write_private(files.key, leaf.key)
    private_key, public_key = signing_keys()
    write_private(files.signing_key, private_key)
    files.verifying_key.write_bytes(public_key)


def _write_users(files: Files, server: Server) -> str:
    """Write the token file and the kubeconfigs of its users; return the admin's token."""
    groups = {ADMIN_USER: '"system:masters"', CONTROLLER_MANAGER_USER: "", SCHEDULER_USER: ""}
    tokens = {user: secrets.token_urlsafe(24) for user in groups}
    lines = [f"{tokens[user]},{user},{user},{groups[user]}" for user in groups]
    write_private(files.tokens, "\n".join([*lines, ""]).encode())
    for user, token in tokens.items():
        write_kubeconfig(files.kubeconfig(user), server, user, token)
    return tokens[ADMIN_USER]


def _stages() -> str:
    """All stages in one file: KWOK takes a single one."""
    paths = sorted((HERE / "stages").glob("*.yaml"))
    return "---\n".join(path.read_text(encoding="utf-8") for path in paths)
