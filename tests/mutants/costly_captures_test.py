#!/usr/bin/env python3
"""The cost of a capture is proportional to its size: below 5 s of processor time and 64 MiB + 4 times the file
for each of a dozen captures that were made to cost more, through every command; what is left out is reported. A page holds
all samples, also the many that compressed records inflate to: 8 bytes more for each of them.
"""
import os
import re
import resource
import subprocess
import unittest
import zlib

import costly_captures
import programs

# Each with the bytes of memory and seconds that any of these may take; each worker has tables of bounded size.
MEMORY, MEMORY_FOR_EACH, SECONDS = 72 << 20, 5, 10
MEMORY_FOR_EACH_SAMPLE = 8  # of a page
HARD_SECONDS = 20  # then the kernel ends it
COMMANDS = [["script"], ["report"], ["folded", "--inline"], ["dump", "--json"], ["convert", "-o", "converted.data"], ["page"]]
WHOLE, INCOMPLETE = 0, 3


def limit_time():
    resource.setrlimit(resource.RLIMIT_CPU, (HARD_SECONDS, HARD_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@unittest.skipIf(programs.is_sanitized(), "what a sanitizer costs is not the program's")
class CostlyCaptures(programs.Scratch):
    def check(self, path, command, status=WHOLE, reported=None):
        """Runs the command within the limits."""
        words = [programs.BIN / "tacho-report", command[0], "-i", path, *command[1:]]
        environment = dict(os.environ, HOME=str(self.folder), LC_ALL="C.UTF-8")
        with open(self.folder / "stderr", "wb") as stderr:
            child = subprocess.Popen(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=stderr, preexec_fn=limit_time)
            _, ended, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(ended)
        said = (self.folder / "stderr").read_text(errors="replace")
        self.assertEqual(child.returncode, status, said[-500:])
        self.assertLess(used.ru_utime + used.ru_stime, SECONDS)
        for_samples = MEMORY_FOR_EACH_SAMPLE * self.samples_in(path) if command[0] == "page" else 0
        self.assertLess(used.ru_maxrss * 1024, MEMORY + MEMORY_FOR_EACH * path.stat().st_size + for_samples)
        if reported is not None:
            self.assertIn(reported, said)

    def samples_in(self, path):
        counts = self.tacho("report", "--stats", "-i", path, status=None).stdout
        return int(re.search(b"SAMPLE events: +(\d+)", counts)[1])

    def write(self, name, contents):
        path = self.folder / f"{name}.data"
        path.write_bytes(contents)
        return path

    def some(self, commands):
        """One of the commands, another one for each capture of a test; all of them with script/test --long."""
        self.captures = getattr(self, "captures", 0) + 1
        return programs.part_of(commands, zlib.crc32(self.id().encode()) + self.captures)

    def check_all(self, make, status=WHOLE, reported=None, commands=COMMANDS):
        path = self.write(make.__name__, make())
        for command in self.some(commands):
            with self.subTest(capture=make.__name__, command=command[0]):
                self.check(path, command, status, reported)

    def compressed(self, make):
        plain = self.write("plain", make())
        self.tacho("convert", "-i", plain, "-o", "frames.data", "-z19")
        frames = costly_captures.frames_of(self.folder / "frames.data")
        self.assertGreater(len(frames), 0)
        return frames

    def test_numbers_that_fall_into_one_place_of_a_table(self):
        for make in (costly_captures.ids_of_one_bucket, costly_captures.pids_of_one_bucket, costly_captures.pids_and_addresses):
            self.check_all(make)

    def test_a_row_of_report_for_each_sample(self):
        # So many that what all captures may take does not hide what each of these rows takes.
        path = self.write("rows", costly_captures.pids_and_addresses(600000))
        for command in self.some([["report"], ["report", "-g", "none"], ["report", "--sort", "sym"], ["script"]]):
            with self.subTest(command=command):
                self.check(path, command)

    def test_a_program_in_a_report_for_each_sample(self):
        path = self.write("programs", costly_captures.a_program_for_each_sample(200000))
        for command in (["report"], ["report", "--no-children"]):
            with self.subTest(command=command):
                self.check(path, command)

    def test_damage_everywhere(self):
        self.check_all(costly_captures.damage_everywhere, INCOMPLETE, "unreadable record")

    def test_many_events(self):
        self.check_all(costly_captures.many_events)

    def test_many_threads(self):
        for make in (costly_captures.names_of_many_threads, costly_captures.forks_of_unknown_parents):
            self.check_all(make, commands=COMMANDS[:2])

    def test_many_programs(self):
        self.check_all(costly_captures.kernel_functions, commands=COMMANDS[:2])
        self.check_all(costly_captures.a_program_for_each_sample, commands=COMMANDS[:3])

    def test_many_ids(self):
        for make in (costly_captures.many_ids, costly_captures.scattered_ids):
            self.check_all(make, commands=[COMMANDS[0], COMMANDS[4]])
        self.check_all(costly_captures.an_event_for_each_id, commands=[COMMANDS[0], COMMANDS[4]])

    def test_descriptions_without_end(self):
        self.check_all(costly_captures.descriptions_without_end, commands=COMMANDS[:3])

    def test_many_build_ids(self):
        self.check_all(costly_captures.many_build_ids, commands=COMMANDS[1:2] + COMMANDS[4:5])

    def test_events_that_share_their_ids(self):
        self.check_all(costly_captures.shared_ids, INCOMPLETE, "the ids of an event overlap those of another")

    def test_processes_with_many_mappings(self):
        for make in (costly_captures.forks_of_many_mappings, costly_captures.forks_that_map, costly_captures.nested_mappings):
            self.check_all(make, commands=COMMANDS[:2])

    def test_long_names_that_many_frames_show(self):
        self.check_all(costly_captures.long_names, commands=COMMANDS[:3])

    def test_rounds_without_records(self):
        self.check_all(costly_captures.empty_rounds)

    def test_frames_whose_rounds_do_not_end(self):
        frames = self.compressed(costly_captures.samples_of_one_time)
        path = self.write("frames", costly_captures.of_frames(frames * 200))
        for command in self.some(COMMANDS):
            with self.subTest(command=command[0]):
                self.check(path, command)

    def test_frames_of_more_bytes_than_a_record_may_hold(self):
        self.check_all(costly_captures.large_frames, INCOMPLETE, "inflates to more than")

    def test_frames_that_grow_more_than_recorders_make_them(self):
        frames = self.compressed(costly_captures.long_chains)
        sample_type = costly_captures.USUAL | costly_captures.CALLCHAIN
        path = self.write("growing", costly_captures.of_frames(frames * (1500 // len(frames)), sample_type))
        for command in self.some(COMMANDS):
            with self.subTest(command=command[0]):
                self.check(path, command, INCOMPLETE, "--inflate-all reads it")
        self.tacho("report", "-i", path, "--inflate-all")


if __name__ == "__main__":
    programs.main()
