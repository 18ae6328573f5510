# SPDX-License-Identifier: Apache-2.0
"""Starts a service from the options of the command line, and explains why it cannot start."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from policies.documents.facts import parse_facts
from policies.documents.source import SourceText
from reconciler.kube.access import AccessSource, find_access
from reconciler.kube.client import Client
from reconciler.kube.facts import watch_cluster
from reconciler.kube.term_watch import TermWatch
from reconciler.kube.tls_secret import KeptCertificates, TlsSecret
from reconciler.kube.usage import UsageWatch
from reconciler.placement.starting import placement_of
from reconciler.runtime import starting
from reconciler.runtime.api_documents import ApiDocuments
from reconciler.runtime.loading import Compiler
from reconciler.runtime.logs import LogFormat, configure
from reconciler.runtime.starting import StartError
from reconciler.runtime.surroundings import Surroundings
from reconciler.runtime.tasks import Activity
from reconciler.telemetry.starting import made, telemetry_of
from webhook.live_facts import LiveFacts
from webhook.server import Listen
from webhook.service import FixedFacts, Options, Service
from webhook.tls_sources import PemFiles, PemSecret, TlsError

Controllers = Callable[[Surroundings], Mapping[str, Activity]]


@dataclass(frozen=True, slots=True)
class Serve:
    """The options of `sluice serve` and `sluice run`, as their --help says."""

    facts: Path | None
    kubeconfig: str
    policies: Path
    certificates: Path
    host: str | None
    port: int
    grace: float
    audit: str
    log_format: str
    log_level: str
    lease_namespace: str
    lease_name: str
    kept: KeptCertificates | None = None
    """Where the leader keeps certificates, which then are served in place of files."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """What further flags say, by the environment variables that they win over."""

    def to_options(self, secret: TlsSecret | None = None) -> Options:
        """Return them as the service takes them, to be served from the Secret if there is one."""
        files = PemFiles(self.certificates / "tls.crt", self.certificates / "tls.key")
        return Options(
            policies=self.policies,
            certificates=files if secret is None else PemSecret(secret),
            audit=self.audit,
            listen=Listen(host=self.host, port=self.port, grace=self.grace),
        )


def start(options: Serve, controllers: Controllers | None = None) -> None:
    """Run until a signal; exit with 2 and one line on standard error if it cannot start."""
    configure(LogFormat(options.log_format), options.log_level)
    run_or_exit(_run(options, controllers))


def beside(one: Controllers, other: Controllers) -> Controllers:
    """Return what makes the activities of both."""
    return lambda around: {**one(around), **other(around)}


def run_or_exit(activity: Activity) -> None:
    """Run an activity; what a person can mend becomes a line and exit code 2."""
    starting.run_or_exit(activity, TlsError)


async def _run(options: Serve, controllers: Controllers | None) -> None:
    telemetry, placement = telemetry_of(options.flags), placement_of(options.flags)
    compiler = Compiler()
    if options.facts is not None:
        if options.kept is not None:
            raise StartError("--certificates-secret is in a cluster, which --facts does without")
        facts = read_facts(options.facts, compiler)
        await Service(options.to_options(), compiler, facts).run()
        return
    access = find_access(os.environ, kubeconfig=options.kubeconfig)
    async with Client(access) as client:
        watch = watch_cluster(client, lambda name: compiler.catalog.classify(name) is not None)
        usage, documents = UsageWatch(client), ApiDocuments(client)
        term = TermWatch(client, options.lease_namespace, options.lease_name)
        source = LiveFacts(watch, usage, term)
        kept = options.kept
        secret = TlsSecret(client, kept.namespace, kept.secret) if kept is not None else None
        service = Service(options.to_options(secret), compiler, source, documents)
        around = _surroundings(access, client, compiler, service)
        around = replace(
            around,
            telemetry=made(telemetry, client, service.metrics),
            placement=placement,
            certificates=kept,
        )
        others = dict(controllers(around)) if controllers else {}
        if secret is not None:
            others["Secret of the certificate"] = secret.run()
        watches = {
            "cluster facts": watch.run(),
            "API documents": documents.run(),
            "tenants' usage": usage.run(),
            "leader's term": term.run(),
        }
        await service.run(others={**watches, **others})


def _surroundings(
    access: AccessSource, client: Client, compiler: Compiler, service: Service
) -> Surroundings:
    return Surroundings(
        access=access,
        client=client,
        documents=service.documents,
        catalog=compiler.catalog,
        metrics=service.metrics,
        audit=service.audit,
    )


def read_facts(path: Path, compiler: Compiler) -> FixedFacts:
    """Return the facts of a file. Raises StartError with every problem in it."""
    try:
        source = SourceText(str(path), path.read_bytes())
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    facts, problems = parse_facts(source, catalog=compiler.catalog, now=datetime.now(UTC))
    if facts is None:
        raise StartError("\n".join(map(str, problems)))
    return FixedFacts(facts)
