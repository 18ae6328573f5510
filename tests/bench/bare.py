# SPDX-License-Identifier: Apache-2.0
"""The yardstick: aiohttp on uvloop with TLS that parses a review and allows it, and no more.

`python -m tests.bench.bare CERTIFICATE KEY PORT`
"""

import asyncio
import ssl
import sys

import orjson
import uvloop
from aiohttp import web


async def answer(request: web.Request) -> web.Response:
    """Parse the review and echo its uid, as any webhook must."""
    review = orjson.loads(await request.read())
    response = {"uid": review["request"]["uid"], "allowed": True}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def serve(certificate: str, key: str, port: int) -> None:
    """Serve until the process is ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    app = web.Application()
    app.router.add_post("/mutate", answer)
    app.router.add_post("/validate", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
