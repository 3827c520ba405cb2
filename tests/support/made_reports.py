"""Captures for report: many samples with branch stacks or data sources, from a deterministic generator.

    made_reports.py FOLDER      writes every capture of REPORTS there, as NAME.data
"""
import struct
import sys
from pathlib import Path

import made_capture
from made_capture import (ADDR, BRANCH_STACK, CALLCHAIN, CODE_PAGE_SIZE, CONTEXT_KERNEL, CONTEXT_USER, DATA_PAGE_SIZE,
                          DATA_SRC, KERNEL, KERNEL_TEXT, LEAF_A, LEAF_B, MAIN, PHYS_ADDR, PID, PMU, PROGRAM, RECURSE,
                          START, USER, USUAL, WEIGHT, WEIGHT_STRUCT, Capture, Event, branch_flags)

HAS_BRANCH_STACK = 15  # the header feature
ORDER_START = 0x7f1000000000
ANY_BRANCH = 1 << 3
SPIN_PLACES = [MAIN + 5, MAIN + 0x20, LEAF_A + 4, LEAF_A + 9, LEAF_B + 2, RECURSE, RECURSE + 0x13, START + 0x1370,
               START + 0x1255]
ORDER_PLACES = [ORDER_START + 0x1090, ORDER_START + 0x11e4, ORDER_START + 0x1215, ORDER_START + 0x1260]
KERNEL_PLACES = [KERNEL_TEXT + 0xc0, KERNEL_TEXT + 0x360310, KERNEL_TEXT + 0x11ed4a8, 0xffffffff821f1394]
NOWHERE = [0x10, 0x7ff000001000, 0xffffffffff600000]


