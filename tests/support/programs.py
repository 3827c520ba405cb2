"""Runs the programs under test; base classes and helpers of all Python tests."""
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path

import readers

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build" / "bin"))
SKIPPED = 77  # CTest's SKIP_RETURN_CODE
PATIENCE = int(os.environ.get("TACHO_PATIENCE", "120"))  # seconds, for one program; an emulated machine takes longer
KEEP = "TACHO_KEEP" in os.environ

# Scale of heavy tests: a tenth by default, 1 with script/test --long.
SCALE = float(os.environ.get("TACHO_TEST_SCALE", "0.1"))


@functools.cache
def is_sanitized():
    """Whether the programs are built with AddressSanitizer, which takes memory of its own."""
    return b"__asan_init" in (BIN / "tacho-report").read_bytes()


def scaled(count, least=1):
    """A number of repetitions, at the scale of this run."""
    return max(least, round(count * SCALE))


def part_of(items, turn=0):
    """A share of the items at the scale of this run, at least one. `turn`, a number or a text, chooses which: numbers in a
    row take all items, a test's id always the same ones."""
    step = max(1, round(1 / SCALE))
    start = turn if isinstance(turn, int) else zlib.crc32(turn.encode())
    return items[start % step::step] or [items[start % len(items)]]


needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root")
needs_perf = unittest.skipUnless(shutil.which("perf"), "needs perf (Debian: linux-perf)")
needs_btf = unittest.skipUnless(Path("/sys/kernel/btf/vmlinux").exists(), "needs a kernel with BTF")
has_clang = bool(shutil.which("clang"))
needs_clang = unittest.skipUnless(has_clang, "needs clang")


def recorder_of(words):
    """Which recorder a command line starts: "perf", "tacho", or None."""
    program = Path(words[0])
    if program.parent != BIN and program.name != "perf" or program.name == "tacho-report":  # which reads
        return None
    records = program.name == "tacho-record" or {"record", "live", "top"} & set(words[1:2])
    if not records or {"--help", "--version", "-h", "--compile"} & set(words):
        return None
    return "perf" if program.name == "perf" else "tacho"


def refuse_undeclared_recorders(event, arguments):
    """An audit hook: perf record aborts beside tacho's events, so CTest must know which test starts which recorder."""
    if event != "subprocess.Popen":
        return
    recorder = recorder_of([os.fsdecode(word) for word in arguments[1]])
    if recorder and recorder not in DECLARED.split(","):
        word = {"perf": "PERF_RECORDS", "tacho": "RECORDS"}[recorder]
        raise AssertionError(f"this test runs {recorder} record: add {word} to its tacho_program_test() in CMakeLists.txt")


DECLARED = os.environ.get("TACHO_RECORDS")  # none, tacho, perf or tacho,perf: tests/CMakeLists.txt; unset outside of CTest
if DECLARED:
    sys.addaudithook(refuse_undeclared_recorders)


def built_once(test_class, sources):
    """A folder with C programs (name: source), compiled once for all tests of a class."""
    folder = Path(tempfile.mkdtemp(prefix="tacho-built-"))
    test_class.addClassCleanup(shutil.rmtree, folder)
    for name, source in sources.items():
        (folder / f"{name}.c").write_text(source)
        subprocess.run(["cc", "-O1", "-fno-omit-frame-pointer", "-pthread", "-o", folder / name, folder / f"{name}.c"], check=True)
    return folder


def lost_samples(said):
    """Samples that the closing lines of a recording count as lost, but for those of a clock that the kernel did not take: on a busy
    machine there may be some in any recording."""
    left_out = re.search(r"about (\d+) of \d+ samples \(\d+ %\) are missing: the kernel takes none", said)
    return int(re.search(r"\(\d+ samples, (\d+) lost\)", said)[1]) - (int(left_out[1]) if left_out else 0)


