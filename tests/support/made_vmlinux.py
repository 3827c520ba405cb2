"""An ELF file of the running kernel, with its symbols, build id and the code of some functions: as vmlinux would be, where there
is none. The code is read by bpftrace (/proc/kcore is not everywhere)."""
import struct
import subprocess
from pathlib import Path

PIECE = 64  # bytes that bpftrace prints at once
AT_ONCE = 60  # pieces a program


def symbols():
    """(address, type, name) of the kernel itself, without modules."""
    rows = [line.split() for line in Path("/proc/kallsyms").read_text().splitlines()]
    return [(int(row[0], 16), row[1], row[2]) for row in rows if len(row) == 3]


def read_code(addresses):
    code = {}
    for first in range(0, len(addresses), AT_ONCE):
        some = addresses[first:first + AT_ONCE]
        prints = " ".join(f'printf("%rx\\n", buf(kptr({address:#x}), {PIECE}));' for address in some)
        done = subprocess.run(["bpftrace", "-e", f"BEGIN {{ {prints} exit(); }}"], capture_output=True, text=True, timeout=60, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("\\x")]
        if len(lines) != len(some):
            return None
        code.update(zip(some, (bytes.fromhex(line.replace("\\x", "").replace(" ", "")) for line in lines)))
    return code


def make(path, functions):
    """False: the code cannot be read here."""
    rows = symbols()
    where = {name: address for address, kind, name in rows if kind in "tTwW"}
    begin, end = where["_text"], next(address for address, _, name in rows if name == "_etext")
    inside = sorted(row for row in rows if row[1] in "tTwW" and begin <= row[0] < end)
    starts = sorted({row[0] for row in inside}) + [end]
    ends = dict(zip(starts, starts[1:]))
    code = read_code([address for name in functions for address in range(where[name], ends[where[name]], PIECE)])
    if begin == 0 or code is None:
        return False
    text = bytearray(end - begin)
    for address, piece in code.items():
        text[address - begin:address - begin + len(piece)] = piece
    names, table = bytearray(b"\0"), bytearray(24)
    for address, kind, name in inside:
        table += struct.pack("<IBBHQQ", len(names), (kind in "TW") << 4 | 2, 0, 1, address, ends[address] - address)
        names += name.encode() + b"\0"
    titles = b"\0.text\0.notes\0.symtab\0.strtab\0.shstrtab\0"
    contents = [(b".text", 1, 6, begin, bytes(text[:end - begin]), 0, 0, 4096, 0), (b".notes", 7, 2, 0, Path("/sys/kernel/notes").read_bytes(), 0, 0, 4, 0),
                (b".symtab", 2, 0, 0, bytes(table), 4, 1, 8, 24), (b".strtab", 3, 0, 0, bytes(names), 0, 0, 1, 0),
                (b".shstrtab", 3, 0, 0, titles, 0, 0, 1, 0)]
    body, sections, at = b"", bytes(64), 4096
    for title, kind, flags, address, content, link, info, align, entry in contents:
        body += bytes(-at % align)
        at += -at % align
        sections += struct.pack("<IIQQQQIIQQ", titles.index(title), kind, flags, address, at, len(content), link, info, align, entry)
        body += content
        at += len(content)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, begin, 64, at, 0, 64, 56, 1, 64, len(contents) + 1, len(contents))
    head += struct.pack("<IIQQQQQQ", 1, 5, 4096, begin, begin, end - begin, end - begin, 4096)
    Path(path).write_bytes(head + bytes(4096 - len(head)) + body + sections)
    return True
