#!/usr/bin/env python3
"""The page of tacho why in a browser: each finding selects its samples, whose sum is the finding's time; keys, names, widths."""
import json
import re

import browser
import programs
from page_data import folded_lines
from why_test import MS, ONE, SINK, THREE, TWO, USER, MadeWaits

ENTER, END = "\ue007", "\ue010"
NAME = "</script><img src=x onerror=window.hit=1>"


@browser.needs_browser
class AnswerInABrowser(browser.PageTest, MadeWaits):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.requests(), [])

    def record(self):
        """A lock with a holder, page faults on the CPU and blocked, a disk and threads that wait for work."""
        self.waits_for_the_flusher(holder=TWO)
        self.runs(110, 160, ONE, "asm_exc_page_fault", "leaf_a", "main")
        self.off(260, ONE, 100, ("schedule", "io_schedule", "asm_exc_page_fault", "leaf_a", "main"))
        self.off(300, TWO, 200, ("schedule", "io_schedule", "leaf_b"), "file", name="log/a", disk="sda1", queued=90)
        self.off(400, THREE, 300, ("schedule", "ep_poll", "main"), "epoll")

    def open(self, *words, fragment=""):
        """Opens the page, and returns the answer in JSON."""
        answer = json.loads(self.why("--json", "--page", "why.html", *words).stdout)
        self.show(fragment)
        return answer

    def show(self, fragment=""):
        self.browser.open(self.folder / "why.html", fragment)
        self.wait_until("return document.documentElement.dataset.ready === 'yes'")

    def choose(self, number):
        self.browser.run("document.querySelectorAll('.answer button.title')[arguments[0]].click()", number)
        self.settle()

    def titles(self):
        return self.browser.run("return [...document.querySelectorAll('.answer button.title')].map((one) => one.textContent)")

    def pressed(self):
        return self.browser.run("return [...document.querySelectorAll('.answer button.title')].map((one) => one.getAttribute('aria-pressed'))")

    def folded(self):
        self.browser.run("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Folded text').click()")
        return folded_lines(self.browser.run(
            "const box = document.querySelector('#folded'), text = box.querySelector('textarea').value; box.close(); return text"))

    def selection(self):
        return self.browser.run("return document.querySelector('#selection').innerText")

    def test_the_page_opens_on_the_answer(self):
        self.record()
        answer = self.open()
        text = self.browser.run("return document.querySelector('.answer').innerText")
        printed = self.why().stdout.decode()
        for line in printed.splitlines():
            words = line.replace("waits", "Waits") if line.startswith("waits for work or") else re.sub(r"^ *([\d.]+ %)  ", r"\1 ", line)
            self.assertIn(words.strip(), text)
        self.assertEqual(len(self.titles()), len(answer["findings"]) + len(answer["idle"]))
        self.assertEqual(set(self.pressed()), {"false"})
        self.assertIn("Everything is selected.", self.selection())
        first = self.browser.run("return document.querySelector('main > section').className")
        self.assertEqual(first, "answer")

    def test_a_finding_selects_samples_that_add_up_to_its_time(self):
        self.record()
        answer = self.open()
        for number, one in enumerate(answer["findings"] + answer["idle"]):
            self.choose(number)
            stacks = self.folded()
            self.assertAlmostEqual(sum(stacks.values()), one["time_ns"], delta=2, msg=one)
            self.assertIn(f"finding={number + 1}", self.fragment())
            self.assertEqual(self.pressed().index("true"), number)
            function = one["function"]
            self.assertTrue(all(function in stack for stack in stacks), (function, stacks))
            self.assertIn("100.00 % of the finding", self.browser.run("return document.querySelector('.timeline .status').textContent"))
            rows = self.browser.run("return [...document.querySelectorAll('.label')].map((label) => label.title)")
            self.assertTrue(all(re.search(r"\d+: .*[\d.]+ ms$", row) for row in rows), rows)
            wait = self.browser.run("return document.querySelector('.wait').textContent")
            if number < len(answer["findings"]) and one["cause"] == "lock":
                self.assertIn("blocked: lock, 100 ms", wait, "its longest one is chosen")
                self.assertIn("recurse \u2190 main", wait)
                self.assertNotIn("schedule", wait, "what the kernel does in each wait")
        self.choose(number)
        self.assertEqual(set(self.pressed()), {"false"})
        self.assertIn("Everything is selected.", self.selection())

    def test_waits_for_other_threads_are_cards_like_findings(self):
        self.record()
        answer = self.open()
        parts = [*answer["findings"], *answer["idle"]]
        cards = self.browser.run("""return [...document.querySelectorAll('.finding')].map((one) => [
            one.querySelector('button.title').textContent, one.querySelector('button.title').offsetWidth / one.clientWidth,
            one.querySelector('.meter').offsetWidth / one.querySelector('button.title').offsetWidth]);""")
        self.assertEqual([title for title, *_ in cards], self.titles())
        longest = max(part["time_ns"] for part in parts)
        for part, (title, width, meter) in zip(parts, cards):
            self.assertGreater(width, 0.9, title)
            self.assertAlmostEqual(meter, part["time_ns"] / longest, delta=0.02, msg=title)
        self.choose(len(answer["findings"]))
        tools = self.browser.run("return [...document.querySelectorAll('.wait button')].map((one) => one.textContent)")
        self.assertIn("Select this time", tools)
        self.assertFalse(self.browser.run("return document.querySelector('.chosen button').hidden"), "Show")

    def test_the_next_wait_is_one_of_the_finding(self):
        self.record()
        answer = self.open()
        self.choose([one["cause"] for one in answer["findings"]].index("lock"))
        about = lambda: self.browser.run("return document.querySelector('.wait').textContent")
        self.press(".")
        self.assertIn("blocked: lock, 100 ms", about())
        self.assertEqual(self.browser.run("return document.querySelector('.timeline > .status').textContent"), "no later wait of this thread in the finding")
        self.browser.run("document.querySelector('.chip').click()")
        self.settle()
        self.press(".")
        self.assertIn("blocked: I/O, 100 ms", about(), "the thread's next one")

    def test_samples_that_are_fewer_than_the_waits_are_explained(self):
        wait = ("schedule", "futex_wait", "leaf_a", "main")
        self.runs(0, 10, ONE, "leaf_a", "main")
        self.off(50, ONE, 10, wait, "mutex", lock=SINK, stands_for=4, skipped=20)
        self.off(100, ONE, 10, wait, "mutex", lock=SINK, stands_for=4, skipped=20)
        self.off(300, TWO, 200, ("schedule", "io_schedule", "leaf_b"), "file")
        answer = self.open()
        count = answer["findings"][[one["cause"] for one in answer["findings"]].index("lock")]["count"]
        cards = self.browser.run("return [...document.querySelectorAll('.finding')].map((one) => one.innerText)")
        lock, disk = ([card for card in cards if words in card] for words in ("waits for the lock", "waits for the disk"))
        self.assertIn(f"2 of the {count} waits have samples in this page; a rate limit only counted the others", lock[0])
        self.assertGreater(count, 2)
        self.assertNotIn("in this page", disk[0])
        self.choose([title for title in self.titles()].index(next(title for title in self.titles() if "lock" in title)))
        self.assertIn("2 samples", self.selection())
        # One of the two ends after the chosen time.
        self.open("--time", "5,5.095")
        card = self.browser.run("return [...document.querySelectorAll('.finding')].find((one) => one.textContent.includes('lock')).innerText")
        self.assertRegex(card, r"1 of the \d+ waits has a sample in this page\n")

    def test_who_had_the_cpu_is_said_also_of_other_programs(self):
        self.runs(0, 10, ONE, "leaf_a", "main")
        self.off(110, ONE, 100, ("schedule", "futex_wait", "recurse", "main"), queued=60, runner="cc1plus")
        self.off(210, ONE, 50, ("schedule", "futex_wait", "recurse", "main"), queued=40, stands_for=3, skipped=100)
        self.runs(220, 230, ONE, "leaf_a", "main")
        answer = self.open()
        self.choose([one["cause"] for one in answer["findings"]].index("runnable"))
        self.assertRegex(self.browser.run("return document.querySelector('.wait').innerText"), r"runnable, 60 ms[^C]*\n\nCPU 0 had cc1plus$",
                         "the longest one, not the one that stands for most time")

    def test_a_finding_of_two_events_is_selected_whole(self):
        """Page faults: fifty clock samples and a wait."""
        self.record()
        answer = self.open()
        number = [one["cause"] for one in answer["findings"]].index("fault")
        self.choose(number)
        time = f"{answer['findings'][number]['time_ns'] / MS:.0f} ms"
        self.assertIn(f"51 samples, {time}", self.selection())
        status = self.browser.run("return document.querySelector('.answer .status').textContent")
        self.assertEqual(status, f"Selected: 51 samples, {time}")
        self.press("2")  # values are those of its main event
        self.assertIn("1 values", self.browser.run("return document.querySelector('.values > p:not(.tools):not(.status)').textContent"))
        self.press("3")
        self.assertIn("51 samples", self.browser.run("return document.querySelector('.events .status').textContent"))
        self.browser.run("document.querySelector('[role=listbox]').focus()")
        self.press(ENTER, END)
        self.assertIn("in the finding\n100,000,000 ns", self.browser.run("return document.querySelector('.details').innerText"))

    def test_values_of_a_finding_are_those_of_its_waits(self):
        self.record()
        answer = self.open(fragment="#tab=events")
        self.choose([one["cause"] for one in answer["findings"]].index("lock"))
        rows = self.browser.run("return [...document.querySelectorAll('.event')].map((one) => one.textContent)")
        self.assertEqual(len(rows), 1)
        self.assertIn(f"holder_tid={TWO}", rows[0])

    def test_keys_history_and_links(self):
        self.record()
        self.open()
        self.browser.run("document.querySelector('.answer button.title').focus()")
        self.press(ENTER)
        chosen, selection = self.fragment(), self.selection()
        self.assertIn("finding=1", chosen)
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), self.titles()[0], "the focus stays")
        self.press("0")
        self.assertNotIn("finding", self.fragment())
        self.browser.run("history.back()")
        self.settle()
        self.settle()
        self.assertEqual((self.fragment(), self.selection()), (chosen, selection))
        self.show(chosen)
        self.assertEqual(self.selection(), selection)
        # An event is another choice of samples.
        self.browser.run("const box = document.querySelector('#event'); box.value = box.options[0].value; box.dispatchEvent(new Event('change'))")
        self.settle()
        self.assertNotIn("finding", self.fragment())
        self.assertEqual(set(self.pressed()), {"false"})
        for wrong in ("#finding=0", "#finding=99", "#finding=x", "#finding=1.5", "#finding=-1", "#finding=__proto__"):
            self.show(wrong)
            self.assertEqual(set(self.pressed()), {"false"}, wrong)

    def test_what_is_selected_is_in_sight(self):
        """Wherever the finding is in the panel; and a button goes to its timeline."""
        self.browser.size(390, 400)
        self.addCleanup(self.browser.size, 1280)
        self.record()
        self.open()
        top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
        self.assertTrue(self.browser.run("return document.querySelector('.chosen button').hidden"))
        self.choose(0)
        self.assertLess(self.browser.run(top, ".answer .status"), 400)
        self.assertGreater(self.browser.run(top, ".timeline"), 400)
        self.browser.run("document.querySelector('.chosen button').click()")
        self.settle()
        self.assertLess(abs(self.browser.run(top, ".timeline")), 2)
        self.assertEqual(self.browser.run("return document.activeElement.className"), "strip")

    def test_other_choices_are_parts_of_the_finding(self):
        self.record()
        answer = self.open()
        number = [one["cause"] for one in answer["findings"]].index("fault")
        self.choose(number)
        self.browser.run("document.querySelector('.functions td.name button').click()")
        self.settle()
        self.assertIn("function=", self.fragment())
        self.assertIn(f"finding={number + 1}", self.fragment())
        self.show(f"#finding={number + 1}&time=5.1,5.2")
        self.assertIn("50 samples, ", self.selection())
        share = 100 - 100 * 100 * MS / answer["findings"][number]["time_ns"]
        self.assertIn(f"{share:.2f} % of the finding", self.browser.run("return document.querySelector('.timeline .status').textContent"))

    def test_names_stay_text(self):
        (self.folder / "perf-4242.map").write_text(f"7000000000 100 {NAME}\n")
        self.capture.mapped(ONE, 0x7000000000, 0x1000, 0, "//anon").named(NAME[:15], ONE)
        USER["hostile"] = 0x7000000010
        self.runs(0, 100, ONE, "hostile", "main")
        self.off(210, ONE, 100, ("schedule", "io_schedule", "hostile"), "file", name="\x1b[2J" + NAME)
        self.open("--perf-map-dir", ".")
        text = self.browser.run("return document.querySelector('.answer').innerText")
        self.assertIn(NAME, text)
        self.assertIn("\\x1b[2J", text)
        for number in range(len(self.titles())):
            self.choose(number)
        self.assertIsNone(self.browser.run("return window.hit === undefined ? null : window.hit"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)

    def test_a_narrow_window_has_everything(self):
        self.browser.size(390)
        self.addCleanup(self.browser.size, 1280)
        self.record()
        self.open()
        for number in range(2):
            self.choose(number)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)

    def test_a_finding_without_samples_cannot_be_selected(self):
        """The wait ends after the chosen time."""
        self.record()
        self.open("--time", "5.05,5.1")
        finding = self.browser.run("return [...document.querySelectorAll('.finding')].find((one) => one.textContent.includes('sink')).innerText")
        self.assertIn("It is in no sample of this page.", finding)
        self.assertFalse([title for title in self.titles() if "sink" in title])

    def test_long_names_leave_a_card_readable(self):
        name = "std::" + " ".join(60 * ["basic_string<char, std::allocator<char> >"])
        (self.folder / "perf-4242.map").write_text(f"7000000000 100 {name}\n")
        self.capture.mapped(ONE, 0x7000000000, 0x1000, 0, "//anon")
        USER["templates"] = 0x7000000010
        self.runs(0, 10, ONE, "templates", "main")
        self.off(210, ONE, 100, ("schedule", "io_schedule", "templates", "main"), "file")
        self.open("--perf-map-dir", ".")
        self.choose(0)
        tall = self.browser.run("return [...document.querySelectorAll('.finding p, .wait p')].map((one) => one.clientHeight)")
        self.assertLess(max(tall), 160)
        for card in (".finding p[title]", ".wait p[title]"):
            line = self.browser.run("const line = document.querySelector(arguments[0]); return [line.textContent, line.title]", card)
            self.assertIn(name, line[1])
            self.assertIn(name.replace("<char, std::allocator<char> >", "<...>"), line[0])

    def test_nothing_stands_out(self):
        self.off(110, ONE, 100, ("schedule", "ep_poll", "main"), "epoll")
        self.open()
        self.assertIn("nothing stands out", self.browser.run("return document.querySelector('.answer').innerText"))
        self.choose(0)
        self.assertIn("1 sample, 100 ms", self.selection())

    def test_slow_operations(self):
        self.slow_operations()
        self.open("--of", "call")
        self.assertIn("+88 ms waits for the lock sink in leaf_a", self.titles()[0])
        self.choose(0)
        self.assertEqual(sum(self.folded().values()), 90 * MS)


if __name__ == "__main__":
    programs.main()
