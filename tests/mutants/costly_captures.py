"""Small captures that are made to cost much time or memory, each for one place where cost once grew faster than size.

    costly_captures.py FOLDER [NAME...]     writes them there, as NAME.data, without the ones that need frames
"""
import struct
import sys
from pathlib import Path

IP, TID, TIME, CALLCHAIN, CPU, PERIOD, IDENTIFIER = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 7, 1 << 8, 1 << 16
USUAL = IDENTIFIER | IP | TID | TIME | CPU | PERIOD
SAMPLE_ID_ALL = 1 << 18
ATTR_SIZE, HEADER_SIZE = 128, 104
SAMPLE, MMAP2, COMM, FORK, KSYMBOL, FINISHED_ROUND, COMPRESSED = 9, 10, 3, 7, 17, 68, 81
HEADER_ATTR, HEADER_TRACING_DATA = 64, 66
BUILD_ID_FEATURE, COMPRESSED_FEATURE = 2, 27
USER = 2
ROUND = struct.pack("<IHH", FINISHED_ROUND, 0, 8)
USER_MARK = (1 << 64) - 512  # in a call chain: user addresses follow


def attr(sample_type=USUAL, config=0):
    return struct.pack("<IIQQQQQ", 1, ATTR_SIZE, config, 1000, sample_type, 0, SAMPLE_ID_ALL) + bytes(ATTR_SIZE - 48)


def record(type_, misc, body):
    return struct.pack("<IHH", type_, misc, 8 + len(body)) + body


def trailer(pid, time):
    return struct.pack("<IIQIIQ", pid, pid, time, 0, 0, 1)


def sample(ip=0x1000, pid=1, time=1, event=1, chain=None):
    body = struct.pack("<QQIIQIIQ", event, ip, pid, pid, time, 0, 0, 1)
    if chain is not None:
        body += struct.pack(f"<{len(chain) + 1}Q", len(chain), *chain)
    return record(SAMPLE, USER, body)


def mapping(pid, start, size, name, time):
    path = name.encode() + bytes(8 - len(name) % 8)
    return record(MMAP2, USER, struct.pack("<IIQQQIIQQII", pid, pid, start, size, 0, 8, 1, 77, 0, 5, 2) + path + trailer(pid, time))


def fork(pid, parent, time):
    return record(FORK, 0, struct.pack("<IIIIQ", pid, parent, pid, parent, time) + trailer(pid, time))


def capture(data, events=None, features=None):
    """A file: its events are pairs of an attribute and the list of its ids."""
    events, features = events or [(attr(), [1])], features or {}
    ids = b"".join(struct.pack(f"<{len(numbers)}Q", *numbers) for _, numbers in events)
    table, at = bytearray(), HEADER_SIZE
    for description, numbers in events:
        table += description + struct.pack("<QQ", at, 8 * len(numbers))
        at += 8 * len(numbers)
    start = at + len(table)
    return file_of(ids, at, table, start, data, features)


def file_of(ids, table_at, table, start, data, features):
    bits, places, bodies = 0, b"", b""
    body_at = start + len(data) + 16 * len(features)
    for number, body in sorted(features.items()):
        bits |= 1 << number
        places += struct.pack("<QQ", body_at + len(bodies), len(body))
        bodies += body
    head = struct.pack("<8sQQQQQQQQ", b"PERFILE2", HEADER_SIZE, ATTR_SIZE + 16, table_at, len(table), start, len(data), 0, 0)
    return head + bits.to_bytes(32, "little") + ids + table + data + places + bodies


def join(records):
    return b"".join(records)


# Process i at address 16 i: one key for all, where space and address are joined by XOR.
def pids_and_addresses(count=90000):
    return capture(join(sample(ip=16 * i, pid=i, time=i) for i in range(1, count)))


# Multiples of sizes that std::unordered_map grows to: one bucket for all.
def ids_of_one_bucket():
    return capture(sample(), [(attr(), [1 + 85229 * 172933 * i for i in range(80000)])])


def pids_of_one_bucket():
    pids = [85229 * i & 0xffffffff for i in range(1, 40000)]
    return capture(join(sample(pid=pid, time=1 + time) for time, pid in enumerate(pids)))


