#!/usr/bin/env python3
"""tacho why names the cause of programs whose cause is known, as they measure it themselves."""
import fcntl
import json
import os
import pty
import shutil
import subprocess
import termios
import time
import unittest
from pathlib import Path

import planted
import programs
from page_data import Page

TACHO = programs.BIN / "tacho"
FIRST = ("nice", "-n", "-20")  # before other tests
ATTEMPTS = 3
WITHOUT_CPU = ["runnable", "throttled", "fork"]  # causes

@programs.needs_root
@programs.needs_btf
class Asked(planted.Planted):
    """What else runs on the machine takes CPUs from the programs: where that is not the planted cause, it is left out."""

    def check_cause(self, cause, program=(programs.BIN / "planted",), seconds=None):
        wrong = []
        is_beside = seconds is None and cause in planted.BESIDE_CHILDREN
        seconds = seconds or (5 if is_beside else 1)
        for _ in range(ATTEMPTS):
            begin = time.monotonic()
            words = [*FIRST, TACHO, "why", "--json", *(["-p", "{pid}", "--for", "1200ms"] if is_beside else ["--"])]
            truth, said = self.run_planted(cause, seconds, words, (*FIRST, *program))
            self.assertLess(time.monotonic() - begin, seconds + 30, "it does not end in time")
            self.assertEqual(list(self.folder.glob("planted-*.dat")), [], "its file is left")
            self.check_truth(truth, seconds)
            answer = json.loads(said)
            take_planted_holder(truth, answer["findings"])
            wrong = planted.check(*without_others(truth, answer))
            if not wrong:
                return
        of_others = truth["runnable_ns"] / truth["wall_ns"]
        if truth["cause"] == "throttled" and answer["findings"][0]["cause"] == "runnable":
            self.skipTest(f"the machine is busy: others had the CPU before the quota was used up: {wrong}")
        if truth["cause"] not in WITHOUT_CPU and of_others > 0.2:
            self.skipTest(f"the machine is busy: threads waited {of_others:.0%} of the time for a CPU: {wrong}")
        self.fail(wrong)

    def check_truth(self, truth, seconds):
        for name, times in truth["per_thread"].items():
            self.assertEqual(times["wall_ns"], times["cpu_ns"] + times["runnable_ns"] + times["blocked_ns"], name)
            self.assertGreater(times["wall_ns"], 0.5e9 * seconds, name)
        if truth["cause"] != "idle":
            self.assertAlmostEqual(truth["share"], truth["cause_ns"] / truth["wall_ns"], delta=1e-4)


