# SPDX-License-Identifier: Apache-2.0
"""What ensure() writes, keeps, renews and refuses."""

import multiprocessing
import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from certs.errors import CertificateError
from certs.files import CertificateFiles, ensure, read_ca_bundle
from certs.issue import AUTHORITY_VALIDITY, LEAF_VALIDITY
from certs.read import MAX_BYTES, read_certificates, read_key
from certs.verify import RENEW_BEFORE, find_faults, key_matches
from tests.unit.certs.conftest import NAMES, NOW


def assert_good(files: CertificateFiles, names: tuple[str, ...] = NAMES) -> None:
    chain = read_certificates(files.certificate)
    assert find_faults(chain, read_certificates(files.ca_certificate), names, NOW) == ()
    assert key_matches(chain[0], read_key(files.key))


def contents(files: CertificateFiles) -> tuple[bytes, ...]:
    paths = (files.ca_certificate, files.ca_key, files.certificate, files.key)
    return tuple(path.read_bytes() for path in paths)


def test_an_empty_directory_gets_a_whole_set(files: CertificateFiles, directory: Path) -> None:
    assert {path.name for path in directory.iterdir()} == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert [path.name for path in files.written] == ["ca.key", "ca.crt", "tls.key", "tls.crt"]
    assert_good(files)


