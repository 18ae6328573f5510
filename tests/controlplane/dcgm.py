# SPDX-License-Identifier: Apache-2.0
"""Stands in for dcgm-exporter: the same text, with the same metric and label names, on loopback.

What the cards do is set by the test, or replayed (`dcgm_replay`). Written after the template and
the default counters of NVIDIA dcgm-exporter 4.5 to 4.8.
"""

import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import ClassVar, Self

from tests.controlplane.ports import HOST

_DRIVER = "580.95.05"


@dataclass(slots=True)
class Instance:
    """A MIG instance. Values are those of the instance."""

    id: str
    profile: str
    busy: float = 0.0
    used_mib: float = 0.0
    total_mib: float = 9856.0
    pod: tuple[str, str, str] | None = None


@dataclass(slots=True)
class Card:
    """One GPU, which the test may change at any time. `busy` goes from 0 to 1.

    `pods` are (namespace, pod, container); a shared card's values are repeated for each.
    `replaced` gives the text of values by metric, in place of what follows from the fields.
    """

    uuid: str
    model: str = "NVIDIA H100 80GB HBM3"
    busy: float = 0.0
    used_mib: float = 0.0
    total_mib: float = 81559.0
    reserved_mib: float = 457.0
    temperature: float = 45.0
    xid: int = 0
    energy_millijoules: int = 1_000_000
    pods: tuple[tuple[str, str, str], ...] = ()
    instances: tuple[Instance, ...] = ()
    replaced: dict[str, str] = field(default_factory=dict)


Value = Callable[[Card], float | int]
_GAUGE, _COUNTER = "gauge", "counter"

METRICS: tuple[tuple[str, str, str, Value], ...] = (
    ("DCGM_FI_DEV_SM_CLOCK", _GAUGE, "SM clock frequency (in MHz).", lambda _: 1980),
    ("DCGM_FI_DEV_MEM_CLOCK", _GAUGE, "Memory clock frequency (in MHz).", lambda _: 2619),
    ("DCGM_FI_DEV_MEMORY_TEMP", _GAUGE, "Memory temperature (in C).", lambda _: 52),
    ("DCGM_FI_DEV_GPU_TEMP", _GAUGE, "GPU temperature (in C).", lambda card: card.temperature),
    ("DCGM_FI_DEV_POWER_USAGE", _GAUGE, "Power draw (in W).", lambda card: 75 + 600 * card.busy),
    (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        _COUNTER,
        "Total energy consumption since boot (in mJ).",
        lambda card: card.energy_millijoules,
    ),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", _COUNTER, "Total number of PCIe retries.", lambda _: 0),
    (
        "DCGM_FI_DEV_GPU_UTIL",
        _GAUGE,
        "GPU utilization (in %).",
        lambda card: round(100 * card.busy),
    ),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", _GAUGE, "Memory utilization (in %).", lambda _: 3),
    ("DCGM_FI_DEV_ENC_UTIL", _GAUGE, "Encoder utilization (in %).", lambda _: 0),
    ("DCGM_FI_DEV_DEC_UTIL", _GAUGE, "Decoder utilization (in %).", lambda _: 0),
    (
        "DCGM_FI_DEV_XID_ERRORS",
        _GAUGE,
        "Value of the last XID error encountered.",
        lambda card: card.xid,
    ),
    (
        "DCGM_FI_DEV_FB_FREE",
        _GAUGE,
        "Framebuffer memory free (in MiB).",
        lambda card: card.total_mib - card.reserved_mib - card.used_mib,
    ),
    (
        "DCGM_FI_DEV_FB_USED",
        _GAUGE,
        "Framebuffer memory used (in MiB).",
        lambda card: card.used_mib,
    ),
    (
        "DCGM_FI_DEV_FB_RESERVED",
        _GAUGE,
        "Framebuffer memory reserved (in MiB).",
        lambda card: card.reserved_mib,
    ),
    (
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        _COUNTER,
        "Number of remapped rows for uncorrectable errors",
        lambda _: 0,
    ),
    (
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        _COUNTER,
        "Number of remapped rows for correctable errors",
        lambda _: 0,
    ),
    (
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        _GAUGE,
        "Whether remapping of rows has failed",
        lambda _: 0,
    ),
    (
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        _COUNTER,
        "Total number of NVLink bandwidth counters for all lanes.",
        lambda _: 0,
    ),
    ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", _GAUGE, "vGPU License status", lambda _: 0),
    (
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        _GAUGE,
        "Ratio of time the graphics engine is active.",
        lambda card: card.busy,
    ),
    (
        "DCGM_FI_PROF_SM_OCCUPANCY",
        _GAUGE,
        "The ratio of number of warps resident on an SM.",
        lambda card: card.busy / 2,
    ),
    (
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        _GAUGE,
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        lambda card: card.busy / 4,
    ),
    (
        "DCGM_FI_PROF_DRAM_ACTIVE",
        _GAUGE,
        "Ratio of cycles the device memory interface is active.",
        lambda card: card.busy / 3,
    ),
    (
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        _GAUGE,
        "The rate of data transmitted over the PCIe bus.",
        lambda _: 1_048_576,
    ),
    (
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        _GAUGE,
        "The rate of data received over the PCIe bus.",
        lambda _: 2_097_152,
    ),
)
"""The exporter's default counters, and SM occupancy, which is off by default."""


