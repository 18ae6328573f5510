# SPDX-License-Identifier: Apache-2.0
"""As whom gates are taken off: the group that may do it is impersonated, which takes a right.

The API server then does not ask Sluice's webhook, so it makes no difference whether that answers.
Nobody does it by accident, and the API server's audit log names both identities.
"""

from dataclasses import dataclass
from typing import Final

from policies.model.keys import BREAK_GLASS_GROUP
from reconciler.cli.terminal import CommandError
from reconciler.kube import raw
from reconciler.kube.client import Client
from reconciler.kube.errors import ForbiddenError, NotFoundError
from reconciler.kube.resources import SELF_SUBJECT_REVIEWS, Target
from reconciler.kube.transport import ClientSettings, Impersonation

_EVERYBODY: Final = "system:authenticated"
"""The API server adds it itself."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a call is made by, as the API server sees it."""

    user: str
    groups: tuple[str, ...]


async def who_am_i(client: Client) -> Identity:
    """Return who the client is. Raises ApiError; CommandError where the cluster cannot tell."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await client.create(Target(SELF_SUBJECT_REVIEWS), body)
    except NotFoundError as error:
        message = (
            "the cluster does not say who you are (Kubernetes before 1.28): name a user by --as"
        )
        raise CommandError(message) from error
    info = raw.mapping(answer, "status", "userInfo")
    groups = info.get("groups")
    found = (
        tuple(each for each in groups if isinstance(each, str)) if isinstance(groups, list) else ()
    )
    return Identity(raw.text(info, "username"), found)


def break_glass(me: Identity, user: str) -> ClientSettings:
    """Return how a client acts as `user`, or as oneself, in the group that may take gates off.

    Raises CommandError for a name that cannot be sent.
    """
    own = () if user else tuple(each for each in me.groups if each != _EVERYBODY)
    acting = Impersonation(user or me.user, (*own, BREAK_GLASS_GROUP))
    try:
        acting.headers()
    except ValueError as error:
        raise CommandError(str(error)) from error
    return ClientSettings(impersonation=acting)


async def check_acting(client: Client) -> Identity:
    """Return who an acting client is. Raises CommandError if that is not permitted."""
    try:
        return await who_am_i(client)
    except ForbiddenError as error:
        message = (
            f"{error}: taking gates off by force needs the right to impersonate the group"
            f" {BREAK_GLASS_GROUP}, and yourself or the user of --as"
        )
        raise CommandError(message) from error
