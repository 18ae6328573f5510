# SPDX-License-Identifier: Apache-2.0
"""What GPUs of a model are lost to."""

from typing import Final

from tests.integration.monitoring.cases.case import Case

MODELS: Final = (
    Case(
        "SluiceFragmentationRising",
        {
            'sluice_gpu_fragmentation_milli{model="H100"}': "1000x300 4000x400",
            'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
        },
        450,
        {"model": "H100"},
        "Fragmentation of H100 has risen by 15% of its GPUs in 6 hours",
        "What is free lies in pieces that a typical pod of this cluster cannot use.",
        (
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "4000x800",
                'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
            },
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "4000x300 1000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
            },
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "0x300 1000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "0x800",
            },
            # Nobody knew 6 hours ago.
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "_x300 4000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
            },
        ),
    ),
    Case(
        "SluiceMemoryStranded",
        {
            'sluice_gpu_memory_stranded_mib{model="H100"}': "80000x400",
            'sluice_gpus_capacity_milli{model="H100"}': "4000x400",
        },
        90,
        {"model": "H100"},
        "20k MiB of each H100 are stranded",
        "Devices are given out wholly to pods that state to need far less memory: on average so "
        "much of each GPU of this model can be given to nobody else.",
        (
            {
                'sluice_gpu_memory_stranded_mib{model="H100"}': "80000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "40000x400",
            },
            {
                'sluice_gpu_memory_stranded_mib{model="H100"}': "80000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "0x400",
            },
        ),
    ),
)
