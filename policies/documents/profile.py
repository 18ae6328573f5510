# SPDX-License-Identifier: Apache-2.0
"""Kind `SharingProfile`: from the document to the form that its mode derives."""

from collections.abc import Iterator

from policies.documents.compiled import Compiled
from policies.documents.document import parse_path
from policies.documents.field import Field, Subject
from policies.documents.kubernetes_names import (
    is_extended_resource,
    is_qualified_name,
    key_problems,
)
from policies.documents.problems import Problem, quoted
from policies.documents.suggest import did_you_mean
from policies.model.profile import Limiter, Profile, ShareWith, SharingMode, Toleration
from policies.sharing.modes import derive
from policies.sharing.spec import ProfileError, ProfileSpec
from policies.vendors import Catalog


def compile_profile(subject: Subject, catalog: Catalog) -> Compiled[Profile | None]:
    """Return the profile, or None with the problem where no GPU can give it."""
    root = subject.root
    problems = list(_problems(root.at("spec"), catalog))
    if subject.broken:  # what the mode would miss then is said already
        return Compiled(None, root, tuple(problems))
    try:
        profile = derive(_spec(root), catalog)
    except ProfileError as error:
        return Compiled(None, root, (*problems, _impossible(root, error, catalog)))
    return Compiled(profile, root, tuple(problems))


def _spec(root: Field) -> ProfileSpec:
    spec = root.at("spec")
    return ProfileSpec(
        name=root.at("metadata", "name").text(),
        mode=SharingMode(spec.at("mode").text()),
        vendor=spec.at("vendor").text("nvidia"),
        resource=spec.at("resource").optional_text(),
        products=spec.at("products").texts(),
        replicas=spec.at("replicas").optional_integer(),
        mig_profile=spec.at("mig", "profile").optional_text(),
        node_selector=spec.at("nodeSelector").text_map(),
        tolerations=tuple(_toleration(item) for item in spec.at("tolerations").items()),
        allow_multiple=spec.at("allowMultiple").boolean(),
        share_with=ShareWith(spec.at("shareWith").text(ShareWith.ANY)),
        limiter=Limiter(spec.at("limiter").text()) if spec.at("limiter").exists else None,
    )


def _toleration(item: Field) -> Toleration:
    return Toleration(
        key=item.at("key").optional_text(),
        operator=item.at("operator").optional_text(),
        value=item.at("value").optional_text(),
        effect=item.at("effect").optional_text(),
        toleration_seconds=item.at("tolerationSeconds").optional_integer(),
    )


def _impossible(root: Field, error: ProfileError, catalog: Catalog) -> Problem:
    field = root.at("spec")
    for step in parse_path(error.field_path):
        field = field.at(step) if isinstance(step, str) else field.item(step)
    known = {
        "mig.profile": [s.name for board in catalog.mig_products for s in board.shapes],
        "products": [name for board in catalog.mig_products for name in board.products],
    }.get(error.field_path.partition("[")[0], [])
    return field.problem(str(error), did_you_mean(field.text(), known))


def _problems(spec: Field, catalog: Catalog) -> Iterator[Problem]:
    resource = spec.at("resource")
    if resource.exists and not is_extended_resource(resource.text()):
        message = f"{quoted(resource.text())} is no extended resource"
        yield resource.problem(message, "write domain/name, such as nvidia.com/gpu")
    elif resource.exists and catalog.classify(resource.text()) is None:
        message = f"{quoted(resource.text())} is no known GPU resource"
        yield resource.problem(f"{message}: pods that ask for it would not be noticed")
    yield from key_problems(spec.at("nodeSelector"))
    for item in spec.at("tolerations").items():
        yield from _toleration_problems(item)


def _toleration_problems(item: Field) -> Iterator[Problem]:
    """Yield what the API server would refuse in every pod that gets this toleration."""
    key, value, seconds = item.at("key"), item.at("value"), item.at("tolerationSeconds")
    exists = item.at("operator").text() == "Exists"
    if key.exists and not is_qualified_name(key.text()):
        yield key.problem(f"{quoted(key.text())} is no taint key")
    if not key.exists and not exists:
        yield item.problem("a toleration without a key needs operator Exists")
    if exists and value.text():
        yield value.problem("operator Exists takes no value")
    if seconds.exists and item.at("effect").text() != "NoExecute":
        yield seconds.problem("only effect NoExecute takes tolerationSeconds")
