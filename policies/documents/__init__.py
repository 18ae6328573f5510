# SPDX-License-Identifier: Apache-2.0
"""Policy documents: texts in, one compiled policy set or every problem with its place out.

No directory is read here: shells give the texts, so that files, ConfigMaps and custom resources
come in by the same door. The schema files are part of the package.
"""
