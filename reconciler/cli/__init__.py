# SPDX-License-Identifier: Apache-2.0
"""What `sluice` does on a person's machine: read files, ask the core, print. No server here."""