def test_keys_are_readable_by_their_owner_alone(files: CertificateFiles, directory: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_modes_do_not_depend_on_the_umask(directory: Path) -> None:
    before = os.umask(0)
    try:
        files = ensure(directory, NAMES, NOW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(files.key.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_good_set_is_left_alone(files: CertificateFiles, directory: Path) -> None:
    before = contents(files)
    again = ensure(directory, NAMES[:3], NOW + timedelta(days=100))
    assert again.written == ()
    assert contents(again) == before


def test_a_new_name_renews_the_leaf_and_keeps_the_authority(
    files: CertificateFiles, directory: Path
) -> None:
    before = contents(files)
    renewed = ensure(directory, (*NAMES, "sluice.example.com"), NOW)
    assert renewed.written == (files.key, files.certificate)
    assert contents(renewed)[:2] == before[:2]
    assert_good(renewed, (*NAMES, "sluice.example.com"))


def test_a_leaf_near_its_end_is_renewed(files: CertificateFiles, directory: Path) -> None:
    late = NOW + LEAF_VALIDITY - RENEW_BEFORE + timedelta(hours=1)
    assert ensure(directory, NAMES, late).written == (files.key, files.certificate)
    (leaf,) = read_certificates(files.certificate)
    assert leaf.not_valid_after_utc == late + LEAF_VALIDITY


def test_an_ended_authority_is_replaced_with_its_leaf(
    files: CertificateFiles, directory: Path
) -> None:
    late = NOW + AUTHORITY_VALIDITY + timedelta(days=1)
    assert len(ensure(directory, NAMES, late).written) == 4
    chain = read_certificates(files.certificate)
    assert find_faults(chain, read_certificates(files.ca_certificate), NAMES, late) == ()


def test_a_valid_authority_is_replaced_only_when_asked(
    files: CertificateFiles, directory: Path
) -> None:
    before = contents(files)
    assert len(ensure(directory, NAMES, NOW, replace_authority=True).written) == 4
    assert not set(contents(files)) & set(before)
    assert_good(files)


def test_a_leaf_of_another_key_is_renewed(
    files: CertificateFiles, directory: Path, tmp_path: Path
) -> None:
    other = ensure(tmp_path / "other", NAMES, NOW)
    files.key.write_bytes(other.key.read_bytes())
    assert ensure(directory, NAMES, NOW).written == (files.key, files.certificate)
    assert_good(files)


def test_an_older_authority_in_the_bundle_stays_trusted(
    files: CertificateFiles, directory: Path, tmp_path: Path
) -> None:
    other = ensure(tmp_path / "other", NAMES, NOW)
    bundle = other.ca_certificate.read_bytes() + files.ca_certificate.read_bytes()
    files.ca_certificate.write_bytes(bundle)
    assert ensure(directory, NAMES, NOW).written == ()
    renewed = ensure(directory, (*NAMES, "new.example"), NOW)
    assert renewed.written == (files.key, files.certificate)
    assert files.ca_certificate.read_bytes() == bundle
    assert_good(renewed, ("new.example",))


def test_without_the_authoritys_key_a_good_leaf_stays(
    files: CertificateFiles, directory: Path
) -> None:
    files.ca_key.unlink()
    assert ensure(directory, NAMES, NOW).written == ()
    late = NOW + LEAF_VALIDITY - timedelta(days=1)
    assert ensure(directory, NAMES, late).written == ()


def test_without_the_authoritys_key_a_bad_leaf_is_an_error(
    files: CertificateFiles, directory: Path
) -> None:
    files.ca_key.unlink()
    with pytest.raises(CertificateError, match=r"tls\.crt: not usable for new\.example.*ca\.key"):
        ensure(directory, (*NAMES, "new.example"), NOW)


def write_authority(files: CertificateFiles, *, is_authority: bool) -> None:
    """Write what `openssl req -x509` makes: RSA, no key usage."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Corporate")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=500))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    files.ca_certificate.parent.mkdir()
    files.ca_certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    files.ca_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_an_authority_that_was_brought_along_signs_the_leaf(directory: Path) -> None:
    files = CertificateFiles.in_directory(directory)
    write_authority(files, is_authority=True)
    assert ensure(directory, NAMES, NOW).written == (files.key, files.certificate)
    assert_good(files)


def test_a_certificate_that_is_no_authority_signs_nothing(directory: Path) -> None:
    files = CertificateFiles.in_directory(directory)
    write_authority(files, is_authority=False)
    with pytest.raises(CertificateError, match=r"ca\.crt: not the certificate of an authority"):
        ensure(directory, NAMES, NOW)
    assert not files.certificate.exists()


def test_an_authority_of_the_future_is_kept_and_reported(
    files: CertificateFiles, directory: Path
) -> None:
    before = contents(files)
    with pytest.raises(CertificateError, match=r"ca\.crt: a certificate issued from it"):
        ensure(directory, NAMES, NOW - timedelta(days=30))
    assert contents(files) == before


def pem(key: ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey, password: bytes = b"") -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def make_garbage(path: Path) -> None:
    path.write_bytes(b"-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n")


def make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


BREAKAGE: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("ca.crt", Path.unlink, "ca.key: its certificate ca.crt is missing"),
    ("ca.crt", make_garbage, "ca.crt: not a PEM certificate"),
    ("ca.crt", lambda path: path.write_bytes(b" \n"), "ca.crt: empty"),
    ("ca.crt", lambda path: path.write_bytes(b"\xff" * 99), "ca.crt: not a PEM certificate"),
    ("ca.crt", lambda path: path.write_bytes(b"x" * (MAX_BYTES + 1)), "ca.crt: larger than"),
    ("ca.crt", make_fifo, "ca.crt: not a file"),
    ("ca.crt", make_directory, "ca.crt: not a file"),
    ("ca.crt", make_loop, "ca.crt: Too many levels of symbolic links"),
    ("ca.key", make_garbage, "ca.key: not a PEM private key"),
    ("ca.key", make_fifo, "ca.key: not a file"),
    (
        "ca.key",
        lambda path: path.write_bytes(pem(rsa.generate_private_key(65537, 2048), b"secret")),
        "ca.key: the private key is encrypted",
    ),
    (
        "ca.key",
        lambda path: path.write_bytes(pem(ed25519.Ed25519PrivateKey.generate())),
        "ca.key: the private key is neither EC nor RSA",
    ),
    (
        "ca.key",
        lambda path: path.write_bytes(pem(rsa.generate_private_key(65537, 2048))),
        "ca.crt: holds no certificate of the key ca.key",
    ),
)


@pytest.mark.parametrize(("name", "breaks", "message"), BREAKAGE)
def test_a_broken_authority_is_reported_and_never_overwritten(
    files: CertificateFiles,
    directory: Path,
    name: str,
    breaks: Callable[[Path], object],
    message: str,
) -> None:
    leaf = files.certificate.read_bytes()
    breaks(directory / name)
    with pytest.raises(CertificateError) as raised:
        ensure(directory, NAMES, NOW)
    assert message in str(raised.value)
    assert str(directory) in str(raised.value)
    assert files.certificate.read_bytes() == leaf


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
@pytest.mark.parametrize("breaks", [Path.unlink, make_garbage, make_fifo, make_loop])
def test_a_broken_leaf_is_issued_again(
    files: CertificateFiles, directory: Path, name: str, breaks: Callable[[Path], object]
) -> None:
    breaks(directory / name)
    assert ensure(directory, NAMES, NOW).written == (files.key, files.certificate)
    assert_good(files)


def test_a_place_that_cannot_be_written_is_named(files: CertificateFiles, directory: Path) -> None:
    make_directory(files.key)
    with pytest.raises(CertificateError, match=r"tls\.key: cannot be written: Is a directory"):
        ensure(directory, NAMES, NOW)
    assert sorted(path.name for path in directory.iterdir()) == [
        "ca.crt",
        "ca.key",
        "tls.crt",
        "tls.key",
    ]


def test_a_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("")
    with pytest.raises(CertificateError, match=r"pki: File exists"):
        ensure(tmp_path / "pki", NAMES, NOW)


@pytest.mark.parametrize(("names", "message"), [((), "at least one"), (("a b",), "'a b'")])
def test_bad_names_are_refused_before_anything_is_written(
    directory: Path, names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        ensure(directory, names, NOW)
    assert not directory.exists()


def test_the_bundle_holds_certificates_alone(files: CertificateFiles) -> None:
    clean = files.ca_certificate.read_bytes()
    files.ca_certificate.write_bytes(b"Corporate root\n" + files.ca_key.read_bytes() + clean)
    assert read_ca_bundle(files.ca_certificate) == clean


def test_two_processes_agree_on_one_set(directory: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        results = pool.starmap(ensure, [(directory, NAMES, NOW)] * 4)
    assert sorted(len(result.written) for result in results) == [0, 0, 0, 4]
    assert_good(CertificateFiles.in_directory(directory))
