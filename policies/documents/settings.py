# SPDX-License-Identifier: Apache-2.0
"""Kind `Settings`: from the document to the value. Defaults are the model's."""

from policies.documents.compiled import Compiled
from policies.documents.field import Subject
from policies.documents.workloads import check_workloads, compile_workloads
from policies.model.settings import FailureMode, Mode, Settings, WithoutTenant


def compile_settings(subject: Subject) -> Compiled[Settings]:
    """Return the settings, with the default for every field that is left out."""
    spec, default = subject.root.at("spec"), Settings()
    without_tenant = spec.at("namespacesWithoutTenant").text(default.namespaces_without_tenant)
    workloads = spec.at("workloads")
    settings = Settings(
        mode=Mode(spec.at("mode").text(default.mode)),
        namespaces_without_tenant=WithoutTenant(without_tenant),
        failure_mode=FailureMode(spec.at("failureMode").text(default.failure_mode)),
        account=spec.at("account").text(default.account),
        workloads=compile_workloads(workloads),
    )
    return Compiled(settings, subject.root, tuple(check_workloads(workloads)))
