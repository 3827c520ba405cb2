#!/usr/bin/env python3
"""--wall of tacho flamegraph and folded: all time of threads, of captures in which every state change is known."""
import re
import struct

import made_capture as made
import made_payload
import programs
from flame_graph import Picture
from page_data import Page
from states_capture import MAIN, MS, OTHER, SLEEPING, RUNNING, SWITCHES, RECORDERS, WORKER, StatesCapture


class Wall(StatesCapture):
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
        self.assertEqual(self.states(times, OTHER), {"[runnable]": 9, "[off-CPU: no reason recorded]": 82, "[blocked: since before the recording]": 9})
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

    def lanes(self, *words):
        """{tid: [(state, begin, end in ms, waker's number)]} of a page, and {tid: {state: ms}} that it states as sums."""
        (self.folder / "perf.data").write_bytes(self.capture.file())
        page = Page(self.tacho("page", "--kallsyms", "kallsyms", *words).stdout.decode())
        names, columns, lanes, sums, at = page.head["state_names"], page.columns, {}, {}, 0
        start = int(page.head["capture"]["start"]) - self.zero
        for lane, thread in enumerate(columns["state.thread"]):
            tid, time, parts = columns["threads.tid"][thread], columns["state.start"][lane] + start, []
            for i in range(at, at + columns["state.count"][lane]):
                length = columns["state.length"][i]
                parts.append((names[columns["state.state"][i]], time / MS, (time + length) / MS, columns["state.waker"][i]))
                time += length
            at += columns["state.count"][lane]
            lanes[tid] = parts
            of_thread = columns["state.sums"][lane * len(names):][:len(names)]
            sums[tid] = {f"[{name}]": ns / MS for name, ns in zip(names, of_thread) if ns > 0}
        return lanes, sums, page

    def test_the_lanes_of_a_page_add_up_to_what_folded_prints(self):
        for make in (self.switches, self.recorders):
            make()
            lanes, sums, page = self.lanes()
            times, _ = self.times()
            for tid in (MAIN, WORKER, OTHER):
                states = self.states(times, tid)
                self.assertEqual(sums[tid], states)
                added = {}
                for state, begin, end, _ in lanes[tid]:
                    added[f"[{state}]"] = round(added.get(f"[{state}]", 0) + end - begin, 3)
                self.assertEqual(added, states)
                for (_, _, end, _), (_, begin, _, _) in zip(lanes[tid], lanes[tid][1:]):
                    self.assertEqual(end, begin)
            worker = page.columns["threads.tid"].index(WORKER) + 3
            self.assertEqual(lanes[MAIN], [("on-CPU", 0, 10, 0), ("blocked: sleep", 10, 45, worker), ("runnable", 45, 50, worker),
                                           ("on-CPU", 50, 60, 0)])

    def test_a_page_of_a_part_of_the_time_has_its_lanes(self):
        self.switches()
        zero = self.zero / 1e9
        lanes, sums, page = self.lanes("--time", f"{zero + 0.015:.6f},{zero + 0.042:.6f}")
        self.assertEqual(page.columns["time"], [0, 10 * MS, 20 * MS])  # at 20, 30 and 40 ms
        self.assertEqual(lanes[MAIN], [("blocked: sleep", 15, 42.000001, page.columns["threads.tid"].index(WORKER) + 3)])
        self.assertEqual(lanes[WORKER][-1], ("on-CPU", 40, 42.000001, 0))
        self.assertEqual(sums[WORKER], {"[on-CPU]": 17.000001, "[runnable]": 10})  # with the last nanosecond
        lanes, _, page = self.lanes("--tid", str(MAIN))
        self.assertEqual(list(lanes), [MAIN])
        self.assertEqual(page.folded(1), {})
        for words in (("--where", "cpu == 0"), ("--event", "cpu-clock")):
            (self.folder / "perf.data").write_bytes(self.capture.file())
            self.assertNotIn("state_names", Page(self.tacho("page", *words).stdout.decode()).head, words)

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
