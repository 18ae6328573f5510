# SPDX-License-Identifier: Apache-2.0
"""The one command. Each subcommand imports its part only when it runs."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from reconciler.cli.commands.groups import LateGroup
from reconciler.cli.commands.monitoring_manifests import rendered_monitoring
from reconciler.cli.commands.options import (
    KUBECONFIG,
    POLICIES,
    election,
    kept_certificates,
    lease,
    records,
    taken_certificates,
    with_options,
)
from reconciler.cli.commands.telemetry_manifests import rendered_telemetry
from reconciler.placement.flags import leader_options

if TYPE_CHECKING:
    from rich.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])

__version__ = "0.1.0"

ALLOWED, DENIED, BAD_INPUT = 0, 1, 2
EXISTING = click.Path(exists=True, path_type=Path)
PORT = click.IntRange(0, 65535)
MOST_SECONDS = 3600.0

FACTS = click.option(
    "--facts",
    type=EXISTING,
    help="A Kubernetes List of Nodes and Namespaces, and `now`; else nothing is known of them.",
)


@click.group(
    cls=LateGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="sluice")
def main() -> None:
    """Policy-as-code GPU tenancy for Kubernetes."""


@main.command()
@click.option(
    "-f",
    "--filename",
    "filenames",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="A manifest of any kind; `-` is standard input. May be given several times.",
)
@POLICIES
@FACTS
@click.option("-n", "--namespace", default="default", help="For manifests that name none.")
@click.option("--as", "username", help="The user who creates the pods, for rules that look at it.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "yaml", "json", "patch"]), default="text"
)
def review(
    filenames: tuple[Path, ...],
    policies: Path,
    facts: Path | None,
    namespace: str,
    username: str | None,
    output: str,
) -> None:
    """Say what would become of manifests, without a cluster.

    Pods, Deployments, Jobs and other workloads, Lists, several documents in a file. Exits with 0
    if all pods are allowed, 1 if any is refused, 2 for bad input.

    \b
    Examples:
      sluice review -f pod.yaml --policies policies/ --facts facts.yaml
      kubectl get deployment llm -o yaml | sluice review -f - --policies policies/
      sluice review -f job.yaml -n chat -o patch --policies policies/
    """
    from policies.model.request import User
    from policies.preview.preview import ANYBODY, Preview
    from reconciler.cli import inputs
    from reconciler.cli.review import Output, Question, print_review
    from reconciler.cli.review import review as reviewed
    from reconciler.runtime.loading import Compiler

    user = User(username, groups=ANYBODY.groups) if username else ANYBODY
    try:
        compiler = Compiler()
        question = Question(
            inputs.policies_from(compiler, policies),
            inputs.facts_from(compiler, facts, datetime.now(UTC)),
            namespace,
            user,
        )
        found = reviewed(question, inputs.manifests_from(filenames))
    except inputs.BadInputError as error:
        _bad_input(error)
    previews = [item for item in found if isinstance(item, Preview)]
    console = _console(stderr=output != "text")
    print_review(question.policies, found, Output(output), console, sys.stdout)
    sys.exit(ALLOWED if all(item.decision.allowed for item in previews) else DENIED)


@main.command()
@click.argument("directory", type=EXISTING)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option("--strict", is_flag=True, help="Let warnings fail too.")
@FACTS
def lint(directory: Path, output: str, facts: Path | None, *, strict: bool) -> None:
    """Check policy documents: every problem at once, with file, line and field.

    With facts, pools and guarantees are held against the nodes that there are.
    Exits with 0 if the set can be served, 1 if not (with --strict: or if there are warnings).

    \b
    Examples:
      sluice lint policies/
      sluice lint --facts facts.yaml policies/
      sluice lint -o json policies/ | jq '.problems[] | select(.severity == "Error")'
    """
    from policies.documents.problems import Severity
    from reconciler.cli import inputs
    from reconciler.cli.lint import print_problems, print_problems_json, summary
    from reconciler.runtime.loading import Compiler

    compiler = Compiler()
    try:
        now = datetime.now(UTC)
        nodes = inputs.nodes_from(compiler, facts, now) if facts else None
    except inputs.BadInputError as error:
        _bad_input(error)
    result = inputs.load_directory(compiler, directory, now, nodes)
    generation = result.policy_set.generation if result.policy_set else None
    if output == "json":
        print_problems_json(result.problems, generation, sys.stdout)
    else:
        print_problems(result.problems, _console())
        served = f"generation {generation}" if generation else "cannot be served"
        click.echo(f"{directory}: {summary(result.problems)}; {served}")
    warned = any(problem.severity is Severity.WARNING for problem in result.problems)
    sys.exit(DENIED if generation is None or (strict and warned) else ALLOWED)


@main.command()
@click.argument("directory", type=EXISTING)
def test(directory: Path) -> None:
    """Run the PolicyTest suites of a directory against its own policies.

    Exits with 0 if all cases pass, 1 if any fails or there is none, 2 for bad input.

    \b
    Examples:
      sluice test policies/
    """
    from reconciler.cli import inputs
    from reconciler.cli.lint import print_problems
    from reconciler.cli.suites import print_results, run_suites
    from reconciler.runtime.loading import Compiler

    compiler = Compiler()
    result = inputs.load_directory(compiler, directory)
    if result.policy_set is None:
        print_problems(result.problems, _console(stderr=True))
        sys.exit(BAD_INPUT)
    try:
        results = run_suites(directory, result, compiler, datetime.now(UTC))
        passed, failed = print_results(results, _console())
    except inputs.BadInputError as error:
        _bad_input(error)
    click.echo(f"{passed} passed, {failed} failed")
    sys.exit(DENIED if failed or not passed else ALLOWED)


def _seconds(_: click.Context, __: click.Parameter, value: float) -> float:
    if 0 <= value <= MOST_SECONDS:  # no number (NaN) is in no range
        return value
    raise click.BadParameter(f"{value} is no number of seconds from 0 to {MOST_SECONDS:.0f}")


@main.group()
def library() -> None:
    """Ready-made policies, to copy into your own and to change.

    \b
    Examples:
      sluice library list
      sluice library show training-exclusive
      sluice library copy training-exclusive policies/
    """


@library.command("list")
def library_list() -> None:
    """List the policies by name, with what each does."""
    from rich.console import Console

    from reconciler.cli.library import library as everything
    from reconciler.cli.library import print_list

    print_list(everything(), Console())


@library.command("show")
@click.argument("name")
def library_show(name: str) -> None:
    """Print a policy's page and its documents."""
    from reconciler.cli.inputs import BadInputError
    from reconciler.cli.library import find

    try:
        found = find(name)
    except BadInputError as error:
        _bad_input(error)
    click.echo(found.readme)
    click.echo(found.policy, nl=False)


