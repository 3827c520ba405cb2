#!/usr/bin/env python3
"""tacho why, of captures in which every wait and sample is known: what is a finding, whose, and what is idle."""
import json
import struct

import made_capture as made
import made_payload
import programs
from made_payload import ENUM, PAYLOAD_SCHEMAS, TEXT, Field

MS = 1_000_000
OBJECTS = ["none", "futex", "mutex", "rwlock", "file", "accepted", "connected", "listening", "pipe", "epoll", "other_fd"]
KERNEL = ["schedule", "futex_wait", "ep_poll", "do_nanosleep", "io_schedule", "tcp_recvmsg", "asm_exc_page_fault", "kernel_clone",
          "__x64_sys_sched_yield", "try_to_wake_up"]
AT = {name: made.KERNEL_TEXT + 0x1000 * (i + 1) for i, name in enumerate(KERNEL)}
USER = {"main": made.MAIN + 9, "leaf_a": made.LEAF_A + 4, "leaf_b": made.LEAF_B + 4, "recurse": made.RECURSE + 4,
        "mix": made.START + 0x1254, "round_once": made.START + 0x1374}
ONE, TWO, THREE = made.PID, made.PID + 1, made.PID + 2
OFFCPU = [Field("off_ns", unit="ns", role="value"), Field("runq_ns", unit="ns", role="queued"), Field("skipped_ns"),
          Field("lock", format="uaddr"), Field("holder_tid", size=4), Field("runner_pid", size=4),
          Field("object", ENUM, 4, enumerators=tuple(enumerate(OBJECTS))), Field("throttled", size=4),
          Field("name", TEXT, 1, 64), Field("runner", TEXT, 1, 16), Field("disk", TEXT, 1, 16)]
WAKING = [Field("blocked_ns", unit="ns", role="value"), Field("woken_tid", size=4, role="wakes"), Field("pad", size=4)]
SINK = made.START + 0x4048  # a variable of the program


class Why(programs.Scratch):
    def setUp(self):
        super().setUp()
        lines = [("_text", made.KERNEL_TEXT), *AT.items(), ("_etext", made.KERNEL_TEXT + 0x2000000)]
        (self.folder / "kallsyms").write_text("".join(f"{at:016x} T {name}\n" for name, at in lines))
        schemas = {"offcpu": OFFCPU, "waking": WAKING}
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
                            tid=tid, raw=raw, period=period)

    def runs(self, first, last, tid, *stack):
        for ms in range(first, last):
            self.add(ms, "cpu-clock", tid, stack)

    def off(self, end, tid, ms, stack, object="none", queued=0, lock=0, holder=0, name="", runner="", skipped=0, throttled=0, disk=""):
        encode = lambda text, size: (text if isinstance(text, bytes) else text.encode()).ljust(size, b"\0")
        raw = struct.pack("<QQQQIIII", ms * MS, queued * MS, skipped * MS, lock, holder, 0, OBJECTS.index(object), throttled)
        self.add(end, "offcpu", tid, stack, raw + encode(name, 64) + encode(runner, 16) + encode(disk, 16))

    def wakes(self, ms, tid, whom, *stack):
        self.add(ms, "waking", tid, stack, struct.pack("<QII", MS, whom, 0))

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

    def test_the_holder_of_a_lock_is_named_with_what_it_did(self):
        self.waits_for_the_flusher(holder=TWO)
        lock = self.finding("lock")
        self.assertEqual((lock["lock"], lock["function"], lock["time_ns"]), ("sink", "recurse", 100 * MS))
        holder = lock["holder"]
        self.assertEqual((holder["comm"], holder["tid"], holder["function"], holder["doing"]), ("flusher", TWO, "leaf_b", "cpu"))

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

    def test_a_connected_socket_is_a_peer(self):
        self.off(110, ONE, 100, ("schedule", "tcp_recvmsg", "main"), "connected", name="10.0.0.1:80")
        self.assertEqual(self.finding("network")["peer"], "10.0.0.1:80")

    def test_a_file_and_its_disk(self):
        self.off(110, ONE, 100, ("schedule", "io_schedule", "main"), "file", name="log/a", disk="sda1")
        disk = self.finding("disk")
        self.assertEqual((disk["file"], disk["device"]), ("log/a", "sda1"))

    def test_page_faults_on_the_cpu_and_blocked_are_one_finding(self):
        self.runs(0, 50, ONE, "asm_exc_page_fault", "leaf_a")
        self.off(150, ONE, 100, ("schedule", "io_schedule", "asm_exc_page_fault", "leaf_a"))
        self.assertEqual(self.finding("fault")["time_ns"], 150 * MS)

    def test_who_had_the_cpu_and_quotas(self):
        self.off(110, ONE, 100, ("schedule", "main"), queued=100, runner="hog-1")
        self.off(110, TWO, 100, ("schedule", "main"), queued=100, throttled=1)
        self.assertEqual(self.finding("runnable")["by"], "hog-*")
        self.assertEqual(self.finding("throttled")["time_ns"], 100 * MS)

    def test_two_hot_functions_of_one_caller_are_two_findings(self):
        for ms in range(0, 100, 2):
            self.runs(ms, ms + 1, ONE, "leaf_a", "main")
            self.runs(ms + 1, ms + 2, ONE, "leaf_b", "main")
        self.assertEqual({one["function"] for one in self.answer()["findings"]}, {"leaf_a", "leaf_b"})

    def test_sched_yield_is_a_spin(self):
        self.runs(0, 100, ONE, "__x64_sys_sched_yield", "leaf_a", "main")
        spin = self.finding("spin")
        self.assertEqual((spin["function"], spin["call"]), ("leaf_a", "sched_yield"))

    def test_sleeps_are_idle_unless_the_thread_waits_for_work_too(self):
        self.off(110, ONE, 100, ("schedule", "do_nanosleep", "main"))
        self.assertEqual(self.answer()["findings"], [])
        self.off(210, ONE, 100, ("schedule", "ep_poll", "main"), "epoll")
        self.assertEqual(self.finding("timer")["time_ns"], 100 * MS)

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


if __name__ == "__main__":
    programs.main()
