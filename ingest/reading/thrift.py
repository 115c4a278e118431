"""Thrift's compact protocol as plain values, which the footers of Parquet files are written in: no library that is here gives them out.

A struct is a dict of field number -> (type, value), a list (type of its elements, elements); whole numbers are ints, the rest bytes.
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
_LONG_LIST = 15

Struct = dict[int, tuple[int, Any]]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.data):
            raise IndexError("the bytes end within a value")
        return self.data[self.at - count : self.at]

    def varint(self) -> int:
        result = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 127) << shift
            if byte < 128:
                return result
            shift += 7

    def number(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            return self.number()
        if kind == BINARY:
            return self.take(self.varint())
        if kind in (BYTE, DOUBLE):
            return self.take(1 if kind == BYTE else 8)
        if kind in (LIST, SET):
            head = self.take(1)[0]
            size, of = head >> 4, head & 15
            size = self.varint() if size == _LONG_LIST else size
            return of, [self.take(1) if of in (TRUE, FALSE) else self.value(of) for _ in range(size)]
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"a value of Thrift's type {kind}")

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self.take(1)[0]) != 0:
            number = number + (head >> 4) if head >> 4 else self.number()
            kind = head & 15
            fields[number] = (kind, None if kind in (TRUE, FALSE) else self.value(kind))
        return fields


def read_struct(data: bytes) -> Struct:
    """The struct that bytes begin with. Raises: ValueError, IndexError where they do not begin with one."""
    return _Reader(data).struct()


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _number(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _value(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return value or b""
    if kind in (I16, I32, I64):
        return _number(value)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind in (LIST, SET):
        of, elements = value
        size = len(elements)
        head = bytes([size << 4 | of]) if size < _LONG_LIST else bytes([_LONG_LIST << 4 | of]) + _varint(size)
        return head + b"".join(_value(of, each) for each in elements)
    return write_struct(value) if kind == STRUCT else bytes(value)


def write_struct(fields: Struct) -> bytes:
    """The bytes of a struct."""
    # with every field's number written out: it need not be a step of less than 16 from the one before
    return b"".join(bytes([kind]) + _number(number) + _value(kind, value) for number, (kind, value) in sorted(fields.items())) + b"\0"
