"""Captures that this machine's hardware cannot record: branch stacks, data sources, registers of other machines.

Built from the layout in docs/capture-format.md, record by record, so that perf and tacho can read the same file.

    made_capture.py FOLDER      writes every capture of CAPTURES there, as NAME.data
"""
import struct
import sys
from pathlib import Path

IP, TID, TIME, ADDR, CALLCHAIN, CPU, PERIOD = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 7, 1 << 8
RAW, BRANCH_STACK, REGS_USER, WEIGHT, DATA_SRC = 1 << 10, 1 << 11, 1 << 12, 1 << 14, 1 << 15
IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR = 1 << 16, 1 << 17, 1 << 18, 1 << 19
CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, WEIGHT_STRUCT = 1 << 21, 1 << 22, 1 << 23, 1 << 24
USUAL = IDENTIFIER | IP | TID | TIME | CPU | PERIOD

HARDWARE, SOFTWARE, TRACEPOINT, PMU, SYNTH = 0, 1, 2, 4, 0x80000000
KERNEL, USER = 1, 2
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512
CALL_STACK = 1 << 11  # of branch_sample_type
ATTR_SIZE = 128
HOSTNAME, ARCH, EVENT_DESC, BRANCH_STACKS, CLOCK_DATA = 3, 6, 12, 15, 29
SAMPLE_ID_ALL = 1 << 18

PROGRAM, START, PID = "/tmp/c/spin", 0x555555554000, 4242
MAIN, LEAF_A, LEAF_B, RECURSE = (START + at for at in (0x10a0, 0x1280, 0x12a0, 0x12c0))
KERNEL_TEXT = 0xffffffff81000000
STEP = 1_234_567  # ns from one sample to the next


class Event:
    def __init__(self, name, type_, config, sample_type, period=1000, **more):
        self.name, self.type, self.config, self.sample_type, self.period = name, type_, config, sample_type, period
        self.more = more  # flags, config1, branch, regs_user, regs_intr

    def attr(self):
        more = self.more.get
        return struct.pack("<IIQQQQQIIQQQQIiQIHHIIQ", self.type, ATTR_SIZE, self.config, self.period, self.sample_type,
                           0, SAMPLE_ID_ALL | more("flags", 0), 0, 0, more("config1", 0), 0, more("branch", 0), more("regs_user", 0), 0, 0,
                           more("regs_intr", 0), 0, 0, 0, 0, 0, 0)


def text_field(text, size):
    return text.encode() + bytes(size - len(text.encode()))


def header_string(text):
    size = (len(text.encode()) + 1 + 63) // 64 * 64
    return struct.pack("<I", size) + text_field(text, size)


def record(type_, misc, body):
    return struct.pack("<IHH", type_, misc, 8 + len(body)) + body


def branch_flags(mispredicted=0, predicted=0, in_transaction=0, abort=0, cycles=0, type_=0, spec=0, new_type=0, priv=0):
    return (mispredicted | predicted << 1 | in_transaction << 2 | abort << 3 | cycles << 4 | type_ << 20 | spec << 24
            | new_type << 26 | priv << 30)


