#!/usr/bin/env python3
"""The texts about a capture as a whole, against perf itself: -D, --stats, --tasks, --mmaps, --header-only -I, evlist."""
import programs
from programs import ROOT

# Attributes of a size that perf 6.1 refuses; a tracepoint whose format is not where perf searches.
REFUSED = {"latency.data", "simpleperf-off-cpu.data"}
CAPTURES = sorted(path for path in (ROOT / "tests/golden/captures").glob("*.data") if path.name not in REFUSED)
# After its dump perf counts each branch as a sample, and resolves the kernel symbol of changed code.
NOT_DUMPED_ALIKE = {"predicted-branches.data", "changed-code.data"}
# perf prints bytes of the build id as the inode of mappings that have a build id in its place.
HAS_BUILD_IDS_IN_MAPPINGS = {"bpf.data"}
ALIKE = [
    (["report", "-D"], ["--as-perf"]),
    (["report", "--stats"], ["--as-perf"]),
    (["report", "--tasks"], ["--as-perf"]),
    (["report", "--mmaps"], ["--as-perf"]),
    (["report", "--header-only", "-I"], ["--as-perf"]),
    (["report", "--header-only"], ["--as-perf"]),
    (["evlist"], ["--as-perf"]),
    (["evlist", "-v"], ["--as-perf"]),
    (["evlist", "-F"], ["--as-perf"]),
    (["evlist", "-g"], ["--as-perf"]),
    (["evlist", "--trace-fields"], ["--as-perf"]),
]


@programs.needs_perf
class PerfTexts(programs.Scratch):
    def test_they_are_perfs_bytes(self):
        self.assertGreater(len(CAPTURES), 3)
        for capture in CAPTURES:
            for words, ours_only in ALIKE:
                if "-D" in words and capture.name in NOT_DUMPED_ALIKE:
                    continue
                if "--mmaps" in words and capture.name in HAS_BUILD_IDS_IN_MAPPINGS:
                    continue
                with self.subTest(capture=capture.name, words=" ".join(words)):
                    theirs = self.perf(*words, "-f", "-i", capture).stdout
                    self.assertNotEqual(theirs, b"")
                    self.assert_same_text(self.tacho(*words, *ours_only, "-i", capture).stdout, theirs)


if __name__ == "__main__":
    programs.main()
