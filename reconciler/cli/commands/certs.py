# SPDX-License-Identifier: Apache-2.0
"""`sluice certs`: certificates as files."""

from datetime import UTC, datetime
from pathlib import Path

import click

from reconciler.cli.terminal import stop


@click.command()
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default="certificates",
    show_default=True,
    help="Where ca.crt, ca.key, tls.crt and tls.key are kept.",
)
@click.option("--name", "names", multiple=True, help="A further DNS name or IP address.")
@click.option("--service", default="sluice", show_default=True, help="Name of the Service.")
@click.option("--namespace", default="sluice", show_default=True)
@click.option("--new-authority", is_flag=True, help="Replace the CA, even a good one.")
def certs(
    directory: Path, names: tuple[str, ...], service: str, namespace: str, *, new_authority: bool
) -> None:
    """Make or renew the webhook's CA and certificate.

    The certificate is good for the Service in the cluster, for localhost, and for --name. What is
    valid is kept; a running webhook takes up new files by itself.

    \b
    Examples:
      sluice certs
      sluice certs --dir /etc/sluice/tls --name sluice.example.com
    """
    from certs.errors import CertificateError
    from certs.files import ensure
    from certs.names import service_names

    wanted = service_names(service, namespace, names)
    try:
        now = datetime.now(UTC)
        files = ensure(directory, wanted, now, replace_authority=new_authority)
    except CertificateError as error:
        stop(error)
    for path in files.written:
        click.echo(f"wrote {path}")
    if not files.written:
        click.echo(f"{directory}: nothing to renew")
