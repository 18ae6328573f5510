# SPDX-License-Identifier: Apache-2.0
"""The one error of this package."""


class CertificateError(Exception):
    """A file, a name or a key that cannot be used; the message names it and says why."""
