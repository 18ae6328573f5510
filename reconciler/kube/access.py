# SPDX-License-Identifier: Apache-2.0
"""How to reach the API server and as whom: from a kubeconfig, or from inside a pod.

kubernetes_asyncio reads the files and runs credential plugins; what it finds becomes one frozen
value. Loading again finds rotated tokens and certificates. Requests are not made here.
"""

import asyncio
import hashlib
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config
from kubernetes_asyncio.config.kube_config import (
    ENV_KUBECONFIG_PATH_SEPARATOR,
    load_kube_config,
)

from reconciler.kube.errors import AccessError

if TYPE_CHECKING:
    from kubernetes_asyncio.config.kube_config import (
        KubeConfigLoader,
    )

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLUGIN_SECONDS: Final = 30.0
_UNREADABLE: Final = (
    # The loader asserts and indexes its way through a kubeconfig; each is a malformed file.
    ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    AssertionError,
)


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API server is and what proves who we are; `tls` is None for plain HTTP."""

    server: str
    tls: ssl.SSLContext | None = None
    authorization: str | None = field(default=None, repr=False)
    server_hostname: str | None = None
    proxy: str | None = field(default=None, repr=False)


class AccessSource(Protocol):
    """Where access comes from."""

    async def load(self, *, renew: bool = False) -> Access:
        """Read it (again); `renew` also drops credentials that are cached until they expire.

        Raises AccessError.
        """
        ...


class KubeconfigAccess:
    """A kubeconfig (or several, joined as in $KUBECONFIG) with files, tokens or a plugin in it."""

    def __init__(self, paths: str, context: str | None = None) -> None:
        self._paths = paths
        self._context = context
        self._loader: KubeConfigLoader | None = None
        self._reading: asyncio.Task[Configuration] | None = None
        self._tls = _TlsCache()

    async def load(self, *, renew: bool = False) -> Access:
        """Read the files that the kubeconfig names, and run its plugin if its token has expired."""
        try:
            return _access(await self._configuration(renew=renew), self._tls)
        except _UNREADABLE as error:
            raise AccessError(f"kubeconfig {self._paths}: {_describe(error)}") from error

    async def _configuration(self, *, renew: bool) -> Configuration:
        """Wait for a plugin no longer than we can, yet never cancel it or run a second beside it.

        It may wait for a person, or for ever; cancelling would leave its process behind, one more
        each time. A late answer is found by the next call.
        """
        reading = self._reading
        if reading is None:
            reading = self._reading = asyncio.create_task(self._read(renew=renew))
            # A failure that comes after the last call has no one to tell.
            reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait((reading,), timeout=_PLUGIN_SECONDS)
        if not reading.done():
            raise TimeoutError
        if self._reading is reading:
            # Others may have waited for it as well; only the next call reads anew.
            self._reading = None
        return reading.result()

    async def _read(self, *, renew: bool) -> Configuration:
        configuration = Configuration(host="")
        if self._loader is not None and not renew:
            await self._loader.load_and_set(configuration)
        elif not _some_file(self._paths):
            raise ConfigException("no such file")
        else:
            self._loader = await load_kube_config(
                self._paths, self._context, client_configuration=configuration, persist_config=False
            )
        return configuration


class InClusterAccess:
    """The service account of the pod that this runs in."""

    def __init__(self, environ: Mapping[str, str], directory: Path = _SERVICE_ACCOUNT) -> None:
        self._environ = environ
        self._directory = directory
        self._tls = _TlsCache()

    async def load(self, *, renew: bool = False) -> Access:  # noqa: ARG002 - nothing is cached
        """Read the mounted token and CA."""
        configuration = Configuration(host="")
        try:
            load_incluster_config(  # type: ignore[no-untyped-call]  # the library has no types here
                configuration,
                try_refresh_token=False,
                token_filename=str(self._directory / "token"),
                cert_filename=str(self._directory / "ca.crt"),
                environ=self._environ,
            )
            return _access(configuration, self._tls)
        except _UNREADABLE as error:
            raise AccessError(
                f"service account in {self._directory}: {_describe(error)}"
            ) from error


def find_access(
    environ: Mapping[str, str], *, kubeconfig: str = "", context: str | None = None
) -> AccessSource:
    """Choose: the kubeconfig given, $KUBECONFIG, the pod's service account, ~/.kube/config."""
    named = kubeconfig or environ.get("KUBECONFIG", "")
    if named:
        return KubeconfigAccess(named, context)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return InClusterAccess(environ)
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return KubeconfigAccess(str(home / ".kube" / "config"), context)


def _some_file(paths: str) -> bool:
    parts = [part for part in paths.split(ENV_KUBECONFIG_PATH_SEPARATOR) if part]
    return any(Path(part).expanduser().is_file() for part in parts)


def _access(configuration: Configuration, tls: "_TlsCache") -> Access:
    server = str(configuration.host).rstrip("/")
    parts = urlsplit(server)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigException(f"{server!r} is not the address of an API server")
    # Token files may end in a newline, which no header can hold.
    authorization = str(configuration.api_key.get("BearerToken", "")).strip()
    return Access(
        server=server,
        tls=tls.context(configuration) if parts.scheme == "https" else None,
        authorization=authorization or None,
        server_hostname=configuration.tls_server_name,
        proxy=configuration.proxy or _proxy_from_environment(parts.scheme, parts.hostname),
    )


def _proxy_from_environment(scheme: str, host: str) -> str | None:
    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(scheme)


class _TlsCache:
    """Makes a new TLS context only when the files behind it have changed.

    Connections are kept per context, so a new one each minute would throw them away.
    """

    def __init__(self) -> None:
        self._digest = b""
        self._context: ssl.SSLContext | None = None

    def context(self, configuration: Configuration) -> ssl.SSLContext:
        digest = _digest(configuration)
        if self._context is None or digest != self._digest:
            self._context, self._digest = _tls_context(configuration), digest
        return self._context


def _digest(configuration: Configuration) -> bytes:
    digest = hashlib.sha256(b"verified" if configuration.verify_ssl else b"unverified")
    for name in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file):
        content = Path(name).read_bytes() if name else b""
        digest.update(len(content).to_bytes(8))
        digest.update(content)
    return digest.digest()


def _tls_context(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # On by default from Python 3.13, it refuses CAs without key identifiers, as many clusters have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _describe(error: Exception) -> str:
    text = str(error)
    if isinstance(error, TimeoutError):
        return f"its credential plugin gave no answer within {_PLUGIN_SECONDS:g} s"
    if isinstance(error, OSError) and error.filename is None:
        # Event loops do not all say which program they could not start.
        return f"a file or program that it names: {text}"
    if isinstance(error, KeyError | TypeError | AttributeError | AssertionError) or not text:
        return f"not understood ({type(error).__name__}{': ' if text else ''}{text})"
    return text
