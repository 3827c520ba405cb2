#!/usr/bin/env python3
"""tacho bpf: loaded programs and their code with source lines, compared with bpftool."""
import itertools
import json
import re
import shutil
import subprocess
import time
import unittest

import programs
import screen

RECORDERS = "lock,offcpu,offcputime,runqlat,open,exec,syscount,klock,signals,tcp"
BPFTOOL = shutil.which("bpftool") or shutil.which("bpftool", path="/usr/sbin:/sbin")
NONE_IN_A_CAPTURE = "no BPF programs: none was loaded when it was recorded, or its recorder was not root"
MOST_COMPARED = programs.scaled(300)  # programs whose code is compared
NONE_NOW = "no BPF program is loaded"
# Instructions newer than Linux 6.1, which bpftool 7.1 prints as older ones.
NEWER = [(re.compile(r"r(\d+) = &\(void __percpu \*\)\(r(\d+)\)"), r"r\1 = r\2"), (re.compile(r"= \(s(?:8|16|32)\)"), "= ")]

LOST = "lost while recording"  # a message, which other recorders beside this one may cause


def as_older(text):
    for newer, older in NEWER:
        text = newer.sub(older, text)
    return text


@programs.needs_root
@programs.needs_btf
class BpfCode(programs.Scratch):
    def record(self):
        """Starts recorders, so that programs are loaded; the test's end stops them."""
        self.need_recorder()
        with open(self.folder / "log", "wb") as log:
            self.recorder = subprocess.Popen([programs.BIN / "tacho-record", "-a", "-o", "x.data", "-e", RECORDERS + ",bpfstat",
                                              "--interval", "500ms"],
                                             cwd=self.folder, stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(self.recorder.wait)
        self.addCleanup(self.recorder.terminate)
        end = time.monotonic() + 60
        while b"has begun" not in (self.folder / "log").read_bytes():
            self.assertIsNone(self.recorder.poll(), (self.folder / "log").read_text())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def bpf(self, *words):
        return self.run_program(programs.BIN / "tacho", "bpf", *words).stdout.decode()

    def code_of(self, number, *words):
        """None: the program, of another recorder, was unloaded."""
        done = self.run_program(programs.BIN / "tacho", "bpf", "-s", number, *words, status=None)
        if done.returncode == 1 and b"has no BPF program" in done.stderr:
            return None
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def loaded(self, *words):
        return [json.loads(line) for line in self.bpf("--json", *words).splitlines()]

    def each_code(self):
        """Loaded programs with different instructions."""
        return {row["tag"]: row for row in self.loaded()}.values()

    def of_capture(self, *words):
        return [json.loads(line) for line in self.tacho("bpf", "x.data", "--json", *words).stdout.splitlines()]

    @unittest.skipUnless(BPFTOOL, "needs bpftool")
    def test_the_same_programs_and_maps_as_bpftool(self):
        self.record()
        theirs = {row["id"]: row for row in json.loads(self.run_program(BPFTOOL, "-j", "prog", "show").stdout)}
        maps = {row["id"]: row for row in json.loads(self.run_program(BPFTOOL, "-j", "map", "show").stdout)}
        ours = {row["id"]: row for row in self.loaded()}
        both = set(ours) & set(theirs)  # other programs are loaded and unloaded meanwhile
        self.assertGreater(len(both), 20)
        for number in both:
            mine, other = ours[number], theirs[number]
            self.assertTrue(mine["name"].startswith(other.get("name", "")), mine)
            self.assertEqual(mine["type"], other["type"])
            self.assertEqual(mine["tag"], other["tag"])
            self.assertEqual(mine["translated_bytes"], other["bytes_xlated"])
            self.assertEqual(mine["machine_bytes"], other["bytes_jited"])
            self.assertEqual([each["id"] for each in mine["maps"]], other.get("map_ids", []))
            for each in mine["maps"]:
                if each["id"] in maps:
                    one = maps[each["id"]]
                    self.assertEqual((each["name"], each["type"], each["key_bytes"], each["value_bytes"], each["most_entries"]),
                                     (one.get("name", ""), one["type"], one["bytes_key"], one["bytes_value"], one["max_entries"]))

    @unittest.skipUnless(BPFTOOL, "needs bpftool")
    def test_the_same_instructions_and_lines_as_bpftool(self):
        self.record()
        compared = 0
        for program in self.each_code():
            if compared == MOST_COMPARED:
                break
            number = str(program["id"])
            theirs = self.run_program(BPFTOOL, "prog", "dump", "xlated", "id", number, "linum", status=None)
            if theirs.returncode != 0:
                continue  # it was unloaded
            mine = self.code_of(number)
            if mine is None:
                continue
            self.assertEqual(as_older(mine), as_older(theirs.stdout.decode(errors="replace")), program["name"])
            compared += 1
        self.assertGreater(compared, 20)

    @unittest.skipUnless(shutil.which("objdump"), "needs objdump")
    def test_the_same_machine_code_as_objdump(self):
        """Also the same as bpftool, if that was built with a disassembler (not Debian's)."""
        self.record()
        compared = lines = 0
        for program in self.each_code():
            if compared == MOST_COMPARED:
                break
            number = str(program["id"])
            shown = self.code_of(number, "--json", "--jited")
            if shown is None:
                continue
            found = [json.loads(line) for line in shown.splitlines()]
            offsets, code = [], b""
            for function in found[0]["functions"]:
                offsets += [len(code) + each["offset"] for each in function["instructions"]]
                code += b"".join(bytes.fromhex(each["bytes"]) for each in function["instructions"])
                lines += len({(each.get("file"), each.get("line")) for each in function["instructions"]})
            self.assertEqual(len(code), program["machine_bytes"])
            raw = self.folder / "code"
            raw.write_bytes(code)
            text = self.run_program("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", raw).stdout.decode()
            self.assertEqual(offsets, [int(offset, 16) for offset in re.findall(r"^\s*([0-9a-f]+):\t", text, re.M)], program["name"])
            theirs = self.folder / "theirs"
            if BPFTOOL and self.run_program(BPFTOOL, "prog", "dump", "jited", "id", number, "file", theirs, status=None).returncode == 0:
                self.assertEqual(code, theirs.read_bytes())
            compared += 1
        self.assertGreaterEqual(compared, 20)  # programs of other tests may go meanwhile
        self.assertGreater(lines, 200)

    def test_of_a_capture(self):
        self.record()
        [program] = [row for row in self.loaded("-s", "leave_tracepoint")][:1]
        live = self.bpf("-s", str(program["id"]))
        self.recorder.terminate()
        self.recorder.wait()
        self.assertIn("call __htab_map_lookup_elem#", live)
        # Packed, without kallsyms: calls have names from the pack.
        self.assertNotIn("# attached : kallsyms", self.tacho("header", "-i", "x.data").stdout.decode())
        self.assertEqual(self.tacho("bpf", "x.data", "-s", str(program["id"])).stdout.decode(), live)
        mine = next(row for row in self.of_capture("-s", "leave_tracepoint") if row["id"] == program["id"])
        self.assertTrue(any("sys_exit" in place for place in mine["places"]), mine["places"])
        self.assertEqual(mine["maps"], program["maps"])
        self.assertIn("leave_tracepoint", mine["functions"][0]["prototype"])
        self.assertTrue(any(each.get("file", "").endswith("syscount.bpf.c") for each in mine["instructions"]))
        self.assertIn("leave_tracepoint", self.tacho("bpf", "x.data").stdout.decode())

    def test_costs_over_time(self):
        self.record()
        self.run_program(programs.BIN / "getppid_load", "20000")
        time.sleep(1)
        live = self.bpf("--interval", "1", "--count", "2")
        self.assertEqual(live.count("runs/s"), 2)
        self.assertIn("leave_tracepoint", live)
        self.recorder.terminate()
        self.recorder.wait()
        # Another test's recording may have the same program: it runs as often, but not from the start.
        leaves = max((row for row in self.of_capture("--interval", "1") if row["name"] == "leave_tracepoint" and "costs" in row),
                     key=lambda row: sum(each["runs"] for each in row["costs"]))
        self.assertGreaterEqual(sum(each["runs"] for each in leaves["costs"]), 20000)
        self.assertGreater(len(leaves["costs"]), 1)
        [whole] = [row for row in self.of_capture() if row["id"] == leaves["id"]]
        self.assertEqual(sum(each["runs"] for each in leaves["costs"]), whole["costs"][0]["runs"])
        self.assertIn("from ", self.tacho("bpf", "x.data", "--interval", "1").stdout.decode())

    def on_screen(self, width, height, *words, before="", **variables):
        """The lines that a command prints on a terminal, with those scrolled out of it. A line that the terminal
        wrapped is longer than its width."""
        one = screen.Screen(self.folder, width, height, **variables)
        self.addCleanup(one.close)
        one.type(f"clear; echo begin of it; {before} {programs.BIN / 'tacho'} {' '.join(map(str, words))}; echo end of $?")
        one.wait_for(r"^end of \d+$")
        text = one.tmux("capture-pane", "-p", "-J", "-S", "-")
        one.close()
        lines = [line.rstrip() for line in text.split("\n")]
        first = lines.index("begin of it")
        return list(itertools.takewhile(lambda line: not re.match(r"end of \d", line), lines[first + 1:]))

    @screen.needs_tmux
    def test_tables_fit_the_terminal(self):
        self.record()
        def of(lines, title):
            """The cells of the table with this first column, by it."""
            begin = next(i for i, line in enumerate(lines) if line.split()[:1] == [title])
            rows = (line.split() for line in lines[begin + 1:])
            return {row[0]: row for row in itertools.takewhile(bool, rows) if row[0].isdigit()}

        for of_file in (False, True):
            words = ["bpf"]
            if of_file:
                self.recorder.terminate()
                self.recorder.wait()
                words += ["x.data", "--no-pager"]
            known = {str(row["id"]): row for row in (self.of_capture() if of_file else self.loaded())}
            own = {number: row for number, row in known.items() if len(row["name"]) > 8}
            self.assertIn("leave_tracepoint", [row["name"] for row in own.values()])
            for width, height in ((80, 24), (200, 60)):
                with self.subTest(of_file=of_file, width=width):
                    lines = self.on_screen(width, height, *words)
                    wide = self.on_screen(width, height, *words, "--wide")
                    self.assertEqual([line for line in lines if len(line) > width and LOST not in line], [])
                    shown, maps = of(lines, "id"), of(lines, "map")
                    if not of_file:  # programs of other tests go
                        left = {str(row["id"]) for row in self.loaded()}
                        own = {number: row for number, row in own.items() if number in left}
                        self.assertIn("leave_tracepoint", [row["name"] for row in own.values()])
                    for number, row in own.items():
                        self.assertEqual(shown[number][1], row["type"])
                        name = shown[number][3 if row["tag"] in shown[number] else 2]
                        self.assertRegex(row["name"], "^" + re.escape(name).replace(r"\.\.", ".*") + "$")
                        self.assertTrue(width == 80 or (name == row["name"] and shown[number][2] == row["tag"]))
                        for each in row["maps"]:
                            self.assertIn(str(each["most_entries"]), maps[str(each["id"])])
                    self.assertTrue(all(any(row["name"] in line and row["tag"] in line for line in wide) for row in own.values()))
        costs = self.on_screen(80, 24, "bpf", "x.data", "--no-pager", "--interval", "1")
        self.assertTrue(any("runs/s" in line for line in costs))
        self.assertEqual([line for line in costs if len(line) > 80 and LOST not in line], [])

    @screen.needs_tmux
    def test_costs_of_now_fit_the_terminal(self):
        self.record()
        for width, height in ((80, 24), (200, 60)):
            lines = self.on_screen(width, height, "bpf", "--interval", "1", "--count", "1")
            self.assertRegex("\n".join(lines), r"(?m)^ *id  type .* of a CPU  where\n *\d+  ")
            self.assertEqual([line for line in lines if len(line) > width and LOST not in line], [])

    @screen.needs_tmux
    def test_a_message_says_why_there_are_none(self):
        """Nothing is loaded, the recorder was not root, or this user is not."""
        for width, height in ((80, 24), (200, 60)):
            capture = programs.ROOT / "tests" / "golden" / "captures" / "arm64-fp.data"
            self.assertEqual(self.on_screen(width, height, "bpf", capture, "--no-pager"), [NONE_IN_A_CAPTURE])
            [denied] = self.on_screen(width, height, "bpf", before="setpriv --reuid 65534 --regid 65534 --clear-groups")
            if "Permission denied" not in denied:  # the folder of the programs is closed to others
                self.assertRegex(denied, "^tacho bpf: no permission to list BPF programs; .*CAP_SYS_ADMIN")
        if BPFTOOL and self.run_program(BPFTOOL, "-j", "prog", "show").stdout.strip() == b"[]":
            shown = self.bpf()
            if self.run_program(BPFTOOL, "-j", "prog", "show").stdout.strip() == b"[]":
                self.assertEqual(shown, NONE_NOW + "\n")

    def test_bad_use(self):
        self.assertIn("this host: has no BPF program 'nobody'",
                      self.run_program(programs.BIN / "tacho", "bpf", "-s", "nobody", status=1).stderr.decode())
        (self.folder / "no.data").write_bytes(b"no capture")
        self.tacho("bpf", "no.data", status=2)
        self.tacho("bpf", "no.data", "y.data", status=1)
        self.run_program(programs.BIN / "tacho", "bpf", "--interval", "0", status=1)
        self.run_program(programs.BIN / "tacho", "bpf", "--interval", "1", "-s", "x", status=1)
        done = self.run_program("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", programs.BIN / "tacho-record",
                                "--bpf", status=None)
        if done.returncode != 127 and b"ermission denied" not in done.stderr[:60]:
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"CAP_SYS_ADMIN", done.stderr)


if __name__ == "__main__":
    programs.main()
