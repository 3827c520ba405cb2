#!/usr/bin/env python3
"""--wall of tacho flamegraph and folded: all time of threads, of captures in which every state change is known."""
import re
import struct

import made_capture as made
import made_payload
import programs
from flame_graph import Picture
from made_payload import Field

FUNCTIONS = ["schedule", "do_nanosleep", "futex_wait", "io_schedule", "do_wake", "busy", "entry", "worker_thread"]
AT = {name: made.KERNEL_TEXT + 0x1000 * (i + 1) for i, name in enumerate(FUNCTIONS)}
MAIN, WORKER, OTHER = made.PID, 4300, 4400
RUNNING, SLEEPING, DEAD = 0, 1, 32
MS = 1_000_000
FORK, EXIT = 7, 4
CLOCK = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)
SLEEP, LOCK = ("schedule", "do_nanosleep", "entry"), ("schedule", "futex_wait", "entry")

SWITCHES = {"sched:sched_switch": [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)],
            "sched:sched_waking": [Field("pid", size=4), Field("pad", size=4)]}
RECORDERS = {"offcpu": [Field("off_ns", unit="ns", role="value"), Field("runq_ns", unit="ns", role="queued")],
             "waking": [Field("blocked_ns", unit="ns", role="value"), Field("woken_tid", size=4, role="wakes"),
                        Field("pad", size=4)],
             "runqlat": [Field("wait_ns", unit="ns", role="value"),
                         Field("why", made_payload.ENUM, 4, role="why_queued",
                               enumerators=((0, "woken"), (1, "created"), (2, "preempted"))), Field("pad", size=4)]}


