#!/usr/bin/env python3
"""--off-cpu and --wakers of tacho folded and tacho report: time of waits, with their wakers, of captures in
which every switch and wake-up is known."""
import csv
import io
import json
import struct

import made_capture as made
import made_payload
import programs
from flame_graph import Picture
from made_payload import Field

FUNCTIONS = ["schedule", "do_wait", "do_wake", "entry", "asm_sysvec_apic_timer_interrupt", "timer_tick", "busy",
             "__hrtimer_run_queues", "asm_common_interrupt"]
AT = {name: made.KERNEL_TEXT + 0x1000 * (i + 1) for i, name in enumerate(FUNCTIONS)}
MAIN, WAKER, FIRST = 4242, 4300, 4400  # threads
RUNNING, SLEEPING, IDLE = 0, 1, 0x80
STEP = made.STEP  # ns, from one sample to the next


class Waits(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "kallsyms").write_text("".join(f"{at:016x} T {name}\n" for name, at in
                                                         [("_text", made.KERNEL_TEXT), *AT.items(), ("_etext", made.KERNEL_TEXT + 0x2000000)]))

    def begin(self, **events):
        self.events = list(events)
        self.capture = made_payload.capture(True, **events)
        for name, tid in (("main", MAIN), ("the waker", WAKER), ("first", FIRST)):
            self.capture.named(name, tid)

    def plain(self, *more):
        self.begin(**{"sched:sched_switch": [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)],
                      "sched:sched_waking": [Field("pid", size=4), Field("pad", size=4)], **dict(more)})

    def take(self, event, tid, functions, *values):
        """Adds a sample of a thread with a kernel stack, leaf first."""
        chain = [made.CONTEXT_KERNEL, *(AT[name] + 4 for name in functions)]
        self.capture.sample(self.events.index(event), ip=chain[1], misc=made.KERNEL, chain=chain, tid=tid,
                            raw=struct.pack(*values))

    def switch(self, tid, state, to, functions=("schedule", "do_wait", "entry")):
        self.take("sched:sched_switch", tid, functions, "<QII", state, to, 0)

    def wakes(self, tid, whom, functions=("do_wake", "entry")):
        self.take("sched:sched_waking", tid, functions, "<II", whom, 0)

    def view(self, name, *words, status=0):
        (self.folder / "perf.data").write_bytes(self.capture.file())
        return self.tacho(name, "--kallsyms", "kallsyms", *words, status=status)

    def folded(self, *words, status=0):
        done = self.view("folded", *words, status=status)
        lines = [line.rsplit(" ", 1) for line in done.stdout.decode().splitlines()]
        return {stack: int(weight) for stack, weight in lines}, done.stderr.decode()

    def rows(self, *words):
        """{function: (self, children)} of a report's rows, in ns."""
        lines = csv.DictReader(io.StringIO(self.view("report", "--csv", "-s", "comm,sym", *words).stdout.decode()))
        return {(line["comm"], line["symbol"]): (int(line["period"]), int(line["children_period"])) for line in lines}

    def graphs(self, *words):
        """The call graphs of a report as folded stacks, of rows of functions that went to sleep."""
        document = json.loads(self.view("report", "--json", "-s", "comm", "-g", "graph,0,caller", *words).stdout)
        stacks = {}

        def walk(nodes, above):
            for node in nodes:
                path = above + [frame["symbol"] for frame in node["frames"]]
                if node["ended_period"]:
                    stacks[";".join(path).replace(" ", "_").replace("--_waker_--", "-- waker --")] = node["ended_period"]
                walk(node["calls"], path)

        for report in document["reports"]:
            for row in report["rows"]:
                walk(row["calls"], [row["keys"]["comm"]])
        return stacks

    def chain(self):
        """main waits for the waker, which waits for the first thread, which was woken by an interrupt."""
        self.plain()
        self.switch(FIRST, SLEEPING, MAIN)
        self.wakes(MAIN, FIRST, ["do_wake", "timer_tick", "asm_sysvec_apic_timer_interrupt", "busy", "entry"])
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, SLEEPING, FIRST)
        self.wakes(FIRST, WAKER, ["do_wake", "busy"])
        self.switch(FIRST, RUNNING, WAKER)
        self.wakes(WAKER, MAIN)
        self.switch(WAKER, RUNNING, MAIN)

    def requests(self, name, count, *waits):
        """So many requests, and waits of main that last so many steps."""
        self.plain(("app:request", [Field("pad")]))
        for _ in range(count):
            self.take("app:request", MAIN, ["entry"], "<Q", 0)
        for steps in waits:
            self.switch(MAIN, SLEEPING, WAKER)
            for _ in range(steps - 1):
                self.switch(WAKER, RUNNING, FIRST)
            self.switch(FIRST, RUNNING, MAIN)
        (self.folder / name).write_bytes(self.capture.file())
        return name

    def test_threads_outside_of_the_pid_namespace_are_kept_apart(self):
        # Recorded in a container: samples of all threads outside have tid 0; the fields have the kernel's tids.
        self.begin(**{"sched:sched_switch": [Field("prev_pid", size=4), Field("next_pid", size=4), Field("prev_state")],
                      "sched:sched_waking": [Field("pid", size=4), Field("pad", size=4)]})
        wait = ["schedule", "do_wait", "entry"]
        inside, outside, other = 9001, 9002, 9003  # the kernel's numbers; MAIN is the one of `inside` in the container

        def switch(tid, kernel_tid, to, stack):
            self.take("sched:sched_switch", tid, stack, "<IIQ", kernel_tid, to, SLEEPING)

        switch(MAIN, inside, outside, wait)
        switch(0, outside, other, ["schedule", "busy"])
        self.take("sched:sched_waking", 0, ["do_wake", "entry"], "<II", inside, 0)  # by `other`
        switch(0, other, inside, ["schedule", "do_wake"])
        switch(MAIN, inside, outside, wait)
        folded, _ = self.folded("--off-cpu")
        self.assertEqual(folded, {"main;entry;do_wait;schedule": 3 * STEP, "[outside];busy;schedule": 3 * STEP})
        folded, _ = self.folded("--off-cpu", "--wakers=1", "--comm", "main")
        self.assertEqual(list(folded), ["main;entry;do_wait;schedule;-- waker --;do_wake;entry;[outside]"])

    def test_waits_per_event_are_compared(self):
        # Before: 2 requests of 2 steps. After: 4 requests, with the same total.
        self.requests("before", 2, 3, 1)
        self.requests("after", 4, 2, 2)
        words = ["-i", "after", "--base", "before", "--off-cpu", "--kallsyms", "kallsyms", "--min-width", "0"]
        shares = Picture(self.tacho("flamegraph", *words).stdout.decode())
        self.assertEqual(shares.panes[0][0].classes, ["d0"])
        costs = Picture(self.tacho("flamegraph", *words, "--per", "app:request").stdout.decode())
        self.assertEqual([costs.root.get(f"data-{key}") for key in ("per", "units", "unit")], ["app:request", "4000", "ns"])
        self.assertIn("<title>Off-CPU graph: the waits of threads</title>", self.tacho("flamegraph", *words[:2], "--off-cpu").stdout.decode())
        root = costs.panes[0][0]
        self.assertEqual((root.before, root.after, root.classes), (8 * STEP, 4 * STEP, ["q4"]))
        self.assertNotIn("app:request", {frame.name for frame in costs.panes[0]})

    def test_graphs_of_a_report_hold_what_folded_prints(self):
        self.chain()
        for words in (("--off-cpu",), ("--wakers",), ("--wakers=2",), ("--wakers=3",), ("--wakers=3", "--where", 'comm == "main"')):
            lines, _ = self.folded(*words)
            self.assertGreater(len(lines), 0)
            self.assertEqual(self.graphs(*words), lines, words)

    def test_rows_of_a_report_are_where_threads_sleep_and_what_woke_them(self):
        self.chain()
        rows = self.rows("--wakers=2")
        slept = 5 * STEP  # main
        self.assertEqual(rows["main", "schedule"], (slept, slept))
        self.assertEqual(rows["main", "do_wait"], (0, slept))
        self.assertEqual(rows["main", "'-- waker --"], (0, slept))  # once, although the chain has two wakers
        self.assertEqual(rows["main", "the waker"], (0, slept))
        self.assertEqual(rows["main", "busy"], (0, slept))  # where the first one woke the waker
        self.assertEqual(rows["first", "[irq]"], (0, 3 * STEP))
        self.assertNotIn(("main", "[irq]"), rows)
        self.assertNotIn(("first", "busy"), rows)  # what the interrupt interrupted
        self.assertNotIn(("main", "-- waker --"), self.rows("--off-cpu"))

    def test_waits_without_a_recorded_end_are_counted(self):
        self.plain()
        for _ in range(3):
            self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, MAIN)  # of the third one
        self.switch(FIRST, SLEEPING, WAKER)
        for view in ("folded", "report"):
            said = self.view(view, "--off-cpu").stderr.decode()
            self.assertIn(f"tacho {view}: left out: waits without an end in the capture: 2; the end", said)
            self.assertIn(f"tacho {view}: left out: waits that went on when the capture ended: 1\n", said)
        self.switch(MAIN, SLEEPING, 0)
        self.switch(MAIN, SLEEPING, 0)
        self.assertIn("so record with -a to have them", self.folded("--off-cpu")[1])
        # Only recordings of all threads show that a CPU was idle.
        self.switch(0, RUNNING, WAKER)
        said = self.folded("--off-cpu")[1]
        self.assertIn("; the end of a wait is recorded at the switch from the thread that ran before, and some switches are not in the capture\n", said)
        self.assertNotIn("-a", said)
        self.chain()
        self.assertNotIn("without an end", self.folded("--off-cpu")[1])

    def test_a_report_weighs_by_nanoseconds_whatever_the_period(self):
        self.chain()
        done = self.view("report", "--wakers", "--no-children", "-s", "comm,sym", "-g", "caller")
        text, said = done.stdout.decode(), done.stderr.decode()
        self.assertIn("# Samples: 3  of event 'sched:sched_switch'\n# Event count (approx.): 11000\n".replace("11000", str(10 * STEP)),
                      text)
        self.assertRegex(text, r"(?m)^ +50\.00%  main +\[k\] schedule")
        self.assertLess(text.index("-- waker --"), text.index("the waker"))
        self.assertEqual(said, "tacho report: rows are waits, weighted by nanoseconds\n"
                               "tacho report: 3 of 3 waits have a waker\n")

    def test_keys_of_a_report_come_from_the_sample_that_began_the_wait(self):
        self.chain()
        done = self.view("report", "--off-cpu", "--csv", "-s", "tid,cpu,prev_state,sym", "--no-children")
        rows = [line for line in csv.DictReader(io.StringIO(done.stdout.decode()))]
        self.assertEqual({(row["tid"], row["prev_state"]): int(row["period"]) for row in rows},
                         {(str(MAIN), "1"): 5 * STEP, (str(WAKER), "1"): 2 * STEP, (str(FIRST), "1"): 3 * STEP}, rows)

    def test_rows_without_chains_are_of_the_same_waits(self):
        self.chain()
        whole = self.view("report", "--off-cpu", "--csv", "-s", "comm", "--no-children").stdout
        alone = self.view("report", "--off-cpu", "--csv", "-s", "comm", "--no-children", "-g", "none").stdout
        self.assertGreater(len(whole.splitlines()), 1)
        self.assertEqual(whole, alone)
        self.assertNotIn(b"IPC", self.view("report", "--off-cpu").stdout)

    def test_filters_of_a_report(self):
        self.chain()
        for words in (("--comms", "main"), ("--tid", str(MAIN))):
            rows = self.rows("--wakers", "--percentage", "relative", *words)
            self.assertEqual(rows["main", "schedule"], (5 * STEP, 5 * STEP), words)
            self.assertEqual({comm for comm, _ in rows}, {"main"})
        self.assertEqual(self.rows("--off-cpu", "--where", f"tid == {WAKER}")["the waker", "schedule"], (2 * STEP, 2 * STEP))
        done = self.view("report", "--off-cpu", "--cpu", "1")
        self.assertEqual(done.stdout.decode().count("%"), 0)
        self.assertIn("no wait has an end in the capture", done.stderr.decode())

    def test_a_report_refuses_what_waits_do_not_have(self):
        self.chain()
        for words in (("-b",), ("--mem-mode",), ("--branch-history",), ("--show-ref-call-graph",)):
            self.assertIn("--off-cpu: rows are of waits; leave -b", self.view("report", "--off-cpu", *words, status=1).stderr.decode())
        for words in (("--weight", "period"), ("--event", "sched:sched_switch")):
            self.assertIn("leave --weight and --event out", self.view("report", "--wakers", *words, status=1).stderr.decode())
        self.begin(ends=[Field("whom", size=4, role="wakes"), Field("pad", size=4)])
        self.take("ends", WAKER, ["do_wake"], "<II", MAIN, 0)
        self.assertIn("--off-cpu: no event of the capture is a wait", self.view("report", "--off-cpu", status=1).stderr.decode())

    def test_without_asking_waits_are_taken_and_not_who_ended_them(self):
        """In any order of events; wakers are shown and can be filtered."""
        self.begin(waking=[Field("blocked_ns", role="value"), Field("woken_tid", size=4, role="wakes"), Field("pad", size=4)],
                   wait=[Field("off_ns", role="value"), Field("runq_ns", role="queued")])
        self.take("waking", WAKER, ("do_wake", "entry"), "<QII", 500, MAIN, 0)
        lines, said = self.folded()
        self.assertEqual(lines, {})
        self.assertIn("left out the samples of 'waking', which are events of wakers; --event NAME", said)
        self.take("wait", MAIN, ("schedule", "entry"), "<QQ", 700, 100)
        lines, said = self.folded("--weight", "off_ns")
        self.assertEqual(lines, {"main;entry;schedule": 700})
        self.assertIn("left out the samples of 'waking', which have no field 'off_ns'", said)
        lines, _ = self.folded("--event-filter", "waking", "--weight", "blocked_ns")
        self.assertEqual(lines, {"the_waker;entry;do_wake": 500})

    def test_a_wait_is_the_time_between_two_switches(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, 0)    # preempted: no wait
        self.switch(0, RUNNING, MAIN)     # the idle thread
        self.switch(MAIN, IDLE, FIRST)    # an idle kernel worker
        self.switch(FIRST, SLEEPING, MAIN)  # this wait does not end
        lines, said = self.folded("--off-cpu")
        self.assertEqual(lines, {"main;entry;do_wait;schedule": 2 * STEP})
        self.assertEqual(said, "tacho folded: left out: waits that went on when the capture ended: 1\n")

    def test_the_waker_comes_after_a_marker(self):
        self.plain()
        for _ in range(2):
            self.switch(MAIN, SLEEPING, WAKER)
            self.wakes(WAKER, MAIN)
            self.wakes(FIRST, MAIN)  # it is awake
            self.switch(WAKER, RUNNING, MAIN)
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, MAIN)  # no waker was seen
        lines, said = self.folded("--wakers")
        self.assertEqual(lines, {"main;entry;do_wait;schedule;-- waker --;do_wake;entry;the_waker": 6 * STEP,
                                 "main;entry;do_wait;schedule": STEP})
        self.assertEqual(said, "tacho folded: 2 of 3 waits have a waker\n")

    def test_an_interrupt_is_not_the_thread_that_it_hit(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.wakes(WAKER, MAIN, ["do_wake", "timer_tick", "asm_sysvec_apic_timer_interrupt", "busy", "entry"])
        self.switch(WAKER, RUNNING, MAIN)
        lines, _ = self.folded("--wakers=3")
        self.assertEqual(lines, {"main;entry;do_wait;schedule;-- waker --;do_wake;timer_tick;"
                                 "asm_sysvec_apic_timer_interrupt;[irq]": 2 * STEP})

    def test_what_a_timer_ends_says_so(self):
        self.plain()
        for interrupt in (["__hrtimer_run_queues", "asm_sysvec_apic_timer_interrupt", "busy", "entry"], ["asm_common_interrupt", "entry"],
                          ["__hrtimer_run_queues", "busy"]):  # deferred: in a kernel thread
            self.switch(MAIN, SLEEPING, WAKER)
            self.wakes(WAKER, MAIN, ["do_wake", *interrupt])
            self.switch(WAKER, RUNNING, MAIN)
        lines, _ = self.folded("--wakers=3")
        before = "main;entry;do_wait;schedule;-- waker --;do_wake;"
        self.assertEqual(lines, {before + "__hrtimer_run_queues;asm_sysvec_apic_timer_interrupt;[timer]": 2 * STEP,
                                 before + "asm_common_interrupt;[irq]": 2 * STEP,
                                 before + "__hrtimer_run_queues;busy;[timer]": 2 * STEP})

    def test_what_the_recorder_saw_counts(self):
        """A wake-up by a timer is an event of the woken thread with the waker [timer]."""
        self.begin(**{"sched:sched_switch": [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)],
                      "waking": [Field("woken_tid", size=4, role="wakes"), Field("pad", size=4),
                                 Field("waker", made_payload.TEXT, 1, 16, role="waker")]})
        self.switch(MAIN, SLEEPING, WAKER)
        self.take("waking", MAIN, ["do_wake", "busy"], "<II16s", MAIN, 0, b"[timer]")
        self.switch(WAKER, RUNNING, MAIN)
        lines, _ = self.folded("--wakers=3")
        self.assertEqual(lines, {"main;entry;do_wait;schedule;-- waker --;do_wake;busy;[timer]": 2 * STEP})

    def test_wakers_of_wakers_up_to_a_depth(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, SLEEPING, FIRST)
        self.wakes(FIRST, WAKER, ["do_wake", "busy"])
        self.switch(FIRST, RUNNING, WAKER)
        self.wakes(WAKER, MAIN)
        self.switch(WAKER, RUNNING, MAIN)
        one = "main;entry;do_wait;schedule;-- waker --;do_wake;entry;the_waker"
        of_waker = "the_waker;entry;do_wait;schedule;-- waker --;do_wake;busy;first"
        self.assertEqual(self.folded("--wakers")[0], {one: 5 * STEP, of_waker: 2 * STEP})
        self.assertEqual(self.folded("--wakers=2")[0], {one + ";-- waker --;do_wake;busy;first": 5 * STEP, of_waker: 2 * STEP})

    def test_events_that_are_waits_and_events_that_wake(self):
        self.begin(nap=[Field("slept_ns", unit="ns", role="value"), Field("at", count=2, role="stack")],
                   ends=[Field("whom", size=4, role="wakes"), Field("pad", size=4), Field("by", made_payload.TEXT, 1, 16, role="waker")])
        stack = AT["schedule"] + 4, AT["do_wait"] + 4
        self.take("ends", WAKER, ["do_wake", "entry"], "<II16s", MAIN, 0, b"the waker")
        self.take("ends", MAIN, ["do_wake", "busy"], "<II16s", MAIN, 0, b"a stranger")  # the wait before was left out
        self.take("nap", MAIN, ["entry"], "<QQQ", 700, *stack)
        self.take("nap", MAIN, ["entry"], "<QQQ", 40, *stack)
        lines, _ = self.folded("--wakers")
        self.assertEqual(lines, {"main;do_wait;schedule;-- waker --;do_wake;busy;a_stranger": 700, "main;do_wait;schedule": 40})

    def test_filters_choose_who_waits_and_not_who_ends_the_wait(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.wakes(WAKER, MAIN)
        self.switch(WAKER, SLEEPING, MAIN)
        self.wakes(MAIN, WAKER)
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, MAIN)
        of_main = {"main;entry;do_wait;schedule;-- waker --;do_wake;entry;the_waker": 2 * STEP, "main;entry;do_wait;schedule": STEP}
        of_waker = {"the_waker;entry;do_wait;schedule;-- waker --;do_wake;entry;main": 2 * STEP}
        self.assertEqual(self.folded("--wakers")[0], {**of_main, **of_waker})
        for choice in (("--comm", "main"), ("--where", 'comm == "main"'), ("--where", f"tid == {MAIN}")):
            lines, said = self.folded("--wakers", *choice)
            self.assertEqual(lines, of_main, choice)
            self.assertEqual(said, "tacho folded: 1 of 2 waits have a waker\n")
        self.assertEqual(self.folded("--wakers", "--comm", "the waker")[0], of_waker)
        self.assertEqual(self.folded("--off-cpu", f"--tid={WAKER}")[0],
                         {"the_waker;entry;do_wait;schedule": 2 * STEP})
        self.assertEqual(self.folded("--off-cpu", f"--pid={made.PID}", "--cpu", "0", "--comm", "main")[0],
                         {"main;entry;do_wait;schedule": 3 * STEP})
        for choice in (f"--tid={FIRST}", "--cpu=1", "--pid=1"):
            lines, said = self.folded("--off-cpu", choice)
            self.assertEqual(lines, {}, choice)
            self.assertIn("no wait has an end in the capture", said)

    def test_what_cannot_choose_waits_is_refused(self):
        self.plain()
        self.switch(MAIN, SLEEPING, WAKER)
        self.switch(WAKER, RUNNING, MAIN)
        for choice in (("--dsos", "x"), ("--symbols", "do_wait"), ("--symbol-filter", "wait")):
            self.assertIn("leave --dsos, --symbols and --symbol-filter out", self.folded("--off-cpu", *choice, status=1)[1])

    def test_captures_without_waits_or_wakers_are_refused(self):
        self.begin(ends=[Field("whom", size=4, role="wakes"), Field("pad", size=4)])
        self.take("ends", WAKER, ["do_wake"], "<II", MAIN, 0)
        self.assertIn("--off-cpu: no event of the capture is a wait", self.folded("--off-cpu", status=1)[1])
        self.begin(**{"sched:sched_switch": [Field("prev_state"), Field("next_pid", size=4), Field("pad", size=4)]})
        self.switch(MAIN, SLEEPING, WAKER)
        self.assertIn("--wakers: no event of the capture has wakers", self.folded("--wakers", status=1)[1])
        self.assertIn("leave --weight and --event out", self.folded("--off-cpu", "--weight", "period", status=1)[1])
        self.assertIn("--wakers", self.folded("--wakers=0", status=1)[1])


if __name__ == "__main__":
    programs.main()
