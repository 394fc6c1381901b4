"""Writes random encodings of ONNX messages with what Python's protobuf runtime reads from them.

python3 onnx_encodings.py SEED COUNT FILE

Encodings use the freedoms of protobuf: fields in any order and repeated, singular messages in parts, several members of a
oneof, packed and unpacked lists, long varints, values beyond their type, unknown fields, groups and wrong wire types. Some
are cut or damaged. A record of FILE is three lengths (uint32) and as many texts: name of the message, encoding, and the
fields that Python reads as JSON, empty where it refuses the encoding.
"""

import json
import random
import struct
import sys

import onnx
from google.protobuf.message import DecodeError

ROOTS = [
    onnx.ModelProto,
    onnx.GraphProto,
    onnx.NodeProto,
    onnx.AttributeProto,
    onnx.ValueInfoProto,
    onnx.FunctionProto,
    onnx.TensorProto,
    onnx.SparseTensorProto,
    onnx.TypeProto,
    onnx.TensorShapeProto,
    onnx.TrainingInfoProto,
]
VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)
MAX_DEPTH = 4


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def varint(self, value, long=0.05):
        value &= 2**64 - 1
        out = bytearray()
        while value >= 128:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
        # A longer form of the same number, up to the ten bytes that protobuf reads. Tags and lengths may have five.
        if self.random.random() < long and len(out) < 10:
            out[-1] |= 128
            out += bytes([128] * self.random.randrange(0, 10 - len(out)) + [0])
        return bytes(out)

    def tag(self, number, wire_type):
        return self.varint(number << 3 | wire_type, long=0.002)

    def delimited(self, number, value):
        return self.tag(number, LENGTH) + self.varint(len(value), long=0.002) + value

    def integer(self):
        kind = self.random.randrange(6)
        if kind < 3:
            return self.random.randrange(0, 30)
        if kind == 3:
            return -self.random.randrange(1, 1000)
        if kind == 4:
            return self.random.randrange(2**64)
        return self.random.randrange(1, 30) + 2**32 * self.random.randrange(0, 3)

    def text(self):
        return self.random.choice([b"", b"x", b"name", "größe".encode(), b"0123456789" * 3])

    def raw(self, wire_type, depth=0):
        """A value of a wire type that may not be the field's."""
        if wire_type == VARINT:
            return self.varint(self.integer())
        if wire_type == FIXED64:
            return self.random.randbytes(8)
        if wire_type == FIXED32:
            return self.random.randbytes(4)
        return self.random.choice([b"\x00", b"\x02\x08\x01", b"\x03\x0a\x01\x61", b"\x03\x01\x02\x03"])

    def unknown(self, depth=0):
        number = self.random.choice([17, 19, 100, 536870911, self.random.randrange(1, 40)])
        if self.random.random() < 0.2 and depth < 3:
            inside = b"".join(self.unknown(depth + 1) for _ in range(self.random.randrange(3)))
            return self.tag(number, GROUP) + inside + self.tag(number, GROUP_END)
        wire_type = self.random.choice([VARINT, FIXED64, LENGTH, FIXED32])
        return self.tag(number, wire_type) + self.raw(wire_type)

    def scalar(self, field):
        kind = field.cpp_type
        if kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64, field.CPPTYPE_UINT64, field.CPPTYPE_ENUM):
            return VARINT, self.varint(self.integer())
        if kind == field.CPPTYPE_FLOAT:
            return FIXED32, struct.pack("<f", self.random.choice([0.0, -0.0, 1.5, -3.25, 1e30]))
        if kind == field.CPPTYPE_DOUBLE:
            return FIXED64, struct.pack("<d", self.random.choice([0.0, 1.5, -3.25, 1e300]))
        text = self.text()
        return LENGTH, self.varint(len(text), long=0.002) + text

    def field(self, field, depth):
        chance = self.random.random()
        if chance < 0.04:
            wire_type = self.random.choice([VARINT, FIXED64, LENGTH, FIXED32])
            return self.tag(field.number, wire_type) + self.raw(wire_type)
        if field.message_type:
            return self.delimited(field.number, self.message(field.message_type, depth + 1))
        wire_type, value = self.scalar(field)
        # Packed lists; scalars that are written so are unknown fields.
        if wire_type != LENGTH and self.random.random() < (0.4 if field.is_repeated else 0.05):
            values = [self.scalar(field)[1] for _ in range(self.random.randrange(4))]
            return self.delimited(field.number, b"".join(values))
        return self.tag(field.number, wire_type) + value

    def message(self, descriptor, depth=0):
        fields = list(descriptor.fields)
        if depth >= MAX_DEPTH:
            fields = [each for each in fields if not each.message_type] or fields[:0]
        if not fields:
            return b""
        # A few fields, so that each occurs several times.
        chosen = [self.random.choice(fields) for _ in range(self.random.randrange(1, 4))]
        parts = []
        for _ in range(self.random.randrange(0, 7 - depth)):
            if self.random.random() < 0.06:
                parts.append(self.unknown())
            else:
                parts.append(self.field(self.random.choice(chosen), depth))
        return b"".join(parts)

    def encoding(self, descriptor):
        encoded = self.message(descriptor)
        if encoded and self.random.random() < 0.05:
            damaged = bytearray(encoded)
            if self.random.random() < 0.5:
                return bytes(damaged[: self.random.randrange(len(damaged))])
            damaged[self.random.randrange(len(damaged))] = self.random.randrange(256)
            return bytes(damaged)
        return encoded


def value_of(field, value):
    kind = field.cpp_type
    if kind == field.CPPTYPE_MESSAGE:
        return fields_of(value)
    if kind == field.CPPTYPE_FLOAT:
        return "nan" if value != value else struct.pack("<f", value).hex()
    if kind == field.CPPTYPE_STRING:
        return value.hex() if isinstance(value, bytes) else value.encode().hex()
    return str(value)


def fields_of(message):
    """Fields that are set, in the order of their numbers; texts as hexadecimal bytes."""
    found = []
    for field, value in message.ListFields():
        if field.cpp_type == field.CPPTYPE_DOUBLE:
            continue
        inside = [value_of(field, each) for each in value] if field.is_repeated else value_of(field, value)
        found.append([field.number, inside])
    return found


def main(seed, count, path):
    writer = Writer(seed)
    with open(path, "wb") as file:
        for _ in range(count):
            root = writer.random.choice(ROOTS)
            encoded = writer.encoding(root.DESCRIPTOR)
            try:
                expected = json.dumps(fields_of(root.FromString(encoded)), separators=(",", ":"))
            except (DecodeError, UnicodeDecodeError):
                expected = ""
            name = root.DESCRIPTOR.name.encode()
            texts = [name, encoded, expected.encode()]
            file.write(struct.pack("<3I", *map(len, texts)) + b"".join(texts))


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
