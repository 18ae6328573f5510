# SPDX-License-Identifier: Apache-2.0
"""Alerts on what GPUs of a model are lost to how they are given out."""

from typing import Final

from reconciler.monitoring.rules import Alert, Group, Level, Severity

_FRAGMENTATION_RISE: Final = 0.1
_STRANDED_MIB: Final = 16_384

MODELS: Final = Group(
    "sluice-model-alerts",
    (
        Alert(
            "SluiceFragmentationRising",
            Level.MODEL,
            Severity.WARNING,
            "1h",
            "model:sluice_gpu_fragmentation:ratio\n"
            f"- model:sluice_gpu_fragmentation:ratio offset 6h >= {_FRAGMENTATION_RISE}",
            "Fragmentation of {{ $labels.model }} has risen by {{ $value | humanizePercentage }} "
            "of its GPUs in 6 hours",
            "What is free lies in pieces that a typical pod of this cluster cannot use.",
        ),
        Alert(
            "SluiceMemoryStranded",
            Level.MODEL,
            Severity.WARNING,
            "1h",
            f"model:sluice_gpu_memory_stranded:mib >= {_STRANDED_MIB}",
            "{{ $value | humanize }} MiB of each {{ $labels.model }} are stranded",
            "Devices are given out wholly to pods that state to need far less memory: on average "
            "so much of each GPU of this model can be given to nobody else.",
        ),
    ),
)