class Why(Asked):
    def test_a_capture_is_kept_or_not(self):
        done = self.run_program(*FIRST, TACHO, "why", "--", programs.BIN / "planted", "hot", 1, "truth.json")
        self.assertIn("tacho annotate -i FILE hot_function\n", done.stdout.decode())
        self.assertIn("tacho why -o FILE keeps the capture", done.stdout.decode())
        self.assertEqual([path.name for path in self.folder.iterdir()], ["truth.json"])
        done = self.run_program(*FIRST, TACHO, "why", "-o", "kept.data", "--", programs.BIN / "planted", "hot", 1, "truth.json")
        self.assertIn("tacho annotate -i kept.data hot_function\n", done.stdout.decode())
        self.assertEqual(self.tacho("why", "-i", "kept.data").stdout, done.stdout)
        self.assert_times_add_up(json.loads(self.tacho("why", "-i", "kept.data", "--json").stdout))

    def test_a_page_opens_on_the_answer(self):
        self.run_program(*FIRST, TACHO, "why", "--page", "why.html", "--source", "--", programs.BIN / "planted", "hot", 1, "truth.json")
        page = Page((self.folder / "why.html").read_text())
        titles = [finding["title"] for finding in page.head["why"]["findings"]]  # on a busy machine the first is the wait for a CPU
        self.assertTrue(any("hot_function" in title for title in titles), titles)
        self.assertTrue(page.texts[page.head["title"]].startswith("tacho why --page why.html --source -- "))
        columns = page.columns
        with_code = {page.texts[columns["frame.name"][frame]] for frame, rows in zip(columns["code.frame"], columns["code.rows"]) if rows}
        self.assertTrue(any("hot_function" in name for name in with_code), with_code)
        self.assertEqual(len(columns["code"]), len(columns["time"]))
        self.run_program(TACHO, "why", "--source", "--", "true", status=1)
        self.assertNotIn("tacho-why-", " ".join(page.texts) + json.dumps(page.head), "the removed capture's path")

    def test_a_page_that_cannot_be_written_is_refused_before_the_recording(self):
        for name, status in (("no/why.html", 4), (".", 4), ("-", 1), ("kept.data", 1)):
            self.run_program(TACHO, "why", "--page", name, "-o", "kept.data", "--", programs.BIN / "planted", "hot", 1, "truth.json",
                             status=status)
            self.assertEqual(list(self.folder.iterdir()), [], name)

    def assert_times_add_up(self, answer):
        parts = answer["idle_ns"] + answer["unknown_ns"] + answer["rest_ns"] + sum(one["time_ns"] for one in answer["findings"])
        self.assertAlmostEqual(parts / answer["wall_ns"], 1, delta=0.01, msg=answer)
        # The wall graph divides the same time.
        folded = self.tacho("folded", "--wall", "-i", "kept.data").stdout.decode().splitlines()
        self.assertAlmostEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded) / answer["wall_ns"], 1, delta=0.01)

    def test_programs_that_throw_are_not_followed(self):
        planted_program = programs.BIN / "planted"
        done = self.run_program(TACHO, "why", "--of", f"{planted_program}:store_under_lock", "--", planted_program, "fsync", 1, "truth.json", status=1)
        self.assertIn("planted throws exceptions", done.stderr.decode())
        self.assertFalse((self.folder / "truth.json").exists(), "it was started")

    def test_it_ends_on_a_terminal(self):
        """A pager would be stopped: it runs in a process group that may not read the terminal."""
        leader, follower = pty.openpty()
        with subprocess.Popen([TACHO, "why", "--", "sleep", "0.2"], stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
                              preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as started:
            os.close(follower)
            said = b""
            try:
                while piece := os.read(leader, 65536):
                    said += piece
            except OSError:  # closed by the last program
                pass
            self.assertEqual(started.wait(timeout=30), 0)
        os.close(leader)
        self.assertIn(b"waits for work", said)

    def test_the_processes_of_a_cgroup_are_a_target(self):
        mounts = [Path("/sys/fs/cgroup") / name for name in ("perf_event", "unified", "")]  # version 1 or 2
        group = next(mount for mount in mounts if (mount / "cgroup.procs").exists()) / f"tacho-why-{os.getpid()}"
        group.mkdir()
        try:
            with subprocess.Popen([programs.BIN / "planted", "hot", "3"], cwd=self.folder) as started:
                (group / "cgroup.procs").write_text(str(started.pid))
                answer = json.loads(self.run_program(*FIRST, TACHO, "why", "--json", "-G", group.name, "--for", "500ms").stdout)
                started.kill()
            self.assertEqual(answer["processes"], 1, answer)
            done = self.run_program(TACHO, "why", "-G", group.name, status=1)
            self.assertIn("no process is in this cgroup", done.stderr.decode())
        finally:
            group.rmdir()

    @unittest.skipUnless(shutil.which("unshare"), "needs unshare (util-linux)")
    def test_in_a_pid_namespace(self):
        """As in a container: threads have other numbers outside of it."""
        _, printed = self.run_planted("convoy", 1, ["unshare", "--pid", "--fork", "--mount", "--mount-proc", *FIRST, TACHO, "why", "--json", "--"])
        text = printed.decode()
        [lock] = [one for one in json.loads(text[text.index('{"tacho_why"'):])["findings"] if one["cause"] == "lock"]
        self.assertEqual((lock["lock"], lock["holder"]["comm"]), ("cache_lock", "worker-*"))

    def test_a_process_that_ends_meanwhile(self):
        with subprocess.Popen(["sleep", "1.5"]) as short:
            done = self.run_program(*FIRST, TACHO, "why", "-p", short.pid, "--for", "60s")
        self.assertIn("not seen: the rest of the time: the process ended while it was recorded\n", done.stdout.decode())

    def test_the_system_is_a_target(self):
        answer = json.loads(self.run_program(TACHO, "why", "--json", "-a", "--for", "300ms", status=None).stdout)
        self.assertGreater(answer["processes"], 10)

    def test_operations_without_a_file_or_a_field_are_refused_before_the_recording(self):
        done = self.run_program(TACHO, "why", "--of", "handle_request", "--", "touch", "started", status=1)
        self.assertIn("--of handle_request: a function is FILE:FUNCTION", done.stderr.decode())
        self.assertEqual(list(self.folder.iterdir()), [])
        self.run_program(TACHO, "why", "-e", "syscall", "--of", "syscall", "--", "true", status=None)

    def test_a_target_is_needed(self):
        done = self.run_program(TACHO, "why", status=1)
        self.assertIn("tacho why: of what? give -p PID", done.stderr.decode())

    def test_slow_calls_wait_for_the_lock(self):
        planted_program = programs.BIN / "planted"
        done = self.run_program(*FIRST, TACHO, "why", "--json", "--may-abort", "--of", f"{planted_program}:store_under_lock", "--", planted_program, "fsync", 2,
                                "truth.json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["operations"]["of"], "call.dur_ns")
        slow, others = answer["operations"]["slow"], answer["operations"]["others"]
        self.assertGreater(slow["min_ns"], others["median_ns"])
        first = answer["findings"][0]
        self.assertEqual((first["cause"], planted.name_of(first["lock"])), ("lock", "cache_lock"), first)
        self.assertEqual(first["holder"]["comm"], "flusher")
        self.assertGreater(first["slow_ns"], first["others_ns"])


def take_planted_holder(truth, findings):
    """On a fast disk threads that are given the lock have it about as long as the planted one, until they get a CPU: of holders
    with at least 0.7 of the first one's time the planted one counts."""
    for finding in findings if "holder" in truth else []:
        near = [one for one in finding.get("holders", []) if one["time_ns"] >= 0.7 * finding["holder"]["time_ns"]]
        finding["holder"] = next((one for one in near if not planted.check_holder(truth["holder"], one)), finding.get("holder"))


def without_others(truth, answer):
    """Truth and answer without the time in which others had the CPU, if that is not the truth."""
    if truth["cause"] == "throttled":  # a program that is stopped is also put aside for others
        queued = [finding for finding in answer["findings"] if finding["cause"] in ["throttled", "runnable"]]
        stopped = [finding for finding in queued if finding["cause"] == "throttled"]
        return truth, answer | {"findings": [finding | {"share": sum(one["share"] for one in queued)} for finding in stopped]}
    if truth["cause"] in WITHOUT_CPU:
        return truth, answer
    kept = [finding for finding in answer["findings"] if finding["cause"] != "runnable"]
    busy = answer["wall_ns"] - answer["idle_ns"] - answer["unknown_ns"]
    time_of_others = sum(finding["time_ns"] for finding in answer["findings"] if finding["cause"] == "runnable")
    for finding in kept:
        finding["share"] *= busy / max(busy - time_of_others, 1)
        doings = (finding.get("holder") or {}).get("doings", [])
        if doings and time_of_others > 0:
            finding["holder"] = finding["holder"] | next((one for one in doings if one["doing"] != "runnable"), {})
    if truth["cause"] == "idle" or time_of_others == 0:
        return truth, answer | {"findings": kept}
    scale = truth["wall_ns"] / max(truth["wall_ns"] - truth["runnable_ns"], 1)
    truth = truth | {"share": truth["share"] * scale}
    if "second" in truth:
        truth["second"] = truth["second"] | {"share": truth["second"]["share"] * scale}
    return truth, answer | {"findings": kept}


class OtherLanguages(Asked):
    """Long enough that the start of an interpreter is a small part of it."""

    def check_all(self, language):
        program = planted.program_in(language, self.folder)
        for cause in planted.CAUSES_IN[language]:
            with self.subTest(cause=cause):
                self.check_cause(cause, program, seconds=3)


for each in planted.LANGUAGES:
    setattr(OtherLanguages, f"test_{each}", lambda self, language=each: self.check_all(language))
for each in planted.CAUSES:
    setattr(Why, f"test_{each.replace('-', '_')}", lambda self, cause=each: self.check_cause(cause))

TRUTH = {"cause": "lock", "function": "store_under_lock", "lock": "cache_lock", "share": 0.6,
         "holder": {"comm": "flush*", "function": "flush_log", "doing": "disk"}}
FINDING = {"cause": "lock", "function": "__lll_lock_wait", "callers": ["store_under_lock(Thread&)", "store"], "share": 0.63,
           "lock": "(anonymous namespace)::cache_lock+0x8", "holder": {"comm": "flusher", "doing": "disk"}}


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

    def test_a_runtime_does_a_part_of_it_on_the_cpu(self):
        truth = {"cause": "fork", "function": "spawn", "share": 0.9, "least": 0.6, "per_thread": {}}
        for share, count in [(0.5, 1), (0.55, 0), (0.95, 0), (1, 1)]:
            finding = {"cause": "fork", "function": "spawn", "share": share}
            self.assertEqual(len(planted.check(truth, {"findings": [finding]})), count, share)

    def test_names(self):
        for symbol in ["look_up", "look_up(Thread&)", "main.look_up", "planted::look_up", "JS:*look_up file:///a.mjs:1:2",
                       "LazyCompile:~look_up /a.js:1:2", "look_up+0x8", "void look_up<&take>(Thread&)", "py::look_up:/a.py"]:
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
