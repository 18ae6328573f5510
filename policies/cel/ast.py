# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of an expression, as the CEL project's interchange messages.

The engine gives and takes trees in serialised form only, and no package publishes their Python
classes; so the messages are declared here as a table. Field numbers are those of cel-spec
`proto/cel/expr/syntax.proto` and `checked.proto`. What a tree means is no concern of this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final, TypeAlias

from google.protobuf import any_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

Node: TypeAlias = Any
"""A `cel.expr.Expr` message; protobuf classes made at run time have no static type."""

_PACKAGE: Final = "cel.expr"
_SCALARS: Final = {
    "int64": FieldDescriptorProto.TYPE_INT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}
# message -> fields as "name number type"; `*T` repeated, `?T` in the message's one oneof.
# Enumerations travel as int32, maps as their repeated entries.
_MESSAGES: Final[Mapping[str, str]] = {
    "Constant": "null_value 1 ?int32, bool_value 2 ?bool, int64_value 3 ?int64,"
    " uint64_value 4 ?uint64, double_value 5 ?double, string_value 6 ?string, bytes_value 7 ?bytes",
    "Ident": "name 1 string",
    "Select": "operand 1 Expr, field 2 string, test_only 3 bool",
    "Call": "target 1 Expr, function 2 string, args 3 *Expr",
    "List": "elements 1 *Expr, optional_indices 2 *int32",
    "Entry": "id 1 int64, field_key 2 ?string, map_key 3 ?Expr, value 4 Expr,"
    " optional_entry 5 bool",
    "Struct": "message_name 1 string, entries 2 *Entry",
    "Comprehension": "iter_var 1 string, iter_range 2 Expr, accu_var 3 string, accu_init 4 Expr,"
    " loop_condition 5 Expr, loop_step 6 Expr, result 7 Expr, iter_var2 8 string",
    "Expr": "id 2 int64, const_expr 3 ?Constant, ident_expr 4 ?Ident, select_expr 5 ?Select,"
    " call_expr 6 ?Call, list_expr 7 ?List, struct_expr 8 ?Struct,"
    " comprehension_expr 9 ?Comprehension",
    "Position": "key 1 int64, value 2 int32",
    "SourceInfo": "positions 4 *Position",
    "Abstract": "name 1 string, parameter_types 2 *Type",
    "ListType": "elem_type 1 Type",
    "MapType": "key_type 1 Type, value_type 2 Type",
    "Empty": "",
    "Type": "dyn 1 ?Empty, null 2 ?int32, primitive 3 ?int32, wrapper 4 ?int32,"
    " well_known 5 ?int32, list_type 6 ?ListType, map_type 7 ?MapType, message_type 9 ?string,"
    " type_param 10 ?string, type 11 ?Type, abstract_type 14 ?Abstract",
    "TypeEntry": "key 1 int64, value 2 Type",
    "ParsedExpr": "expr 2 Expr, source_info 3 SourceInfo",
    "CheckedExpr": "type_map 3 *TypeEntry, expr 4 Expr, source_info 5 SourceInfo",
}


class Tree:
    """A parsed expression. Reading protobuf takes time, so each part is read when it is asked for.

    Ask for `nodes` only of a tree that is left as it is.
    """

    def __init__(self, message: Node) -> None:
        self.root: Node = message.expr
        self._message = message

    @cached_property
    def offsets(self) -> Mapping[int, int]:
        """Return where each node (by id) begins, in code points."""
        return {entry.key: entry.value for entry in self._message.source_info.positions}

    @cached_property
    def types(self) -> Mapping[int, Node]:
        """Return the type that the checker found for each node; empty if it was only parsed."""
        return {entry.key: entry.value for entry in getattr(self._message, "type_map", ())}

    @cached_property
    def nodes(self) -> Sequence[tuple[str | None, Node]]:
        """Return the kind and message of every node, parents first."""
        return [(node.WhichOneof("one"), node) for node in walk(self.root)]


def read_tree(serialized: bytes) -> Tree:
    """Read what the engine serialises, parsed or checked."""
    envelope = any_pb2.Any.FromString(serialized)
    return Tree(_classes()[envelope.type_url.rpartition("/")[2]].FromString(envelope.value))


def write_tree(root: Node) -> bytes:
    """Serialise a tree, as a parsed expression, for the engine."""
    envelope = any_pb2.Any(type_url=f"type.googleapis.com/{_PACKAGE}.ParsedExpr")
    envelope.value = _classes()[f"{_PACKAGE}.ParsedExpr"](expr=root).SerializeToString()
    return envelope.SerializeToString()


def children(node: Node) -> Sequence[Node]:
    """Return the direct parts of a node, in the order of the text."""
    match node.WhichOneof("one"):
        case "select_expr":
            return (node.select_expr.operand,)
        case "call_expr":
            call = node.call_expr
            return (call.target, *call.args) if call.HasField("target") else tuple(call.args)
        case "list_expr":
            return tuple(node.list_expr.elements)
        case "struct_expr":
            return tuple(_entry_parts(node.struct_expr.entries))
        case "comprehension_expr":
            loop = node.comprehension_expr
            bounds = (loop.iter_range, loop.accu_init, loop.loop_condition)
            return (*bounds, loop.loop_step, loop.result)
    return ()


def _entry_parts(entries: Iterable[Node]) -> Iterator[Node]:
    for entry in entries:
        if entry.WhichOneof("one") == "map_key":
            yield entry.map_key
        yield entry.value


def is_empty_list(node: Node) -> bool:
    """Tell whether a node is `[]`; a loop over it is how macros bind a name."""
    return bool(node.WhichOneof("one") == "list_expr" and not node.list_expr.elements)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, parents first; never recurses, so depth does not matter."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


@cache
def _classes() -> Mapping[str, Any]:
    """Build the message classes once; they are constants that only protobuf can make."""
    file = FileDescriptorProto(name="sluice/cel.proto", package=_PACKAGE, syntax="proto3")
    file.message_type.extend(_message(name, text) for name, text in _MESSAGES.items())
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        f"{_PACKAGE}.{name}": GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


def _message(name: str, text: str) -> DescriptorProto:
    message = DescriptorProto(name=name)
    if "?" in text:
        message.oneof_decl.add(name="one")
    for declaration in filter(None, (part.strip() for part in text.split(","))):
        field_name, number, kind = declaration.split()
        field = message.field.add(name=field_name, number=int(number))
        repeated = kind.startswith("*")
        field.label = (
            FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        )
        if kind.startswith("?"):
            field.oneof_index = 0
        kind = kind.lstrip("*?")
        field.type = _SCALARS.get(kind, FieldDescriptorProto.TYPE_MESSAGE)
        if kind not in _SCALARS:
            field.type_name = f".{_PACKAGE}.{kind}"
    return message
