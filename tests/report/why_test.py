#!/usr/bin/env python3
"""tacho why, of captures in which every wait and sample is known: what is a finding, whose, and what is idle."""
import json
import shlex
import struct
import unittest

import made_capture as made
import made_payload
import programs
from made_payload import ENUM, PAYLOAD_SCHEMAS, TEXT, Field

MS = 1_000_000
OBJECTS = ["none", "futex", "mutex", "rwlock", "file", "accepted", "connected", "listening", "pipe", "epoll", "other_fd"]
KERNEL = ["schedule", "futex_wait", "ep_poll", "do_nanosleep", "io_schedule", "tcp_recvmsg", "asm_exc_page_fault",
          "__x64_sys_sched_yield", "try_to_wake_up", "pipe_read", "do_wait"]
AT = {name: made.KERNEL_TEXT + 0x1000 * (i + 1) for i, name in enumerate(KERNEL)}
USER = {"main": made.MAIN + 9, "leaf_a": made.LEAF_A + 4, "leaf_b": made.LEAF_B + 4, "recurse": made.RECURSE + 4,
        "mix": made.START + 0x1254, "round_once": made.START + 0x1374}
ONE, TWO, THREE = made.PID, made.PID + 1, made.PID + 2
OFFCPU = [Field("off_ns", unit="ns", role="value"), Field("runq_ns", unit="ns", role="queued"), Field("skipped_ns"),
          Field("lock", format="uaddr"), Field("holder_tid", size=4), Field("runner_pid", size=4),
          Field("object", ENUM, 4, enumerators=tuple(enumerate(OBJECTS))), Field("throttled", size=4),
          Field("ready", ENUM, 4, enumerators=tuple(enumerate(OBJECTS))), Field("pad", size=4), Field("name", TEXT, 1, 64),
          Field("runner", TEXT, 1, 16), Field("disk", TEXT, 1, 16), Field("holder", TEXT, 1, 16),
          Field("waker", TEXT, 1, 16), Field("weight_ns", unit="ns", role="weight"),
          Field("state", ENUM, 4, enumerators=((1, "S"), (4, "T"))), Field("began_before", size=4), Field("unfinished", size=4)]
WAKING = [Field("blocked_ns", unit="ns", role="value"), Field("woken_tid", size=4, role="wakes"), Field("pad", size=4)]
SINK = made.START + 0x4048  # a variable of the program


class MadeWaits(programs.Scratch):
    """Threads with waits and clock samples of which each is known, and what tacho why says of them."""

    def setUp(self):
        super().setUp()
        lines = [("_text", made.KERNEL_TEXT), *AT.items(), ("_etext", made.KERNEL_TEXT + 0x2000000)]
        (self.folder / "kallsyms").write_text("".join(f"{at:016x} T {name}\n" for name, at in lines))
        schemas = {"offcpu": OFFCPU, "waking": WAKING, "call": [Field("lat_ns", unit="ns", role="value")]}
        kind = made.USUAL | made.RAW | made.CALLCHAIN
        self.begin(*(made.Event(name, made.SOFTWARE, made_payload.BPF_OUTPUT, kind, 1) for name in schemas),
                   features={PAYLOAD_SCHEMAS: made_payload.schemas(**schemas)})

    def begin(self, *events, features=None):
        self.names = [*(event.name for event in events), "cpu-clock"]
        clock = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)
        self.capture = made.Capture(*events, clock, features=features)
        self.zero, self.capture.time = self.capture.time, 0
        self.capture.started().mapped(ONE, made.START + 0x4000, 0x1000, 0x3000, made.PROGRAM, protection=3)
        for name, tid in (("worker-1", ONE), ("flusher", TWO), ("keeper", THREE)):
            self.capture.named(name, tid)

    def add(self, ms, event, tid, stack, raw=b"", period=MS):
        """`stack`: functions, leaf first."""
        kernel = [AT[name] + 4 for name in stack if name in AT]
        user = [USER[name] for name in stack if name in USER]
        chain = [*([made.CONTEXT_KERNEL] if kernel else []), *kernel, *([made.CONTEXT_USER] if user else []), *user]
        self.capture.time = self.zero + round(ms * MS) - made.STEP
        self.capture.sample(self.names.index(event), ip=(kernel + user)[0], misc=made.KERNEL if kernel else made.USER, chain=chain,
                            tid=tid, pid=tid if tid >= 5000 else ONE, raw=raw, period=period)

    def runs(self, first, last, tid, *stack):
        for ms in range(first, last):
            self.add(ms, "cpu-clock", tid, stack)

    def off(self, end, tid, ms, stack, object="none", queued=0, lock=0, holder=0, name="", runner="", skipped=0, throttled=0, disk="",
            stands_for=1, ready="none", state=1, before=0, unfinished=0):
        encode = lambda text, size: (text if isinstance(text, bytes) else text.encode()).ljust(size, b"\0")
        raw = struct.pack("<QQQQIIIIII", round(ms * MS), queued * MS, skipped * MS, lock, holder, 0, OBJECTS.index(object), throttled,
                          OBJECTS.index(ready), 0)
        self.add(end, "offcpu", tid, stack, raw + encode(name, 64) + encode(runner, 16) + encode(disk, 16) + bytes(32) +
                 struct.pack("<QIII", round(stands_for * ms * MS), state, before, unfinished))

    def wakes(self, ms, tid, whom, *stack):
        self.add(ms, "waking", tid, stack, struct.pack("<QII", MS, whom, 0))

    def switches(self):
        """100 ms for a disk, in sched:sched_switch alone."""
        kind = made.USUAL | made.RAW | made.CALLCHAIN
        fields = [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)]
        self.begin(made.Event("sched:sched_switch", made.SOFTWARE, made_payload.BPF_OUTPUT, kind, 1),
                   features={PAYLOAD_SCHEMAS: made_payload.schemas(**{"sched:sched_switch": fields})})
        switch = lambda ms, tid, to, *stack: self.add(ms, "sched:sched_switch", tid, stack, struct.pack("<QII", 1, to, 0))
        switch(0, ONE, TWO, "schedule", "io_schedule", "leaf_a", "main")
        switch(100, TWO, ONE, "schedule", "ep_poll", "main")
        switch(110, ONE, TWO, "schedule", "ep_poll", "main")

    def why(self, *words, status=0):
        (self.folder / "a.data").write_bytes(self.capture.file())
        return self.tacho("why", "-i", "a.data", "--kallsyms", "kallsyms", "--symfs", programs.ROOT / "tests/golden/symfs", *words,
                          status=status)

    def answer(self, *words):
        found = json.loads(self.why("--json", *words).stdout)
        parts = found["idle_ns"] + found["unknown_ns"] + found["rest_ns"] + sum(one["time_ns"] for one in found["findings"])
        self.assertAlmostEqual(parts / MS, found["wall_ns"] / MS, delta=0.01)
        return found

    def finding(self, cause, *words):
        found = self.answer(*words)["findings"]
        self.assertEqual([one["cause"] for one in found].count(cause), 1, found)
        return next(one for one in found if one["cause"] == cause)

    def waits_for_the_flusher(self, **more):
        self.runs(0, 10, ONE, "leaf_a", "main")
        self.runs(0, 100, TWO, "leaf_b", "main")
        self.off(110, ONE, 100, ("schedule", "futex_wait", "recurse", "main"), "mutex", lock=SINK, **more)

    def slow_operations(self):
        """A hundred, one of which waits for a lock for 90 ms, the others for 2 ms."""
        for number in range(100):
            end, wait = 200 * number + 150, 90 if number == 50 else 2
            self.runs(end - wait - 1, end - wait, ONE, "leaf_b", "main")
            self.off(end, ONE, wait, ("schedule", "futex_wait", "leaf_a", "main"), "mutex", lock=SINK)
            self.add(end + 1, "call", ONE, ("main",), struct.pack("<Q", (wait + 1) * MS))