def wait_for_child(parent, name, seconds=60):
    """Waits for the child of that name, and returns its pid."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    for _ in range(seconds * 20):
        for child in children.read_text().split():
            try:
                if Path(f"/proc/{child}/comm").read_text().strip() == name:
                    return int(child)
            except OSError:
                pass  # it has exited meanwhile
        time.sleep(0.05)
    raise AssertionError(f"process {parent} never started {name}")


def without_gone_files(text):
    """Without frames of files that were gone when they ran: tacho held them open, perf cannot read them."""
    return b"".join(line for line in text.splitlines(True) if b" (deleted))" not in line)


def without_unloaded_programs(ours, theirs):
    """Our text, with perf's [unknown] for BPF programs that ran on after they were unloaded: tacho still names these."""
    lines, others = ours.split(b"\n"), theirs.split(b"\n")
    if len(lines) == len(others):
        unknown = b" [unknown] ([unknown])"
        lines = [other if other.endswith(unknown) and line.startswith(other[:-len(unknown)] + b" bpf_prog_") else line
                 for line, other in zip(lines, others)]
    return b"\n".join(lines)


def without_plt_got(text):
    """Addresses in .plt.got have no name. perf's _init reaches over them, but whether it finds that depends on the shape of its tree of
    symbols."""
    return re.sub(rb" _init\+0x[0-9a-f]+ \(", b" [unknown] (", text)


class Scratch(unittest.TestCase):
    """A test with its own folder, which is also HOME, so that no perf configuration or cache is used. With TACHO_KEEP=1
    the folder stays, and the programs that run are printed."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tacho-test-"))
        if KEEP:
            print(f"{self.id()}: in {self.folder}", file=sys.stderr)
        else:
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        if os.environ.get("TACHO_READERS") and DECLARED != "none":
            self.addCleanup(self.check_readers)

    def check_readers(self):
        """perf reads what the test recorded (tests/support/readers.py)."""
        self.assertEqual(readers.check(self.folder), [])

    def run_program(self, *words, status=0, **more):
        """Runs a program in the folder and checks its exit status (None: any). Output is bytes."""
        environment = dict(os.environ, HOME=str(self.folder), PAGER="cat", LC_ALL="C.UTF-8", TZ="UTC")
        if KEEP:
            print("+", shlex.join(map(str, words)), file=sys.stderr)
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder, env=environment, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, **more)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{' '.join(map(str, words))}\n{done.stderr.decode(errors='replace')}")
        return done

    def tacho(self, *words, **more):
        return self.run_program(BIN / "tacho", *words, **more)

    def need_recorder(self, name="exec"):
        """Skips the test if this tacho was built without recorders, or without this one."""
        done = self.run_program(BIN / "tacho-record", "-e", f"{name}/help/", status=None)
        if done.returncode != 0:
            self.skipTest(done.stderr.decode())

    def bring(self, folder):
        """Its files stand in the test's folder, too."""
        for file in folder.iterdir():
            shutil.copy(file, self.folder)

    def perf(self, *words, **more):
        return self.run_program("perf", *words, **more)

    def same_scripts(self, capture, *options):
        """Checks that `perf script` and `tacho script` print the same for a capture, and returns the text."""
        # A copy: beside the kernel's own list perf would find /proc/kcore, and take modules for the kernel itself.
        kallsyms = self.folder / "kallsyms"
        if not kallsyms.exists():
            kallsyms.write_bytes(Path("/proc/kallsyms").read_bytes())
        theirs = self.perf("script", "--kallsyms", kallsyms, *options, "-i", capture).stdout
        ours = self.run_program(BIN / "tacho-report", "script", "--as-perf", *options, "-i", capture).stdout
        self.assert_same_recorded(ours, theirs)
        return ours.decode(errors="replace")

    def assert_same_recorded(self, ours, theirs):
        """Our and perf's text of what was just recorded here, maybe beside other tests: equal but for what depends on the moment."""
        ours, theirs = (without_plt_got(without_gone_files(text)) for text in (ours, theirs))
        self.assert_same_text(without_unloaded_programs(ours, theirs), theirs)

    def assert_same_text(self, ours, theirs):
        """Equal bytes, or the first line that differs."""
        if ours == theirs:
            return
        ours, theirs = ours.split(b"\n"), theirs.split(b"\n")
        for number, (mine, other) in enumerate(zip(ours, theirs), 1):
            self.assertEqual(mine, other, f"line {number}")
        self.assertEqual(len(ours), len(theirs), "number of lines")


def main():
    """Runs the file's tests; if all were skipped, exits with CTest's skip code."""
    result = unittest.main(module="__main__", verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == len(result.skipped):
        sys.exit(SKIPPED)
