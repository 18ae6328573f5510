# SPDX-License-Identifier: Apache-2.0
"""A TLS server that answers every AdmissionReview alike and remembers what it was sent."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from certs.files import CertificateFiles

Patch = list[Mapping[str, object]]


class Recorded(NamedTuple):
    """One call: the path it came to, and its AdmissionReview request."""

    path: str
    request: Mapping[str, Any]

    @property
    def object_name(self) -> str:
        return str(self.request["object"]["metadata"]["name"])


class WebhookRecorder:
    """Allows everything, with the patch that `patch` gives for a path and a request."""

    def __init__(self, files: CertificateFiles) -> None:
        self.patch: Callable[[str, Mapping[str, Any]], Patch] = lambda _path, _request: []
        self._recorded: list[Recorded] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def take(self) -> list[Recorded]:
        """Return what was recorded since the last call."""
        with self._lock:
            taken, self._recorded = self._recorded, []
        return taken

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, path: str, review: Mapping[str, Any]) -> dict[str, object]:
        request = review["request"]
        with self._lock:
            self._recorded.append(Recorded(path, request))
        response: dict[str, object] = {"uid": request["uid"], "allowed": True}
        if patch := self.patch(path, request):
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        return {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path = self.path.partition("?")[0]
                answer = json.dumps(recorder._answer(path, json.loads(body))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                return

        return Handler
