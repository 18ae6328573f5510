# SPDX-License-Identifier: Apache-2.0
"""CEL that the API server decides with whether an object is Sluice's business.

Every function returns the text of a boolean expression over the CEL text that it is given. Too
much sent costs a call; too little is a way around policy, so unknown names of a GPU family count.
What is then allowed is for the core: nothing here refuses anything. Optional field selection
(`?`) is used throughout, since an expression that fails is answered by the failure policy.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from policies.checks import device_annotations, host_access
from policies.model.keys import QUOTA_GATE, STATE_PREFIX, USER_PREFIX, VISIBLE_DEVICES, VOID
from policies.vendors import Catalog

GPU_RUNTIME_CLASSES: Final = ("nvidia", "nvidia-cdi", "nvidia-legacy")

DEVICE_VARIABLE_PREFIXES: Final = ("NVIDIA_", "CUDA_")

_SEPARATOR: Final = "/[./]*"
"""Between the parts of a path; the API server refuses `..`, but neither `//` nor `/./`."""

_PLAIN_RESOURCES: Final = "['cpu', 'memory', 'ephemeral-storage']"
_POD_FIELDS: Final = ("schedulingGates", "tolerations", "nodeSelector", "affinity")


@dataclass(frozen=True, slots=True)
class Predicates:
    """Expressions for the names that a catalog knows."""

    catalog: Catalog

    def container_asks_gpus(self, container: str) -> str:
        """Return: its limits name a GPU-like resource, be it of count 0."""
        return self._names_gpus(f"{container}.?resources.?limits.orValue({{}})")

    def _names_gpus(self, amounts: str) -> str:
        # Patterns cost by their length, and most containers have plain resources only.
        pattern = _starts_with_any(self.catalog.gpu_prefixes)
        return (
            f"{amounts}.exists(name,"
            f" !(name in {_PLAIN_RESOURCES}) && name.lowerAscii().matches({pattern}))"
        )

    def pod_touches_gpus(self, pod: str) -> str:
        """Return: the pod (or pod template) asks for GPUs, or for a way to them."""
        return any_of(
            _any_container(pod, self._container_touches("c")),
            f"{pod}.spec.?resourceClaims.orValue([]).size() > 0",
            f"{pod}.spec.?runtimeClassName.orValue('') in {_strings(GPU_RUNTIME_CLASSES)}",
            _mounts_device_path(pod),
            f"{pod}.spec.?schedulingGates.orValue([]).exists(g, g.name == '{QUOTA_GATE}')",
            f"{pod}.?metadata.?annotations.orValue({{}}).exists(k, {_is_device_key('k')}"
            f" || k.startsWith('{STATE_PREFIX}'))",
            f"{pod}.?metadata.?labels.orValue({{}}).exists(k, k.startsWith('{STATE_PREFIX}'))",
        )

    def claim_names_gpus(self, spec: str) -> str:
        """Return: a request of the claim is for a device class that sounds like GPUs."""
        words = (
            f"r'({'|'.join(_escape(word) for word in sorted(self.catalog.device_class_words))})'"
        )
        sounds = f".lowerAscii().matches({words})"
        return (
            f"{spec}.?devices.?requests.orValue([]).exists(r,\n"
            f"  r.?exactly.?deviceClassName.orValue(''){sounds}\n"
            f"  || r.?firstAvailable.orValue([]).exists(f,"
            f" f.?deviceClassName.orValue(''){sounds}))"
        )

    def _container_touches(self, container: str) -> str:
        prefixes = " || ".join(
            f"e.name.startsWith('{prefix}')" for prefix in DEVICE_VARIABLE_PREFIXES
        )
        variable = (
            f"{container}.?env.orValue([]).exists(e, ({prefixes})"
            f" && !(e.name == '{VISIBLE_DEVICES}' && e.?value.orValue('') == '{VOID}'))"
        )
        # A request without its limit is refused by the API server, but only after webhooks.
        both = ", ".join(
            f"{container}.?resources.?{m}.orValue({{}})" for m in ("limits", "requests")
        )
        # Not by its whole path, in which `..` and no slash at its head are allowed.
        folders = sorted({path.rpartition("/")[2] for path in host_access.MOUNT_PATHS})
        mounted = " || ".join(f"m.mountPath.contains('{_plain(folder)}')" for folder in folders)
        mount = f"{container}.?volumeMounts.orValue([]).exists(m, {mounted})"
        asks = f"[{both}].exists(amounts, {self._names_gpus('amounts')})"
        return any_of(asks, variable, mount)


def either(expression: str, new: str = "object", old: str = "oldObject") -> str:
    """Return: an expression over `pod` holds for the new or for the old object."""
    return f"[{new}, {old}].exists(pod, pod != null && (\n{_indent(expression)}))"


def any_of(*expressions: str) -> str:
    """Join alternatives, one a line."""
    return "\n|| ".join(expressions)


def pod_changes_what_is_owned() -> str:
    """Return: an update changes gates, tolerations, selectors, images or keys that decide."""
    decides = f"k.startsWith('{USER_PREFIX}') || k.startsWith('{STATE_PREFIX}')"
    return any_of(
        *(f"object.spec.?{field} != oldObject.spec.?{field}" for field in _POD_FIELDS),
        f"{_images('object')} != {_images('oldObject')}",
        keys_changed("annotations", f"{decides} || {_is_device_key('k')}"),
        keys_changed("labels", decides),
    )


def keys_changed(field: str, condition: str) -> str:
    """Return: an annotation or label differs whose key `k` meets the condition."""
    new, old = (f"{which}.metadata.?{field}.orValue({{}})" for which in ("object", "oldObject"))
    return any_of(
        f"{new}.exists(k, ({condition}) && {old}[?k] != {new}[?k])",
        f"{old}.exists(k, ({condition}) && !(k in {new}))",
    )


def _is_device_key(key: str) -> str:
    pattern = _starts_with_any(device_annotations.PREFIXES)
    names = _strings(sorted(device_annotations.NAMES))
    return f"{key}.matches({pattern}) || {key} in {names}"


def _any_container(pod: str, expression: str) -> str:
    """Return: an expression over `c` holds for some container of any kind."""
    sections = ("containers", "initContainers", "ephemeralContainers")
    # Null where there are none: what is wrong with such a pod is for the API server to say.
    lists = ",\n  ".join(f"{pod}.spec.?{section}.orValue(dyn(null))" for section in sections)
    return f"[{lists}\n].exists(list, list != null && list.exists(c,\n{_indent(expression)}))"


def _images(pod: str) -> str:
    return (
        f"({pod}.spec.containers + {pod}.spec.?initContainers.orValue([]))"
        ".map(c, c.?image.orValue(''))"
    )


def _mounts_device_path(pod: str) -> str:
    return (
        f"{pod}.spec.?volumes.orValue([]).exists(v,"
        f" v.?hostPath.?path.orValue('').matches({_path_pattern(host_access.DEVICE_PATHS)}))"
    )


def _path_pattern(paths: Iterable[str]) -> str:
    parts = (_escape(path.strip("/")).replace("/", _SEPARATOR) for path in paths)
    return f"r'^{_SEPARATOR}({'|'.join(sorted(parts))})'"


def _starts_with_any(prefixes: Iterable[str]) -> str:
    """Return a raw CEL string with an RE2 pattern; prefixes are plain names."""
    return f"r'^({'|'.join(_escape(prefix) for prefix in sorted(prefixes))})'"


def _escape(prefix: str) -> str:
    return _plain(prefix).replace(".", "[.]")


def _plain(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9./_-]+", text, re.ASCII):
        raise ValueError(f"{text!r} is no prefix of a Kubernetes name")
    return text


def _strings(values: Iterable[str]) -> str:
    return f"[{', '.join(repr(value) for value in values)}]"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
