#!/usr/bin/env python3
"""convert and redact write captures in a sandboxed process: the output is that of one
process without a sandbox; if it is killed, another one starts over, and nothing of the first stays."""
import contextlib
import os
import random
import signal
import struct
import subprocess
import time

import programs

SEED = int(os.environ.get("TACHO_MUTANTS_SEED", "20"))
KILLS = 12
GOLDEN = programs.ROOT / "tests" / "golden"
UNWOUND = GOLDEN / "captures" / "unwound.data"
WHOLE, INCOMPLETE = 0, 3
WAYS = [["convert", "-i", UNWOUND, "-o", "OUT", "--unwind", "--symfs", GOLDEN / "symfs"],
        ["convert", "-i", UNWOUND, "-o", "OUT", "-z3"],
        ["convert", "-i", UNWOUND, "-o", "OUT", "--to", "pipe"],
        ["redact", UNWOUND, "OUT", "--key", "a key"]]


PIPE_HEAD = struct.pack("<QQ", 0x32454C4946524550, 16)
SAMPLE, FINISHED_ROUND = 9, 68


def records_of(pipe):
    """(type, bytes) of the records of a plain pipe."""
    found, at = [], len(PIPE_HEAD)
    while at < len(pipe):
        type_, _, size = struct.unpack_from("<IHH", pipe, at)
        found.append((type_, pipe[at:at + size]))
        at += size
    return found


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


class Making(programs.Scratch):
    def command(self, way, out):
        return [str(programs.BIN / "tacho-report"), *(out if word == "OUT" else str(word) for word in way)]

    def made(self, way, out, *more):
        done = self.run_program(*self.command(way, out), *more, status=None)
        self.assertIn(done.returncode, (WHOLE, INCOMPLETE), done.stderr)
        content = (self.folder / out).read_bytes()
        return done.returncode, content, done.stderr.replace(out.encode(), b"OUT")

    def test_it_is_what_one_process_makes(self):
        for way in WAYS:
            with self.subTest(" ".join(map(str, way))):
                self.assertEqual(self.made(way, "apart.data"), self.made(way, "here.data", "--no-worker"))
                # Again, so that the output exists already.
                before = (self.folder / "apart.data").read_bytes()
                self.made(way, "apart.data")
                self.assertEqual((self.folder / "apart.data.old").read_bytes(), before)

    def test_to_a_pipe_as_well(self):
        for words in (["--unwind", "--symfs", str(GOLDEN / "symfs")], []):
            apart, here = (self.run_program(programs.BIN / "tacho-report", "convert", "-i", UNWOUND, "-o", "-", *words, *more, status=None)
                           for more in ([], ["--no-worker"]))
            self.assertEqual((apart.returncode, apart.stdout, apart.stderr), (here.returncode, here.stdout, here.stderr))
            self.assertGreater(len(apart.stdout), 1000)

    def test_killed_at_random_the_next_one_makes_it(self):
        random_ = random.Random(SEED)
        for way in WAYS:
            _, whole, _ = self.made(way, "whole.data")
            for _ in range(KILLS):
                program = subprocess.Popen(self.command(way, "again.data"), cwd=self.folder, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           env=dict(os.environ, LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=0"))
                while not children_of(program.pid) and program.poll() is None:
                    time.sleep(0.001)
                time.sleep(random_.random() * 0.03)
                for child in children_of(program.pid):
                    with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                        os.kill(child, signal.SIGKILL)
                _, said = program.communicate(timeout=programs.PATIENCE)
                if b"died when all was written" in said:
                    self.assertEqual((self.folder / "again.data").read_bytes(), whole)
                    continue
                self.assertIn(program.returncode, (WHOLE, INCOMPLETE), said)
                if b"was left out: the process that read it died: Killed" not in said:
                    self.assertEqual((self.folder / "again.data").read_bytes(), whole)
                self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".")], [])

    def test_a_pipe_that_pauses_amid_a_round_is_as_its_file(self):
        """Records after the pause that are older than those before are not out of order, and the pause adds no empty rounds."""
        self.run_program(programs.BIN / "tacho-report", "convert", "-i", UNWOUND, "-o", "piped.data", "--to", "pipe", "--plain")
        records = records_of((self.folder / "piped.data").read_bytes())
        first = [type_ for type_, _ in records].index(SAMPLE)
        head = [one for _, one in records[:first]]
        samples = [one for type_, one in records[first:] if type_ == SAMPLE]
        end = [one for type_, one in records[first:] if type_ not in (SAMPLE, FINISHED_ROUND)]
        third = len(samples) // 3
        self.assertGreater(third, 3)
        mark = struct.pack("<IHH", FINISHED_ROUND, 0, 8)
        # The samples of the last round are in reverse order.
        last = samples[2 * third:][::-1]
        parts = [PIPE_HEAD + b"".join([*head, *samples[:third], mark, *samples[third:2 * third], mark, *last[:third // 2]]),
                 b"".join([*last[third // 2:], *end, mark])]
        (self.folder / "piped.data").write_bytes(b"".join(parts))
        words = ["--unwind", "--symfs", str(GOLDEN / "symfs"), "--to", "pipe", "--plain"]
        command = [str(programs.BIN / "tacho-report"), "convert", *words]
        whole = self.run_program(*command, "-i", "piped.data", "-o", "whole.data", status=None)
        paused = subprocess.Popen([*command, "-i", "-", "-o", "paused.data"], cwd=self.folder, stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C.UTF-8"))
        paused.stdin.write(parts[0])
        paused.stdin.flush()
        time.sleep(1.5)
        _, said = paused.communicate(parts[1], timeout=programs.PATIENCE)
        self.assertNotIn(b"out of time order", whole.stderr)
        self.assertEqual((paused.returncode, said), (whole.returncode, whole.stderr.replace(b"piped.data", b"-")))
        of_file, of_pipe = (records_of((self.folder / name).read_bytes()) for name in ("whole.data", "paused.data"))
        self.assertEqual(*([one for type_, one in found if type_ != FINISHED_ROUND] for found in (of_file, of_pipe)))
        rounds = [sum(type_ == FINISHED_ROUND for type_, _ in found) for found in (of_file, of_pipe)]
        self.assertLessEqual(rounds[1], rounds[0] + len(parts) + 1, "one for each silence after something new")

    def test_the_old_file_stays_when_the_copy_fails(self):
        (self.folder / "out.data").write_bytes(b"before")
        (self.folder / "none.data").write_bytes(b"no capture")
        for way in (["convert", "-i", "none.data", "-o", "out.data"], ["redact", "none.data", "out.data"]):
            self.run_program(programs.BIN / "tacho-report", *way, status=2)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["none.data", "out.data"])
            self.assertEqual((self.folder / "out.data").read_bytes(), b"before")


if __name__ == "__main__":
    programs.main()
