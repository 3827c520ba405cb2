"""Captures of BPF events with payloads, and the description of these (docs/capture-format.md, PAYLOAD_SCHEMAS).

    made_payload.py FILE        writes a capture with fields of every role there (tests/golden/captures/payload.data)
"""
import struct
import sys
from dataclasses import dataclass

import made_capture

PAYLOAD_SCHEMAS = 224
BPF_OUTPUT = 10
UNSIGNED, SIGNED, ENUM, TEXT, BOOL, FLOAT = range(6)


@dataclass
class Field:
    name: str
    kind: int = UNSIGNED
    size: int = 8  # bytes of one element
    count: int = 1
    unit: str = ""
    role: str = ""
    format: str = ""
    enumerators: tuple = ()  # (value, name)
    at: int = None  # offset, for unions; None: after the previous field


def text(value):
    value = value.encode()
    return struct.pack("<I", len(value)) + value


def schemas(**fields_by_event):
    """The section's body; fields follow each other without holes, or are at their `at`."""
    body = struct.pack("<II", 1, len(fields_by_event))
    for event, fields in fields_by_event.items():
        size = sum(field.size * field.count for field in fields if field.at is None)
        body += text(event) + text("struct " + event) + struct.pack("<II", size, len(fields))
        offset = 0
        for field in fields:
            place = offset if field.at is None else field.at
            body += text(field.name) + struct.pack("<BBBBIII", field.kind, 0, field.count > 1, 0, 8 * place,
                                                   8 * field.size, field.count)
            body += text(field.unit) + text(field.role) + text(field.format)
            body += struct.pack("<I", len(field.enumerators))
            for value, name in field.enumerators:
                body += struct.pack("<q", value) + text(name)
            if field.at is None:
                offset += field.size * field.count
    return body + bytes(-len(body) % 8)


def capture(chains=False, **fields_by_event):
    """A capture whose events are BPF channels with these payloads."""
    sample_type = made_capture.USUAL | made_capture.RAW | (made_capture.CALLCHAIN if chains else 0)
    events = [made_capture.Event(name, made_capture.SOFTWARE, BPF_OUTPUT, sample_type, 1) for name in fields_by_event]
    return made_capture.Capture(*events, features={PAYLOAD_SCHEMAS: schemas(**fields_by_event)}).started()


def roles():
    """A value, a weight, keys (one with the name of the sample value cpu), an address, and a stack besides the kernel's."""
    made = capture(True, io=[Field("bytes", unit="bytes", role="value"), Field("cost", role="weight", unit="ns"),
                             Field("from", format="kaddr"),
                             Field("op", ENUM, 4, role="key", enumerators=((0, "READ"), (1, "WRITE"))),
                             Field("cpu", size=4), Field("stack", count=6, role="stack")])
    main, leaf_a, leaf_b, kernel = (made_capture.MAIN + 9, made_capture.LEAF_A + 4, made_capture.LEAF_B + 4,
                                    made_capture.KERNEL_TEXT)
    for size, cost, op, cpu, stack in [(512, 1000, 0, 7, [kernel + 0xbe, leaf_a, main]),
                                       (4096, 3000, 1, 7, [kernel + 0xd48, leaf_b, main]),
                                       (512, 2000, 0, 12, [kernel + 0xbe, leaf_a, main]), (70000, 0, 1, 3, [])]:
        raw = struct.pack("<QQQII6Q", size, cost, kernel + 0x20, op, cpu, *stack, *[0] * (6 - len(stack)))
        made.sample(ip=made_capture.MAIN + 1, chain=[2**64 - 512, made_capture.MAIN + 1], raw=raw)
    return made


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        file.write(roles().file())