class Chance:
    """A pseudorandom generator that does not depend on the version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit

    def one_of(self, items):
        return items[self.below(len(items))]


def two_programs(made):
    """spin with a library, and a second thread."""
    made.started()
    made.mapped(PID, ORDER_START + 0x1000, 0x1000, 0x1000, "/tmp/c/order")
    return made


def flags_of(chance, kinds):
    made = {}
    if "prediction" in kinds:
        made[chance.one_of(["predicted", "predicted", "predicted", "mispredicted"])] = 1
    if "cycles" in kinds:
        made["cycles"] = chance.one_of([0, 1, 3, 17, 250])
    if "transaction" in kinds:
        made["in_transaction"] = chance.below(2)
        made["abort"] = int(chance.below(8) == 0)
    if "types" in kinds:
        made["type_"] = chance.below(12)
    return branch_flags(**made)


def branch_samples(seed, count, kinds, sample_type=0, places=None, nowhere=True, deepest=5):
    """`kinds`: flags of branches. A few branch addresses are unmapped, and some samples have no branches."""
    chance = Chance(seed)
    made = two_programs(Capture(Event("branches:upp", PMU, 0xc4, USUAL | BRANCH_STACK | sample_type, branch=ANY_BRANCH),
                                features={HAS_BRANCH_STACK: b""}))
    places = places or SPIN_PLACES + ORDER_PLACES + KERNEL_PLACES
    for _ in range(count):
        ends = places + (NOWHERE if nowhere and chance.below(6) == 0 else [])
        branches = [(chance.one_of(ends), chance.one_of(ends), flags_of(chance, kinds))
                    for _ in range(chance.below(deepest + 1))]
        ip, misc = (chance.one_of(SPIN_PLACES), USER) if chance.below(4) else (chance.one_of(KERNEL_PLACES), KERNEL)
        chain = [CONTEXT_KERNEL, ip, CONTEXT_USER, MAIN + 0x20] if misc == KERNEL else [CONTEXT_USER, ip, MAIN + 0x20]
        made.sample(ip=ip, misc=misc, branches=branches, period=1000 + chance.below(9), chain=chain, weight=chance.below(50))
    return made


def branches_in_loops():
    """Few places, so that branches come again in the same order, with and without the call chains that they give."""
    chance = Chance(7)
    made = two_programs(Capture(Event("branches:upp", PMU, 0xc4, USUAL | BRANCH_STACK | CALLCHAIN, branch=ANY_BRANCH),
                                features={HAS_BRANCH_STACK: b""}))
    places = [MAIN + 0x20, LEAF_A + 4, LEAF_B + 2, KERNEL_PLACES[1]]
    for _ in range(150):
        loop = [(chance.one_of(places), chance.one_of(places), branch_flags(
            predicted=chance.below(2), abort=int(chance.below(9) == 0), cycles=chance.one_of([0, 2, 40]),
            type_=chance.one_of([0, 1, 4, 15]), new_type=chance.below(8))) for _ in range(1 + chance.below(3))]
        before = [(chance.one_of(SPIN_PLACES), chance.one_of(places), branch_flags(type_=2))
                  for _ in range(chance.below(3))]
        branches = loop * (1 + chance.below(5)) + before
        chain = [CONTEXT_USER, branches[0][1], branches[0][0] + 5, MAIN + 0x30, START + 0x1370]
        if chance.below(3) == 0:
            chain[:0] = [CONTEXT_KERNEL, KERNEL_PLACES[2]]
        in_kernel = chain[0] == CONTEXT_KERNEL
        made.sample(ip=chain[1] if in_kernel else LEAF_A + 4, misc=KERNEL if in_kernel else USER, branches=branches,
                    period=1000 + chance.below(9), chain=chain)
    return made


def plain_branches():
    return branch_samples(1, 120, [])


def predicted_branches():
    return branch_samples(2, 200, ["prediction", "cycles", "transaction", "types"])


def branches_with_stacks():
    return branch_samples(3, 80, ["cycles"], CALLCHAIN)


DATA_PLACES = [START + 0x4048, START + 0x4040, START + 0x4030, START + 0x404c, START + 0x4008, 0x7f0000001000, 0x7f0000001040,
               0x7f0000001047, 0x7ffc00001000, 0xffffffff81000d48, 0x20]


def memory_samples(seed, count, sample_type, chains=False):
    chance = Chance(seed)
    made = two_programs(Capture(Event("cpu/mem-loads/", PMU, 0x1cd, USUAL | ADDR | DATA_SRC | sample_type),
                                Event("cpu/mem-stores/", PMU, 0x2cd, USUAL | ADDR | DATA_SRC | sample_type)))
    made.mapped(PID, START + 0x3000, 0x2000, 0x2000, PROGRAM, misc=USER | 1 << 13, protection=3)
    made.mapped(PID, 0x7f0000001000, 0x10000, 0, "//anon", misc=USER | 1 << 13, protection=3)
    made.mapped(PID, 0x7ffc00000000, 0x21000, 0, "[stack]", misc=USER | 1 << 13, protection=3)
    sources = [0x68100142, 0x1e05080021, 0x68100842, 0x68100246, 2 | 1 << 33 | 2 << 5, 2 | 13 << 33 | 1 << 37,
               2 | 1 << 24 | 10 << 26, 2 | 2 << 24 | 12 << 26 | 3 << 40, 2 | 16 << 19 | 4 << 40, 0]
    for _ in range(count):
        ip, misc = (chance.one_of(SPIN_PLACES), USER) if chance.below(4) else (chance.one_of(KERNEL_PLACES), KERNEL)
        weight = chance.one_of([0, 7, 7, 30, 255])
        if sample_type & WEIGHT_STRUCT:
            weight |= chance.one_of([0, 3, 12]) << 32 | chance.below(3) << 48
        made.sample(event=int(chance.below(3) == 0), ip=ip, misc=misc, addr=chance.one_of(DATA_PLACES), weight=weight,
                    data_src=chance.one_of(sources), phys_addr=chance.one_of([0, 0x12345000, 0x12346040, 1 << 40]),
                    data_page=chance.one_of([0, 4096, 2 << 20, 1 << 30]), code_page=chance.one_of([4096, 2 << 20]),
                    chain=[CONTEXT_USER, ip, MAIN + 0x20])
    return made


def loads():
    return memory_samples(4, 150, WEIGHT)


def loads_in_detail():
    return memory_samples(5, 150, WEIGHT_STRUCT | PHYS_ADDR | DATA_PAGE_SIZE | CODE_PAGE_SIZE)


def loads_with_stacks():
    return memory_samples(6, 60, WEIGHT | CALLCHAIN)


REPORTS = {
    "plain-branches": plain_branches,
    "predicted-branches": predicted_branches,
    "branches-with-stacks": branches_with_stacks,
    "branches-in-loops": branches_in_loops,
    "loads": loads,
    "loads-in-detail": loads_in_detail,
    "loads-with-stacks": loads_with_stacks,
}


if __name__ == "__main__":
    for name, make in REPORTS.items():
        (Path(sys.argv[1]) / f"{name}.data").write_bytes(make().file())
