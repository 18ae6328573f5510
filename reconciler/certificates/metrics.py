# SPDX-License-Identifier: Apache-2.0
"""What is counted of certificates: how long they still last, renewals, and what went wrong."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from cryptography import x509

from reconciler.certificates.plan import Picture
from reconciler.runtime.metrics import Metrics

_EXPIRY: Final = "sluice_certificates_remaining_seconds"
_REFUSED: Final = "sluice_certificates_refused_objects"


class Which(StrEnum):
    """Which certificate is meant."""

    AUTHORITY = "Authority"
    SERVING = "Serving"


class CertificateMetrics:
    """Counts into a process' metrics. `now` is the API server's time in Unix seconds."""

    def __init__(self, metrics: Metrics, now: Callable[[], float]) -> None:
        self._metrics = metrics
        self._now = now

    def show(self, picture: Picture) -> None:
        """State how long the certificates of the Secrets last; it is counted down from then."""
        keyring = picture.keyring
        self._show(Which.AUTHORITY, keyring.current.certificate if keyring else None)
        self._show(Which.SERVING, picture.leaf)

    def refused(self, objects: int) -> None:
        """State how many objects are left alone since others manage them."""
        self._metrics.gauge(_REFUSED).set(objects)

    def rotated(self, which: Which) -> None:
        """Count a new certificate."""
        self._metrics.counter("sluice_certificate_rotations_total").labels(
            certificate=str(which)
        ).inc()

    def failed(self, error: str) -> None:
        """Count a write that the API server refused, by the type of its error."""
        self._metrics.counter("sluice_certificate_failures_total").labels(error=error).inc()

    def clear(self) -> None:
        """State nothing any more: who does not lead does not know."""
        self._metrics.gauge(_EXPIRY).clear()
        self.refused(0)

    def _show(self, which: Which, certificate: x509.Certificate | None) -> None:
        gauge = self._metrics.gauge(_EXPIRY)
        if certificate is None:
            gauge.labels(certificate=str(which)).set_function(lambda: 0.0)
            return
        ends = certificate.not_valid_after_utc.timestamp()
        gauge.labels(certificate=str(which)).set_function(lambda: ends - self._now())
