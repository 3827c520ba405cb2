#!/usr/bin/env python3
"""The file at the path of a recorded program may have been replaced: its symbols are never shown for the
program that ran; the file is named, with what is wrong with it. Each mixture is read with its own wrong thing only."""
import os
import re
import shutil
import unittest

import programs

EVENT = "syscalls:sys_enter_getppid"
SOURCE = """
#include <sys/syscall.h>
#include <unistd.h>
%(before)s
__attribute__((noinline)) long %(name)s_enter(void) { long got = syscall(SYS_getppid); __asm__ volatile("" ::"r"(got)); return got; }
__attribute__((noinline)) long %(name)s_middle(void) { long got = %(name)s_enter() + 1; __asm__ volatile("" ::: "memory"); return got; }
__attribute__((noinline)) long %(name)s_outer(void) { long got = %(name)s_middle() + 1; __asm__ volatile("" ::: "memory"); return got; }
int main(void) { long sum = 0; for (int i = 0; i < 5; ++i) sum += %(name)s_outer(); return sum == 1; }
"""
MORE_CODE = "__attribute__((noinline, used)) long %s_more(long x) { return x * 3 + 7; }\n"


@programs.needs_root
@unittest.skipUnless(shutil.which("cc") and shutil.which("objcopy"), "needs a C compiler and objcopy")
class Identity(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.right = self.build("right", "right")
        self.wrong = self.build("wrong", "wrong", MORE_CODE % "wrong")
        self.tacho("record", "--no-pack", "-o", "a.data", "-e", EVENT, "-g", "-q", "--", self.right)
        self.assertIn("right_outer", self.script())
        self.kept = self.folder / "kept"
        shutil.move(self.right, self.kept)

    def build(self, file, name, before="", *flags):
        (self.folder / f"{file}.c").write_text(SOURCE % {"name": name, "before": before})
        self.run_program("cc", "-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", *flags, "-o", file, f"{file}.c")
        return self.folder / file

    def script(self, *options):
        done = self.tacho("script", "-i", "a.data", *options, status=None)
        self.said = done.stderr.decode(errors="replace")
        return done.stdout.decode(errors="replace")

    def refuse(self, *options, names):
        """No wrong symbol is shown, and a message says what is wrong with the file."""
        text = self.script(*options)
        self.assertNotIn("wrong_", text)
        self.assertNotIn("right_", text, "there is nothing left that could say so")
        self.assertIn("[unknown]", text)
        self.assertRegex(self.said, names)

    def test_a_program_that_was_built_anew(self):
        shutil.copy(self.wrong, self.right)
        self.refuse(names=r"right: .*another build id, [0-9a-f]{40}; build id [0-9a-f]{40} was recorded")

    def test_another_program_of_that_name(self):
        shutil.copy("/bin/true", self.right)
        self.refuse(names="right: .*another build id")

    def test_a_link_to_another_program(self):
        self.right.symlink_to(self.wrong)
        self.refuse(names="right: .*another build id")

    def test_a_program_without_a_build_id(self):
        self.run_program("objcopy", "--remove-section", ".note.gnu.build-id", self.wrong, self.right)
        self.refuse(names="right: .*has no build id")

    def test_files_that_are_no_programs(self):
        for content in [b"", b"text\n", self.kept.read_bytes()[:100]]:
            with self.subTest(size=len(content)):
                self.right.write_bytes(content)
                self.refuse(names="right: ")

    def test_paths_that_are_no_files(self):
        for make in [lambda: self.right.mkdir(), lambda: os.mkfifo(self.right), lambda: self.right.symlink_to("/dev/zero"),
                     lambda: self.right.symlink_to(self.right.name)]:
            make()
            self.refuse(names="right: ")
            self.right.rmdir() if self.right.is_dir() and not self.right.is_symlink() else self.right.unlink()

    def stripped(self):
        """The program that ran, without symbols: other symbol sources must have its build id."""
        self.run_program("strip", "-o", self.right, self.kept)

    def test_a_debug_link_to_another_build(self):
        self.run_program("objcopy", "--only-keep-debug", self.wrong, "right.debug")
        self.run_program("objcopy", "--strip-all", "--add-gnu-debuglink=right.debug", self.kept, self.right)
        for place in [self.folder, self.folder / ".debug"]:
            with self.subTest(place=place.name):
                place.mkdir(exist_ok=True)
                if place != self.folder:
                    shutil.move(self.folder / "right.debug", place)
                text = self.script()
                self.assertNotIn("wrong_", text)
                self.assertNotIn("right_", text)

    def test_a_debug_file_of_another_build_under_the_recorded_id(self):
        notes = self.run_program("readelf", "-n", self.kept).stdout.decode()
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        self.stripped()
        root = self.folder / "root"
        place = root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        place.parent.mkdir(parents=True)
        shutil.copy(self.wrong, place)
        shutil.copytree(self.folder, root / str(self.folder).lstrip("/"), ignore=lambda *_: {"root"}, dirs_exist_ok=True)
        self.assertNotIn("wrong_", self.script("--symfs", root))
        cache = self.folder / "cache/.build-id" / build_id[:2] / build_id[2:]
        cache.mkdir(parents=True)
        for name in ["elf", "debug"]:
            shutil.copy(self.wrong, cache / name)
        self.assertNotIn("wrong_", self.script("--buildid-dir", self.folder / "cache"))
        self.right.unlink()
        self.refuse("--buildid-dir", self.folder / "cache", names="right: ")

    def test_the_same_under_symfs(self):
        root = self.folder / "root"
        place = root / str(self.right).lstrip("/")
        place.parent.mkdir(parents=True)
        shutil.copy(self.wrong, place)
        shutil.copy(self.kept, self.right)  # this file would match, but --symfs is for another machine
        self.refuse("--symfs", root, names="right: .*another build id")

    def test_packed_names_come_before_the_file_there_now(self):
        shutil.copy(self.kept, self.right)
        self.tacho("pack", "a.data", status=None)
        before = self.script()
        self.assertIn("right_outer", before)
        shutil.copy(self.wrong, self.right)
        self.assertEqual(self.script(), before)
        # Packing now adds and loses nothing.
        self.tacho("pack", "a.data", status=None)
        self.assertEqual(self.script(), before)

    def test_packing_takes_no_names_from_another_build(self):
        shutil.copy(self.wrong, self.right)
        self.tacho("pack", "a.data", status=None)
        self.refuse(names="right: .*another build id")

    def test_lists_of_kernel_symbols_that_cannot_be_the_recorded_ones(self):
        shutil.copy(self.kept, self.right)
        for content, reason in [("0000000000000000 T _text\n0000000000000000 T _stext\n0000000000000000 T x\n", "every address is zero"),
                                ("ffffffff81000000 T something_else\n", "no symbol _"), ("", "no line of the form"),
                                ("no list\n", "no line of the form")]:
            with self.subTest(reason=reason):
                (self.folder / "list").write_text(content)
                self.tacho("record", "--no-pack", "-o", "k.data", "-e", "cpu-clock", "-c", "50000", "-q", "--", "dd", "if=/dev/zero",
                           "of=/dev/null", "bs=1M", "count=300")
                done = self.tacho("script", "-i", "k.data", "--kallsyms", "list", status=None)
                self.assertNotIn(b"something_else", done.stdout)
                if b"[kernel.kallsyms]" in done.stdout:
                    self.assertIn(reason, done.stderr.decode())


if __name__ == "__main__":
    programs.main()
