"""Compiles decoders: one function per message and version, with all structs and arrays inlined.

Adjacent fields of fixed size are read by one `unpack` call, which includes the first byte (or all) of a length that
follows them. Every declared length is checked against the remaining bytes before anything is allocated, and the number
of elements in all arrays against the message's limit.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.protocol.compile_constructor import shared_default
from odradek.protocol.fields import FIXED_FORMATS, UNSET, Field, StructType, includes, is_number, names_partitions
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.source import Source, compiled_format
from odradek.protocol.tagged_fields import check_tagged_field_count, skip_tagged_fields
from odradek.protocol.varints import finish_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable


REMEMBERED_UUIDS = 4096
LONGEST_STRING_BYTES = 0x7FFF  # of compact strings as well: Kafka's generated classes refuse longer ones


class _Uuids(dict[bytes, UUID]):
    """A cache of UUIDs: creating one is expensive, and requests contain the same topic ids repeatedly."""

    def __missing__(self, value: bytes) -> UUID:
        if len(self) >= REMEMBERED_UUIDS:
            self.clear()
        made = self[value] = UUID(bytes=value)
        return made


_uuids = _Uuids()


def compile_decoder(
    struct_type: StructType, version: int, flexible: bool, element_limit: int
) -> Callable[[memoryview, int], Any]:
    source = Source()
    source.namespace.update(
        MalformedMessage=MalformedMessage,
        StructError=struct.error,
        check_tagged_field_count=check_tagged_field_count,
        finish_varint=finish_unsigned_varint,
        new=object.__new__,
        skip_tagged_fields=skip_tagged_fields,
        unpack_from=struct.unpack_from,
        uuids=_uuids,
    )
    with source.block("def decode(buffer, position):"):
        source.line("limit = len(buffer)")
        source.line(f"elements_left = {element_limit}")
        with source.block("try:"):
            writer = _DecoderWriter(source, version, flexible)
            target = writer.new_struct(struct_type)
            writer.struct(struct_type, target)
            writer.flush()
            source.line(f"return {target}")
        with source.block("except (StructError, IndexError) as error:"):
            message = f"{struct_type.__name__} version {version} is cut off near byte %d"
            source.line(f"raise MalformedMessage('{message}' % position) from error")
        with source.block("except UnicodeDecodeError as error:"):
            source.line("raise MalformedMessage('a string before byte %d is not UTF-8' % position) from error")
    decoder: Callable[[memoryview, int], Any] = source.compile("decode", f"{struct_type.__name__} decoder {version}")
    return decoder


def smallest_size_bytes(element: Any, version: int, flexible: bool) -> int:
    """The minimum size of an array's element, at least one byte; it bounds a declared count."""
    if isinstance(element, Field):
        if element.kind in FIXED_FORMATS:
            return compiled_format(FIXED_FORMATS[element.kind]).size
        if element.kind == "struct" and not includes(element.nullable, version):
            return smallest_size_bytes(element.element, version, flexible)
        if flexible or element.kind == "struct":
            return 1
        return 2 if element.kind == "string" else 4
    fields = [
        field
        for field in element.fields
        if includes(field.versions, version) and not (flexible and includes(field.tagged, version))
    ]
    return max(1, sum(smallest_size_bytes(field, version, flexible) for field in fields) + flexible)