@library.command("copy")
@click.argument("name")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def library_copy(name: str, directory: Path) -> None:
    """Copy a policy and its tests into a directory; a file that is there already stays.

    `sluice lint` and `sluice test` work there at once. What is below tests/ is for them alone.

    \b
    Examples:
      sluice library copy mig-by-memory policies/
      sluice test policies/
    """
    from reconciler.cli.inputs import BadInputError
    from reconciler.cli.library import copy, find

    try:
        written = copy(find(name), directory)
    except BadInputError as error:
        _bad_input(error)
    for path in written:
        click.echo(f"wrote {path}")


def _serving(command: Command) -> Command:
    """Add the options that every command with a server has."""
    options = (
        POLICIES,
        click.option(
            "--certificates",
            type=click.Path(path_type=Path),
            default="certificates",
            show_default=True,
            envvar="SLUICE_CERTIFICATES",
            help="Directory with tls.crt and tls.key; followed when they change.",
        ),
        kept_certificates,
        click.option("--host", default=None, help="Address to listen on; all by default."),
        click.option("--port", type=PORT, default=9443, show_default=True, envvar="SLUICE_PORT"),
        click.option(
            "--grace",
            default=5.0,
            show_default=True,
            callback=_seconds,
            help="Seconds to go on answering after the signal to stop.",
        ),
    )
    return with_options(records(command), options)


