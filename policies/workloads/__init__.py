# SPDX-License-Identifier: Apache-2.0
"""Kinds whose controllers make pods: what ships of them as data, and the pods of an object.

Nothing here decides: it turns an object of a known kind into the pods that would come of it.
"""
