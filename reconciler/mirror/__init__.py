# SPDX-License-Identifier: Apache-2.0
"""Shows the documents of files as custom resources, and on each object whether it is accepted.

So kubectl, status and what lasts beyond a process are the same whatever a document's source.
"""
