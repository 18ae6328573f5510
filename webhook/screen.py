# SPDX-License-Identifier: Apache-2.0
"""Whether an object might touch GPUs, told without any policy: for when nothing else works.

It looks for words in the object's text and errs towards yes: a wrong yes refuses one more pod
while Sluice is failing, a wrong no would let a GPU through. Decisions must not be made from it.
"""

import re
from typing import Final

import orjson

from policies.checks.host_access import DEVICE_PATHS
from policies.model.request import Request
from policies.vendors import Catalog

_WORDS: Final = (
    *("nvidia", "cuda", "gpu", "sluice.dev/", "resourceclaim"),
    *("cdi.k8s.io", "hami.io", "run.ai/", "koordinator", "volcano.sh"),
)
_VOID: Final = re.compile(rb'\{"name":"NVIDIA_VISIBLE_DEVICES","value":"void"\}')


class Screen:
    """Knows the beginnings of GPU resource names beside the words that are GPUs' everywhere."""

    def __init__(self, catalog: Catalog) -> None:
        words = (*_WORDS, *catalog.gpu_prefixes, *DEVICE_PATHS)
        self._words = re.compile("|".join(map(re.escape, words)).encode(), re.IGNORECASE)

    def touches_gpus(self, request: Request) -> bool:
        """Tell whether the object, new or old, may have to do with GPUs.

        `NVIDIA_VISIBLE_DEVICES=void` does not count: it is what keeps GPUs out of every other pod.
        """
        text = orjson.dumps((request.object, request.old_object), option=orjson.OPT_SORT_KEYS)
        return self._words.search(_VOID.sub(b"", text)) is not None