class Why(MadeWaits):
    def test_the_holder_of_a_lock_is_named_with_what_it_did(self):
        self.waits_for_the_flusher(holder=TWO)
        lock = self.finding("lock")
        self.assertEqual((lock["lock"], lock["function"], lock["time_ns"]), ("sink", "recurse", 100 * MS))
        holder = lock["holder"]
        self.assertEqual((holder["comm"], holder["tid"], holder["function"], holder["doing"]), ("flusher", TWO, "leaf_b", "cpu"))

    def test_a_wait_as_long_as_the_recording_is_said_to_be(self):
        self.off(100, ONE, 100, ("schedule", "futex_wait", "recurse", "main"), "mutex", lock=SINK, before=1, unfinished=1)
        lock = self.finding("lock")
        self.assertEqual((lock["began_before"], lock["unfinished"], lock["more"]), (1, 1, f"tacho stacks -p {ONE}"))
        self.assertIn(b"longest 100 ms, 1 since before the recording, 1 not ended; worker-", self.why().stdout)

    def test_a_stopped_thread_waits_for_nothing(self):
        self.off(110, ONE, 100, ("schedule", "leaf_a", "main"), state=4)
        self.assertEqual(self.finding("stopped")["function"], "leaf_a")

    def test_time_of_unknown_cause_is_no_answer(self):
        self.runs(0, 1, ONE, "main")
        self.off(310, ONE, 0.001, ("schedule", "ep_poll", "main"), "epoll", skipped=200)
        self.assertIn(b"nothing stands out in what is recorded\n", self.why().stdout)

    def test_how_long_it_was_held(self):
        self.wakes(40, TWO, ONE, "leaf_b", "main")
        self.off(40, ONE, 20, ("schedule", "futex_wait", "recurse", "main"), "mutex", lock=SINK, holder=TWO)
        self.wakes(100, TWO, ONE, "leaf_b", "main")
        self.off(100, ONE, 50, ("schedule", "futex_wait", "recurse", "main"), "mutex", lock=SINK, holder=TWO)
        self.wakes(170, TWO, ONE, "leaf_b", "main")
        self.off(165, TWO, 5, ("schedule", "futex_wait", "leaf_b", "main"), "mutex", lock=SINK, holder=ONE)
        self.off(170, ONE, 30, ("schedule", "futex_wait", "recurse", "main"), "mutex", lock=SINK)
        holder = next(one for one in self.finding("lock")["holders"] if one["comm"] == "flusher")
        # The third time from the end of its own wait on.
        self.assertEqual((holder["median_hold_ns"], holder["max_hold_ns"]), (20 * MS, 50 * MS))
        self.assertIn(b"held by flusher (4243), 71 %, 20 ms at a time, longest 50 ms: ", self.why().stdout)

    def test_holders_are_not_looked_for_without_end(self):
        for at in range(3000):
            self.add(at / 30, "cpu-clock", TWO, ("leaf_b", "main"), period=MS // 30)
        for tid in range(7000, 10000):
            self.off(100, tid, 100, ("schedule", "futex_wait", "recurse", "main"), "mutex", lock=SINK, holder=TWO)
        missing = self.answer()["missing"]
        self.assertRegex(" ".join(missing), r"who held the locks in the last \d+ waits: there are too many")

    def test_a_member_is_its_object_and_an_offset(self):
        self.off(110, ONE, 100, ("schedule", "futex_wait", "main"), "mutex", lock=SINK + 4)
        self.assertEqual(self.finding("lock")["lock"], "sink+0x4")

    def test_a_holder_that_waits_for_another_lock(self):
        self.off(110, TWO, 100, ("schedule", "futex_wait", "leaf_b"), "mutex", lock=SINK + 4, holder=THREE)
        self.off(110, ONE, 100, ("schedule", "futex_wait", "leaf_a"), "mutex", lock=SINK, holder=TWO)
        locks = {one["lock"]: one for one in self.answer()["findings"]}
        self.assertEqual(locks["sink"]["holder"]["doings"][0]["of"], "sink+0x4")

    def test_a_lock_without_an_owner_was_held_by_the_waker(self):
        self.runs(0, 10, ONE, "leaf_a")
        self.wakes(109, THREE, ONE, "try_to_wake_up", "mix")
        self.waits_for_the_flusher()
        holder = self.finding("lock")["holder"]
        self.assertEqual((holder["comm"], holder["function"]), ("keeper", "mix"))

    def test_waits_for_work_are_idle(self):
        for object, leaf, waits_for in (("epoll", "ep_poll", "poll"), ("accepted", "tcp_recvmsg", "socket"),
                                        ("listening", "tcp_recvmsg", "socket"), ("futex", "futex_wait", "condition")):
            self.setUp()
            self.off(110, ONE, 100, ("schedule", leaf, "main"), object)
            found = self.answer()
            self.assertEqual((found["findings"], [one["waits_for"] for one in found["idle"]]), ([], [waits_for]), object)

    def wait_for_the_condition(self, end, tid, woken_by, address=SINK):
        """100 ms, while the waker is on the CPU."""
        self.runs(end - 100, end - 1, woken_by, "leaf_b", "main")
        self.wakes(end - 1, woken_by, tid, "try_to_wake_up", "mix")
        self.off(end, tid, 100, ("schedule", "futex_wait", "leaf_a", "main"), "futex", lock=address)

    def test_who_ends_waits_for_work_is_said(self):
        self.wait_for_the_condition(110, ONE, THREE)
        self.wait_for_the_condition(220, TWO, THREE)
        found = self.answer()
        idle = next(one for one in found["idle"] if one["waits_for"] == "condition")
        self.assertEqual((idle["function"], idle["count"], idle["median_ns"], idle["max_ns"]), ("leaf_a", 2, 100 * MS, 100 * MS))
        by = idle["ended_by"][0]
        self.assertEqual([by[name] for name in ("comm", "tid", "ends_in", "doing", "function")], ["keeper", THREE, "mix", "cpu", "leaf_b"])
        self.assertEqual([one["cause"] for one in found["findings"]], ["cpu"])
        self.assertIn(b"          ended by keeper (4244) in mix, 100 %; meanwhile 100 % on the CPU in leaf_b\n", self.why().stdout)

    def test_who_had_the_cpu_of_the_thread_that_ends_a_wait_is_said(self):
        self.off(109, THREE, 99, ("schedule", "leaf_b", "main"), queued=99, runner="hog")
        self.wakes(109, THREE, ONE, "try_to_wake_up", "mix")
        self.off(110, ONE, 100, ("schedule", "futex_wait", "leaf_a", "main"), "futex", lock=SINK)
        self.assertRegex(self.why().stdout.decode(), r"ended by keeper \(4244\) in mix, 100 %; meanwhile 99 % waiting for a CPU in \w+ \(hog had it\)\n")

    def test_peers_whose_answers_end_epoll_are_said(self):
        self.off(110, ONE, 100, ("schedule", "ep_poll", "main"), "epoll", ready="connected", name="10.0.0.1:80")
        self.off(330, ONE, 200, ("schedule", "ep_poll", "main"), "epoll", ready="accepted")
        self.assertEqual(self.answer()["idle"][0]["peers"], [{"name": "10.0.0.1:80", "time_ns": 100 * MS}])
        self.assertIn(b"\n          ended by the peer 10.0.0.1:80, 33 %\n", self.why().stdout)

    def test_a_condition_that_waiters_give_back_is_no_wait_for_work(self):
        self.wait_for_the_condition(110, ONE, TWO)
        self.wait_for_the_condition(220, TWO, ONE, SINK + 4)  # another half of it
        condition = self.finding("condition")
        self.assertEqual((condition["lock"], condition["function"], condition["time_ns"]), ("sink", "leaf_a", 200 * MS))
        self.assertEqual({one["comm"]: one["ends_in"] for one in condition["holders"]}, {"worker-1": "mix", "flusher": "mix"})

    def test_conditions_of_a_chain_of_threads_are_not_shared(self):
        self.wait_for_the_condition(110, ONE, TWO)
        self.wait_for_the_condition(220, TWO, THREE, SINK + 64)
        self.assertNotIn("condition", [one["cause"] for one in self.answer()["findings"]])

    def test_consumers_that_wake_each_other_wait_for_work(self):
        """The first is woken by the producer; it wakes the second, and works."""
        for end, first, second in ((110, ONE, TWO), (220, TWO, ONE), (330, ONE, TWO)):
            self.wakes(end - 1, THREE, first, "try_to_wake_up", "mix")
            self.off(end, first, 10, ("schedule", "futex_wait", "leaf_a", "main"), "futex", lock=SINK)
            self.wakes(end + 1, first, second, "try_to_wake_up", "mix")
            self.off(end + 2, second, 101, ("schedule", "futex_wait", "leaf_a", "main"), "futex", lock=SINK)
        self.assertNotIn("condition", [one["cause"] for one in self.answer()["findings"]])

    def test_a_turn_at_waiting_for_work_is_idle(self):
        for end, tid, leader in ((110, ONE, TWO), (220, TWO, ONE)):
            self.off(end - 2, leader, 95, ("schedule", "ep_poll", "main"), "epoll")
            self.wakes(end - 1, leader, tid, "try_to_wake_up", "mix")
            self.off(end, tid, 100, ("schedule", "futex_wait", "leaf_a", "main"), "futex", lock=SINK)
        self.assertEqual(self.answer()["findings"], [])

    def test_a_lock_of_python_has_several_that_wait(self):
        self.name_functions(python_lock="lock_PyThread_acquire_lock", timed="PyThread_acquire_lock_timed")
        stack = ("schedule", "futex_wait", "timed", "python_lock", "main")
        self.wakes(99, THREE, ONE, "try_to_wake_up", "mix")
        self.off(100, ONE, 90, stack, "futex", lock=SINK)
        self.assertEqual(self.answer("--perf-map-dir", ".")["findings"], [])
        self.wakes(104, ONE, TWO, "try_to_wake_up", "mix")
        self.off(105, TWO, 80, stack, "futex", lock=SINK)
        self.assertEqual(self.finding("lock", "--perf-map-dir", ".")["time_ns"], 170 * MS)

    def test_a_connected_socket_is_a_peer(self):
        self.off(110, ONE, 100, ("schedule", "tcp_recvmsg", "main"), "connected", name="10.0.0.1:80")
        self.assertEqual(self.finding("network")["peer"], "10.0.0.1:80")

    def test_a_file_and_its_disk(self):
        self.off(110, ONE, 100, ("schedule", "io_schedule", "main"), "file", name="log/a", disk="sda1")
        disk = self.finding("disk")
        self.assertEqual((disk["file"], disk["device"]), ("log/a", "sda1"))
        self.assertIn(b"waits for the disk sda1 in main, file .../log/a\n", self.why().stdout)

    def test_page_faults_on_the_cpu_and_blocked_are_one_finding(self):
        self.runs(0, 50, ONE, "asm_exc_page_fault", "leaf_a")
        self.off(150, ONE, 100, ("schedule", "io_schedule", "asm_exc_page_fault", "leaf_a"))
        self.assertEqual(self.finding("fault")["time_ns"], 150 * MS)

    def test_who_had_the_cpu_and_quotas(self):
        self.off(110, ONE, 100, ("schedule", "main"), queued=100, runner="hog-1")
        self.off(110, TWO, 100, ("schedule", "main"), queued=100, throttled=1)
        self.assertEqual(self.finding("runnable")["by"], "hog-1")
        self.off(220, THREE, 100, ("schedule", "main"), queued=100, runner="hog-2")
        self.assertEqual(self.finding("runnable")["by"], "hog-*", "several have one name")
        self.assertEqual(self.finding("throttled")["time_ns"], 100 * MS)

    def test_what_has_the_cpu_that_others_wait_for_is_named(self):
        """Without its 900 ms of waits for a CPU the thread is in leaf_b all the time."""
        self.runs(0, 100, ONE, "leaf_b", "main")
        self.off(1000, ONE, 900, ("schedule", "main"), queued=900, runner="worker-1")
        functions = self.finding("runnable")["by_functions"]
        self.assertEqual([(one["name"], one["time_ns"]) for one in functions], [("leaf_b", 900 * MS)])
        self.assertEqual(self.finding("cpu")["function"], "leaf_b")
        self.assertRegex(self.why().stdout.decode(), r"the CPU had 100 % worker-1 \(100 % in leaf_b\)\n")

    def test_processes_of_one_program_are_one_finding(self):
        for number, pid in enumerate((6000, 6001, 6002)):
            start = made.START + 0x10000000 * number
            self.capture.time = 0
            self.capture.other(3, 0, struct.pack("<II16s", pid, pid, b"server"))
            self.capture.mapped(pid, start + 0x1000, 0x1000, 0x1000, made.PROGRAM)
            USER["here"] = USER["leaf_a"] - made.START + start
            self.runs(0, 100, pid, "here")
        cpu = self.finding("cpu")
        self.assertEqual((cpu["function"], cpu["count"]), ("leaf_a", 300))

    def test_two_hot_functions_of_one_caller_are_two_findings(self):
        for ms in range(0, 100, 2):
            self.runs(ms, ms + 1, ONE, "leaf_a", "main")
            self.runs(ms + 1, ms + 2, ONE, "leaf_b", "main")
        self.assertEqual({one["function"] for one in self.answer()["findings"]}, {"leaf_a", "leaf_b"})

    def name_functions(self, **names):
        """Functions of the program by names that its binary does not have."""
        self.capture.mapped(ONE, 0x7000000000, 0x10000, 0, "//anon")
        at = 0x7000000000
        with open(self.folder / "perf-4242.map", "w") as file:
            for key, name in names.items():
                file.write(f"{at:x} 100 {name}\n")
                USER[key] = at + 0x10
                at += 0x100

    def cpu(self):
        return self.finding("cpu", "--perf-map-dir", ".")

    def test_a_hot_function_has_its_time_under_all_callers(self):
        self.runs(0, 90, ONE, "leaf_a", "main")
        self.runs(90, 94, ONE, "leaf_a", "recurse", "main")
        self.runs(94, 100, ONE, "leaf_b", "mix", "main")
        cpu = self.cpu()
        self.assertEqual((cpu["function"], cpu["count"]), ("leaf_a", 94))

    def test_what_libraries_do_for_a_function_is_its_own(self):
        self.name_functions(sort="std::__sort<int*>")
        self.runs(0, 90, ONE, "sort", "leaf_a", "main")
        self.runs(90, 100, ONE, "leaf_a", "main")
        cpu = self.cpu()
        self.assertEqual((cpu["function"], [one["name"] for one in cpu["parts"]]), ("leaf_a", ["std::__sort<int*>"]))

    def test_an_interpreter_without_names_is_one_finding(self):
        self.name_functions(loop="_PyEval_EvalFrameDefault", start="PyEval_EvalCode", add="PyNumber_Add", free="_PyObject_Free")
        for at in range(0, 90, 3):
            for leaf in ((), ("add",), ("free",)):
                self.runs(at, at + 1, ONE, *leaf, "loop", "start")
                at += 1
        cpu = self.cpu()
        self.assertEqual((cpu["function"], cpu["count"]), ("_PyEval_EvalFrameDefault", 90))

    def test_functions_of_javascript_are_the_same_however_compiled(self):
        self.name_functions(slow="JS:~hash file:///a.js:1:2", fast="JS:*hash file:///a.js:1:2")
        self.runs(0, 50, ONE, "slow", "main")
        self.runs(50, 100, ONE, "fast", "main")
        cpu = self.cpu()
        self.assertEqual((cpu["function"], cpu["count"]), ("JS:hash file:///a.js:1:2", 100))
        self.assertEqual(cpu["more"], "tacho report -i a.data --event cpu-clock --no-children")

    def test_packages_of_languages_are_libraries(self):
        self.name_functions(run="os/exec.(*Cmd).Run", part="sort.part.0", other="example.com/os.Run", node="JS:*get node:http:1:2",
                            python="py::get:/usr/lib/python3.12/http/client.py", frozen="py::f:<frozen abc>")
        for end, leaf in ((110, "run"), (220, "part"), (330, "other"), (440, "node"), (550, "python"), (660, "frozen")):
            self.off(end, ONE, 100, ("schedule", "io_schedule", leaf, "main"))
        functions = {one["function"] for one in self.answer("--perf-map-dir", ".")["findings"]}
        self.assertEqual(functions, {"main", "sort.part.0", "example.com/os.Run"})

    def test_sched_yield_is_a_spin(self):
        self.runs(0, 100, ONE, "__x64_sys_sched_yield", "leaf_a", "main")
        spin = self.finding("spin")
        self.assertEqual((spin["function"], spin["call"]), ("leaf_a", "sched_yield"))

    def test_a_function_that_takes_a_spin_lock_spins(self):
        self.name_functions(lock="pthread_spin_lock")
        self.runs(0, 60, ONE, "lock", "leaf_a", "main")
        self.runs(60, 100, ONE, "leaf_a", "main")
        spin = self.finding("spin", "--perf-map-dir", ".")
        self.assertEqual((spin["function"], [one["name"] for one in spin["parts"]]), ("leaf_a", ["pthread_spin_lock"]))

    def test_sleeps_are_idle_unless_the_thread_waits_for_work_too(self):
        self.off(110, ONE, 100, ("schedule", "do_nanosleep", "main"))
        self.assertEqual(self.answer()["findings"], [])
        self.off(210, ONE, 100, ("schedule", "ep_poll", "main"), "epoll")
        self.assertEqual(self.finding("timer")["time_ns"], 100 * MS)

    def test_records_of_context_switches_alone_show_waits(self):
        """What a user without rights for BPF and tracepoints can record."""
        switches = made.Event("context-switches", made.SOFTWARE, 3, made.USUAL | made.CALLCHAIN, 1, flags=1 << 26)
        self.begin(switches)
        switch, out, preempted = 14, 1 << 13, 1 << 13 | 1 << 14

        def changes(ms, kind):
            self.capture.time = self.zero + ms * MS
            self.capture.other(switch, kind, b"")

        self.runs(0, 10, ONE, "leaf_a", "main")
        self.add(10, "context-switches", ONE, ("schedule", "io_schedule", "leaf_a", "main"), period=1)
        for ms, kind in ((10, out), (60, 0), (70, preempted), (100, 0), (110, out), (130, 0)):
            changes(ms, kind)
        self.runs(130, 140, ONE, "leaf_a", "main")
        answer = self.answer()
        found = {one["cause"]: one for one in answer["findings"]}
        self.assertEqual([(found[cause]["time_ns"], found[cause]["count"]) for cause in ("disk", "runnable")], [(50 * MS, 1), (30 * MS, 1)])
        self.assertEqual((found["disk"]["function"], answer["unknown_ns"]), ("leaf_a", 20 * MS), "nothing says for what it waits from 110 ms on")
        self.assertIn("no event says for which lock, file or peer threads wait", " ".join(answer["missing"]))

    def test_sleeps_for_moments_between_waits_for_a_peer_are_a_finding(self):
        for ms, findings in ((1000, {"network"}), (50, {"network", "timer"})):
            with self.subTest(ms=ms):
                self.setUp()
                self.off(2050, ONE, ms, ("schedule", "do_nanosleep", "main"))
                self.off(2300, ONE, 200, ("schedule", "tcp_recvmsg", "main"), "connected", name="10.0.0.1:80")
                self.assertEqual({one["cause"] for one in self.answer()["findings"]}, findings)

    def test_sqlite_sleeps_until_a_database_is_free(self):
        self.name_functions(sqlite="sqlite3_step")
        self.off(110, ONE, 100, ("schedule", "do_nanosleep", "sqlite", "leaf_a", "main"))
        lock = self.finding("lock", "--perf-map-dir", ".")
        self.assertEqual((lock["function"], lock["lock"]), ("leaf_a", "[of an SQLite database]"))

    def test_waits_without_events_are_said(self):
        self.runs(0, 1, ONE, "main")
        self.off(210, ONE, 10, ("schedule", "do_nanosleep", "main"))
        self.off(410, ONE, 100, ("schedule", "ep_poll", "main"), "epoll", skipped=50)
        self.assertIn("0.050 s of waits have no events", " ".join(self.answer()["missing"]))

    def test_names_of_files_are_safe(self):
        for name in ("\x1b[2Ja\nb<script>", b"\xff\xfe\xc3"):
            self.setUp()
            self.off(110, ONE, 100, ("schedule", "io_schedule", "main"), "file", name=name)
            self.answer()
            text = self.why().stdout
            text.decode()
            self.assertNotIn(b"\x1b", text)
            self.assertNotIn(b"a\nb", text)

    def test_time_without_waits_and_samples_is_not_recorded(self):
        self.runs(0, 10, ONE, "main")
        self.off(20, ONE, 5, ("schedule", "ep_poll", "main"), "epoll")
        self.off(1020, ONE, 5, ("schedule", "ep_poll", "main"), "epoll")  # the event of a wait between them is lost
        found = self.answer()
        self.assertEqual(found["findings"], [])
        self.assertAlmostEqual(found["unknown_ns"] / MS, 1000, delta=10)

    def test_a_clock_alone_shows_the_cpu(self):
        self.begin()
        self.runs(0, 100, ONE, "leaf_a", "main")
        self.assertEqual(self.finding("cpu")["function"], "leaf_a")
        self.assertIn(b"not seen: no event says when threads do not run", self.why().stdout)

    def test_processes_and_names_can_be_chosen(self):
        self.runs(0, 100, ONE, "leaf_a", "main")
        self.runs(0, 100, TWO, "leaf_b", "main")
        self.assertEqual(self.finding("cpu", "--comm", "flusher")["function"], "leaf_b")
        self.assertEqual(self.answer("--pid", str(ONE))["threads"], 2)

    def test_a_removed_capture_is_not_named(self):
        self.runs(0, 100, ONE, "leaf_a", "main")
        self.assertNotIn("file", self.answer("--not-kept"))
        self.assertIn(b"tacho annotate -i FILE leaf_a", self.why("--not-kept").stdout)

    def test_words_of_one_read_write_lock_are_one_finding(self):
        self.name_functions(read="pthread_rwlock_rdlock", write="pthread_rwlock_wrlock")
        stack = ("schedule", "futex_wait")
        self.off(110, ONE, 100, (*stack, "read", "main"), "futex", lock=SINK + 8)
        self.off(110, TWO, 100, (*stack, "write", "main"), "futex", lock=SINK + 12)
        lock = self.finding("lock", "--perf-map-dir", ".")
        self.assertEqual((lock["lock"], lock["time_ns"], lock["count"]), (hex(SINK), 200 * MS, 2))

    def short_processes(self, does=None):
        """40 of 8 ms each in 404 ms."""
        self.runs(0, 1, ONE, "main")
        for pid in range(5000, 5040):
            at = 10 * (pid - 5000) + 1
            self.task(at, 7, pid)
            if does is None:
                self.runs(at + 1, at + 9, pid, "leaf_a" if pid % 2 else "leaf_b")
            else:
                does(at, pid)
            self.task(at + 9, 4, pid)
        self.runs(402, 404, ONE, "main")

    def test_waits_for_processes_that_live_long_or_sleep_are_idle(self):
        """Shells wait 4 ms for a short process and 400 ms for another; short processes that sleep are waited for likewise."""
        self.short_processes()
        alone = self.finding("fork")["time_ns"]
        for shell in range(7000, 7012):
            self.off(20, shell, 4, ("schedule", "do_wait", "main"))
            self.off(430, shell, 400, ("schedule", "do_wait", "main"))
        self.assertAlmostEqual(self.finding("fork")["time_ns"] / MS, alone / MS + 12 * 4, delta=0.01)
        self.assertEqual([(one["waits_for"], one["time_ns"]) for one in self.answer()["idle"]], [("child", 12 * 400 * MS)])

        def sleeps(at, pid):
            self.off(at + 8, pid, 7, ("schedule", "do_nanosleep", "main"))
            self.wakes(at + 9, pid, TWO, "try_to_wake_up", "main")
            self.off(at + 9, TWO, 8, ("schedule", "do_wait", "main"))
        self.setUp()
        self.short_processes(sleeps)
        idle = {one["waits_for"]: one["time_ns"] / MS for one in self.answer()["idle"]}
        self.assertAlmostEqual(idle["child"], 320, delta=1)
        self.assertAlmostEqual(idle["timer"], 280, delta=1)

    def test_many_short_processes_are_one_finding(self):
        self.short_processes()
        fork = self.finding("fork")
        self.assertEqual((fork["count"], self.answer()["forks"]), (40, 40))
        self.name_functions(spawn="uv_spawn")
        self.off(455, ONE, 50, ("schedule", "pipe_read", "spawn", "main"), "pipe")  # until the child executes its program
        self.assertEqual(self.finding("fork", "--perf-map-dir", ".")["time_ns"], fork["time_ns"] + 50 * MS)

    def task(self, ms, type_, pid):
        self.capture.time = self.zero + ms * MS
        self.capture.other(type_, 0, struct.pack("<IIIIQ", pid, ONE, pid, ONE, self.capture.time))

    def test_lost_events_are_said(self):
        self.lose()
        self.assertIn("10 of 100 events were lost while recording (10 %)", self.answer()["missing"])

    def lose(self):
        self.runs(0, 90, ONE, "leaf_a", "main")
        self.capture.other(2, 0, struct.pack("<QQ", 1, 10))

    def test_lost_events_are_said_first(self):
        self.lose()
        lost = "10 of 100 events were lost while recording (10 %)"
        self.assertEqual(self.answer()["missing"][0], lost)
        self.assertNotIn(b"lost while recording", self.why().stderr, "a second time")

    def test_sched_switch_alone_shows_waits(self):
        self.switches()
        self.assertEqual(self.finding("disk")["time_ns"], 100 * MS)
        self.assertIn("no event says for which lock, file or peer", " ".join(self.answer()["missing"]))

    def test_a_capture_without_times_is_refused(self):
        self.capture = made.Capture(made.Event("mem-loads", made.PMU, 1, made.USUAL)).started().sample()
        done = self.why(status=1)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"tacho why -p PID", done.stderr)

    def test_names_of_threads_and_functions_are_safe(self):
        (self.folder / "perf-4242.map").write_bytes(b"7000000000 100 f\x1b[2J\xff<script>\n")
        self.capture.mapped(ONE, 0x7000000000, 0x1000, 0, "//anon").named("\x1b]0;a\n<script>", ONE)
        USER["hostile"] = 0x7000000010
        self.runs(0, 100, ONE, "hostile", "main")
        self.off(210, ONE, 100, ("schedule", "futex_wait", "hostile"), "mutex", lock=0x7000000010)
        self.answer("--perf-map-dir", ".")
        text = self.why("--perf-map-dir", ".").stdout
        text.decode()
        self.assertIn(b"<script>", text)
        self.assertNotIn(b"\x1b", text)

    def test_slow_operations_are_compared_with_the_others(self):
        self.assertIn(b"\n   +88 ms  waits for the lock sink", self.operations())

    def test_the_heading_of_slow_operations_is_above_them(self):
        self.assertIn(b"what a slow one has more of\n   +88 ms  waits", self.operations())

    def operations(self):
        self.slow_operations()
        found = json.loads(self.why("--json", "--of", "call").stdout)
        self.assertEqual([found["operations"][side]["count"] for side in ("slow", "others")], [1, 99])
        lock = found["findings"][0]
        self.assertEqual((lock["lock"], lock["slow_ns"], lock["others_ns"]), ("sink", 90 * MS, 2 * MS))
        return self.why("--of", "call").stdout

    def test_times_can_be_chosen(self):
        self.runs(0, 100, ONE, "leaf_a", "main")
        self.runs(100, 200, ONE, "leaf_b", "main")
        self.assertEqual(self.finding("cpu", "--time", "5.1,5.2")["function"], "leaf_b")

    def test_members_of_the_answer(self):
        self.waits_for_the_flusher(holder=TWO)
        found = self.answer()
        self.assertEqual(set(found), {"tacho_why", "file", "span_ns", "threads", "processes", "forks", "wall_ns", "idle_ns",
                                      "unknown_ns", "rest_ns", "missing", "findings", "idle"})
        lock = self.finding("lock")
        self.assertEqual(set(lock), {"cause", "share", "time_ns", "count", "median_ns", "max_ns", "function", "lock", "holder",
                                     "holders", "parts", "threads", "stack", "more"})
        self.assertEqual(found["tacho_why"], 1)

    def test_the_disk_is_the_one_of_the_longest_waits(self):
        self.off(20, ONE, 10, ("schedule", "io_schedule", "main"), "file", name="log/a", disk="sda1")
        self.off(130, ONE, 100, ("schedule", "io_schedule", "main"), "file", name="log/a", disk="sdb1")
        self.assertEqual(self.finding("disk")["device"], "sdb1")

    def test_commands_name_events_of_the_capture(self):
        self.test_sched_switch_alone_shows_waits()
        self.assertNotIn("--event offcpu", self.finding("disk")["more"])

    def test_commands_show_what_they_are_printed_for(self):
        waits = lambda object, *stack, **more: lambda: self.off(110, ONE, 100, ("schedule", *stack, "main"), object, **more)
        cases = {
            "lock": waits("mutex", "futex_wait", lock=SINK),
            "condition": lambda: (self.wait_for_the_condition(110, ONE, TWO), self.wait_for_the_condition(220, TWO, ONE, SINK + 4)),
            "disk": waits("file", "io_schedule", name="log/a"),
            "network": waits("connected", "tcp_recvmsg", name="10.0.0.1:80"),
            "fault": lambda: self.runs(0, 100, ONE, "asm_exc_page_fault", "leaf_a"),
            "runnable": waits("none", queued=100, runner="hog"),
            "throttled": waits("none", queued=100, throttled=1),
            "cpu": lambda: self.runs(0, 100, ONE, "leaf_a", "main"),
            "spin": lambda: self.runs(0, 100, ONE, "__x64_sys_sched_yield", "leaf_a", "main"),
        }
        for cause, fill in cases.items():
            with self.subTest(cause=cause):
                self.setUp()
                fill()
                command = self.finding(cause)["more"]
                self.run_command(command, cause)

    def run_command(self, command, says):
        words = shlex.split(command)
        symbols = [] if words[1] == "table" else ["--symfs", programs.ROOT / "tests/golden/symfs", "--kallsyms", "kallsyms"]
        done = self.tacho(*words[1:], *symbols)
        shown = (self.folder / "wall.svg").read_bytes() if "wall.svg" in words else done.stdout
        of = {"lock": b"%#x" % SINK, "condition": b"%#x" % SINK, "disk": b"log/a", "network": b"10.0.0.1:80", "runnable": b"hog", "cpu": b"leaf_a",
              "spin": b"sched_yield", "fault": b"asm_exc_page_fault", "throttled": b"worker-1"}
        self.assertIn(of[says], shown, command)

    def test_a_lock_without_an_address_is_in_no_table(self):
        self.name_functions(sqlite="sqlite3_step")
        self.off(110, ONE, 100, ("schedule", "do_nanosleep", "sqlite", "leaf_a", "main"))
        self.assertEqual(self.finding("lock", "--perf-map-dir", ".")["more"], "tacho flamegraph -i a.data --wall -o wall.svg")

    def test_annotate_is_for_the_function_that_has_the_samples(self):
        """What a library does for leaf_b is leaf_b's, but leaf_b's code has no sample."""
        self.name_functions(lock="pthread_spin_lock")
        self.runs(0, 100, ONE, "lock", "leaf_b", "main")
        spin = self.finding("spin", "--perf-map-dir", ".")
        self.assertEqual((spin["function"], spin["more"]), ("leaf_b", "tacho report -i a.data --event cpu-clock --no-children"))

    def test_a_holder_whose_waits_are_skipped_was_not_on_the_cpu(self):
        self.runs(0, 10, ONE, "main")
        self.runs(0, 10, TWO, "leaf_b", "main")
        self.off(310, ONE, 300, ("schedule", "futex_wait", "leaf_a"), "mutex", lock=SINK, holder=TWO)
        self.off(12, TWO, 1, ("schedule", "io_schedule", "leaf_b"))
        self.off(312, TWO, 1, ("schedule", "io_schedule", "leaf_b"), skipped=295)
        on_cpu = sum(one["time_ns"] for one in self.finding("lock")["holder"]["doings"] if one["doing"] == "cpu")
        self.assertLess(on_cpu, 30 * MS)

    def test_an_event_without_waits_is_still_in_the_capture(self):
        self.runs(0, 100, ONE, "leaf_a", "main")
        self.assertNotIn("for which lock", " ".join(self.answer()["missing"]))

    def test_time_of_skipped_waits_is_divided_as_those_with_events_estimate_it(self):
        """Of a thread that waits often one of 16 waits has an event: 300 ms for the disk and 100 ms for a lock have none."""
        read, futex = ("schedule", "io_schedule", "recurse", "main"), ("schedule", "futex_wait", "leaf_a")
        self.runs(0, 1, ONE, "leaf_a", "main")
        for i in range(10):
            self.off(50 * i + 50, ONE, 2, read, "file", name="a", stands_for=16, skipped=8)
            self.off(50 * i + 85, ONE, 0.625, futex, "mutex", lock=SINK, stands_for=16, skipped=32)
        self.off(700, ONE, 100, futex, "mutex", lock=SINK)  # long waits all have events
        found = {one["cause"]: one for one in self.answer()["findings"]}
        self.assertAlmostEqual(found["disk"]["time_ns"] / MS, 20 + 400 * 300 / 393.75, delta=2)
        self.assertAlmostEqual(found["lock"]["time_ns"] / MS, 6.25 + 100 + 400 * 93.75 / 393.75, delta=2)
        self.assertEqual((found["disk"]["count"], found["disk"]["median_ns"]), (160, 2 * MS))
        self.assertEqual((found["lock"]["count"], found["lock"]["median_ns"], found["lock"]["max_ns"]), (161, 0.625 * MS, 100 * MS))
        self.assertIn("0.400 s of waits are an estimate", " ".join(self.answer()["missing"]))

    def test_times_of_holders_are_parts_of_an_estimate(self):
        """Waits of 2 ms stand for 16 each by their weights, but only 8 ms were skipped before each."""
        self.runs(0, 1, ONE, "leaf_a", "main")
        for end in range(50, 550, 50):
            self.wakes(end - 0.01, TWO, ONE, "try_to_wake_up", "mix")
            self.off(end, ONE, 2, ("schedule", "futex_wait", "leaf_a", "main"), "mutex", lock=SINK, holder=TWO, stands_for=16, skipped=8)
        self.runs(0, 560, TWO, "leaf_b", "main")
        lock = self.finding("lock")
        self.assertAlmostEqual(lock["time_ns"] / MS, 100, delta=10)
        for of, parts in ((lock, lock["holders"]), (lock["holder"], lock["holder"]["doings"])):
            self.assertAlmostEqual(sum(one["time_ns"] for one in parts) / MS, of["time_ns"] / MS, delta=0.01)

    def test_a_holder_does_without_events_what_it_does_with_them(self):
        """The holder waits for the disk in 10 of each 40 ms, and in 20 for something that has no event."""
        disk = ("schedule", "io_schedule", "leaf_b", "main")
        self.runs(0, 1, ONE, "leaf_a", "main")
        for end in range(50, 550, 50):
            self.off(end, TWO, 10, disk, "file", skipped=20)
            self.off(end, ONE, 40, ("schedule", "futex_wait", "leaf_a", "main"), "mutex", lock=SINK, holder=TWO)
        self.runs(3, 4, TWO, "mix", "main")
        holder = self.finding("lock")["holder"]
        self.assertEqual((holder["doing"], holder["function"]), ("disk", "leaf_b"))
        self.assertAlmostEqual(holder["doings"][0]["time_ns"] / MS, 300, delta=1)
        self.assertNotIn("unknown", [one["doing"] for one in holder["doings"]])

    def test_short_times_of_a_holder_on_the_cpu_are_that_of_its_samples(self):
        """Of ten times of 4 ms only the last two have samples, of two functions."""
        for end in range(10, 110, 10):
            if end > 80:
                self.runs(end - 2, end - 1, TWO, *(("leaf_b",) if end == 90 else ("mix",)), "main")
            self.off(end, ONE, 4, ("schedule", "futex_wait", "leaf_a", "main"), "mutex", lock=SINK, holder=TWO)
        doings = self.finding("lock")["holder"]["doings"]
        self.assertEqual([(one["doing"], one["function"], one["time_ns"]) for one in doings],
                         [("cpu", "leaf_b", 20 * MS), ("cpu", "mix", 20 * MS)])

    def test_waits_skipped_before_the_first_event_are_said(self):
        self.runs(0, 1, ONE, "main")
        self.off(410, ONE, 100, ("schedule", "io_schedule", "main"), skipped=200)
        self.assertIn("0.200 s of waits have no events", " ".join(self.answer()["missing"]))


if __name__ == "__main__":
    programs.main()
