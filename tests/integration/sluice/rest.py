# SPDX-License-Identifier: Apache-2.0
"""Plain requests to the API server, for what tests only set up or look at.

Starting kubectl takes a tenth of a second; it is kept for what a person does.
"""

import http.client
import json
import ssl
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import Json

_SECONDS: Final = 20.0


class Rest:
    """The API server for the cluster's admin, over one connection."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._headers = {
            "Authorization": f"Bearer {control_plane.token}",
            "Content-Type": "application/json",
        }
        tls = ssl.create_default_context(cadata=control_plane.ca_bundle.decode())
        netloc = urlsplit(control_plane.url).netloc
        self._connection = http.client.HTTPSConnection(netloc, timeout=_SECONDS, context=tls)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def request(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        """Return the status and the object of an answer, whatever they are."""
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, self._headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def get(self, path: str) -> Json:
        """Return an object or a list that must be there."""
        status, found = self.request("GET", path)
        assert status == HTTPStatus.OK, found
        return found

    def exists(self, path: str) -> bool:
        """Tell whether an object is there."""
        return self.request("GET", path)[0] == HTTPStatus.OK
