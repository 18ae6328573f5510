# SPDX-License-Identifier: Apache-2.0
"""What of a pod decisions read besides what expressions read; all else makes no difference.

Whoever makes a decision read another field adds it here: `policies.replicas` gives decisions pods
without the rest, and a property test holds both against each other.
"""

from policies.cel.reads import ELEMENTS, Reads
from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at

_CONTAINER: Reads = {
    "env": None,
    "envFrom": {ELEMENTS: {"prefix": None}},
    "name": None,
    "resources": None,
    "restartPolicy": None,
    "securityContext": {"capabilities": None, "privileged": None},
    "volumeMounts": {ELEMENTS: {"mountPath": None}},
}
_SPEC: dict[str, Reads] = {
    "affinity": None,
    "containers": {ELEMENTS: _CONTAINER},
    "ephemeralContainers": {ELEMENTS: _CONTAINER},
    "hostIPC": None,
    "hostPID": None,
    "initContainers": {ELEMENTS: _CONTAINER},
    "nodeName": None,
    "nodeSelector": None,
    "resourceClaims": None,
    "schedulingGates": None,
    "tolerations": None,
}
_METADATA: Reads = {
    "annotations": None,
    "labels": None,
    "ownerReferences": {ELEMENTS: {"controller": None, "kind": None}},
}

WITHOUT_VOLUMES: Reads = {"metadata": _METADATA, "spec": _SPEC}
WITH_VOLUMES: Reads = {
    "metadata": _METADATA,
    "spec": {**_SPEC, "volumes": {ELEMENTS: {"hostPath": None, "name": None}}},
}


def mounts_host(pod: JsonObject) -> bool:
    """Tell whether volumes make a difference. Raises MalformedError.

    Left out otherwise, since the API server makes up a name for each pod's token volume.
    """
    return any(volume.get("hostPath") for volume in objects_at(object_at(pod, "spec"), "volumes"))
