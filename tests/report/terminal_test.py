#!/usr/bin/env python3
"""Output to a terminal: pager, colours and progress; pipes and files get none
of it."""
import os
import re
import pty
import shutil
import struct
import subprocess
import termios
import threading
import time

import made_capture
import made_payload
import programs
from made_payload import TEXT, Field

GOLDEN = programs.ROOT / "tests" / "golden"
CAPTURES = GOLDEN / "captures"
INPUT = ["-i", CAPTURES / "comm.data", "--symfs", GOLDEN / "symfs", "--kallsyms", CAPTURES / "kallsyms"]
END = b"\0the process has ended\0"
REPORT = ["report", "-g", "none", *INPUT]


class Terminal(programs.Scratch):
    def at_terminal(self, *words, status=0, stdin=subprocess.DEVNULL, feed=None, stdout=None, columns=0, **variables):
        """Runs tacho with stdout and stderr at a terminal of its own; returns the bytes shown there."""
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (0, columns))
        environment = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC",
                       "TERM": "xterm", **variables}
        process = subprocess.Popen([programs.BIN / "tacho", *words], cwd=self.folder, env=environment, stdin=stdin,
                                   stdout=stdout or slave, stderr=slave)
        feeder = threading.Thread(target=feed, args=[process.stdin]) if feed else None
        if feeder:
            feeder.start()
        ended = threading.Thread(target=self.mark_the_end, args=[process, slave])
        ended.start()
        shown = b""
        while not shown.endswith(END):
            shown += os.read(master, 4096)
        ended.join()
        os.close(slave)
        os.close(master)
        if feeder:
            feeder.join()
        shown = shown.removesuffix(END)
        self.assertEqual(process.returncode, status, shown)
        return shown.replace(b"\r\n", b"\n")

    @staticmethod
    def mark_the_end(process, slave):
        """Writes END to the terminal after the process's output. The slave stays open until END is read: the
        master of a closed terminal returns an error, perhaps before the last output."""
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.write(slave, END)

    @staticmethod
    def text_of(shown):
        """Without the lines about missing symbols."""
        return b"".join(line for line in shown.splitlines(keepends=True) if not line.startswith(b"tacho: "))

    def test_text_goes_through_the_pager_of_our_own_variable_first(self):
        pager = f"tee {self.folder}/paged"
        shown = self.at_terminal(*REPORT, TACHO_PAGER=pager, PAGER="false")
        self.assertIn(b"# Samples:", shown)
        # Lines about missing data follow the text.
        self.assertEqual((self.folder / "paged").read_bytes(), self.text_of(shown))

    def test_the_pager_gets_lesss_options_unless_the_user_has_some(self):
        pager = f'cat > /dev/null; printf %s "$LESS" > {self.folder}/less'
        self.at_terminal(*REPORT, PAGER=pager)
        self.assertEqual((self.folder / "less").read_text(), "FRX")
        self.at_terminal(*REPORT, PAGER=pager, LESS="i")
        self.assertEqual((self.folder / "less").read_text(), "i")

    def test_no_pager_without_a_terminal_or_when_it_is_not_wanted(self):
        pager = f"touch {self.folder}/started"
        self.at_terminal(*REPORT, "--no-pager", PAGER=pager)
        with open(self.folder / "rows", "wb") as rows:
            self.at_terminal(*REPORT, PAGER=pager, stdout=rows)
        self.at_terminal(*REPORT, "-o", "rows", PAGER=pager)
        self.at_terminal("report", "--help", PAGER=pager)
        self.at_terminal(*REPORT, PAGER="")
        self.at_terminal(*REPORT, PAGER=pager, TERM="dumb")
        self.assertFalse((self.folder / "started").exists())

    def test_a_heat_map_has_shades_in_colours_and_fits_the_terminal(self):
        words = ["heatmap", "--offset", "--no-pager", "-i", CAPTURES / "comm.data"]
        shown = self.text_of(self.at_terminal(*words, columns=70)).decode()
        self.assertRegex(shown, r"\x1b\[38;5;[0-9]+m[\u2591\u2592\u2593\u2588]+")
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        self.assertTrue(all(len(line) <= 70 for line in plain.splitlines() if re.match(r" *\S+ ?\w* \|", line)), plain)
        self.assertNotRegex(plain, r"\| *[1-9]")
        for locale in ("de_DE.utf-8", "C.utf8"):
            self.assertRegex(self.text_of(self.at_terminal(*words, LC_ALL=locale)).decode(), r"[\u2591\u2592\u2593\u2588]")
        for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C"}):
            shown = self.text_of(self.at_terminal(*words, **variable)).decode()
            self.assertNotIn("\x1b", shown)
            self.assertRegex(shown, r"\| *[1-9]")

    def test_a_pager_that_cannot_run_is_an_output_that_failed(self):
        shown = self.at_terminal(*REPORT, PAGER="nosuchpager", status=4)
        self.assertIn(b"tacho: pager 'nosuchpager': the shell cannot run it; --no-pager prints without a pager\n", shown)

    @programs.needs_root
    def test_root_runs_no_pager_from_a_folder_of_another_user(self):
        self.folder.chmod(0o755)
        theirs = self.folder / "theirs"
        theirs.mkdir()
        for name in ("less", "tee"):
            (theirs / name).write_text(f"#!/bin/sh\ntouch {self.folder}/ran\ncat\n")
            (theirs / name).chmod(0o755)
        os.chown(theirs, 65534, 65534)
        path = f"{theirs}:{os.environ['PATH']}"
        for pager in ("tee paged", "cat | tee paged", "X=1 tee paged"):
            self.assertIn(b"# Samples:", self.at_terminal(*REPORT, PAGER=pager, PATH=path), pager)
            (self.folder / "paged").unlink()
        for variables in ({"PATH": str(theirs)}, {"PAGER": str(theirs / "less")}):
            shown = self.at_terminal(*REPORT, **variables)
            self.assertIn(b"# Samples:", shown)
            self.assertIn(b"no pager: ", shown)
        self.assertFalse((self.folder / "ran").exists())

    def test_what_is_made_of_a_private_capture_is_private(self):
        capture = self.folder / "perf.data"
        capture.write_bytes((CAPTURES / "comm.data").read_bytes())
        symbols = ["--symfs", GOLDEN / "symfs"]
        for mode in (0o600, 0o644):
            capture.chmod(mode)
            for words in (["report"], ["flamegraph"], ["page"], ["script"], ["heatmap", "--offset"]):
                with self.subTest(mode=oct(mode), words=words):
                    self.tacho(*words, "-i", capture, *symbols, "-o", "made", status=None)
                    self.assertEqual((self.folder / "made").stat().st_mode & 0o777, mode)
                    (self.folder / "made").unlink()
        capture.chmod(0o600)
        shutil.copy(CAPTURES / "comm.data", self.folder / "public.data")
        self.tacho("flamegraph", "-i", "public.data", "--base", capture, *symbols, "-o", "made", status=None)
        self.assertEqual((self.folder / "made").stat().st_mode & 0o777, 0o600)

    @programs.needs_root
    def test_root_writes_no_text_by_a_link_of_another_user(self):
        self.folder.chmod(0o755)
        (self.folder / "mine").mkdir()
        (self.folder / "theirs").mkdir()
        (self.folder / "theirs/link").symlink_to(self.folder / "mine")
        for path in (self.folder / "theirs/link", self.folder / "theirs"):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        for words in (["report", "-i"], ["flamegraph", "-i"], ["page", "-i"], ["convert", "-i"], ["redact"]):
            for name in ("theirs/x", "theirs/link/x"):
                with self.subTest(words=words, name=name):
                    output = [name] if words == ["redact"] else ["-o", name]
                    said = self.tacho(*words, CAPTURES / "comm.data", *output, status=4).stderr.decode()
                    self.assertIn("theirs belongs to user 65534; name a file elsewhere", said)
        self.assertEqual(list((self.folder / "mine").iterdir()), [])

    def test_a_pager_that_is_left_early_is_no_failure(self):
        shown = self.at_terminal("script", *INPUT, PAGER="head -n 1")
        self.assertEqual(shown.split(b"\ntacho: ")[0].count(b"\n"), 0, shown)

    def test_shares_are_coloured_on_a_terminal_only(self):
        shown = self.at_terminal(*REPORT, PAGER="cat")
        self.assertIn(b"\033[31m", shown)
        self.assertNotIn(b"\033", self.at_terminal(*REPORT, PAGER="cat", NO_COLOR="1"))
        self.assertNotIn(b"\033", self.at_terminal(*REPORT, "--stdio-color", "never", PAGER="cat"))
        piped = self.tacho(*REPORT).stdout
        self.assertNotIn(b"\033", piped)
        self.assertIn(b"\033[31m", self.tacho(*REPORT, "--stdio-color", "always").stdout)
        for colour in [b"\033[31m", b"\033[32m", b"\033[m"]:
            shown = shown.replace(colour, b"")
        self.assertEqual(self.text_of(shown), piped)

    def test_tables_fit_the_terminal(self):
        name = "std::map<" + "int, " * 30 + ">::insert"
        capture = made_payload.capture(op=[Field("lat", unit="ns", role="value"), Field("file", TEXT, 1, 200, role="key")])
        for file in (name, "short"):
            capture.sample(raw=struct.pack("<Q200s", 7, file.encode()))
        (self.folder / "wide.data").write_bytes(capture.file())
        at_80 = {"columns": 80, "PAGER": "cat"}
        for words in (["table"], ["script", "--columns", "time,file,lat"], ["script", "--columns", "lat,file"],
                      ["hist", "--field", "file", "--by", "none"], ["report", "--sort", "comm,file"]):
            with self.subTest(words=words):
                words = [*words, "-i", "wide.data"]
                shown = self.text_of(self.at_terminal(*words, **at_80)).decode()
                shown = re.sub(r"\x1b\[\d*m", "", shown)  # colours take no columns
                lines = [line for line in shown.splitlines() if "insert" in line]
                self.assertTrue(lines)
                self.assertEqual({len(line) for line in lines} - set(range(40, 81)), set(), lines)
                self.assertTrue(all("std::map" in line and ".." in line for line in lines))
                self.assertIn("short", shown)
                wide = self.text_of(self.at_terminal(*words, "--wide", **at_80))
                self.assertIn(name.encode(), wide)
                self.assertIn(name.encode(), self.tacho(*words, "--wide").stdout)
                self.tacho(*words, "--wide", "-o", "file")
                self.assertIn(name, (self.folder / "file").read_text())

    def test_call_graphs_and_hierarchies_fit_the_terminal(self):
        leaf, caller = (f"{name}::" + "very_long_name_of_a_namespace::" * 4 + end for name, end in (("first", "leaf"), ("second", "caller")))
        mapping = made_capture.Capture(made_capture.Event("cpu-clock", made_capture.SOFTWARE, 0, made_capture.USUAL | made_capture.CALLCHAIN))
        mapping.mapped(made_capture.PID, 0x1000, 0x1000, 0, "//anon")
        for stack in ([0x1010, 0x1110, 0x1210], [0x1010, 0x1310, 0x1210], [0x1110, 0x1210]):
            mapping.sample(ip=stack[0], chain=[made_capture.CONTEXT_USER, *stack])
        (self.folder / "deep.data").write_bytes(mapping.file())
        names = {0x1000: leaf, 0x1100: caller, 0x1200: "main", 0x1300: caller.replace("second", "third")}
        (self.folder / f"perf-{made_capture.PID}.map").write_text("".join(f"{at:x} 100 {name}\n" for at, name in names.items()))
        at_80 = {"columns": 80, "PAGER": "cat"}
        for words in (["--no-children"], ["-G"], ["--hierarchy"], ["--hierarchy", "-g", "none", "--sort", "comm,{dso,sym}"],
                      ["-g", "flat"], ["-g", "fractal"]):
            with self.subTest(words=words):
                words = ["report", "-i", "deep.data", "--perf-map-dir", ".", *words]
                shown = self.text_of(self.at_terminal(*words, **at_80)).decode()
                lines = [line for line in re.sub(r"\x1b\[\d*m", "", shown).splitlines() if not line.startswith("# T") and ("%" in line or "--" in line or ".." in line)]
                self.assertEqual([line for line in lines if len(line) > 80], [])
                self.assertTrue([line for line in lines if re.search(r"(first|second)\S*\.\.\S*(leaf|caller)", line)], shown)
                wide = self.text_of(self.at_terminal(*words, "--wide", **at_80)).decode()
                self.assertIn(leaf, wide)
                self.assertIn(caller, wide)

    def test_a_file_gets_the_same_text_as_a_pipe(self):
        self.tacho(*REPORT, "-o", "rows")
        self.assertEqual((self.folder / "rows").read_bytes(), self.tacho(*REPORT).stdout)

    def test_a_failure_leaves_the_file_as_it_was(self):
        (self.folder / "rows").write_text("old")
        self.tacho("report", "-i", "nosuch.data", "-o", "rows", status=2)
        self.tacho("script", "-i", CAPTURES / "clocks.data", "--switch-off", "nosuch", "-o", "rows", status=1)
        self.assertEqual((self.folder / "rows").read_text(), "old")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["rows"])

    def test_the_capture_is_not_overwritten(self):
        (self.folder / "perf.data").write_bytes((CAPTURES / "comm.data").read_bytes())
        done = self.tacho("script", "-o", "perf.data", status=1)
        self.assertEqual(done.stderr, b"tacho: -o: perf.data is the capture itself\n")

    def test_who_waits_at_a_terminal_sees_how_far_it_is(self):
        made = made_capture.Capture(made_capture.Event("clock", made_capture.SOFTWARE, 0, made_capture.USUAL)).started()
        for _ in range(12_000):
            made.sample()
        (self.folder / "many.data").write_bytes(made.file())
        pipe = self.tacho("convert", "-i", "many.data", "-o", "-", "--plain").stdout
        # Progress is also shown if a filter rejects every sample.
        for words in [], ["--comms", "nosuch"]:
            with self.subTest(words=words):
                with open(self.folder / "text", "wb") as text:
                    shown = self.at_terminal("script", "-i", "-", "-F", "comm", *words, stdin=subprocess.PIPE,
                                             feed=self.slowed(pipe), stdout=text)
                self.assertRegex(shown, rb"\r\x1b\[Ktacho: \d+\.\d MB read")
                text = (self.folder / "text").read_bytes()
                self.assertNotIn(b"MB read", text)
                self.assertEqual(text == b"", words != [])

    @staticmethod
    def slowed(pipe):
        """Feeds a capture twice as long in two halves, more than a second apart."""

        def feed(to):
            half = len(pipe) // 2
            with to:
                to.write(pipe[:half])
                to.flush()
                time.sleep(1.2)
                to.write(pipe[half:])

        return feed


if __name__ == "__main__":
    programs.main()
