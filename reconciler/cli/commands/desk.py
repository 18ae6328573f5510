# SPDX-License-Identifier: Apache-2.0
"""What a person does on a machine of their own: `sluice review`, `lint` and `test`."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from reconciler.cli.commands.options import POLICIES
from reconciler.cli.terminal import BAD_INPUT, stop
from reconciler.runtime.choices import Choice

if TYPE_CHECKING:
    from rich.console import Console

ALLOWED: Final = 0
DENIED: Final = 1
_EXISTING: Final = click.Path(exists=True, path_type=Path)
_FACTS = click.option(
    "--facts",
    type=_EXISTING,
    help="A Kubernetes List of Nodes and Namespaces, and `now`; else nothing is known of them.",
)


@click.command()
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
@_FACTS
@click.option("-n", "--namespace", default="default", help="For manifests that name none.")
@click.option("--as", "username", help="The user who creates the pods, for rules that look at it.")
@click.option("-o", "--output", type=Choice(["text", "yaml", "json", "patch"]), default="text")
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
        stop(error)
    previews = [item for item in found if isinstance(item, Preview)]
    console = _console(stderr=output != "text")
    print_review(question.policies, found, Output(output), console, sys.stdout)
    sys.exit(ALLOWED if all(item.decision.allowed for item in previews) else DENIED)


@click.command()
@click.argument("directory", type=_EXISTING)
@click.option("-o", "--output", type=Choice(["text", "json"]), default="text")
@click.option("--strict", is_flag=True, help="Let warnings fail too.")
@_FACTS
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
        stop(error)
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


@click.command()
@click.argument("directory", type=_EXISTING)
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
        stop(error)
    click.echo(f"{passed} passed, {failed} failed")
    sys.exit(DENIED if failed or not passed else ALLOWED)


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True)