def many_events():
    return capture(sample(event=5), [(attr(config=i % 10), [i + 1]) for i in range(50000)])


# One list of ids for many events.
def shared_ids():
    count, numbers = 3000, struct.pack("<8192Q", *range(1, 8193))
    table = (attr() + struct.pack("<QQ", HEADER_SIZE, len(numbers))) * count
    at = HEADER_SIZE + len(numbers)
    return file_of(numbers, at, table, at + len(table), sample(), {})


def forks_of_many_mappings():
    first = join(mapping(1, 0x10000 * i, 0x1000, "/x", i) for i in range(1, 5000))
    return capture(first + join(fork(pid, 1, 5000 + pid) for pid in range(2, 25000)) + sample(time=50000))


def forks_that_map():
    first = [mapping(1, 0x10000 * i, 0x1000, "/x", i) for i in range(1, 3000)]
    later = [fork(pid, pid - 1, 5000 + 2 * pid) + mapping(pid, 0x50000, 0x1000, "/y", 5001 + 2 * pid) for pid in range(2, 15000)]
    return capture(join(first + later) + sample(time=50000))


def nested_mappings():
    count = 150000
    return capture(join(mapping(1, 0x1000 * i, 0x2000 * (count - i), "/x", i) for i in range(1, count)) + sample(time=count))


# The texts of frames hold the module's path, so they are far longer than the samples that they are made of.
def long_names():
    first = mapping(1, 0x100000, 0x1000000, "/" + "A" * 40000, 1)
    places = (0x100000 + 16 * i for i in range(8000))
    data = join(sample(ip=ip, time=10 + ip, chain=[USER_MARK, ip]) for ip in places)
    return capture(first + data, [(attr(USUAL | CALLCHAIN), [1])])


def empty_rounds():
    return capture(ROUND * 4000000 + sample())


def comm(pid, name, time):
    text = name.encode() + bytes(8 - len(name) % 8)
    return record(COMM, 0, struct.pack("<II", pid, pid) + text + trailer(pid, time))


# A thread for each record: what is known of it takes more bytes than its record has.
def names_of_many_threads():
    return capture(join(comm(i, f"c{i}", i) for i in range(1, 500000)) + sample(time=1000000))


def forks_of_unknown_parents():
    return capture(join(fork(i, i + 1, 5) for i in range(1, 500000)) + sample(time=1000000))


# A function of its own for each record.
def kernel_functions():
    def named(i):
        name = f"bpf_prog_{i}".encode()
        body = struct.pack("<QIHH", 0xffffffffa0000000 + 16 * i, 16, 1, 0) + name + bytes(8 - len(name) % 8)
        return record(KSYMBOL, 0, body + trailer(1, i))
    return capture(join(named(i) for i in range(500000)) + sample(time=1000000))


# Before each sample a new name and a new program in place of the old one.
def a_program_for_each_sample(count=100000):
    def one(i):
        program = comm(1, f"c{i}", 3 * i) + mapping(1, 0x1000, 0x1000, f"/x/{i}", 3 * i + 1)
        return program + sample(ip=0x1100, time=3 * i + 2, chain=[USER_MARK, 0x1100, 0x1200])
    return capture(join(one(i) for i in range(count)), [(attr(USUAL | CALLCHAIN), [1])])


def many_ids():
    return capture(sample(event=5), [(attr(), list(range(1, 3000001)))])


# Ids in descending order, and far apart.
def scattered_ids():
    return capture(sample(event=5), [(attr(), [i * 100003 for i in range(300000, 0, -1)])])


def an_event_for_each_id():
    return capture(sample(event=5), [(attr(config=i % 10), [i + 1]) for i in range(200000)])


# A pipe that describes its tracepoints again and again, and each time has the names of many events to make.
def descriptions_without_end():
    events = join(record(HEADER_ATTR, 0, attr() + struct.pack("<Q", i + 1)) for i in range(30000))
    return struct.pack("<QQ", 0x32454c4946524550, 16) + events + record(HEADER_TRACING_DATA, 0, struct.pack("<I", 0)) * 30000


