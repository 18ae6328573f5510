# SPDX-License-Identifier: Apache-2.0
"""Tells a model which documents are in force, and what changes of them.

The last good set stays while newer documents are broken. How they are loaded is not known here.
"""

from collections.abc import Callable

from policies.placement.model import Model
from reconciler.runtime.surroundings import Documents


def follow_documents(documents: Documents, model: Model) -> Callable[[], None]:
    """Have a model's nodes ranked as documents say; calling what is returned ends that."""
    model.set_policies(documents.current())
    return documents.subscribe(lambda state: model.set_policies(state.policy_set))
