#!/usr/bin/env python3
"""tacho-record has tacho-report pack symbols into the capture at the end; if that fails, the capture
is complete and the exit status is that of the command."""
import json
import re
import shutil
import signal
import subprocess
import time

import programs

RECORD = ["-e", "syscalls:sys_enter_getppid", "-g", "-o", "x.data", "--", programs.BIN / "getppid_load", "5"]


class Packing(programs.Scratch):
    def record(self, *options, status=0, program=programs.BIN / "tacho-record"):
        return self.run_program(program, *options, *RECORD, status=status).stderr.decode()

    def beside(self, script):
        """A copy of tacho-record next to a tacho-report that is this shell script."""
        (self.folder / "bin").mkdir()
        shutil.copy(programs.BIN / "tacho-record", self.folder / "bin")
        if script is not None:
            (self.folder / "bin" / "tacho-report").write_text(f"#!/bin/sh\n{script}\n")
            (self.folder / "bin" / "tacho-report").chmod(0o755)
        return self.folder / "bin" / "tacho-record"

    def attached(self):
        return b"# attached : kallsyms" in self.tacho("header", "-i", "x.data").stdout

    def samples(self):
        return self.tacho("script", "-i", "x.data").stdout.count(b"sys_enter_getppid")

    def test_names_are_in_the_capture(self):
        said = self.record()
        # The reported size is that after packing.
        size = (self.folder / "x.data").stat().st_size / (1 << 20)
        self.assertIn(f"Captured and wrote {size:.3f} MB x.data (5 samples, 0 lost) ]", said)
        self.assertLessEqual(len([line for line in said.splitlines() if "has begun" not in line]), 3, said)
        # Code of BPF programs is most of it: 70 KB of the unwinder, and what other recorders have loaded. 95,483 bytes were
        # seen; kernel symbols would be 3 MB.
        self.assertLess((self.folder / "x.data").stat().st_size, 300_000)
        self.assertFalse(self.attached())
        # Kernel symbols can come only from the pack: there is no kallsyms.
        self.assertIn(b"call_at_depth", self.tacho("script", "-i", "x.data", "--symfs", self.folder).stdout)
        self.assertEqual(self.samples(), 5)

    def test_each_file_of_a_recording_has_names_and_each_loss_once(self):
        calls = 200_000
        done = self.run_program(programs.BIN / "tacho-record", "-z0", "-m", "64K", "--switch-output=1M", "-g", "-e",
                                "syscalls:sys_enter_getppid", "-o", "sw", "--", programs.BIN / "getppid_load", str(calls))
        said = done.stderr.decode()
        samples, lost = map(int, re.search(r"\((\d+) samples, (\d+) lost\)", said).groups())
        self.assertEqual(samples + lost, calls, said)
        files = sorted(self.folder.glob("sw.*"))
        self.assertGreater(len(files), 0, said)  # a loaded machine begins few
        size = sum(file.stat().st_size for file in files) / 2**20
        self.assertIn(f"Captured and wrote {size:.3f} MB {len(files)} files sw.*" if len(files) > 1 else f"wrote {size:.3f} MB", said)
        lost_in_files = 0
        for file in files:
            head = self.tacho("header", "-i", file).stdout.decode()
            self.assertIn("# packed symbols : names of ", head, f"{file}: {said}")
            self.assertNotIn("# attached : kallsyms", head)
            if self.tacho("script", "-i", file, "-F", "time", status=None).stdout:  # the last file may have no sample
                self.assertIn(b"call_at_depth", self.tacho("folded", "-i", file, "--symfs", self.folder, status=None).stdout, file)
            lost_in_files += json.loads(self.tacho("summary", "--json", "-i", file, status=None).stdout)["lost_samples"]
        self.assertEqual(lost_in_files, lost, said)

    def test_an_unusable_list_of_symbols_is_reported(self):
        self.tacho("record", "-e", "sched:sched_process_exec", "-g", "-o", "x.data", "--", "true")
        (self.folder / "list").write_text("no list\n")
        done = self.tacho("script", "-i", "x.data", "--kallsyms", "list", status=None)
        self.assertIn(b"no line of the form", done.stderr)
        self.assertIn(b"names come from the symbols packed into the capture", done.stderr)
        self.assertIn(b" do_syscall_64+0x", done.stdout)

    def test_no_pack_leaves_the_list_of_symbols(self):
        self.assertEqual(self.record("--no-pack").count("\n"), 2)
        self.assertTrue(self.attached())

    def test_quiet_says_nothing(self):
        self.assertEqual(self.record("-q"), "")
        self.assertFalse(self.attached())

    def test_without_the_other_program_nothing_is_packed(self):
        program = self.beside(None)
        self.assertIn("Names are not packed, as tacho-report is not installed here: ", self.record(program=program))
        self.assertEqual(self.record("-q", program=program), "")
        self.assertEqual(self.samples(), 5)

    def test_its_failure_costs_the_names_alone(self):
        said = self.record(program=self.beside("echo broken >&2; exit 2"))
        self.assertIn("broken\n", said)
        self.assertIn("x.data: symbols are not packed into it: see above; tacho pack x.data packs them", said)
        self.assertTrue(self.attached())
        self.assertEqual(self.samples(), 5)

    def test_its_death_costs_the_names_alone(self):
        self.assertIn("tacho-report died of signal 9", self.record(program=self.beside("kill -9 $$")))
        self.assertEqual(self.samples(), 5)

    def test_a_small_disk_has_no_room_for_a_copy(self):
        (self.folder / "disk").mkdir()
        words = " ".join(map(str, [programs.BIN / "tacho-record", "-e", "page-faults", "-o", "disk/x.data", "--", "true"]))
        said = self.run_program("unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=5m,mode=700 none disk && {words}")
        self.assertIn("no space for a second copy beside it; tacho pack disk/x.data packs them", said.stderr.decode())
        # Packing a capture of 2 MB takes less than 64 MB.
        said = self.run_program("unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=20m,mode=700 none disk && {words}")
        self.assertNotIn("no space", said.stderr.decode())

    def test_the_status_is_the_commands(self):
        self.run_program(programs.BIN / "tacho-record", "-o", "y.data", "--", "sh", "-c", "exit 7", status=7)

    def test_a_signal_ends_it(self):
        program = self.beside("touch begun; exec sleep 60")
        process = subprocess.Popen([program, *RECORD], cwd=self.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        limit = time.monotonic() + 60
        while not (self.folder / "begun").exists():
            self.assertLess(time.monotonic(), limit)
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=50)[1].decode()
        self.assertLess(time.monotonic() - before, 30)
        self.assertEqual(process.returncode, 0)
        self.assertIn("x.data: symbols are not packed into it: a signal stopped it", said)
        self.assertEqual(self.samples(), 5)

    def test_a_second_signal_ends_what_does_not_heed_the_first(self):
        program = self.beside("trap '' TERM; touch begun; exec sleep 60")
        process = subprocess.Popen([program, *RECORD], cwd=self.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        limit = time.monotonic() + 60
        while not (self.folder / "begun").exists():
            self.assertLess(time.monotonic(), limit)
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        before = time.monotonic()
        while process.poll() is None:  # a signal that comes while the first one is handled is one with it
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            self.assertLess(time.monotonic() - before, 40)
        said = process.communicate(timeout=50)[1].decode()
        self.assertEqual(process.returncode, 0)
        self.assertIn("x.data: symbols are not packed into it: a signal stopped it", said)
        self.assertEqual(self.samples(), 5)


if __name__ == "__main__":
    programs.main()
