#!/usr/bin/env python3
"""Programs with a known cause of their slowness: what they say of themselves is plausible, and compared rightly."""
import time

import planted
import programs

SECONDS = 1
# These have times without a CPU. Of the others that is what else runs on the machine: it takes no part of the share.
WITHOUT_CPU = ["runnable", "throttled", "fork"]


class Plausible(planted.Planted):
    def check(self, cause, **how):
        begin = time.monotonic()
        truth, _ = self.run_planted(cause, SECONDS, **how)
        self.assertLess(time.monotonic() - begin, SECONDS + 15, "it does not end in time")
        self.assertEqual(list(self.folder.glob("planted-*.dat")), [], "its file is left")
        for name, times in truth["per_thread"].items():
            self.assertEqual(times["wall_ns"], times["cpu_ns"] + times["runnable_ns"] + times["blocked_ns"], name)
            self.assertGreater(times["blocked_ns"], -0.02 * times["wall_ns"], name)
            self.assertGreater(times["wall_ns"], 0.5e9 * SECONDS, name)
        if truth["cause"] == "idle":
            self.assertGreater(truth["idle_ns"], 8 * truth["wall_ns"], truth)
            return
        self.assertAlmostEqual(truth["share"], truth["cause_ns"] / truth["wall_ns"], delta=1e-4)
        rest = truth["wall_ns"]
        if truth["cause"] not in WITHOUT_CPU:
            if truth["runnable_ns"] > rest / 3:
                self.skipTest(f"the machine is busy: its threads waited {truth['runnable_ns'] / rest:.0%} of the time for a CPU")
            rest -= truth["runnable_ns"]
        self.assertGreater(truth["cause_ns"], rest / 2, truth)


class Truths(Plausible):
    pass


class OtherLanguages(Plausible):
    def check_all(self, language):
        program = planted.program_in(language, self.folder)
        for cause in planted.CAUSES_IN[language]:
            with self.subTest(cause=cause):
                self.check(cause, program=program)


for each in planted.CAUSES:
    setattr(Truths, f"test_{each.replace('-', '_')}", lambda self, cause=each: self.check(cause))
for each in planted.LANGUAGES:
    setattr(OtherLanguages, f"test_{each}", lambda self, language=each: self.check_all(language))

TRUTH = {"cause": "lock", "function": "store_under_lock", "lock": "cache_lock", "share": 0.6,
         "holder": {"comm": "flush*", "function": "flush_log", "doing": "disk"}}
FINDING = {"cause": "lock", "function": "__lll_lock_wait", "callers": ["store_under_lock(Thread&)", "store"], "share": 0.63,
           "lock": "(anonymous namespace)::cache_lock+0x8", "holder": {"comm": "flusher"}}


class Checks(programs.unittest.TestCase):
    def differences(self, **other):
        return planted.check(TRUTH, {"findings": [FINDING | other]})

    def test_the_right_answer_has_no_differences(self):
        self.assertEqual(self.differences(), [])

    def test_each_wrong_member_is_one(self):
        for other in [{"cause": "disk"}, {"callers": ["store"]}, {"lock": "table_lock"}, {"lock": None}, {"share": 0.67},
                      {"holder": {"comm": "worker-1"}}, {"holder": None}]:
            with self.subTest(other=other):
                self.assertEqual(len(self.differences(**other)), 1)

    def test_a_loop_of_system_calls_is_more_than_the_calls(self):
        truth = {"cause": "syscall", "function": "read_bytes", "share": 0.9, "wall_ns": 1000,
                 "per_thread": {"worker-0": {"system_ns": 300}, "worker-1": {"system_ns": 300}}}
        for share, count in [(0.55, 1), (0.65, 0), (0.95, 0), (1, 1)]:
            finding = {"cause": "syscall", "function": "read_bytes", "share": share}
            self.assertEqual(len(planted.check(truth, {"findings": [finding]})), count, share)

    def test_names(self):
        for symbol in ["look_up", "look_up(Thread&)", "main.look_up", "planted::look_up", "JS:*look_up file:///a.mjs:1:2",
                       "LazyCompile:~look_up /a.js:1:2", "look_up+0x8", "void look_up<&take>(Thread&)"]:
            self.assertEqual(planted.name_of(symbol), "look_up", symbol)

    def test_a_healthy_program_has_no_finding(self):
        self.assertEqual(planted.check({"cause": "idle"}, {"findings": []}), [])
        self.assertEqual(len(planted.check({"cause": "idle"}, {"findings": [FINDING]})), 1)
        self.assertEqual(len(planted.check(TRUTH, {"findings": []})), 1)

    def test_a_second_place_is_a_finding_too(self):
        truth = TRUTH | {"second": {"function": "append_to_log", "share": 0.2}}
        second = FINDING | {"function": "append_to_log", "share": 0.21}
        self.assertEqual(planted.check(truth, {"findings": [FINDING, second]}), [])
        self.assertEqual(len(planted.check(truth, {"findings": [FINDING]})), 1)


if __name__ == "__main__":
    programs.main()
