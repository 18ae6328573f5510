# SPDX-License-Identifier: Apache-2.0
"""The types of the variables, as protobuf messages that the CEL checker understands.

Only the checker sees these: expressions are evaluated on plain JSON. What a Pod is comes from
data/pod.json, which is generated from the API client's models.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

from google.protobuf import struct_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from policies.cel.variables import MESSAGES

PACKAGE: Final = "k8s"
LIST_MARK: Final = "[]"
MAP_MARK: Final = "{}"
TIMESTAMP: Final = "timestamp"

_SCALARS: Final = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "int": FieldDescriptorProto.TYPE_INT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
}
_WELL_KNOWN: Final = {
    "dyn": ".google.protobuf.Value",
    TIMESTAMP: ".google.protobuf.Timestamp",
}


@dataclass(frozen=True, slots=True)
class Schema:
    """Message names to their fields, each with its type in the notation of data/pod.json."""

    messages: Mapping[str, Mapping[str, str]]

    def pool(self) -> DescriptorPool:
        """Return a descriptor pool with all messages in package `k8s`."""
        pool = DescriptorPool()
        for well_known in (struct_pb2, timestamp_pb2):
            pool.AddSerializedFile(well_known.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self._file().SerializeToString())
        return pool

    def _file(self) -> FileDescriptorProto:
        file = FileDescriptorProto(name="sluice/pod.proto", package=PACKAGE, syntax="proto3")
        file.dependency.extend((struct_pb2.DESCRIPTOR.name, timestamp_pb2.DESCRIPTOR.name))
        file.message_type.extend(_message(name, fields) for name, fields in self.messages.items())
        return file


def load_schema() -> Schema:
    """Return the types of all variables: the generated Pod and the messages of variables.py."""
    text = resources.files("policies.cel").joinpath("data", "pod.json").read_text(encoding="utf-8")
    return Schema({**json.loads(text)["messages"], **MESSAGES})


def element_type(type_name: str) -> str:
    """Strip the list and map marks off a type."""
    return type_name.removeprefix(LIST_MARK).removeprefix(MAP_MARK)


def _message(name: str, fields: Mapping[str, str]) -> DescriptorProto:
    message = DescriptorProto(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        message.field.append(_field(f".{PACKAGE}.{name}", field, number, kind))
        if kind.startswith(MAP_MARK):
            message.nested_type.append(_entry(field, kind.removeprefix(MAP_MARK)))
    return message


def _field(owner: str, name: str, number: int, kind: str) -> FieldDescriptorProto:
    """Build one field; map fields are repeated entries, as protobuf has them."""
    field = FieldDescriptorProto(name=name, number=number, json_name=name)
    field.label = FieldDescriptorProto.LABEL_OPTIONAL
    if kind.startswith((LIST_MARK, MAP_MARK)):
        field.label = FieldDescriptorProto.LABEL_REPEATED
    if kind.startswith(MAP_MARK):
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f"{owner}.{_entry_name(name)}"
        return field
    element = element_type(kind)
    if element in _SCALARS:
        field.type = _SCALARS[element]
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = _WELL_KNOWN.get(element, f".{PACKAGE}.{element}")
    return field


def _entry(field: str, value_kind: str) -> DescriptorProto:
    entry = DescriptorProto(name=_entry_name(field))
    entry.options.map_entry = True
    owner = ""  # an entry's value is a scalar or a message, never a map
    entry.field.append(_field(owner, "key", 1, "string"))
    entry.field.append(_field(owner, "value", 2, value_kind))
    return entry


def _entry_name(field: str) -> str:
    """Name a map's entry message as protobuf demands: the field's name in camel case."""
    return f"{field[:1].upper()}{field[1:]}Entry"
