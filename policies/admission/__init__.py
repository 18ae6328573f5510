# SPDX-License-Identifier: Apache-2.0
"""One module for each kind of admission request; `policies.decide` picks among them."""
