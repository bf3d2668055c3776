"""Compiles encoders: one function per message and version, with all structs and arrays inlined.

Adjacent fields of fixed size are written by one `pack` call, which includes a length that follows them if it takes one
byte or has a fixed size. Strings and records are separate parts, so that they are copied at most once.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from odradek.protocol.compile_constructor import shared_default
from odradek.protocol.fields import FIXED_FORMATS, UNSET, Field, StructType, includes
from odradek.protocol.source import Source
from odradek.protocol.tagged_fields import append_tagged_fields
from odradek.protocol.varints import SINGLE_BYTE_VARINTS, encode_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.slices import Part


def compile_encoder(struct_type: StructType, version: int, flexible: bool) -> Callable[[Any], list[Part]]:
    source = Source()
    source.namespace.update(
        append_tagged_fields=append_tagged_fields,
        pack=struct.pack,
        single=SINGLE_BYTE_VARINTS,
        varint=encode_unsigned_varint,
    )
    with source.block("def encode(value):"):
        source.line("parts = []")
        source.line("append = parts.append")
        writer = _EncoderWriter(source, version, flexible)
        writer.struct(struct_type, "value")
        writer.flush()
        source.line("return parts")
    encoder: Callable[[Any], list[Part]] = source.compile("encode", f"{struct_type.__name__} encoder {version}")
    return encoder


class _EncoderWriter:
    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        # Pending fields of fixed size; "x" is a zero byte without a value.
        self.formats: list[str] = []
        self.values: list[str] = []

    def put(self, format_: str, value: str) -> None:
        self.formats.append(format_)
        self.values.append(value)

    def flush(self) -> None:
        if self.formats:
            self.source.line(f"append({self.packed(self.formats, self.values)})")
        self.formats, self.values = [], []

    def packed(self, formats: list[str], values: list[str]) -> str:
        if not values:
            return repr(bytes(len(formats)))
        return f"{self.source.packer(''.join(formats))}({', '.join(values)})"

    def struct(self, struct_type: StructType, value: str) -> None:
        tagged = []
        for field in struct_type.fields:
            if not includes(field.versions, self.version):
                continue
            if self.flexible and includes(field.tagged, self.version):
                tagged.append(field)
            else:
                self.field(field, f"{value}.{field.name}")
        if self.flexible:
            self.tagged_fields(tagged, value)

    def field(self, field: Field, value: str) -> None:
        nullable = includes(field.nullable, self.version)
        if field.kind in FIXED_FORMATS:
            self.put(FIXED_FORMATS[field.kind], f"{value}.bytes" if field.kind == "uuid" else value)
        elif field.kind == "struct":
            self.nested_struct(field, value, nullable)
        elif field.kind == "array":
            self.array(field, value, nullable)
        else:
            self.sized(field, value, nullable)

    def nested_struct(self, field: Field, value: str, nullable: bool) -> None:
        source = self.source
        nested = source.fresh("value")
        source.line(f"{nested} = {value}")
        if not nullable:
            self.struct(field.element, nested)  # type: ignore[arg-type]  # the element of this kind of field is a struct
            return
        formats, values = self.formats, self.values
        with source.block(f"if {nested} is None:"):
            self.put("b", "0" if includes(field.tagged, self.version) else "-1")
            self.flush()
        self.formats, self.values = formats[:-1], values[:-1]
        with source.block("else:"):
            self.put("b", "1")
            self.struct(field.element, nested)  # type: ignore[arg-type]
            self.flush()

    def length(self, format_: str, length: str) -> None:
        """Emits code for the pending fields and a length, which the caller has raised by one if it is compact."""
        if not self.flexible:
            self.put(format_, length)
            self.flush()
            return
        source = self.source
        if not self.formats:
            source.line(f"append(single[{length}] if {length} < 128 else varint({length}))")
            return
        with source.block(f"if {length} < 128:"):
            source.line(f"append({self.packed([*self.formats, 'B'], [*self.values, length])})")
        with source.block("else:"):
            self.flush()
            source.line(f"append(varint({length}))")

    def length_of(self, content: str) -> str:
        return f"len({content}) + 1" if self.flexible else f"len({content})"

    def content_and_length(self, value: str, content: str, nullable: bool, empty: str) -> tuple[str, str]:
        """The names of a field's content and of its encoded length; null has no content and the lowest length."""
        source = self.source
        name, length = source.fresh("content"), source.fresh("n")
        if nullable:
            source.line(f"{name} = {value}")
            with source.block(f"if {name} is None:"):
                source.line(f"{name} = {empty}")
                source.line(f"{length} = {0 if self.flexible else -1}")
            with source.block("else:"):
                if content:
                    source.line(f"{name} = {name}{content}")
                source.line(f"{length} = {self.length_of(name)}")
        else:
            source.line(f"{name} = {value}{content}")
            source.line(f"{length} = {self.length_of(name)}")
        return name, length

    def sized(self, field: Field, value: str, nullable: bool) -> None:
        is_string = field.kind == "string"
        content, length = self.content_and_length(value, ".encode()" if is_string else "", nullable, "b''")
        self.length("h" if is_string else "i", length)
        with self.source.block(f"if {content}:" if is_string else f"if {length} > {int(self.flexible)}:"):
            self.source.line(f"append({content})")

    def array(self, field: Field, value: str, nullable: bool) -> None:
        source = self.source
        element: Any = field.element
        items, length = self.content_and_length(value, "", nullable, "()")
        self.length("i", length)
        if isinstance(element, Field) and element.kind in FIXED_FORMATS and element.kind != "uuid":
            with source.block(f"if {items}:"):
                format_ = FIXED_FORMATS[element.kind]
                single, several = source.packer(format_), f"pack(f'>{{len({items})}}{format_}', *{items})"
                source.line(f"append({single}({items}[0]) if len({items}) == 1 else {several})")
            return
        item = source.fresh("item")
        with source.block(f"for {item} in {items}:"):
            if isinstance(element, Field):
                self.field(element, item)
            else:
                self.struct(element, item)
            self.flush()

    def tagged_fields(self, fields: list[Field], value: str) -> None:
        """Emits code that writes tagged fields that differ from their default; without any, a zero byte is packed."""
        source = self.source
        if not fields:
            self.formats.append("x")
            return
        conditions = [self.differs(field, f"{value}.{field.name}") for field in fields]
        formats, values = self.formats, self.values
        with source.block(f"if {' or '.join(conditions)}:"):
            self.flush()
            outer_append, tags = source.fresh("outer_append"), source.fresh("tags")
            source.line(f"{outer_append} = append")
            source.line(f"{tags} = []")
            for field, condition in sorted(zip(fields, conditions, strict=True), key=lambda pair: pair[0].tag or 0):
                with source.block(f"if {condition}:"):
                    field_parts = source.fresh("parts")
                    source.line(f"{field_parts} = []")
                    source.line(f"append = {field_parts}.append")
                    self.field(field, f"{value}.{field.name}")
                    self.flush()
                    source.line(f"{tags}.append(({encode_unsigned_varint(field.tag or 0)!r}, {field_parts}))")
            source.line(f"append = {outer_append}")
            source.line(f"append_tagged_fields(append, {tags})")
        with source.block("else:"):
            source.line(f"append({self.packed([*formats, 'x'], values)})")

    def differs(self, field: Field, value: str) -> str:
        """An expression that is true if a field differs from its default."""
        if field.default is None:
            return f"{value} is not None"
        if field.default is UNSET:
            if field.kind == "array":
                return f"({value} or {value} is None)" if field.nullable else value
            default = self.source.bind("default", shared_default(field.element))
            return f"({value} is not {default} and {value} != {default})"
        return f"{value} != {self.source.bind('default', field.default)}"
