#!/usr/bin/env python3
"""Running programs with damaged unwind information: the recorder survives, and other stacks are unaffected.

Each mutant is a copy of one program, recursion and system calls in it, with bytes of its .eh_frame, its index or its headers
changed; it runs as before, since nothing throws. TACHO_MUTANTS says how many (default: 200; 5000 take a minute), TACHO_SEED
which."""
import os
import random
import re
import struct
import unittest

import programs

COUNT = int(os.environ.get("TACHO_MUTANTS", programs.scaled(200)))
SEED = int(os.environ.get("TACHO_SEED", "1"))
AT_ONCE = 250  # in one recording
MOST_MEMORY = 400 << 10  # KiB of the recorder


def sections_of(elf):
    """{section: (offset, size)}, and the offset of the section headers."""
    table, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    rows = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    texts = rows[names][4]
    return {elf[texts + row[0]:elf.index(b"\0", texts + row[0])].decode(): (row[4], row[5]) for row in rows}, table


def mutant(elf, dice):
    made = bytearray(elf)
    sections, headers = sections_of(elf)
    note = sections.get(".note.gnu.build-id")
    if note:  # distinguishes the files
        made[note[0] + 16:note[0] + 36] = dice.randbytes(20)
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        begin, size = sections[dice.choice((".eh_frame", ".eh_frame", ".eh_frame", ".eh_frame_hdr"))]
        at = begin + dice.randrange(size)
        kind = dice.randrange(6)
        if kind == 0:
            made[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            made[at] = dice.choice((0, 1, 0x7f, 0x80, 0xff))
        elif kind < 5:
            if kind == 2:
                piece = struct.pack("<I", dice.choice((0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0)))
            elif kind == 3:
                piece = dice.randbytes(dice.randrange(1, 33))
            else:  # section contents at another offset
                source = begin + dice.randrange(size)
                piece = elf[source:source + dice.randrange(1, 65)]
            piece = piece[:begin + size - at]
            made[at:at + len(piece)] = piece
        else:  # sections moved, enlarged or removed: not needed to run the program
            row = headers + dice.randrange(len(sections)) * 64
            struct.pack_into("<Q", made, row + dice.choice((16, 24, 32)), dice.choice((0, 1, 0x1000, 1 << 29, 1 << 40, 2**64 - 1)))
    return bytes(made)


@programs.needs_root
class HostileUnwindInformation(programs.Scratch):
    def setUp(self):
        super().setUp()
        if not re.search(r'"name":"unwinding","state":"ok"', self.tacho("doctor", "--json").stdout.decode()):
            self.skipTest("the kernel refused the unwinder")

    def record(self, names):
        load = programs.BIN / "getppid_load"
        work = "".join(f"./{name} 3 30 || exit 7\n" for name in names) + f"{load} 20 30\n"
        (self.folder / "work.sh").write_text(work)
        words = [programs.BIN / "tacho", "record", "-o", "x.data", "--no-pack", "--call-graph", "eh",
                 "-e", "syscalls:sys_enter_getppid/period=1/", "-e", "cpu-clock/freq=4000/", "--", "sh", "work.sh"]
        measure = "import resource, subprocess, sys\nstatus = subprocess.call(sys.argv[1:])\n" \
                  "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\nsys.exit(status)"
        said = self.run_program("python3", "-c", measure, *words).stderr.decode()
        self.assertLess(int(re.search(r"peak (\d+)", said).group(1)), MOST_MEMORY, said)
        return said

    def test_mutants_are_recorded(self):
        elf = (programs.BIN / "getppid_load").read_bytes()
        dice = random.Random(SEED)
        for begin in range(0, COUNT, AT_ONCE):
            names = [f"m{number}" for number in range(begin, min(COUNT, begin + AT_ONCE))]
            for name in names:
                (self.folder / name).write_bytes(mutant(elf, dice))
                (self.folder / name).chmod(0o755)
            said = self.record(names)
            text = self.tacho("script", "-i", "x.data", "--event", "syscalls:sys_enter_getppid", "-F", "comm,ip,sym").stdout.decode()
            calls = text.split("\n\n")
            of_mutants = [block for block in calls if re.match(r"m\d+ ", block)]
            self.assertGreaterEqual(len(of_mutants), 3 * len(names), said)
            sound = [block for block in calls if block.startswith("getppid_load ")]
            whole = [block for block in sound if block.rstrip().splitlines()[-1].endswith("_start")]
            self.assertGreaterEqual(len(sound), 20)
            self.assertEqual(len(whole), len(sound), "the program that was left as it is has whole stacks")
            for name in names:
                (self.folder / name).unlink()


if __name__ == "__main__":
    programs.main()
