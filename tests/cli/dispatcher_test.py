#!/usr/bin/env python3
"""The program `tacho`: which program it becomes, and what it says when that is not there."""
import os
import re
import shutil
import subprocess

import programs

# Stands in for the two programs: shows how it was called, and returns a status of its own.
FAKE = """#!/bin/sh
[ "$1" = --list-commands ] && printf 'script\\tthe samples\\nreport\\tthe rows\\npack\\tthe names\\n' && exit
printf '%s' "${0##*/}"
for word; do printf ' <%s>' "$word"; done
exit 7
"""


class Dispatcher(programs.Scratch):
    def setUp(self):
        super().setUp()
        shutil.copy(programs.BIN / "tacho", self.folder / "tacho")

    def add_programs(self):
        for name in ["tacho-record", "tacho-report"]:
            (self.folder / name).write_text(FAKE)
            (self.folder / name).chmod(0o755)

    def call(self, *words, status):
        done = self.run_program(self.folder / "tacho", *words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def test_record_is_the_recorder_with_the_words_as_they_were(self):
        self.add_programs()
        self.assertEqual(self.call("record", "-e", "a b", "--", "", status=7)[0], "tacho-record <-e> <a b> <--> <>")

    def test_list_asks_the_recorder_which_events_there_are(self):
        self.add_programs()
        self.assertEqual(self.call("list", "-v", "sched:*", status=7)[0], "tacho-record <--list-events> <-v> <sched:*>")
        self.assertEqual(self.call("help", "list", status=7)[0], "tacho-record <--list-events> <--help>")

    def test_stat_counts_and_record_stat_is_an_option(self):
        self.add_programs()
        self.assertEqual(self.call("stat", "-a", status=7)[0], "tacho-record <--count-events> <-a>")
        self.assertEqual(self.call("record", "--stat", "true", status=7)[0], "tacho-record <--stat> <true>")

    def test_every_other_word_is_a_command_of_the_reader(self):
        self.add_programs()
        self.assertEqual(self.call("script", "-F", "+payload", status=7)[0], "tacho-report <script> <-F> <+payload>")
        self.assertEqual(self.call("report", status=7)[0], "tacho-report <report>")
        self.assertEqual(self.call("nonsense", status=7)[0], "tacho-report <nonsense>")

    def test_a_misspelt_record_is_recognized(self):
        self.add_programs()
        for word in ["recrod", "recor", "Record"]:
            self.assertEqual(self.call(word, status=1)[1], f"tacho: there is no command '{word}'; did you mean 'record'?\n")

    def test_control_characters_of_a_word_are_not_printed(self):
        self.assertEqual(self.call("-\x1b[2J", status=1)[1], "tacho: unknown option '-\\x1b[2J'; see tacho --help\n")

    def test_perfs_commands_that_are_not_here_say_what_to_do(self):
        """The commands of perf 6.1 and 7 that tacho does not have."""
        self.add_programs()
        for word in ("archive bench buildid-cache buildid-list c2c config daemon data ftrace inject iostat kallsyms "
                     "kmem kvm kwork lock mem probe sched test timechart trace").split():
            for words in ([word], ["help", word]):
                out, said = self.call(*words, status=1)
                self.assertEqual(out, "")
                self.assertRegex(said, f"^tacho: '{word}' is not here; instead: \\S.*\n$")

    def test_an_old_reader_that_lists_no_commands_is_no_obstacle(self):
        self.add_programs()
        (self.folder / "tacho-report").write_text("#!/bin/sh\n[ \"$1\" = report ] && echo rows && exit\nexit 1\n")
        self.assertEqual(self.call("report", status=0)[0], "rows\n")

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        """Where SIGPIPE is ignored, as in some shells' children."""
        self.add_programs()
        for word in ["--help", "--version"]:
            there, here = os.pipe()
            os.close(there)
            with os.fdopen(here, "wb") as closed:
                done = subprocess.run([self.folder / "tacho", word], stdout=closed, stderr=subprocess.PIPE,
                                      restore_signals=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_help_lists_what_is_installed(self):
        self.add_programs()
        out, _ = self.call("--help", status=0)
        for line in ["  record       record events", "  script       the samples\n", "  report       the rows\n"]:
            self.assertIn(line, out)
        self.assertEqual(self.call("help", status=0)[0], out)

    def test_help_is_grouped_by_task(self):
        self.add_programs()
        groups = self.call("--help", status=0)[0].split("\n\n")
        found = {next(iter(group.splitlines())): re.findall(r"^  ([a-z]+)  ", group, re.MULTILINE) for group in groups}
        self.assertEqual(found["Look at what is slow, and at captures:"], ["why", "script", "report"])
        self.assertEqual(found["Share captures with others, and with other tools:"], ["pack"])
        self.assertEqual(found["Record, and see what can be recorded:"], ["record", "live", "top", "stat", "list", "doctor"])

    def test_completion_asks_the_program_of_the_command(self):
        self.add_programs()
        self.assertIn("pack\tthe names\n", self.call("complete", "pa", status=0)[0])
        for words, asked in [(["record", "-e", ""], "tacho-record <--complete> <-e> <>"),
                             (["list", "sched"], "tacho-record <--list-events> <--complete> <sched>"),
                             (["stacks", "-p", "1"], "tacho-record <--stacks> <--complete> <-p> <1>"),
                             (["stacks", "a.data", "-"], "tacho-report <stacks> <--complete> <a.data> <->"),
                             (["report", "--so"], "tacho-report <report> <--complete> <--so>")]:
            self.assertEqual(self.call("complete", *words, status=7)[0], asked)

    def test_help_about_a_command_is_that_commands_help(self):
        self.add_programs()
        self.assertEqual(self.call("help", "script", status=7)[0], "tacho-report <script> <--help>")
        self.assertEqual(self.call("help", "record", status=7)[0], "tacho-record <--help>")
        self.assertEqual(self.call("help", "doctor", status=7)[0], "tacho-record <--doctor> <--help>")
        self.assertIn("Usage: tacho COMMAND", self.call("help", "help", status=0)[0])

    def test_without_a_word_the_help_goes_to_stderr(self):
        self.add_programs()
        out, said = self.call(status=1)
        self.assertEqual(out, "")
        self.assertIn("Usage: tacho COMMAND", said)

    def test_version(self):
        self.assertRegex(self.call("--version", status=0)[0], r"^tacho \d+\.\d+\.\d+\n$")

    def test_a_missing_recorder_gives_one_line(self):
        out, said = self.call("record", "-a", status=2)
        self.assertEqual(said, "tacho: tacho-record is not installed here (looked beside tacho and in PATH); "
                               "recording needs it, reading captures does not\n")
        self.assertEqual(out, "")

    def test_a_missing_reader_gives_one_line(self):
        self.assertEqual(self.call("script", status=2)[1],
                         "tacho: tacho-report is not installed here (looked beside tacho and in PATH)\n")

    @programs.needs_root
    def test_root_runs_no_program_of_a_folder_that_others_may_write(self):
        """It would be theirs. A folder after it in PATH will do; of who may write nowhere there is nothing to say."""
        folders = {}
        for name, mode in (("open", 0o777), ("own", 0o755)):
            folders[name] = self.folder / name
            folders[name].mkdir()
            folders[name].chmod(mode)
        (folders["open"] / "tacho-report").write_text("#!/bin/sh\necho planted\n")
        (folders["open"] / "tacho-report").chmod(0o755)
        os.environ["PATH"], before = f"{folders['open']}:{os.environ['PATH']}", os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        out, said = self.call("report", status=2)
        self.assertEqual(out, "")
        self.assertIn(f"tacho-report: root runs no program that other users may change: {folders['open']} may be changed by all users", said)
        (folders["own"] / "tacho-report").write_text(FAKE)
        (folders["own"] / "tacho-report").chmod(0o755)
        os.environ["PATH"] = f"{folders['open']}:{folders['own']}:{before}"
        self.assertEqual(self.call("report", status=7)[0], "tacho-report <report>")

    def test_an_unknown_option(self):
        self.assertEqual(self.call("--nonsense", status=1)[1], "tacho: unknown option '--nonsense'; see tacho --help\n")

    def test_a_full_disk_is_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.folder / "tacho", "--help"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 4)
        self.assertIn(b"cannot be written", done.stderr)
        for words in (["list"], ["doctor"], ["record", "--help"], ["record", "--version"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([programs.BIN / "tacho", *words], stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 4)
                self.assertIn(b": standard output cannot be written: No space left on device", done.stderr)


if __name__ == "__main__":
    programs.main()
