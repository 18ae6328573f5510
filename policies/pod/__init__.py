# SPDX-License-Identifier: Apache-2.0
"""Pods as the core reads them: untrusted JSON in, typed views out."""
