# SPDX-License-Identifier: Apache-2.0
"""A keyring as named PEM texts, such as the keys of a Secret, and back.

`ca.crt` and `ca.key` are the authority that signs, `coming.crt` and `coming.key` the next one, and
`retired.crt` holds each past authority, followed by the last leaf of it. What is damaged is told by
a CertificateError; `salvage` gives what can still be trusted of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cryptography import x509

from certs.errors import CertificateError
from certs.issue import KeyPair
from certs.keyring import Keyring, Retired
from certs.pem import certificates_pem, key_pem, parse_certificates, parse_key
from certs.verify import is_issued_by, key_matches

_CURRENT: Final = ("ca.crt", "ca.key")
_COMING: Final = ("coming.crt", "coming.key")
_RETIRED: Final = "retired.crt"
NAMES: Final = (*_CURRENT, *_COMING, _RETIRED)


def encode_keyring(keyring: Keyring) -> dict[str, bytes]:
    """Return the texts by name; what there is none of is left out."""
    texts = dict(zip(_CURRENT, _encode_pair(keyring.current), strict=True))
    if keyring.coming is not None:
        texts |= zip(_COMING, _encode_pair(keyring.coming), strict=True)
    if keyring.retired:
        chains = ((item.authority, item.last_leaf) for item in keyring.retired)
        texts[_RETIRED] = certificates_pem(each for chain in chains for each in chain if each)
    return texts


def decode_keyring(texts: Mapping[str, bytes]) -> Keyring:
    """Return the keyring of the texts. Raises CertificateError."""
    return Keyring(
        current=_decode_pair(texts, _CURRENT),
        coming=_decode_pair(texts, _COMING) if set(_COMING) & texts.keys() else None,
        retired=_decode_retired(texts[_RETIRED]) if _RETIRED in texts else (),
    )


def salvage(texts: Iterable[bytes]) -> tuple[Retired, ...]:
    """Return every authority in texts that may be damaged, each once, as a retired one."""
    found: list[x509.Certificate] = []
    for text in texts:
        try:
            found += parse_certificates(text, "")
        except CertificateError:
            continue
    return _pair_up(found)


def is_authority(certificate: x509.Certificate) -> bool:
    """Tell whether a certificate says that its key may sign others (RFC 5280, 4.2.1.9)."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except (x509.ExtensionNotFound, ValueError):
        return False
    return found.value.ca


def _encode_pair(pair: KeyPair) -> tuple[bytes, bytes]:
    return certificates_pem((pair.certificate,)), key_pem(pair.key)


def _decode_pair(texts: Mapping[str, bytes], names: tuple[str, str]) -> KeyPair:
    certificate_name, key_name = names
    for name in names:
        if name not in texts:
            raise CertificateError(f"{name}: missing")
    certificate = parse_certificates(texts[certificate_name], certificate_name)[0]
    key = parse_key(texts[key_name], key_name)
    if not key_matches(certificate, key):
        raise CertificateError(f"{key_name}: not the key of {certificate_name}")
    if not is_authority(certificate):
        raise CertificateError(f"{certificate_name}: not the certificate of an authority")
    return KeyPair(certificate, key)


def _decode_retired(text: bytes) -> tuple[Retired, ...]:
    return _pair_up(parse_certificates(text, _RETIRED))


def _pair_up(certificates: Iterable[x509.Certificate]) -> tuple[Retired, ...]:
    known = tuple(dict.fromkeys(certificates))
    leaves = [each for each in known if not is_authority(each)]
    return tuple(_retired(known, leaves))


def _retired(
    known: Iterable[x509.Certificate], leaves: Iterable[x509.Certificate]
) -> Iterator[Retired]:
    for authority in filter(is_authority, known):
        own = [leaf for leaf in leaves if is_issued_by(authority, leaf)]
        yield Retired(authority, max(own, key=lambda leaf: leaf.not_valid_after_utc, default=None))