class Wall(programs.Scratch):
    def setUp(self):
        super().setUp()
        lines = [("_text", made.KERNEL_TEXT), *AT.items(), ("_etext", made.KERNEL_TEXT + 0x2000000)]
        (self.folder / "kallsyms").write_text("".join(f"{at:016x} T {name}\n" for name, at in lines))

    def begin(self, events, clock=True):
        sample_type = made.USUAL | made.RAW | made.CALLCHAIN
        channels = [made.Event(name, made.SOFTWARE, made_payload.BPF_OUTPUT, sample_type, 1) for name in events]
        self.names = [*events, "cpu-clock"]
        self.capture = made.Capture(*channels, *([CLOCK] if clock else []),
                                    features={made_payload.PAYLOAD_SCHEMAS: made_payload.schemas(**events)})
        self.zero = self.capture.time
        self.capture.time = 0  # before the recording
        self.capture.started()
        for name, tid in (("main", MAIN), ("other", OTHER)):
            self.capture.named(name, tid)

    def at(self, ms):
        self.capture.time = self.zero + round(ms * MS)

    def take(self, ms, event, tid, functions, *values, period=1000):
        """Adds a sample of a thread with a kernel stack, leaf first."""
        self.at(ms)
        self.capture.time -= made.STEP
        chain = [made.CONTEXT_KERNEL, *(AT[name] + 4 for name in functions)] if functions else []
        self.capture.sample(self.names.index(event), ip=chain[1] if chain else made.MAIN, misc=made.KERNEL, chain=chain,
                            tid=tid, raw=struct.pack(*values) if values else b"", period=period)

    def task(self, ms, type_, tid):
        self.at(ms)
        self.capture.other(type_, 0, struct.pack("<IIIIQ", MAIN, MAIN, tid, MAIN, self.capture.time))
        if type_ == FORK:
            self.capture.named("worker", tid)

    def switch(self, ms, tid, state, to, functions=SLEEP):
        self.take(ms, "sched:sched_switch", tid, functions, "<QII", state, to, 0)

    def wakes(self, ms, tid, whom, functions=("do_wake", "entry")):
        self.take(ms, "sched:sched_waking", tid, functions, "<II", whom, 0)

    def runs(self, ms, tid, *functions):
        self.take(ms, "cpu-clock", tid, functions)

    def off(self, ms, tid, off, queued, functions=SLEEP):
        self.take(ms, "offcpu", tid, functions, "<QQ", round(off * MS), round(queued * MS))

    def queued(self, ms, tid, wait, why):
        self.take(ms, "runqlat", tid, (), "<QII", round(wait * MS), {"woken": 0, "created": 1, "preempted": 2}[why], 0)

    def view(self, name, *words, status=0):
        (self.folder / "perf.data").write_bytes(self.capture.file())
        return self.tacho(name, "--kallsyms", "kallsyms", "--wall", *words, status=status)

    def times(self, *words):
        """({(tid, state and stack): ms} of folded text, stderr)."""
        done = self.view("folded", "--tid", *words)
        times = {}
        for line in done.stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            thread, rest = stack.split(";", 1)
            times[int(thread.rsplit("/", 1)[1]), rest] = int(weight) / MS
        return times, done.stderr.decode()

    def states(self, times, tid):
        sums = {}
        for (thread, rest), ms in times.items():
            if thread == tid:
                state = rest.split(";")[0]
                sums[state] = round(sums.get(state, 0) + ms, 3)
        return sums

    def switches(self):
        """main sleeps while the worker is forked, runs, is preempted, wakes main and exits."""
        self.begin(SWITCHES)
        self.runs(0, MAIN, "busy", "entry")
        self.runs(3, MAIN, "busy", "entry")
        self.task(5, FORK, WORKER)
        self.switch(10, MAIN, SLEEPING, WORKER)
        self.runs(20, WORKER, "entry")
        self.switch(30, WORKER, RUNNING, OTHER, ("schedule", "entry"))
        self.switch(40, OTHER, SLEEPING, WORKER, LOCK)
        self.wakes(45, WORKER, MAIN)
        self.task(49, EXIT, WORKER)
        self.switch(50, WORKER, DEAD, MAIN)
        self.runs(58, MAIN, "busy", "entry")
        self.runs(60, MAIN, "entry")

    def test_every_moment_between_switches_counts_once(self):
        self.switches()
        times, said = self.times()
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 20, "[runnable]": 5, "[blocked: sleep]": 35})
        self.assertEqual(self.states(times, WORKER), {"[on-CPU]": 30, "[runnable]": 15})
        self.assertEqual(self.states(times, OTHER), {"[blocked: since before the recording]": 30, "[on-CPU]": 10,
                                                     "[blocked: lock]": 20})
        self.assertEqual(times[MAIN, "[on-CPU];entry;busy"], 15)  # three of four samples
        self.assertEqual(times[MAIN, "[blocked: sleep];entry;do_nanosleep;schedule;-- waker --;do_wake;entry;worker"], 35)
        self.assertEqual(times[MAIN, "[runnable];entry;do_nanosleep;schedule"], 5)
        self.assertEqual(times[WORKER, "[runnable];entry;schedule"], 10)
        self.assertEqual(times[OTHER, "[blocked: lock];entry;futex_wait;schedule"], 20)  # until the recording ends
        self.assertEqual(times[OTHER, "[on-CPU]"], 10)  # no sample has its stack
        self.assertEqual(said, "")

    def recorders(self):
        """The same as events of -e offcpu,waking,runqlat. Waits at the start of the recording are not seen."""
        self.begin(RECORDERS)
        self.runs(0, MAIN, "busy", "entry")
        self.runs(3, MAIN, "busy", "entry")
        self.task(5, FORK, WORKER)
        self.queued(10, WORKER, 5, "created")
        self.runs(20, WORKER, "entry")
        self.queued(30, OTHER, 2, "woken")
        self.queued(40, WORKER, 10, "preempted")
        self.take(45, "waking", WORKER, ("do_wake", "entry"), "<QII", 35 * MS, MAIN, 0)
        self.task(49, EXIT, WORKER)
        self.queued(50, MAIN, 5, "woken")  # before the offcpu event of the same wait; in other tests after it
        self.off(50, MAIN, 40, 5)
        self.runs(58, MAIN, "busy", "entry")
        self.runs(60, MAIN, "entry")
        self.off(60, OTHER, 20, 0, LOCK)

    def test_recorders_tell_the_same_as_switches(self):
        self.recorders()
        times, said = self.times()
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 20, "[runnable]": 5, "[blocked: sleep]": 35})
        self.assertEqual(self.states(times, WORKER), {"[on-CPU]": 29, "[runnable]": 15})  # to its EXIT
        self.assertEqual(self.states(times, OTHER), {"[blocked: since before the recording]": 28, "[runnable]": 2,
                                                     "[on-CPU]": 10, "[blocked: lock]": 20})
        self.assertEqual(times[MAIN, "[blocked: sleep];entry;do_nanosleep;schedule;-- waker --;do_wake;entry;worker"], 35)
        self.assertEqual(said, "")

    def test_two_events_of_one_return_count_once_in_any_order(self):
        for first in ("off", "queued"):
            self.begin(RECORDERS)
            self.runs(0, MAIN, "busy")
            tell = [lambda: self.off(30, MAIN, 20, 5), lambda: self.queued(30, MAIN, 5, "woken")]
            for one in tell if first == "off" else tell[::-1]:
                one()
            self.runs(40, MAIN, "busy")
            times, _ = self.times()
            self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 20, "[runnable]": 5, "[blocked: sleep]": 15}, first)

    def test_the_later_of_two_events_of_one_return_adds_nothing(self):
        for first in ("off", "queued"):
            self.begin(RECORDERS)
            self.runs(0, MAIN, "busy")
            for ms in range(30, 330, 30):
                tell = [lambda at: self.off(at, MAIN, 20, 5), lambda at: self.queued(at, MAIN, 5, "woken")]
                for late, one in enumerate(tell if first == "off" else tell[::-1]):
                    one(ms + 0.25 * late)
            self.queued(310, MAIN, 2, "preempted")
            self.runs(320, MAIN, "busy")
            times, _ = self.times()
            self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 118, "[runnable]": 52, "[blocked: sleep]": 150}, first)

    def test_a_thread_whose_waits_are_left_out_is_not_always_on_the_cpu(self):
        """As threads of the recorder: samples of another thread on the same CPU say that it was away."""
        self.begin(RECORDERS)
        for ms in range(0, 101, 10):
            self.take(ms, "cpu-clock", (MAIN, OTHER)[ms // 10 % 2], ("busy",), period=MS)
        self.queued(100, OTHER, 50, "preempted")
        times, _ = self.times()
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 6, "[not recorded]": 94})
        self.assertEqual(self.states(times, OTHER), {"[on-CPU]": 50, "[runnable]": 50})

    def test_a_wait_from_before_the_recording_is_its_own_threads_time_alone(self):
        self.begin(RECORDERS)
        self.runs(0, MAIN, "busy")
        self.off(5, OTHER, 25, 5)
        self.queued(20, MAIN, 2, "preempted")
        self.runs(40, MAIN, "busy")
        times, _ = self.times()
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 38, "[runnable]": 2})
        self.assertEqual(self.states(times, OTHER), {"[blocked: sleep]": 20, "[runnable]": 5, "[on-CPU]": 35})

    def test_a_wait_that_was_not_recorded_is_no_time_on_the_cpu(self):
        self.begin(RECORDERS)  # an idle kernel worker, whose waits offcpu leaves out
        self.runs(0, MAIN, "busy")
        for ms in range(10, 100, 10):
            self.queued(ms, OTHER, 1, "woken")
        self.runs(100, MAIN, "busy")
        times, _ = self.times()
        # Nor is the time after the last wake-up: no sample shows that it ran.
        self.assertEqual(self.states(times, OTHER), {"[runnable]": 9, "[blocked]": 82, "[blocked: since before the recording]": 9})
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 100})

    def test_the_graph_holds_what_folded_prints(self):
        for make in (self.switches, self.recorders):
            make()
            picture = Picture(self.view("flamegraph", "--by", "comm", "--min-width", "0").stdout.decode())
            right = {}
            for line in self.view("folded").stdout.decode().splitlines():
                stack, weight = line.rsplit(" ", 1)
                path = tuple(stack.split(";"))
                right[path] = right.get(path, 0) + int(weight)
            sums = {}
            for path, weight in right.items():
                for end in range(len(path) + 1):
                    sums[path[:end]] = sums.get(path[:end], 0) + weight
            drawn = {tuple(name.replace("_", " ") if name.startswith("[") else name for name in path): weight
                     for path, weight in picture.weights().items()}
            self.assertEqual({path: weight for path, weight in sums.items()}, drawn)
            self.assertEqual(picture.root.get("data-unit"), "ns")
            kinds = {frame.name: frame.kind for frame in picture.panes[0]}
            self.assertEqual((kinds["-- waker --"], kinds["do_wake"]), ("x", "v"))
            states = {name: kind for name, kind in kinds.items() if name.startswith("[")}
            of = {"[on-CPU]": "o", "[runnable]": "r", "[unknown]": "t"}
            self.assertEqual(states, {name: of.get(name, "w") for name in states})
            self.assertEqual({"o", "r", "w"} - set(states.values()), set())
            legend = dict(re.findall(r'class="([orw])0"[^>]*/><text[^>]*>([^<]*)<', self.view("flamegraph").stdout.decode()))
            self.assertEqual(legend, {"o": "on the CPU", "r": "runnable", "w": "waiting"})

    def test_threads_are_as_wide_as_their_life_by_default(self):
        self.switches()
        picture = Picture(self.view("flamegraph", "--min-width", "0").stdout.decode())
        widths = {frame.path: frame.weight / MS for frame in picture.panes[0] if len(frame.path) == 2}
        self.assertEqual(widths, {("main", f"tid_{MAIN}"): 60, ("worker", f"tid_{WORKER}"): 45, ("other", f"tid_{OTHER}"): 60})

    def test_threads_and_times_can_be_chosen(self):
        self.switches()
        zero = self.zero / 1e9
        times, _ = self.times("--comm", "worker")
        self.assertEqual({thread for thread, _ in times}, {WORKER})
        times, _ = self.times("--time", f"{zero + 0.020:.6f},{zero + 0.040:.6f}")
        self.assertEqual(self.states(times, WORKER), {"[on-CPU]": 10, "[runnable]": 10})
        self.assertEqual(self.states(times, MAIN), {"[blocked: sleep]": 20})
        for words in (("--where", "cpu == 0"), ("--cpu", "0"), ("--dsos", "[kernel.kallsyms]"), ("--weight", "period")):
            self.assertIn("--wall", self.view("folded", *words, status=1).stderr.decode(), words)
        self.assertIn("--by takes comm, pid and tid", self.view("flamegraph", "--by", "cpu", status=1).stderr.decode())
        for view in ("folded", "flamegraph"):
            self.assertIn("--wall shows times of threads", self.view(view, "--slowest", "1%", status=1).stderr.decode())
        self.assertIn("--wall needs a capture", self.view("flamegraph", "--folded", "-", status=1).stderr.decode())

    def test_unknown_times_are_reported(self):
        self.begin({})
        self.runs(0, MAIN, "busy")
        self.runs(10, MAIN, "busy")
        times, said = self.times()
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 0.002, "[not recorded]": 9.998})
        self.assertIn("their time off the CPU is [not recorded]; record with -g -e cpu-clock,offcpu,waking,runqlat", said)
        self.begin(SWITCHES, clock=False)
        self.switch(0, MAIN, SLEEPING, OTHER)
        self.switch(10, OTHER, SLEEPING, MAIN)
        self.switch(30, MAIN, SLEEPING, OTHER)
        times, said = self.times()
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 20, "[blocked: sleep]": 10})
        self.assertIn("no event says what threads do on the CPU", said)
        self.begin({"sched:sched_waking": SWITCHES["sched:sched_waking"]}, clock=False)
        self.wakes(0, MAIN, OTHER)
        self.assertIn("no event of the capture says what threads do in all their time", self.view("folded", status=1).stderr.decode())

    def test_time_behind_a_wait_without_an_end_is_not_recorded(self):
        self.begin(SWITCHES)
        self.runs(0, MAIN, "busy")
        self.switch(10, MAIN, SLEEPING, OTHER)
        for ms in range(50, 55):  # on CPU again: five samples of a millisecond
            self.take(ms, "cpu-clock", MAIN, ("busy",), period=MS)
        self.switch(60, MAIN, SLEEPING, OTHER)
        times, said = self.times()
        self.assertEqual(self.states(times, MAIN), {"[on-CPU]": 10, "[not recorded]": 50})
        self.assertIn("no event says when 1 waits ended", said)

    def test_wakers_without_stacks_have_their_names(self):
        self.begin(SWITCHES)
        self.runs(0, MAIN, "busy")
        self.switch(10, MAIN, SLEEPING, WORKER)
        self.capture.time = self.zero + 20 * MS - made.STEP
        without = made.Event("sched:sched_waking", made.SOFTWARE, made_payload.BPF_OUTPUT, made.USUAL | made.RAW, 1)
        self.capture.events = (self.capture.events[0], without, self.capture.events[2])
        self.capture.sample(1, ip=made.KERNEL_TEXT + 4, misc=made.KERNEL, tid=OTHER, raw=struct.pack("<II", MAIN, 0))
        self.switch(30, OTHER, RUNNING, MAIN)
        times, _ = self.times()
        self.assertEqual(times[MAIN, "[blocked: sleep];entry;do_nanosleep;schedule;-- waker --;other"], 10)
        for view in ("folded", "flamegraph"):
            done = self.tacho(view, "--kallsyms", "kallsyms", "--wakers")
            self.assertIn(b"other", done.stdout)


if __name__ == "__main__":
    programs.main()