class _DecoderWriter:
    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        # Pending fields of fixed size, and the code to emit after they are unpacked.
        self.formats: list[str] = []
        self.targets: list[str] = []
        self.afterwards: list[str] = []

    def take(self, format_: str, target: str) -> None:
        self.formats.append(format_)
        self.targets.append(target)

    def flush(self) -> None:
        source = self.source
        if self.formats == ["B"]:
            source.line(f"{self.targets[0]} = buffer[position]")
            source.line("position += 1")
        elif self.formats:
            format_ = "".join(self.formats)
            source.line(f"{', '.join(self.targets)}, = {source.unpacker(format_)}(buffer, position)")
            source.line(f"position += {compiled_format(format_).size}")
        for line in self.afterwards:
            source.line(line)
        self.formats, self.targets, self.afterwards = [], [], []

    def new_struct(self, struct_type: StructType) -> str:
        target = self.source.fresh("value")
        self.source.line(f"{target} = new({self.source.bind(struct_type.__name__, struct_type)})")
        return target

    def struct(self, struct_type: StructType, target: str) -> None:
        tagged = []
        for field in struct_type.fields:
            if not includes(field.versions, self.version):
                self.afterwards.append(f"{target}.{field.name} = {self.default(field)}")
            elif self.flexible and includes(field.tagged, self.version):
                self.afterwards.append(f"{target}.{field.name} = {self.default(field)}")
                tagged.append(field)
            else:
                self.field(field, f"{target}.{field.name}")
        if self.flexible:
            self.tagged_fields(tagged, target)

    def default(self, field: Field) -> str:
        if field.default is UNSET:
            return "[]" if field.kind == "array" else self.source.bind("default", shared_default(field.element))
        return self.source.bind("default", field.default)

    def field(self, field: Field, target: str) -> None:
        nullable = includes(field.nullable, self.version)
        if field.kind in FIXED_FORMATS:
            self.fixed(field.kind, target)
        elif field.kind == "struct":
            self.nested_struct(field, target, nullable)
        elif field.kind == "array":
            self.array(field, target, nullable)
        else:
            self.sized(field, target, nullable)

    def fixed(self, kind: str, target: str) -> None:
        if kind == "uuid":
            raw = self.source.fresh("raw")
            self.take("16s", raw)
            self.afterwards.append(f"{target} = uuids[{raw}]")
        else:
            self.take(FIXED_FORMATS[kind], target)

    def nested_struct(self, field: Field, target: str, nullable: bool) -> None:
        struct_type: Any = field.element
        if not nullable:
            nested = self.new_struct(struct_type)
            self.afterwards.append(f"{target} = {nested}")
            self.struct(struct_type, nested)
            return
        present = self.source.fresh("present")
        self.take("b", present)
        self.flush()
        # A tagged struct encodes its presence as a varint, where null is 0.
        with self.source.block(f"if {present} < {1 if includes(field.tagged, self.version) else 0}:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            nested = self.new_struct(struct_type)
            self.source.line(f"{target} = {nested}")
            self.struct(struct_type, nested)
            self.flush()

    def length(self, format_: str) -> str:
        """Emits code for the pending fields and a length; returns the length's name. Null is -1 (compact: 0 - 1)."""
        length = self.source.fresh("n")
        if not self.flexible:
            self.take(format_, length)
            self.flush()
            return length
        self.take("B", length)
        self.flush()
        source = self.source
        with source.block(f"if {length} > 127:"):
            with source.block("if position < limit and buffer[position] < 128:"):  # two bytes, as most batches have
                source.line(f"{length} += (buffer[position] << 7) - 128")
                source.line("position += 1")
            with source.block("else:"):
                source.line(f"{length}, position = finish_varint(buffer, position, {length})")
        source.line(f"{length} -= 1")
        return length

    def varint(self, target: str) -> None:
        self.take("B", target)
        self.flush()
        with self.source.block(f"if {target} > 127:"):
            self.source.line(f"{target}, position = finish_varint(buffer, position, {target})")

    def null_or_negative(self, length: str, target: str, nullable: bool, name: str) -> None:
        source = self.source
        with source.block(f"elif {length} == -1:" if nullable else "else:"):
            if nullable:
                source.line(f"{target} = None")
            else:
                source.line(f"raise MalformedMessage('{name} of length %d' % {length})")
        if nullable:
            with source.block("else:"):
                source.line(f"raise MalformedMessage('{name} of length %d' % {length})")

    def sized(self, field: Field, target: str, nullable: bool) -> None:
        source = self.source
        length = self.length("h" if field.kind == "string" else "i")
        with source.block(f"if {length} >= 0:"):
            source.line(f"end = position + {length}")
            if field.kind == "string" and self.flexible:
                with source.block(f"if {length} > {LONGEST_STRING_BYTES}:"):
                    reason = f"{field.name} of %d bytes is longer than {LONGEST_STRING_BYTES}"
                    source.line(f"raise MalformedMessage('{reason}' % {length})")
            with source.block("if end > limit:"):
                source.line(
                    f"raise MalformedMessage('{field.name} of %d bytes, %d left' % ({length}, limit - position))"
                )
            content = "buffer[position:end]"
            if field.kind == "string":
                content = f"str({content}, 'utf-8')"
            elif field.kind == "bytes":
                content = f"bytes({content})"
            source.line(f"{target} = {content}")
            source.line("position = end")
        self.null_or_negative(length, target, nullable, field.name)

    def array(self, field: Field, target: str, nullable: bool) -> None:
        source = self.source
        element: Any = field.element
        count = self.length("i")
        size_bytes = smallest_size_bytes(element, self.version, self.flexible)
        with source.block(f"if {count} >= 0:"):
            with source.block(f"if {count} * {size_bytes} > limit - position:"):
                source.line(f"raise MalformedMessage('{field.name}: %d, %d bytes left' % ({count}, limit - position))")
            is_numbers = is_number(element)
            is_cheap = is_numbers and not names_partitions(field)
            source.line(f"elements_left -= {count}{' >> 4' if is_cheap else ''}")
            with source.block("if elements_left < 0:"):
                source.line(f"raise MalformedMessage('{field.name}: %d are too many for one message' % {count})")
            if is_numbers:
                format_ = f'f">{{{count}}}{FIXED_FORMATS[element.kind]}"'
                source.line(f"{target} = list(unpack_from({format_}, buffer, position)) if {count} else []")
                source.line(f"position += {count} * {size_bytes}")
            else:
                items = source.fresh("items")
                source.line(f"{target} = {items} = []")
                with source.block(f"for _ in range({count}):"):
                    self.element(element, items)
        self.null_or_negative(count, target, nullable, field.name)

    def element(self, element: Any, items: str) -> None:
        if isinstance(element, Field):
            item = self.source.fresh("item")
            element.name = element.name or element.kind
            self.field(element, item)
            self.flush()
        else:
            item = self.new_struct(element)
            self.struct(element, item)
            self.flush()
        self.source.line(f"{items}.append({item})")

    def tagged_fields(self, fields: list[Field], target: str) -> None:
        """Emits code that reads known tagged fields and skips unknown ones."""
        source = self.source
        tags = source.fresh("tags")
        self.take("B", tags)
        self.flush()
        with source.block(f"if {tags}:"):
            with source.block(f"if {tags} > 127:"):
                source.line(f"{tags}, position = finish_varint(buffer, position, {tags})")
                source.line(f"check_tagged_field_count({tags})")
            source.line(f"elements_left -= {tags}")
            with source.block("if elements_left < 0:"):
                source.line(f"raise MalformedMessage('%d tagged fields are too many for one message' % {tags})")
            if not fields:
                source.line(f"position = skip_tagged_fields(buffer, position, {tags})")
                return
            with source.block(f"for _ in range({tags}):"):
                tag, size, end = source.fresh("tag"), source.fresh("size"), source.fresh("end")
                self.varint(tag)
                self.varint(size)
                source.line(f"{end} = position + {size}")
                for number, field in enumerate(fields):
                    with source.block(f"{'elif' if number else 'if'} {tag} == {field.tag}:"):
                        self.field(field, f"{target}.{field.name}")
                        self.flush()
                with source.block("else:"):
                    source.line(f"position = {end}")
                with source.block(f"if position != {end} or position > limit:"):
                    source.line(f"raise MalformedMessage('a tagged field does not have its %d bytes' % {size})")