@main.command()
@_serving
@click.option(
    "--facts",
    type=EXISTING,
    help="Facts from a file, for use without a cluster; by default they are watched.",
)
@KUBECONFIG
@lease
def serve(facts: Path | None, kubeconfig: str, **options: Any) -> None:
    """Run the admission webhook; the controllers are `sluice reconcile`.

    \b
    Examples:
      sluice certs --dir certificates --name localhost --name 127.0.0.1
      sluice serve --policies policies/ --facts facts.yaml --audit audit.jsonl
      sluice serve --policies /etc/sluice/policies --certificates /etc/sluice/tls
    """
    from webhook.commands import Serve, start

    kept = taken_certificates(options)
    start(Serve(facts=facts, kubeconfig=kubeconfig, kept=kept, **options))


@main.command()
@_serving
@KUBECONFIG
@election
@click.option(
    "--extender-port",
    type=PORT,
    envvar="SLUICE_EXTENDER_PORT",
    help="Be a scheduler extender at this port as well; set up by the environment.",
)
@leader_options
def run(
    kubeconfig: str,
    lease_namespace: str,
    lease_name: str,
    identity: str,
    *,
    extender_port: int | None,
    **options: Any,
) -> None:
    """Run webhook and controllers in one process; of several replicas one leads.

    \b
    Examples:
      sluice run --policies policies/ --kubeconfig ~/.kube/config
      sluice run --policies policies/ --certificates-secret sluice/sluice-tls
      sluice run --policies policies/ --extender-port 9444 --prometheus-url http://prometheus:9090
    """
    from reconciler.manager import Election, run_as_candidate
    from reconciler.placement.flags import FLAGS
    from reconciler.telemetry.flags import taken
    from webhook.commands import Serve, beside, start

    activities = run_as_candidate(Election(lease_namespace, lease_name, identity))
    if extender_port is not None:
        from webhook.extender.command import BesideWebhook
        from webhook.extender.service import Candidacy

        candidacy = Candidacy(lease_namespace, f"{lease_name}-extender", identity)
        where = (extender_port, options["host"], options["certificates"])
        activities = beside(activities, BesideWebhook(*where, candidacy))
    options |= {"lease_namespace": lease_namespace, "lease_name": lease_name}
    taken_apart: dict[str, Any] = {
        "flags": taken(options, FLAGS),
        "kept": taken_certificates(options),
    }
    start(Serve(facts=None, kubeconfig=kubeconfig, **taken_apart, **options), activities)


@main.command()
@click.option("--policies", type=EXISTING, default="docs/examples/policies", show_default=True)
@click.option("--pods", type=EXISTING, default="docs/examples/pods", show_default=True)
@click.option("--facts", type=EXISTING, default="docs/examples/facts.yaml", show_default=True)
@click.option("--dir", "directory", type=click.Path(path_type=Path), default="run")
@click.option("--port", type=PORT, default=9443, show_default=True)
def demo(policies: Path, pods: Path, facts: Path, directory: Path, port: int) -> None:
    """Serve the example policies on this machine and show what they make of the example pods.

    \b
    Examples:
      sluice demo
      sluice demo --policies policies/ --pods pods/ --facts facts.yaml
    """
    from webhook.demo import Demo, run_demo

    run_demo(Demo(policies, pods, facts, directory, port))


@main.command()
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
        _bad_input(error)
    for path in files.written:
        click.echo(f"wrote {path}")
    if not files.written:
        click.echo(f"{directory}: nothing to renew")


