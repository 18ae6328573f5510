# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler is told of the extender: KubeSchedulerConfiguration.

`extenders` is a top-level field: whoever is told of it has it for all profiles of its process.
Source: Kubernetes kubescheduler.config.k8s.io/v1 types.
"""

import base64
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from policies.vendors import Catalog
from policies.vendors.nvidia import MIG_PREFIX, SHARED

WEIGHT: Final = 150
"""Default score plugins add up to 1,200; a point of ten counts ten times the weight."""

HTTP_TIMEOUT: Final = "200ms"
"""A call is made within the scheduling cycle, one pod after the other."""

Object = dict[str, object]

_TWO_CALLS: Final = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": WEIGHT}


def managed_resources(catalog: Catalog, further: Iterable[str] = ()) -> tuple[str, ...]:
    """Return every name that a pod may ask GPUs by, after rewriting: whole, shared, MIG.

    The scheduler asks an extender only about pods that name one of these. `further` are names that
    policies give besides.
    """
    whole = [vendor.whole for vendor in catalog.vendors]
    suffixes = {s.resource_suffix for board in catalog.mig_products for s in board.shapes}
    mig = [f"{MIG_PREFIX}{suffix}" for suffix in sorted(suffixes)]
    shared = [f"{name}.shared" for name in mig]
    return tuple(dict.fromkeys((*whole, SHARED, *mig, *shared, *sorted(further))))


class Calls(StrEnum):
    """How often the scheduler asks about a pod: which nodes and then how good, or which one."""

    TWO = "two"
    ONE = "one"


def extender_entry(
    url: str,
    resources: Iterable[str],
    ca_bundle: bytes | None = None,
    server_name: str = "",
    calls: Calls = Calls.TWO,
) -> Object:
    """Return the extender at `url` (http:// or https://), which ends before the verbs.

    `server_name` is what its certificate is checked for, where that is not the host of the URL.
    """
    tls: Object = {"serverName": server_name} if server_name else {}
    if ca_bundle is not None:
        tls["caData"] = base64.b64encode(ca_bundle).decode("ascii")
    is_tls = url.startswith("https://")
    return {
        "urlPrefix": url,
        # The scheduler scores nothing where a filter leaves one node.
        **({"filterVerb": "choose"} if calls is Calls.ONE else _TWO_CALLS),
        "preemptVerb": "preempt",
        "enableHTTPS": is_tls,
        **({"tlsConfig": tls} if is_tls and tls else {}),
        "httpTimeout": HTTP_TIMEOUT,
        # Names instead of whole nodes: the extender watches nodes itself.
        "nodeCacheCapable": True,
        # One that is down must not stop pods.
        "ignorable": True,
        # The scheduler goes on counting devices itself.
        "managedResources": [{"name": name, "ignoredByScheduler": False} for name in resources],
    }


def scheduler_configuration(
    entry: Mapping[str, object], name: str = "", lease: tuple[str, str] | None = None
) -> Object:
    """Return the configuration of a scheduler that asks the extender.

    `name` is the schedulerName of the pods that are its own, empty for the default scheduler, and
    `lease` the namespace and name of the Lease by which one of its replicas is active.
    """
    own: Object = {}
    if lease is not None:
        own["leaderElection"] = {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceNamespace": lease[0],
            "resourceName": lease[1],
        }
    if name:
        own["profiles"] = [{"schedulerName": name}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **own,
        "extenders": [dict(entry)],
    }