def page(node: str, cards: Iterable[Card], *, node_label: str = "Hostname") -> bytes:
    """Return the exporter's page for a node. Exporters of 2026 call the label `hostname`."""
    cards = tuple(cards)
    lines: list[str] = []
    for name, kind, help_text, value in METRICS:
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        for index, card in enumerate(cards):
            for labels, number in _rows(name, card, value):
                text = card.replaced.get(name, _number(number))
                lines.append(f"{name}{{{_labels(node, index, card, node_label)}{labels}}} {text}")
    return ("\n".join(lines) + "\n").encode()


def _rows(name: str, card: Card, value: Value) -> Iterator[tuple[str, float | int]]:
    extra = f'err_code="{card.xid}",err_msg="",' if name == "DCGM_FI_DEV_XID_ERRORS" else ""
    if card.instances:
        for instance in card.instances:
            own = Card(
                card.uuid,
                busy=instance.busy,
                used_mib=instance.used_mib,
                total_mib=instance.total_mib,
                reserved_mib=0,
            )
            yield f"{_pod(instance.pod, extra)}{_instance(instance)}", value(own)
        return
    for pod in card.pods or (None,):
        yield _pod(pod, extra), value(card)


def _labels(node: str, index: int, card: Card, node_label: str) -> str:
    return (
        f'gpu="{index}",UUID="{card.uuid}",pci_bus_id="00000000:{index + 1:02X}:00.0",'
        f'device="nvidia{index}",modelName="{card.model}",{node_label}="{node}",'
        f'DCGM_FI_DRIVER_VERSION="{_DRIVER}"'
    )


def _instance(instance: Instance) -> str:
    return f',GPU_I_PROFILE="{instance.profile}",GPU_I_ID="{instance.id}"'


def _pod(pod: tuple[str, str, str] | None, extra: str) -> str:
    if pod is None:
        return f",{extra}".rstrip(",")
    namespace, name, container = pod
    return f',container="{container}",{extra}namespace="{namespace}",pod="{name}",pod_uid=""'


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:f}"


@dataclass(slots=True)
class Fault:
    """What is answered in place of the truth: a status, other bytes, or nothing for a while."""

    status: int = 200
    body: bytes | None = None
    silent: threading.Event | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Guard:
    """What stands before an exporter: TLS, and the only value of Authorization that it takes.

    `judge`, if given, decides in its place: it returns the status for a value, 200 to let it in.
    """

    tls: ssl.SSLContext
    authorization: str = ""
    judge: Callable[[str], int] | None = None

    def status_of(self, authorization: str) -> int:
        """Return 200 for who is let in, else what they are told."""
        if self.judge is not None:
            return self.judge(authorization)
        return HTTPStatus.OK if authorization == self.authorization else HTTPStatus.UNAUTHORIZED


class DcgmExporter:
    """One node's exporter. Use as a context manager; its threads end with it."""

    def __init__(
        self,
        node: str,
        cards: Iterable[Card],
        *,
        node_label: str = "Hostname",
        guard: Guard | None = None,
    ) -> None:
        self.node = node
        self.cards = list(cards)
        self.node_label = node_label
        self.guard = guard
        self.fault: Fault | None = None
        self.scrapes = 0
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """The address and port, which stay the same when it is stopped and started."""
        return f"{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Serve; again under the same port."""
        handler = type("Handler", (_Handler,), {"exporter": self})
        server = _Server((HOST, self._port), handler)
        if self.guard is not None:
            # Each connection shakes hands in its own thread.
            server.socket = self.guard.tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        server.daemon_threads = True
        self._server, self._port = server, server.server_address[1]
        self._thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Vanish: connections are refused from now on."""
        if self._server is None:
            return
        if self.fault is not None and self.fault.silent is not None:
            self.fault.silent.set()
        self._server.shutdown()
        self._server.server_close()
        if self._thread is not None:
            self._thread.join()
        self._server = None

    def page(self) -> bytes:
        """Return the page as it is now."""
        return page(self.node, self.cards, node_label=self.node_label)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of connections that fail: that is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    exporter: ClassVar[DcgmExporter]

    def do_GET(self) -> None:
        """Answer a scrape."""
        fault = self.exporter.fault or self._unauthorized() or Fault()
        if fault.silent is not None:
            fault.silent.wait()
        self.exporter.scrapes += 1
        body = self.exporter.page() if fault.body is None else fault.body
        try:
            self.send_response(fault.status)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            for name, value in fault.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            return  # whoever asked has given up

    def _unauthorized(self) -> Fault | None:
        guard = self.exporter.guard
        if guard is None:
            return None
        status = HTTPStatus(guard.status_of(self.headers.get("Authorization", "")))
        return None if status == HTTPStatus.OK else Fault(status, f"{status.phrase}\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing: tests show what they need."""
