# SPDX-License-Identifier: Apache-2.0
"""The webhook as a process: certificate, key, audit log and grace seconds are its arguments."""

import sys
from pathlib import Path

import uvloop

from reconciler.runtime.audit import AuditLog
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import stop_on_signals
from tests.support.serving import make_serving
from webhook.server import Listen, WebhookServer, serve
from webhook.tls import ServerTls
from webhook.tls_sources import PemFiles


async def main(certificate: str, key: str, audit: str, grace: str) -> None:
    """Serve until SIGTERM, with the port on standard output once it is open."""
    metrics = Metrics()
    log = AuditLog(audit, metrics)
    tls = ServerTls(PemFiles(Path(certificate), Path(key)), metrics)
    listen = Listen(host="127.0.0.1", port=0, grace=float(grace))
    server = WebhookServer(make_serving(audit=log, metrics=metrics), tls, listen)
    with stop_on_signals() as events:
        await serve(server, events, lambda port: print(port, flush=True))  # noqa: T201 - its output
    log.close(5)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