@main.command()
@click.option(
    "--certificates",
    type=EXISTING,
    help="Directory that `sluice certs` has made; without, the leader makes certificates, renews "
    "them and has them trusted.",
)
@click.option("--namespace", default="sluice", show_default=True)
@click.option("--name", default="sluice", show_default=True, help="Name of every object.")
@click.option("--image", default=f"sluice:{__version__}", show_default=True)
@click.option("--replicas", default=2, show_default=True)
@click.option(
    "--processes",
    type=click.Choice(["together", "apart"]),
    default="together",
    show_default=True,
    help="Webhook and reconciler in one process, or each in its own, with the access it needs.",
)
@click.option("--reconcilers", default=2, show_default=True, help="Replicas of one that is apart.")
@click.option("--url", help="Where the API server reaches a webhook outside of the cluster.")
@click.option("--account", help="Sluice's user name, if it is not its service account.")
@click.option("--exclude", multiple=True, help="A further namespace to leave alone.")
@click.option("--only", multiple=True, help="Guard this namespace only; may be given repeatedly.")
@click.option("--observe", is_flag=True, help="For `mode: Observe`: never refuse, even when down.")
@click.option(
    "--no-admission-policies",
    is_flag=True,
    help="For clusters before 1.36, which serve no MutatingAdmissionPolicy v1.",
)
@click.option("--no-crds", is_flag=True, help="Leave out the kinds of documents.")
@click.option(
    "--settings",
    type=EXISTING,
    help="Policy documents whose `Settings` name further kinds of workloads to be called for, and "
    "whose profiles name further resources.",
)
@click.option(
    "--scheduler",
    type=click.Choice(["default", "second"]),
    help="Render the scheduler extender too, and the configuration of the scheduler that asks it: "
    "the cluster's own, or a second one beside it.",
)
@click.option(
    "--extender-url",
    default="",
    help="Where the scheduler reaches the extender, if not by its Service: https://host:port.",
)
@click.option(
    "--extender-env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set the extender up, as by PROMETHEUS_URL; may be given repeatedly.",
)
@click.option("--scheduler-image", default="", help="Image of the second kube-scheduler.")
@rendered_telemetry
@rendered_monitoring
def manifests(
    certificates: Path | None,
    *,
    settings: Path | None,
    exclude: tuple[str, ...],
    only: tuple[str, ...],
    no_admission_policies: bool,
    no_crds: bool,
    **options: Any,
) -> None:
    """Render what is applied to a cluster: kinds, access, deployment, admission policies, webhooks.

    \b
    Examples:
      sluice manifests --image registry.example.com/sluice | kubectl apply --server-side -f -
      sluice manifests --certificates certificates > sluice.yaml
      sluice manifests --only team-a --observe | kubectl diff -f -
      sluice manifests --settings policies/ > sluice.yaml
      sluice manifests --processes apart --replicas 3 > sluice.yaml
      sluice manifests --scheduler second --prometheus-url http://prometheus.monitoring:9090
      sluice manifests --exporters --telemetry-source scrape
      sluice manifests --monitoring --monitoring-label release=prometheus
    """
    from certs.errors import CertificateError
    from policies.vendors import build_catalog
    from reconciler.cli import manifests as command
    from reconciler.cli.inputs import BadInputError
    from reconciler.manifests.options import ManifestOptions, Processes

    placement = command.Placement(
        asker=options.pop("scheduler"),
        url=options.pop("extender_url"),
        environment=options.pop("extender_env"),
        image=options.pop("scheduler_image"),
        documents=settings,
    )
    exporters, monitoring = command.taken_exporters(options), command.taken_monitoring(options)
    try:
        rendered = ManifestOptions(
            catalog=build_catalog(),
            exclude_namespaces=exclude,
            only_namespaces=only,
            has_mutating_admission_policy=not no_admission_policies,
            has_crds=not no_crds,
            processes=Processes(options.pop("processes")),
            telemetry=command.taken_telemetry(options),
            preferred_nodes=options.pop("preferred_nodes") or 0,
            **options,
        )
        command.check(rendered)
        if settings is not None:
            rendered = command.with_settings(rendered, settings)
        if certificates is not None:
            rendered = command.with_certificates(rendered, certificates)
        objects = command.objects(rendered, placement, exporters, monitoring)
    except (BadInputError, CertificateError, OSError) as error:
        _bad_input(error)
    command.print_manifests(objects, sys.stdout)


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True)


def _bad_input(error: Exception) -> NoReturn:
    click.echo(f"{error}", err=True)
    sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
