# SPDX-License-Identifier: Apache-2.0
"""What is planned in each state of Secrets, configurations and time."""

import base64
import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from certs.issue import issue_authority, issue_leaf
from certs.keyring import Lifetimes
from certs.pem import certificates_pem, key_pem, parse_certificates
from reconciler.certificates.plan import (
    Command,
    Publish,
    Refuse,
    Step,
    WriteAuthority,
    WriteServing,
    plan,
)
from tests.support.certificate_world import INSTALLED, KINDS, Object, World, configuration_object

AUTHORITY, SERVING = INSTALLED.authority, INSTALLED.secret
STRANGER = issue_authority(datetime(2031, 1, 1, tzinfo=UTC))
DAY = 86400.0
TERMS = Lifetimes()


@pytest.fixture
def world() -> World:
    """An installation that has been kept for a while."""
    made = World()
    made.install()
    made.lead(60)
    return made


def kinds(commands: tuple[Command, ...]) -> list[str]:
    return [
        str(each.step) if isinstance(each, WriteAuthority) else type(each).__name__
        for each in commands
    ]


def planned(world: World) -> list[str]:
    return kinds(plan(world.picture()))


def ask(name: str) -> Callable[[Object], None]:
    def change(item: Object) -> None:
        item["metadata"].setdefault("annotations", {})[name] = "now"

    return change


def set_data(**values: bytes) -> Callable[[Object], None]:
    def change(item: Object) -> None:
        for key, value in values.items():
            item["data"][key.replace("_", ".")] = base64.b64encode(value).decode()

    return change


def set_bundle(*authorities: x509.Certificate) -> Callable[[Object], None]:
    def change(item: Object) -> None:
        text = base64.b64encode(certificates_pem(authorities)).decode()
        for entry in item["webhooks"]:
            entry["clientConfig"]["caBundle"] = text

    return change


# First install


def test_from_nothing_comes_an_authority_then_bundles_and_a_leaf_at_once() -> None:
    world = World()
    world.install()
    assert planned(world) == [Step.BEGIN]
    world.act()
    assert planned(world) == ["Publish", "Publish", "WriteServing"]
    world.act()
    assert planned(world) == []
    assert world.is_served()


def test_without_any_configuration_the_certificate_is_there_before_them() -> None:
    world = World()
    world.act()
    world.act()
    assert planned(world) == []
    world.install()
    assert planned(world) == ["Publish", "Publish"]
    world.act()
    assert world.is_served()


def test_only_the_bundles_are_written_of_a_configuration(world: World) -> None:
    before = {kind: configuration_object(kind) for kind in KINDS}
    for kind in KINDS:
        found = copy.deepcopy(world.objects[kind])
        for entry in found["webhooks"]:
            assert entry["clientConfig"].pop("caBundle")
        assert found["webhooks"] == before[kind]["webhooks"]


