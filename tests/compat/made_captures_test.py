#!/usr/bin/env python3
"""Generated captures of features that this machine lacks (support/made_capture.py), read by perf and tacho."""
import made_capture
import programs
from programs import ROOT

GOLDEN = ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
VIEWS = {
    "branches": ["", "-F brstack", "-F brstack,ip,sym,dso", "-F brstacksym", "-F brstacksym,ip,sym,dso", "-F brstackoff",
                 "-F brstackoff,ip,dso", "-F +brstack,+brstacksym", "-S leaf_a", "-S 0x555555555284", "--dsos spin",
                 "-S 0x555555555280 --addr-range 4", "-S 0x555555555280 --addr-range 5", "--dsos [kernel.kallsyms]",
                 "-F +insn,+insnlen", "-F +machine_pid,+vcpu,+ipc,+callindent,+flags"],
    "kept-calls": ["", "-G", "-F ip,sym,symoff,dso", "-F ip,sym,brstack", "--max-stack 1", "--max-stack 2", "--max-stack 4",
                   "-S leaf_b"],
    "instructions": ["-F ip,brstackinsn", "-F ip,brstackinsnlen,insn,insnlen", "-F +brstackinsn,+srcline,+brstack",
                     "-F +brstackinsn --max-blocks 1"],
    "memory": ["", "-F +addr,-time", "-F period,data_src,weight,ins_lat,phys_addr,data_page_size,code_page_size",
               "-F ip,data_src", "-F raw:ip,data_src"],
    "weights": ["", "-F weight", "-F raw:+ins_lat,+iregs"],
    "registers-x86": ["-F +iregs", "-F uregs", "-F +iregs,+uregs"],
    "registers-some": ["-F ip,uregs,iregs"],
    "registers-arm64": ["-F +iregs,+uregs"],
    "branch-trace": ["", "-F ip,sym", "-F ip,sym,symoff,dso,addr", "-F ip,srcline", "-F hw:ip,addr", "-F +insnlen,+flags"],
    "synthesized": ["", "-F event,synth", "-F synth:synth", "-F +flags"],
    "clocks": ["", "-F +tod", "-F tod --ns", "--reltime", "--deltatime", "--deltatime --ns",
               "--reltime --show-task-events --show-mmap-events"],
    "changed-code": ["--show-text-poke-events", "--show-bpf-events", "--deltatime --show-mmap-events",
                     "--show-bpf-events --show-text-poke-events --show-mmap-events --show-task-events"],
}
REFUSED = {"weights": ["-F +ins_lat", "-F +iregs", "-F +tod", "-F symoff,ip", "-F srcline"], "memory": ["-F +brstackinsn"]}
# Register names of captures from other machines.
MACHINES = ["x86_64", "i686", "aarch64", "armv7l", "s390x", "ppc64le", "mips", "riscv64", "loongarch64"]


class MadeCaptures(programs.Scratch):
    def write(self, made):
        self.capture = self.folder / "capture.data"
        self.capture.write_bytes(made.file())

    def compare(self, words):
        arguments = [*SYMBOLS, "-i", self.capture, *words.split()]
        theirs = self.perf("script", *arguments).stdout
        self.assert_same_text(self.tacho("script", "--as-perf", *arguments, status=None).stdout, theirs)
        return theirs

    def test_the_stored_ones_are_these(self):
        stored = [path for path in (GOLDEN / "captures").glob("*.data") if path.stem in made_capture.CAPTURES]
        self.assertGreater(len(stored), 5)
        for path in stored:
            self.assertEqual(path.read_bytes(), made_capture.CAPTURES[path.stem]().file(), path.name)

    @programs.needs_perf
    def test_their_texts_are_perfs(self):
        self.assertEqual(set(VIEWS), set(made_capture.CAPTURES))
        for name, views in VIEWS.items():
            self.write(made_capture.CAPTURES[name]())
            for words in views:
                with self.subTest(capture=name, words=words):
                    text = self.compare(words)
                    self.assertEqual(text == b"", words.endswith("--addr-range 4"))

    @programs.needs_perf
    def test_what_perf_refuses_is_refused(self):
        for name, views in REFUSED.items():
            self.write(made_capture.CAPTURES[name]())
            for words in views:
                with self.subTest(capture=name, words=words):
                    arguments = [*SYMBOLS, "-i", self.capture, *words.split()]
                    self.assertEqual(self.perf("script", *arguments, status=255).stdout, b"")
                    self.assertEqual(self.tacho("script", *arguments, status=1).stdout, b"")

    @programs.needs_perf
    def test_registers_of_every_machine(self):
        for arch in MACHINES:
            with self.subTest(arch=arch):
                self.write(made_capture.registers_of(arch, (1 << 64) - 1))
                self.compare("-F iregs,uregs")


if __name__ == "__main__":
    programs.main()
