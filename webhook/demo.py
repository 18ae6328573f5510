# SPDX-License-Identifier: Apache-2.0
"""`sluice demo`: the real webhook on this machine, asked as an API server asks, without a cluster.

Each example pod goes over TLS to /mutate, its patch is applied, and the result goes to /validate.
"""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from certs.errors import CertificateError
from certs.files import CertificateFiles, ensure
from certs.names import LOOPBACK
from policies.documents.scalars import plain
from policies.documents.source import parse_documents
from policies.model.workload import Workloads
from policies.pod.reading import MalformedError
from policies.preview.expand import PreviewPod, expand
from reconciler.runtime.audit_file import AuditFileInUseError
from reconciler.runtime.document_files import read_documents
from reconciler.runtime.documents import DocumentState
from reconciler.runtime.loading import Compiler
from reconciler.runtime.logs import LogFormat, configure
from reconciler.runtime.starting import StartError
from webhook.commands import read_facts, run_or_exit
from webhook.demo_client import DemoClient, print_answer
from webhook.server import Listen
from webhook.service import Options, Service
from webhook.tls_sources import PemFiles


@dataclass(frozen=True, slots=True)
class Demo:
    """What to serve, what to send, and where certificates and the audit log are kept."""

    policies: Path
    pods: Path
    facts: Path
    directory: Path
    port: int

    @property
    def audit(self) -> Path:
        """Where the audit log is written."""
        return self.directory / "audit.jsonl"


def run_demo(demo: Demo) -> None:
    """Serve, send, print, and go on serving until Ctrl-C."""
    configure(LogFormat.TEXT, "warning")
    try:
        files = ensure(demo.directory / "certificates", LOOPBACK, datetime.now(UTC))
    except CertificateError as error:
        sys.stderr.write(f"sluice: {error}\n")
        sys.exit(2)
    run_or_exit(_serve(demo, files))


async def _serve(demo: Demo, files: CertificateFiles) -> None:
    compiler = Compiler()
    options = Options(
        policies=demo.policies,
        certificates=PemFiles(files.certificate, files.key),
        audit=str(demo.audit),
        listen=Listen(host="127.0.0.1", port=demo.port, grace=0.0),
    )
    pods = list(read_pods(demo.pods, compiler.catalog.workloads))
    facts = read_facts(demo.facts, compiler)
    try:
        service = Service(options, compiler, facts)
    except AuditFileInUseError as error:
        raise StartError(
            f"a demo runs already in {demo.directory}; end it with Ctrl-C, or start another with "
            "--dir and --port of its own"
        ) from error
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    show = _show(demo, service, DemoClient(files.ca_certificate), pods, port)
    await service.run(ready=port.set_result, others={"demo client": show})


async def _show(
    demo: Demo,
    service: Service,
    client: DemoClient,
    pods: list[PreviewPod],
    port: "asyncio.Future[int]",
) -> None:
    console = Console(soft_wrap=True, highlight=False)
    url = f"https://127.0.0.1:{await port}"
    policies = service.documents.current()
    if policies is None:
        problems = "\n".join(map(str, service.documents.state.problems))
        raise StartError(f"{demo.policies} cannot be served:\n{problems}")
    console.print(
        f"serving generation {policies.generation} of {demo.policies}: "
        f"{len(policies.tenants)} tenants, {len(policies.policies)} policies\n"
    )
    for pod in pods:
        print_answer(await client.ask(url, pod), console)
    console.print(f"audit log   {demo.audit}")
    console.print(f"webhook     {url}  (CA {client.authority}; /healthz /readyz /metrics)")
    console.print(f"edit        {demo.policies}, and what is served follows")
    console.print("\nserving until Ctrl-C")
    service.documents.subscribe(lambda state: _say_served(state, console))
    await asyncio.Event().wait()


def _say_served(state: DocumentState, console: Console) -> None:
    """Say what an edit has led to; of one that is broken the log has the problems."""
    if not state.is_broken and state.policy_set is not None:
        console.print(f"serving generation {state.policy_set.generation}")


def read_pods(directory: Path, workloads: Workloads) -> Iterator[PreviewPod]:
    """Yield the pods of all manifests below a directory. Raises StartError."""
    reading = read_documents(directory)
    if reading.problems:
        raise StartError("\n".join(map(str, reading.problems)))
    for source in reading.sources:
        parsed = parse_documents(source)
        if parsed.problems:
            raise StartError("\n".join(map(str, parsed.problems)))
        for document in parsed.documents:
            manifest = plain(document.value)
            if not isinstance(manifest, dict):
                continue
            try:
                items = list(expand(manifest, "default", workloads))
            except MalformedError as error:
                raise StartError(f"{source.name}: {error}") from error
            yield from (item for item in items if isinstance(item, PreviewPod))