def test_the_secret_of_replicas_has_no_key_of_the_authority(world: World) -> None:
    assert set(world.objects[SERVING]["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    assert world.objects[SERVING]["type"] == "kubernetes.io/tls"


def test_a_certificate_is_good_for_the_service_and_for_every_host_that_is_called(
    world: World,
) -> None:
    def by_url(item: Object) -> None:
        item["webhooks"][0]["clientConfig"] |= {"url": "https://10.1.2.3:8443/x"}
        del item["webhooks"][0]["clientConfig"]["service"]
        item["webhooks"][1]["clientConfig"]["service"] |= {"name": "other"}

    world.edit(KINDS[0], by_url)
    world.lead(60)
    assert world.leaf is not None
    found = world.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    names = {*found.get_values_for_type(x509.DNSName)}
    assert {"sluice.sluice.svc", "other.sluice.svc", "localhost"} <= names
    assert "10.1.2.3" in map(str, found.get_values_for_type(x509.IPAddress))


@pytest.mark.parametrize("url", ["https://*.example.com", "https://[", "https://a b/", ""])
def test_a_host_that_no_certificate_can_name_stops_nothing(world: World, url: str) -> None:
    def by_url(item: Object) -> None:
        item["webhooks"][0]["clientConfig"] = {"url": url}

    world.edit(KINDS[0], by_url)
    world.lead(60)
    assert planned(world) == []


# Rotation


def test_a_leaf_is_renewed_halfway_by_the_same_authority(world: World) -> None:
    authority, leaf = world.picture().keyring, world.leaf
    world.pass_time(44 * DAY)
    assert planned(world) == []
    world.pass_time(1.1 * DAY)
    assert planned(world) == ["WriteServing"]
    world.act()
    assert world.leaf != leaf
    assert authority is not None
    assert world.picture().keyring is not None
    assert world.trusted()[0] == (authority.current.certificate,)


def test_a_new_authority_is_published_waited_for_and_signs_only_then(world: World) -> None:
    world.edit(AUTHORITY, ask("sluice.dev/rotate"))
    assert planned(world) == [Step.PREPARE]
    world.act()
    before = world.picture().keyring
    assert before is not None
    assert before.coming is not None
    assert "sluice.dev/rotate" not in world.objects[AUTHORITY]["metadata"]["annotations"]
    assert planned(world) == ["Publish", "Publish", "WriteServing"]
    leaf = world.leaf
    world.act()
    assert world.leaf == leaf, "only the bundle of the Secret has changed"
    assert planned(world) == []
    world.pass_time(29)
    assert planned(world) == []
    world.pass_time(2)
    assert planned(world) == [Step.PROMOTE]
    world.act()
    assert planned(world)[-1] == "WriteServing"
    world.act()
    assert world.leaf is not None
    world.leaf.verify_directly_issued_by(before.coming.certificate)
    assert before.current.certificate in world.trusted()[0]


def test_the_old_authority_leaves_the_bundles_when_its_last_leaf_has_ended(world: World) -> None:
    old = world.picture().keyring
    assert old is not None
    world.edit(AUTHORITY, ask("sluice.dev/rotate"))
    world.lead(120)
    world.pass_time(80 * DAY)
    world.lead(60)
    assert old.current.certificate in world.trusted()[0]
    world.pass_time(11 * DAY)
    assert planned(world) == [Step.EXPIRE]
    world.lead(60)
    assert all(old.current.certificate not in trusted for trusted in world.trusted())
    assert world.is_served()


def test_another_leader_waits_anew_before_the_authority_signs(world: World) -> None:
    world.edit(AUTHORITY, ask("sluice.dev/rotate"))
    world.lead(20)
    world.replace_leader()
    world.pass_time(20)
    assert planned(world) == []
    world.pass_time(31)
    assert planned(world) == [Step.PROMOTE]


def test_a_bundle_that_was_put_back_meanwhile_is_mended_and_waited_for(world: World) -> None:
    world.edit(AUTHORITY, ask("sluice.dev/rotate"))
    world.act()
    world.act()
    keyring = world.picture().keyring
    assert keyring is not None
    world.pass_time(25)
    world.edit(KINDS[0], set_bundle(keyring.current.certificate))
    assert planned(world) == ["Publish"]
    world.act()
    assert planned(world) == []
    world.pass_time(25)
    assert planned(world) == []
    world.pass_time(6)
    assert planned(world) == [Step.PROMOTE]


def test_an_authority_is_replaced_half_a_year_before_it_ends(world: World) -> None:
    before = world.picture().keyring
    assert before is not None
    ends = before.current.certificate.not_valid_after_utc
    for _ in range(12):
        world.pass_time(30 * DAY)
        world.lead(120)
        keyring = world.picture().keyring
        assert keyring is not None
        left = keyring.current.certificate.not_valid_after_utc - world.now
        assert left >= TERMS.authority_renewal - timedelta(days=31)
        assert world.is_served()
    assert world.now < ends


# The leader away


@pytest.mark.parametrize("weeks", [1, 6, 12])
def test_weeks_without_a_leader_cost_nothing(world: World, weeks: int) -> None:
    world.pass_time(weeks * 7 * DAY)
    assert world.is_served()
    world.replace_leader()
    world.lead(120)
    assert world.is_served()
    assert world.leaf is not None
    assert world.leaf.not_valid_after_utc - world.now > TERMS.leaf_renewal


def test_after_a_year_without_a_leader_everything_is_made_anew_at_once(world: World) -> None:
    world.pass_time(400 * DAY)
    world.replace_leader()
    assert not world.is_served()
    assert planned(world) == [Step.BEGIN]
    world.act()
    world.act()
    assert world.is_served()


def test_a_coming_authority_takes_over_from_one_that_has_ended(world: World) -> None:
    world.edit(AUTHORITY, ask("sluice.dev/rotate"))
    world.pass_time(360 * DAY)
    world.act()
    world.act()
    keyring = world.picture().keyring
    assert keyring is not None
    assert keyring.coming is not None
    world.pass_time(10 * DAY)
    world.replace_leader()
    assert planned(world) == [Step.PROMOTE]
    world.act()
    world.act()
    assert world.is_served()
    after = world.picture().keyring
    assert after is not None
    assert after.current.certificate == keyring.coming.certificate


# Hands in it


def test_a_deleted_secret_of_the_replicas_is_made_again_by_the_same_authority(
    world: World,
) -> None:
    authority = world.picture().keyring
    world.remove(SERVING)
    assert planned(world) == ["WriteServing"]
    world.act()
    assert world.failing() == []
    assert authority is not None
    assert world.trusted()[0] == (authority.current.certificate,)


def test_a_deleted_authority_is_replaced_and_its_leaf_is_served_until_all_trust_the_new_one(
    world: World,
) -> None:
    leaf = world.leaf
    world.remove(AUTHORITY)
    assert planned(world) == [Step.BEGIN]
    world.act()
    assert planned(world) == ["Publish", "Publish", "WriteServing"]
    world.act()
    assert world.leaf == leaf
    world.lead(60)
    assert world.leaf != leaf
    assert world.failing() == []


def test_replicas_that_still_serve_are_trusted_for_a_day_when_both_secrets_are_gone(
    world: World,
) -> None:
    world.remove(AUTHORITY)
    world.remove(SERVING)
    world.lead(120)
    assert world.is_served()
    assert world.failing() == []
    world.pass_time(2 * DAY)
    world.lead(60)
    assert {len(trusted) for trusted in world.trusted()} == {1}


@pytest.mark.parametrize(
    "change",
    [
        set_data(tls_crt=b"nonsense"),
        set_data(tls_key=b""),
        set_data(tls_key=key_pem(STRANGER.key)),
        set_data(
            tls_crt=certificates_pem(
                (
                    issue_leaf(
                        STRANGER, ("localhost",), datetime(2031, 5, 1, tzinfo=UTC)
                    ).certificate,
                )
            )
        ),
    ],
)
def test_a_leaf_that_was_edited_is_replaced_at_once(
    world: World, change: Callable[[Object], None]
) -> None:
    world.edit(SERVING, change)
    assert planned(world) == ["WriteServing"]
    world.act()
    assert world.is_served()


def test_a_key_of_the_authority_that_was_edited_makes_a_new_one_without_a_gap(
    world: World,
) -> None:
    world.edit(AUTHORITY, set_data(ca_key=key_pem(STRANGER.key)))
    assert planned(world) == [Step.BEGIN]
    world.lead(120)
    assert world.is_served()
    assert world.failing() == []


def test_what_somebody_adds_to_a_bundle_goes_and_what_is_taken_away_comes_back(
    world: World,
) -> None:
    keyring = world.picture().keyring
    assert keyring is not None
    own = keyring.current.certificate
    world.pass_time(2 * DAY)
    for bundle in ((STRANGER.certificate,), (own, STRANGER.certificate), ()):
        world.edit(KINDS[0], set_bundle(*bundle))
        assert planned(world) == ["Publish"]
        world.act()
        assert set(world.trusted()) == {(own,)}


def test_whom_a_new_installation_was_told_to_trust_stays_trusted_for_a_day() -> None:
    """Replicas of before may serve by it until the last has gone."""
    world = World()
    world.install()
    world.now = datetime(2031, 5, 17, tzinfo=UTC)
    for kind in KINDS:
        world.edit(kind, set_bundle(STRANGER.certificate))
    world.act()
    world.act()
    assert all(STRANGER.certificate in trusted for trusted in world.trusted())
    assert world.leaf is None, "it is not served before all have had time to trust it"
    world.lead(60)
    assert world.is_served()
    assert all(STRANGER.certificate in trusted for trusted in world.trusted())
    world.pass_time(1.1 * DAY)
    world.lead(60)
    assert all(STRANGER.certificate not in trusted for trusted in world.trusted())


def test_files_that_are_handed_over_by_the_label_are_rotated_without_a_gap() -> None:
    world = World()
    world.install()
    leaf = issue_leaf(STRANGER, INSTALLED.names, world.now)
    data = {
        "ca.crt": certificates_pem((STRANGER.certificate,)),
        "tls.crt": certificates_pem((leaf.certificate,)),
        "tls.key": key_pem(leaf.key),
    }
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    labels = {"sluice.dev/certificates": "leader"}
    world.put("Secret", SERVING, {"metadata": {"labels": labels}, "data": encoded})
    for kind in KINDS:
        world.edit(kind, set_bundle(STRANGER.certificate))
    world.forget()
    world.lead(120)
    assert world.leaf != leaf.certificate
    assert world.is_served()
    assert world.failing() == []
    keyring = world.picture().keyring
    assert keyring is not None
    assert [item.last_leaf for item in keyring.retired] == [leaf.certificate]


# Clocks


@pytest.mark.parametrize("hours", [-0.9, -30.0, 24.0 * 30])
def test_a_clock_that_is_set_does_not_keep_the_webhook_from_being_called(
    world: World, hours: float
) -> None:
    world.pass_time(60)
    world.set_clock(timedelta(hours=hours))
    world.lead(120)
    assert world.is_served()


def test_a_clock_within_the_backdating_changes_nothing(world: World) -> None:
    world.set_clock(timedelta(minutes=-59))
    assert planned(world) == []


# Others


def mark(where: str, key: str, value: str = "x") -> Callable[[Object], None]:
    def change(item: Object) -> None:
        item["metadata"].setdefault(where, {})[key] = value

    return change


@pytest.mark.parametrize(
    ("key", "change", "others"),
    [
        (SERVING, mark("annotations", "cert-manager.io/certificate-name"), "cert-manager"),
        (SERVING, mark("annotations", "cert-manager.io/issuer-name"), "cert-manager"),
        (AUTHORITY, mark("labels", "controller.cert-manager.io/fao"), "cert-manager"),
        (SERVING, mark("labels", "sluice.dev/certificates", "me"), "without"),
        *(
            (kind, mark("annotations", f"cert-manager.io/{name}"), "cert-manager")
            for kind in KINDS
            for name in ("inject-ca-from", "inject-ca-from-secret", "inject-apiserver-ca")
        ),
        (
            KINDS[0],
            mark("annotations", "service.beta.openshift.io/inject-cabundle", "true"),
            "OpenShift",
        ),
        (KINDS[1], mark("labels", "app.kubernetes.io/name", "another"), "without"),
    ],
)
def test_what_others_manage_is_left_alone_whatever_it_holds(
    world: World, key: str, change: Callable[[Object], None], others: str
) -> None:
    world.edit(key, change)
    world.remove(SERVING if key != SERVING else AUTHORITY)
    world.pass_time(400 * DAY)
    commands = plan(world.picture())
    (refusal,) = commands
    assert isinstance(refusal, Refuse)
    assert others in refusal.item.others


def test_a_new_installation_beside_cert_manager_makes_nothing() -> None:
    world = World()
    annotations = {"cert-manager.io/inject-ca-from": "sluice/sluice"}
    for kind in KINDS:
        world.put(kind, "sluice", configuration_object(kind, annotations=annotations))
    world.lead(60)
    assert set(world.objects) == set(KINDS)
    assert world.writes == 0


def test_odd_objects_are_read_as_empty_and_never_raise() -> None:
    world = World()
    odd: list[Any] = [None, [], {"webhooks": None}, {"webhooks": [None, {"clientConfig": 3}]}]
    for item in odd:
        body = item if isinstance(item, dict) else {}
        labels = {"app.kubernetes.io/name": "sluice"}
        world.put(KINDS[0], "sluice", {**body, "metadata": {"labels": labels}})
        assert planned(world)
    world.put(
        "Secret",
        SERVING,
        {"metadata": {"labels": {"sluice.dev/certificates": "leader"}}, "data": {"tls.crt": 3}},
    )
    assert planned(world) == [Step.BEGIN]


def test_commands_say_why(world: World) -> None:
    world.pass_time(46 * DAY)
    (command,) = plan(world.picture())
    assert isinstance(command, WriteServing)
    assert command.reason.startswith("the one before ends at 2031-08-")
    world.remove(SERVING)
    (command,) = plan(world.picture())
    assert isinstance(command, WriteServing)
    assert command.reason == "there is none"


def test_a_publication_names_the_entries_that_differ(world: World) -> None:
    def first_only(item: Object) -> None:
        del item["webhooks"][0]["clientConfig"]["caBundle"]

    world.edit(KINDS[1], first_only)
    (command,) = plan(world.picture())
    assert isinstance(command, Publish)
    assert set(command.bundles) == {0}
    assert parse_certificates(command.bundles[0], "") == world.trusted()[0]