def many_build_ids():
    def entry(i):
        name = f"/x/{i:012}".encode() + bytes(1)
        return struct.pack("<IHHi20s4x", 0, 0, 36 + len(name), -1, f"{i:020}".encode()) + name
    return capture(sample(), features={BUILD_ID_FEATURE: join(entry(i) for i in range(500000))})


def damage_everywhere():
    """Nothing sound: at every few bytes what looks like the start of a large record, of each kind in its turn."""
    longest = 0xfff8
    pieces = [struct.pack("<IHH", type_, 0, longest) for type_ in (*range(1, 23), *range(64, 87), 40, 200)]
    pieces += [struct.pack("<IHHII", 64, 0, longest, 0, 64), struct.pack("<IHHQQ", 78, 0, longest, 2, 1), b"[ perf record ]\n"]
    pieces += [struct.pack("<IHH", MMAP2, 2, longest) * 100 + b"A" * 60000, struct.pack("<IHHQ", SAMPLE, 2, longest, 1)]
    first, size = sample(time=5), 100000
    return capture(first + join((piece * (size // len(piece) + 1))[:size] for piece in pieces) + sample(time=9))


def frame_of_copies(piece, size):
    """A zstd frame of so many bytes, made of a piece of 48 to 63 again and again: each block of it is a copy of what
    was before, in some 14 bytes."""
    most = 1 << 17  # bytes of a block
    frame = struct.pack("<IBB", 0xFD2FB528, 0, 13 << 3)  # a window of 8 MiB
    for at in range(0, size, most):
        # The first block has the piece itself. Numbers are a code each, and bits that are added to its number.
        literals, literal_code, literal_bits = (piece, 24, len(piece) - 48) if at == 0 else (b"", 0, 0)
        width = 4 if at == 0 else 0
        matched, distance = min(most, size - at) - len(literals), len(piece) + 3
        bits = literal_bits | (matched - 65539) << width | (distance - 32) << (width + 16) | 1 << (width + 16 + 5)
        head = struct.pack("<H", 1 << 2 | len(literals) << 4) if literals else b"\0"
        sequence = bytes([1, 0b01010100, literal_code, 5, 52]) + bits.to_bytes((bits.bit_length() + 7) // 8, "little")
        block = head + literals + sequence
        frame += struct.pack("<I", int(at + most >= size) | 2 << 1 | len(block) << 3)[:3] + block
    return frame


# Each record holds more than any recorder puts into one.
def large_frames():
    frame = record(COMPRESSED, 0, frame_of_copies(sample(), 1500 << 17))
    return capture(frame * 3 + sample(), features={COMPRESSED_FEATURE: struct.pack("<IIIII", 0, 1, 1, 1, (1 << 32) - 1)})


PLAIN = [damage_everywhere, pids_and_addresses, ids_of_one_bucket, pids_of_one_bucket, many_events, shared_ids, forks_of_many_mappings,
         forks_that_map, nested_mappings, long_names, empty_rounds, names_of_many_threads, forks_of_unknown_parents,
         kernel_functions, a_program_for_each_sample, many_ids, scattered_ids, an_event_for_each_id, many_build_ids,
         large_frames]


# Records for zstd frames; the caller compresses them first.
def samples_of_one_time():
    return capture(sample() * 6000)


def long_chains():
    return capture(sample(chain=[USER_MARK] + [0x1000] * 8000) * 16, [(attr(USUAL | CALLCHAIN), [1])])


def frames_of(path):
    """The COMPRESSED records of a capture."""
    data = path.read_bytes()
    at, size = struct.unpack_from("<QQ", data, 40)
    end, found = at + size, []
    while at < end:
        type_, _, length = struct.unpack_from("<IHH", data, at)
        if type_ == COMPRESSED:
            found.append(data[at:at + length])
        at += length
    return found


def of_frames(frames, sample_type=USUAL):
    return capture(join(frames), [(attr(sample_type), [1])], {COMPRESSED_FEATURE: struct.pack("<IIIII", 0, 1, 1, 1, 1 << 19)})


if __name__ == "__main__":
    for make in PLAIN:
        if len(sys.argv) == 2 or make.__name__ in sys.argv[2:]:
            Path(sys.argv[1], make.__name__ + ".data").write_bytes(make())