class Capture:
    def __init__(self, *events, features=None, arch="x86_64"):
        self.events, self.data, self.time = events, b"", 5_000_000_000
        self.features = {ARCH: header_string(arch), **(features or {})}  # None: without it

    def trailer(self):  # sample_id_all of the first event: TID TIME CPU IDENTIFIER
        return struct.pack("<IIQIIQ", PID, PID, self.time, 0, 0, 1)

    def mapped(self, pid, start, length, offset, name, misc=USER, protection=5):
        size = (len(name.encode()) + 8) // 8 * 8
        body = struct.pack("<IIQQQIIQQII", pid & 0xffffffff, pid & 0xffffffff, start, length, offset, 8, 1, 77, 0,
                           protection, 2)
        self.data += record(10, misc, body + text_field(name, size) + self.trailer())
        return self

    def named(self, name, tid=PID):
        self.data += record(3, 0, struct.pack("<II", PID, tid) + text_field(name, (len(name.encode()) + 8) // 8 * 8)
                            + self.trailer())
        return self

    def started(self):
        """A process with its program, and the kernel."""
        self.data += record(1, KERNEL, struct.pack("<IIQQQ", 0xffffffff, 0, KERNEL_TEXT, 0x2000000, KERNEL_TEXT)
                            + text_field("[kernel.kallsyms]_text", 24) + self.trailer())
        return self.named("spin").mapped(PID, START, 0x1000, 0, PROGRAM, protection=1).mapped(
            PID, START + 0x1000, 0x1000, 0x1000, PROGRAM)

    def other(self, type_, misc, body):
        self.data += record(type_, misc, body + self.trailer())
        return self

    def sample(self, event=0, ip=LEAF_A + 4, misc=USER, **fields):
        attr = self.events[event]
        has = lambda bit: attr.sample_type & bit
        self.time += STEP
        get = fields.get
        body = struct.pack("<QQ", event + 1, ip)
        if has(TID):
            body += struct.pack("<II", get("pid", PID), get("tid", PID))
        if has(TIME):
            body += struct.pack("<Q", self.time)
        if has(ADDR):
            body += struct.pack("<Q", get("addr", 0))
        if has(CPU):
            body += struct.pack("<II", get("cpu", 0), 0)
        if has(PERIOD):
            body += struct.pack("<Q", get("period", 1000))
        if has(CALLCHAIN):
            chain = get("chain", [])
            body += struct.pack(f"<{1 + len(chain)}Q", len(chain), *chain)
        if has(RAW):
            raw = get("raw", b"")
            raw += bytes(-(len(raw) + 4) % 8)
            body += struct.pack("<I", len(raw)) + raw
        if has(BRANCH_STACK):
            branches = get("branches", [])
            body += struct.pack("<Q", len(branches)) + b"".join(struct.pack("<QQQ", *one) for one in branches)
        if has(REGS_USER):
            body += registers(get("user", (0, ())))
        for bit, name in ((WEIGHT | WEIGHT_STRUCT, "weight"), (DATA_SRC, "data_src"), (TRANSACTION, "transaction")):
            if has(bit):
                body += struct.pack("<Q", get(name, 0))
        if has(REGS_INTR):
            body += registers(get("interrupt", (0, ())))
        for bit, name in ((PHYS_ADDR, "phys_addr"), (CGROUP, "cgroup"), (DATA_PAGE_SIZE, "data_page"), (CODE_PAGE_SIZE, "code_page")):
            if has(bit):
                body += struct.pack("<Q", get(name, 0))
        self.data += record(9, misc, body)
        return self

    def file(self):
        ids_at, out = 104, b"".join(struct.pack("<Q", i + 1) for i in range(len(self.events)))
        attrs_at = ids_at + len(out)
        for i, event in enumerate(self.events):
            out += event.attr() + struct.pack("<QQ", ids_at + 8 * i, 8)
        data_at = ids_at + len(out)
        out += self.data
        described = struct.pack("<II", len(self.events), ATTR_SIZE)
        for i, event in enumerate(self.events):
            described += event.attr() + struct.pack("<I", 1) + header_string(event.name) + struct.pack("<Q", i + 1)
        features = sorted((bit, body) for bit, body in {EVENT_DESC: described, **self.features}.items() if body is not None)
        body_at, bits, table = ids_at + len(out) + 16 * len(features), [0] * 4, b""
        for bit, body in features:
            table += struct.pack("<QQ", body_at, len(body))
            body_at += len(body)
            bits[bit // 64] |= 1 << bit % 64
        out += table + b"".join(body for _, body in features)
        head = struct.pack("<QQQQQQQQQ", 0x32454C4946524550, 104, ATTR_SIZE + 16, attrs_at,
                           len(self.events) * (ATTR_SIZE + 16), data_at, len(self.data), 0, 0)
        return head + struct.pack("<4Q", *bits) + out


def registers(abi_and_values):
    abi, values = abi_and_values
    return struct.pack("<Q", abi) + (struct.pack(f"<{len(values)}Q", *values) if abi else b"")


def branches():
    """Every flag and type of branches; within the program, into the kernel, and to unmapped addresses."""
    made = Capture(Event("branches:upp", PMU, 0xc4, USUAL | BRANCH_STACK, branch=1 << 3)).started()
    made.sample(branches=[(LEAF_A + 4, LEAF_B, branch_flags(predicted=1)),
                          (MAIN + 9, RECURSE + 1, branch_flags(mispredicted=1, cycles=65535)),
                          (LEAF_B + 8, KERNEL_TEXT + 5, branch_flags(in_transaction=1, cycles=1)),
                          (KERNEL_TEXT + 7, 0x10, branch_flags(abort=1, predicted=1, mispredicted=1))])
    made.sample(branches=[])
    made.sample(branches=[(LEAF_A, LEAF_B, branch_flags(type_=type_, spec=type_ % 4)) for type_ in range(16)])
    made.sample(branches=[(LEAF_A, LEAF_B, branch_flags(type_=15, new_type=new, priv=new % 8)) for new in range(16)])
    made.sample(ip=KERNEL_TEXT + 3, misc=KERNEL, branches=[(KERNEL_TEXT + 1, MAIN, branch_flags(predicted=1))])
    return made


def kept_calls():
    """--call-graph lbr: the LBR has the calls that have not returned, the call chain only the user ip."""
    made = Capture(Event("cycles:P", HARDWARE, 0, USUAL | CALLCHAIN | BRANCH_STACK, branch=CALL_STACK | 1)).started()
    calls = [(LEAF_A + 6, LEAF_B, 0), (MAIN + 9, LEAF_A, 0), (RECURSE + 5, MAIN, 0)]
    made.sample(ip=LEAF_B + 4, chain=[CONTEXT_USER, LEAF_B + 4], branches=calls)
    made.sample(ip=LEAF_B + 4, chain=[CONTEXT_USER, LEAF_B + 4, MAIN + 99], branches=calls[:1])
    made.sample(ip=KERNEL_TEXT + 3, misc=KERNEL, branches=calls,
                chain=[CONTEXT_KERNEL, KERNEL_TEXT + 3, KERNEL_TEXT + 99, CONTEXT_USER, LEAF_B + 4, MAIN + 99])
    made.sample(ip=KERNEL_TEXT + 3, misc=KERNEL, chain=[CONTEXT_KERNEL, KERNEL_TEXT + 3], branches=calls)
    made.sample(ip=MAIN + 1, chain=[CONTEXT_USER, MAIN + 1], branches=[(0x10, MAIN, 0)])
    return made


def instructions():
    """Branches as the program's own code has them, for the code between them."""
    made = Capture(Event("branches:upp", PMU, 0xc4, USUAL | BRANCH_STACK, branch=1 << 3)).started()
    taken = branch_flags(predicted=1, cycles=3)
    made.sample(ip=START + 0x12aa, branches=[(START + 0x1294, START + 0x12a0, taken),
                                            (START + 0x10c0, START + 0x1280, branch_flags(mispredicted=1))])
    made.sample(ip=START + 0x1294, branches=[(START + 0x1294, START + 0x12a0, taken),
                                            (START + 0x12b4, START + 0x1280, taken)])
    made.sample(ip=START + 0x1285, branches=[(START + 0x12a6, START + 0x12a0, branch_flags(in_transaction=1, abort=1)),
                                            (START + 0x1290, START + 0x1295, taken)])
    made.sample(ip=START + 0x1100, branches=[(START + 0x12b0, START + 0x1170, taken)])
    made.sample(ip=START + 0x1170, branches=[(START + 0x1294, START + 0x12c0, taken)])
    made.sample(ip=KERNEL_TEXT + 3, misc=KERNEL, branches=[(KERNEL_TEXT + 1, MAIN, taken)])
    return made


def memory():
    """Data sources of every kind, with weights, physical addresses and page sizes."""
    made = Capture(Event("mem-loads", PMU, 0x1cd, USUAL | ADDR | WEIGHT_STRUCT | DATA_SRC | PHYS_ADDR | DATA_PAGE_SIZE
                         | CODE_PAGE_SIZE)).started()
    pages = [0, 1, 4096, 65536, 2 << 20, 1 << 30, 512 << 30, 3 << 20, 1536, 1 << 50]
    sources = [0, 1, 2, 4, 8, 16, 31]                                             # operation
    sources += [2 | 1 << (5 + bit) for bit in range(14)]                          # level
    sources += [2 | 0x3fff << 5, 2 | (2 | 8 | 32) << 5, 2 | (4 | 8 | 64) << 5]
    sources += [2 | number << 33 for number in range(16)]                         # level as a number
    sources += [2 | 3 << 33 | 1 << 37, 2 | 3 << 33 | 1 << 37 | 2 << 5]            # remote
    sources += [2 | 13 << 33 | 1 << 37 | hops << 43 | 4 << 5 for hops in range(5)]
    sources += [2 | 1 << (19 + bit) for bit in range(5)] + [2 | 31 << 19]         # snoop
    sources += [2 | bits << 38 for bits in range(4)] + [2 | 3 << 38 | 5 << 19]
    sources += [2 | 1 << 24, 2 | 2 << 24, 2 | 3 << 24]                            # lock
    sources += [2 | 1 << (26 + bit) for bit in range(7)] + [2 | 0x7f << 26, 2 | 10 << 26, 2 | 12 << 26]  # TLB
    sources += [2 | bits << 40 for bits in range(8)]                              # blocked
    sources += [0x1e05080021, 0x68100142]
    for number, source in enumerate(sources):
        page = pages[number % len(pages)]
        made.sample(addr=0x7f0000001000 + number, weight=number * 7 | (number * 3) << 32 | 5 << 48, data_src=source,
                    phys_addr=number << 12, data_page=page, code_page=pages[-1 - number % len(pages)])
    return made


def weights():
    """WEIGHT as one number of 64 bits."""
    made = Capture(Event("mem-stores", PMU, 0x2cd, USUAL | ADDR | WEIGHT | TRANSACTION)).started()
    for weight in (0, 7, 1 << 40, (1 << 64) - 1):
        made.sample(addr=LEAF_A + weight % 99, weight=weight, transaction=3)
    return made


def registers_of(arch, mask):
    values = [0x1111 * number for number in range(bin(mask).count("1"))]
    made = Capture(Event("cpu-clock", SOFTWARE, 0, USUAL | REGS_USER | REGS_INTR, regs_user=mask, regs_intr=mask),
                   arch=arch).started()
    made.sample(user=(2, values), interrupt=(1, values))
    made.sample(user=(0, ()), interrupt=(2, [(1 << 64) - 1 - value for value in values]))
    return made


def branch_trace():
    """What perf calls a branch trace: each branch a sample, with its target as the data address."""
    made = Capture(Event("branches", HARDWARE, 4, USUAL | ADDR, period=1)).started()
    made.sample(ip=LEAF_A + 4, addr=LEAF_B)
    made.sample(ip=LEAF_B + 8, addr=KERNEL_TEXT)
    made.sample(ip=0x10, addr=0)
    return made


def synthesized():
    """Events that perf makes of a processor trace."""
    # As the kernel would put it into RAW: perf's structures without their first word.
    kinds = [("ptwrite", 0, struct.pack("<IQ", 1, 0x1234)), ("ptwrite", 0, struct.pack("<IQ", 0, 0x6f6c6c6568)),
             ("mwait", 1, struct.pack("<III", 0, 0x20, 1)), ("pwre", 2, struct.pack("<IQ", 0, 0x5380)),
             ("exstop", 3, struct.pack("<I", 1)), ("pwrx", 4, struct.pack("<IQ", 0, 0x453)),
             ("cbr", 5, struct.pack("<III", 40 | 50 << 16, 4000499, 0)), ("cbr", 5, struct.pack("<III", 9, 1, 0)),
             ("psb", 6, struct.pack("<IQ", 0, 0xabcd)),
             ("evt", 7, struct.pack("<IQQQQ", 1 | 1 << 7 | 0x85 << 8 | 2 << 16, 0, 5, 9, 0x77)),
             ("evt", 7, struct.pack("<I", 31)), ("iflag", 8, struct.pack("<IQ", 3, 0x99)), ("iflag", 8, struct.pack("<IQ", 0, 0x99)),
             ("mwait", 1, b""), ("other", 99, struct.pack("<IQ", 3, 0x99))]
    names = []
    for name, config, _ in kinds:
        if (name, config) not in names:
            names.append((name, config))
    made = Capture(*(Event(name, SYNTH, config, USUAL | RAW) for name, config in names)).started()
    for name, config, raw in kinds:
        made.sample(event=names.index((name, config)), raw=raw)
    return made


def clocks():
    """A clock, and the time of day at one of its times."""
    clock = struct.pack("<IIQQ", 1, 1, 1_700_000_000_123_456_789, 5_000_500_000)
    made = Capture(Event("cpu-clock", SOFTWARE, 0, USUAL), Event("dummy", SOFTWARE, 9, USUAL),
                   features={CLOCK_DATA: clock}).started()
    for _ in range(4):
        made.sample(ip=LEAF_A)
    return made


def changed_code():
    """TEXT_POKE and KSYMBOL records between the samples."""
    made = Capture(Event("cpu-clock", SOFTWARE, 0, USUAL)).started().sample()
    made.other(20, KERNEL, struct.pack("<QHH", KERNEL_TEXT + 4, 5, 5) + bytes([15, 31, 68, 0, 0, 233, 1, 2, 3, 4])
               + bytes(2))
    made.sample()
    made.other(20, KERNEL, struct.pack("<QHH", 0xffffffffc0000000, 0, 20) + bytes(range(20)))
    name = "bpf_trampoline_1"
    made.other(17, KERNEL, struct.pack("<QIHH", 0xffffffffc0000000, 4096, 2, 0) + text_field(name, 24))
    return made.sample()


CAPTURES = {
    "branches": branches,
    "kept-calls": kept_calls,
    "instructions": instructions,
    "memory": memory,
    "weights": weights,
    "registers-x86": lambda: registers_of("x86_64", 0xffffffff00ffffff),
    "registers-some": lambda: registers_of("x86_64", 0xff0fff),
    "registers-arm64": lambda: registers_of("aarch64", 0x00004001ffffffff),
    "branch-trace": branch_trace,
    "synthesized": synthesized,
    "clocks": clocks,
    "changed-code": changed_code,
}


def write_all(folder):
    for name, make in CAPTURES.items():
        (Path(folder) / f"{name}.data").write_bytes(make().file())


if __name__ == "__main__":
    write_all(sys.argv[1])
