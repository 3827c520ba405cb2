#!/usr/bin/env python3
"""`tacho record --compile`: objects of BPF programs for hosts without a compiler."""
import shutil

import programs


@programs.needs_clang
@programs.needs_btf
class Compile(programs.Scratch):
    def setUp(self):
        super().setUp()
        shutil.copy(programs.ROOT / "examples/bigreads.bpf.c", self.folder)

    def compile(self, *words, status=0):
        done = self.run_program(programs.BIN / "tacho-record", "--compile", *words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def test_the_object_has_the_name_of_the_source_or_of_the_option(self):
        self.assertEqual(self.compile("bigreads.bpf.c"), ("bigreads.bpf.o\n", ""))
        self.assertEqual(self.compile("bigreads.bpf.c", "-o", "sub.o")[0], "sub.o\n")
        for name in ("bigreads.bpf.o", "sub.o"):
            self.assertEqual((self.folder / name).read_bytes()[:4], b"\x7fELF")

    def test_the_object_is_recorded_without_a_compiler(self):
        self.compile("bigreads.bpf.c")
        shown = self.run_program("/usr/bin/env", "PATH=/nowhere", programs.BIN / "tacho-record", "-e", "./bigreads.bpf.o/help/")
        self.assertIn("Events:\n", shown.stdout.decode())

    def test_what_is_no_source_is_refused(self):
        (self.folder / "wrong.bpf.c").write_text("int f(void) { return undeclared; }\n")
        out, said = self.compile("wrong.bpf.c", status=2)
        self.assertIn("undeclared", said)
        self.assertFalse((self.folder / "wrong.bpf.o").exists())
        self.assertIn("does not end in .c", self.compile("bigreads", status=1)[1])
        self.assertIn("ends in .o", self.compile("bigreads.bpf.c", "-o", "x", status=1)[1])


if __name__ == "__main__":
    programs.main()
