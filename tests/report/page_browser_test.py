#!/usr/bin/env python3
"""tacho page in a browser: timeline, flame graph, tables, heat map and samples show one selection; keys, search, history,
dark and light, narrow windows; names stay text; no network."""
import collections
import json
import re
import struct
from urllib.parse import quote

import browser
import made_capture as made
import made_payload
import programs
import thin_frames
from made_payload import Field, TEXT
from page_data import deep_page, folded_lines, wide_page

if browser.webdriver:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.action_builder import ActionBuilder
    from selenium.webdriver.common.by import By

ENTER, ESCAPE, LEFT, UP, RIGHT, DOWN, SHIFT = "\ue007", "\ue00c", "\ue012", "\ue013", "\ue014", "\ue015", "\ue008"
CHAIN = [2**64 - 512, made.LEAF_A + 4, made.MAIN + 9]
JIT, FILE = 0x7f0000000000, 0x7f1000000000  # addresses of JIT code and of a file with a hostile name
GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
NAMES = ["</script><img src=x onerror=window.hit=1>", "'\"`${window.hit=1}&lt;b&gt;", "right\u202eleft \u05d0\u05d1", "x" * 10_000,
         "constructor", "__proto__", "bell\a \U0001f525\U0001f468\u200d\U0001f680", "std::map<" + 100 * "std::pair<int, " + "int" + 100 * "> " + ">::at"]


@browser.needs_browser
class PageInABrowser(browser.PageTest, programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.requests(), [])

    # Captures.

    def open_golden(self, name, *words, fragment=""):
        self.capture = ["-i", GOLDEN / f"captures/{name}.data", *SYMBOLS]
        self.tacho("page", *self.capture, "-o", "page.html", *words, status=None)
        self.open(fragment)

    def open(self, fragment=""):
        self.browser.open(self.folder / "page.html", fragment)
        self.wait_until("return document.documentElement.dataset.ready === 'yes'")

    def open_payloads(self, names=NAMES):
        """A page of threads, payloads, files and functions with hostile names; sizes of 1 to 64 KiB."""
        made_events = made_payload.capture(True, read=[Field("size", unit="bytes", role="value"), Field("path", TEXT, 1, 10_016)])
        made_events.mapped(made.PID, JIT, 0x10000, 0, "//anon").mapped(made.PID, FILE, 0x1000, 0, "/tmp/" + names[0])
        (self.folder / f"perf-{made.PID}.map").write_text("".join(
            f"{JIT + 0x1000 * i:x} 1000 {name}\n" for i, name in enumerate(names)))
        for i in range(60):
            name = names[i % len(names)]
            made_events.named(name[:15] if len(name) < 10_000 else name, tid=made.PID + i % len(names))
            raw = name.encode()[:10_015]
            chain = [*CHAIN[:2], JIT + 0x1000 * (i % len(names)) + 8, FILE + 8, *CHAIN[2:]]
            made_events.sample(raw=struct.pack("<Q", 1024 << i % 7) + raw + bytes(10_016 - len(raw)), chain=chain,
                               tid=made.PID + i % len(names))
        (self.folder / "perf.data").write_bytes(made_events.file())
        self.tacho("page", "-o", "page.html", "--perf-map-dir", self.folder, status=None)
        self.open()

    # What the browser shows.

    def folded(self, *words):
        return folded_lines(self.tacho("folded", *self.capture, *words, status=None).stdout.decode())

    def shown_folded(self):
        """The folded text that the page offers."""
        self.browser.driver.find_element(By.XPATH, "//button[text()='Folded text']").click()
        text = self.browser.run("const box = document.querySelector('#folded'), text = box.querySelector('textarea').value; box.close(); return text")
        return folded_lines(text)

    def frames(self):
        """[x, y, width] of the visible frames, widest first."""
        return self.browser.run("return document.querySelector('canvas.flame').drawn.map(([, x, y, w]) => [x, y, w]).sort((a, b) => b[2] - a[2])")

    def selection(self):
        return self.browser.run("return document.querySelector('#selection').innerText")

    def samples(self):
        return int(re.search(r"([\d,]+) samples?\b", self.selection())[1].replace(",", ""))

    def status(self, where):
        return self.browser.run("return document.querySelector(arguments[0] + ' .status').textContent", where)

    def focus(self, selector):
        self.browser.run("document.querySelector(arguments[0]).focus()", selector)

    def pointer(self, selector, *points):
        """Drags from the first point of an element over the others; points are fractions of its size."""
        x, y, width, height = self.browser.run("""const element = document.querySelector(arguments[0]);
            element.scrollIntoView({block: 'center'});
            const box = element.getBoundingClientRect();
            return [box.x, box.y, box.width, box.height];""", selector)
        actions = ActionBuilder(self.browser.driver, duration=0)
        place = lambda part: (int(x + part[0] * (width - 1)), int(y + part[1] * (height - 1)))
        actions.pointer_action.move_to_location(*place(points[0])).pointer_down()
        for point in points[1:]:
            actions.pointer_action.move_to_location(*place(point))
        actions.pointer_action.pointer_up()
        actions.perform()
        self.settle()

    def click(self, selector):
        self.browser.run("document.querySelector(arguments[0]).click()", selector)
        self.settle()

    def assert_graph(self, stacks, number=0):
        """The flame graph with that number shows these stacks: {names from its root: weight}."""
        total, widths = sum(stacks.values()), collections.Counter()
        for stack, weight in stacks.items():
            for depth in range(len(stack) + 1):
                widths[stack[:depth]] += weight
        self.browser.run("document.querySelectorAll('.flamebox').forEach((box) => { box.style.maxHeight = '3000px'; }); dispatchEvent(new Event('resize'))")
        self.settle()
        canvas, shown = self.browser.run("""const canvas = document.querySelectorAll('.panel.stacks canvas.flame')[arguments[0]];
            return [canvas.clientWidth, canvas.drawn.map(([, , , w]) => w).sort((a, b) => b - a)];""", number)
        wanted = sorted((canvas * weight / total for weight in widths.values()), reverse=True)
        wanted = [width for width in wanted if width >= 0.4]
        self.assertEqual(len(shown), len(wanted))
        for mine, other in zip(shown, wanted):
            self.assertAlmostEqual(mine, other, delta=0.01)

    # Tests.

    def test_frames_and_widths_equal_folded(self):
        for name in ("threads", "unwound"):
            self.open_golden(name)
            right = self.folded()
            self.assertEqual(self.shown_folded(), right)
            self.assert_graph(right)

    def test_other_graphs_of_the_stacks_equal_folded(self):
        """Bottom-up, without a function, with recursion or a module as one: as changing the lines of folded gives them."""
        self.open_golden("unwound")
        stacks = self.folded()
        modules = dict(self.browser.run("return [...document.querySelectorAll('.functions tbody tr')].map((row) => [row.cells[2].textContent, row.cells[3].textContent])"))
        hidden = collections.Counter(frame for stack in stacks for frame in stack[1:-1]).most_common(1)[0][0]
        module = next(modules[stack[-1]] for stack in stacks if modules.get(stack[-1], "").startswith("shapes"))

        def joined(stack, same):
            return tuple(frame for i, frame in enumerate(stack) if i == 0 or not same(stack[i - 1], frame))

        def changed(how):
            sums = collections.Counter()
            for stack, weight in stacks.items():
                sums[tuple(how(stack))] += weight
            return sums

        as_module = lambda stack: [f"[{module}]" if modules.get(frame) == module else frame for frame in stack]
        without = lambda stack: [frame for frame in stack if frame != hidden]
        recursion = lambda stack: joined(stack, lambda a, b: a == b)
        one_module = lambda stack: joined(as_module(stack), lambda a, b: a == b == f"[{module}]")
        self.assertNotEqual(len(changed(without)), len(stacks))
        for fragment, how in ((f"hide={quote(hidden)}", without), ("recursion=1", recursion), (f"module={quote(module)}", one_module),
                              ("graph=callers", lambda stack: stack[::-1]),
                              (f"graph=callers&hide={quote(hidden)}&recursion=1", lambda stack: recursion(without(stack))[::-1])):
            self.open("#" + fragment)
            self.assert_graph(changed(how))
        self.assertIn(f"without {hidden}", self.browser.run("return document.querySelector('.changes').textContent"))

    def test_callers_and_callees_of_a_function_equal_folded(self):
        self.open_golden("unwound")
        stacks = self.folded()
        counts = collections.Counter(frame for stack in stacks for frame in set(stack[1:]))
        name = max(counts, key=lambda frame: len({stack[:stack.index(frame)] for stack in stacks if frame in stack}))
        callers, callees = collections.Counter(), collections.Counter()
        for stack, weight in stacks.items():
            if name in stack:
                at = stack.index(name)
                callers[stack[:at][::-1]] += weight
                callees[stack[at + 1:]] += weight
        self.assertGreater(len(callers), 1)
        self.open("#around=" + quote(name))
        self.assertTrue(self.browser.run("return document.querySelector('.flamebox').hidden"))
        self.assert_graph(callers, 1)
        self.assert_graph(callees, 2)
        self.focus(".panel.stacks .flamebox:nth-of-type(2) canvas")
        self.press(UP)
        self.assertTrue(self.status(".flameview").startswith(name), self.status(".flameview"))

    def test_the_code_of_a_function_is_beside_the_graph(self):
        self.open_golden("unwound", "--source")
        rows = lambda: self.browser.run("return [...document.querySelectorAll('.code tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.browser.driver.find_element(By.XPATH, "//button[text()='Self']").click()
        self.settle()
        name = self.browser.run("return document.querySelector('.functions tbody .name').textContent")
        self.focus(".functions .name button")
        self.press("s")
        self.assertIn("code=" + quote(name, safe=""), self.fragment().replace("+", "%20"))
        self.assertTrue(self.browser.run("return document.querySelector('.functionsview').hidden"))
        # It was inlined into the only function with samples.
        function, = map(json.loads, self.tacho("annotate", "--json", *self.capture, status=None).stdout.decode().splitlines())
        self.assertNotEqual(function["symbol"], name)
        lines = collections.Counter()
        for line in function["lines"]:
            lines[line.get("line", 0)] += sum(count["percent"] for count in line.get("counts", []))
        shown = {int(row[1]): float(row[0].rstrip(" %") or 0) for row in rows() if len(row) == 3 and row[1].isdigit()}
        self.assertEqual({line for line in shown if shown[line] > 0}, {line for line in lines if line and lines[line] > 0.005})
        for line, share in shown.items():
            self.assertAlmostEqual(share, lines[line], delta=0.011)
        before = len(rows())
        self.browser.driver.find_element(By.XPATH, "//button[text()='Instructions']").click()
        self.assertGreaterEqual(len(rows()), before)
        # Of another selection they are other shares; the address has the function.
        self.browser.driver.refresh()
        self.wait_until("return document.documentElement.dataset.ready === 'yes'")
        self.assertGreater(len(rows()), 2)
        self.browser.driver.find_element(By.XPATH, "//div[@class='codeview']//button[text()='Close']").click()
        self.settle()
        self.assertNotIn("code=", self.fragment())
        self.assertFalse(self.browser.run("return document.querySelector('.functionsview').hidden"))
        self.open("#code=" + quote("no such function"))
        self.assertIn("no code of this function", self.browser.run("return document.querySelector('.codeview').textContent"))
        self.open_golden("unwound")
        self.assertIsNone(self.browser.run("return document.querySelector('.codeview')"), "only on request")

    def test_keys_change_the_graph(self):
        self.open_golden("unwound")
        self.press("h")
        self.assertIn("Choose a frame first", self.status(".flameview"))
        self.focus("canvas.flame")
        self.press(DOWN, DOWN, DOWN, DOWN)
        name = self.status(".flameview").split(" \u00b7 ")[0]
        self.press("y")
        self.assertEqual(self.browser.run("return String(getSelection())"), name)
        self.wait_until(f"return document.querySelector('.flameview .status').textContent === {json.dumps(name + ' copied')}")
        self.press("c")
        self.assertIn(quote(name), self.fragment().replace("+", "%20"))
        self.assertIn("around=", self.fragment())
        self.press(UP, ESCAPE)
        self.assertEqual(self.fragment(), "")
        self.focus("canvas.flame")
        self.press(DOWN, DOWN, DOWN, "h")
        self.assertIn("hide=", self.fragment())
        self.back()
        self.focus("canvas.flame")
        self.press(DOWN, DOWN, DOWN)
        for key, shown in (("m", "module="), ("r", "recursion=1"), ("p", "palette=warm"), ("b", "graph=callers")):
            self.press(key)
            self.assertIn(shown, self.fragment())
            pressed = {"r": "Recursion", "b": "Bottom-up"}.get(key)
            if pressed:
                self.assertIn(pressed, self.browser.run("return [...document.querySelectorAll('.flameview [aria-pressed=true]')].map((one) => one.textContent)"))
        self.focus("canvas.flame")
        self.press(DOWN, DOWN, DOWN)
        name = self.status(".flameview").split(" \u00b7 ")[0]
        self.press(ENTER)
        self.assertRegex(self.fragment(), r"zoom=\d+%2C2")
        self.browser.driver.refresh()
        self.wait_until("return document.documentElement.dataset.ready === 'yes'")
        self.focus("canvas.flame")
        self.press(DOWN)
        self.assertTrue(self.status(".flameview").startswith(name), self.status(".flameview"))
        self.press("0")
        self.assertEqual(self.fragment(), "#palette=warm")


    def test_shares_of_frames_that_are_too_thin_are_those_of_script(self):
        self.capture = thin_frames.write(self.folder)
        stacks = thin_frames.stacks_of_script(
            self.tacho("script", "-F", "comm,period,ip,sym", *self.capture, status=None).stdout.decode())
        self.tacho("page", *self.capture, "-o", "page.html", status=None)
        self.open()
        for search, pattern in (("malloc", "malloc"), ("/^(_int_malloc|h7)/", "^(_int_malloc|h7)")):
            self.press("0", "/", search, ENTER)
            share = thin_frames.share_of_matches(stacks, pattern)
            self.assertIn(f" match: {share:.2f} % of the selection", self.browser.run("return document.querySelector('#found').textContent"))
        rows = self.browser.run("return [...document.querySelectorAll('.functions tbody tr')].map((row) => [row.cells[2].textContent, row.cells[1].textContent])")
        self.assertIn(["_int_malloc", f"{thin_frames.share_of_matches(stacks, '^_int_malloc$'):.2f} %"], rows)

    def test_a_time_has_one_place_in_the_timeline(self):
        self.open_golden("threads", fragment="#rows=thread")
        place = lambda selector: self.browser.run("const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.left, box.width]", selector)
        for width in (1280, 390):
            self.browser.size(width)
            self.settle()
            self.settle()
            strip = place("canvas.strip")
            self.assertEqual(strip, place("canvas.bars"), width)
            self.assertEqual(strip, place("canvas.axis"), width)
            selected = []
            for canvas in ("canvas.strip", "canvas.bars"):
                self.pointer(canvas, (0.25, 0.2), (0.4, 0.2), (0.6, 0.2))
                selected.append(re.search(r"time=([\d.]+)%2C([\d.]+)", self.fragment()).groups())
                self.press("0")
            self.assertEqual(*selected)
        self.browser.size(1280)

    def test_values_are_exact(self):
        """Least, largest and percentiles of all values, as sorting them gives; and of numbers from 2^63 on."""
        values = [380 + (i * 7919) % 200_003 for i in range(60_001)]
        values[17], values[59_999] = 2**63 + 2**62, 1
        events = made_payload.capture(True, read=[Field("took", role="value"), Field("shift", kind=made_payload.SIGNED)])
        events.data = bytearray(events.data)
        for value in values:
            events.sample(raw=struct.pack("<Qq", value, -value % 1000 - 500), chain=CHAIN)
        (self.folder / "perf.data").write_bytes(events.file())
        self.tacho("page", "-o", "page.html", status=None)
        self.open("#tab=values&field=took")
        ordered = sorted(values)
        said = self.browser.run("return document.querySelector('.values > p:not(.tools):not(.status)').textContent")
        self.assertIn(f"least 1, median {ordered[30_000]}, 99 % up to {ordered[59_400]}, largest 13835058055282164000", said)
        self.assertTrue(said.startswith("60,001 values: "))

    def test_a_page_opens_with_an_event_that_has_stacks(self):
        """The one with the most samples, and without stacks, is chosen by the user, and says so."""
        recorder = made_payload.capture(True, queued=[Field("wait_ns", unit="ns", role="value")])
        clock = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)
        recorder.events[0].sample_type &= ~made.CALLCHAIN
        capture = made.Capture(*recorder.events, clock, features=recorder.features).started()
        for i in range(50):
            capture.sample(0, raw=struct.pack("<Q", i))
        for _ in range(30):
            capture.sample(1, chain=CHAIN)
        (self.folder / "perf.data").write_bytes(capture.file())
        self.tacho("page", "-o", "page.html", status=None)
        self.open()
        shown = lambda: self.browser.run("const box = document.querySelector('#event'); return [box.selectedOptions[0].textContent, document.querySelector('.without').innerText]")
        self.assertEqual(shown(), ["cpu-clock", ""])
        self.open("#event=queued")
        self.assertEqual(shown()[0], "queued")
        self.assertIn("queued was recorded without stacks", shown()[1])

    def test_a_time_dragged_in_the_timeline_drives_everything(self):
        self.open_golden("threads")
        everything = self.samples()
        self.pointer("canvas.strip", (0.25, 0.3), (0.4, 0.3), (0.6, 0.3))
        first, last = re.search(r"time=([\d.]+)%2C([\d.]+)", self.fragment()).groups()
        right = self.folded("--time", f"{first},{last}")
        self.assertEqual(self.shown_folded(), right)
        self.assertLess(self.samples(), everything)
        self.assertIn(f"{self.samples()} samples selected", self.status(".timeline"))
        rows = self.browser.run("return [...document.querySelectorAll('.functions tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        leaves = collections.Counter()
        for stack, weight in right.items():
            leaves[stack[-1]] += weight
        name, weight = leaves.most_common(1)[0]
        self.assertEqual(rows[0][0], f"{100 * weight / sum(right.values()):.2f} %")
        self.press("3")
        self.assertIn(f"{self.samples()} samples", self.status(".events"))
        self.press("0")
        self.assertEqual(self.samples(), everything)

    def test_rows_of_the_timeline_select_threads_and_processes(self):
        self.open_golden("threads", fragment="#rows=thread")
        labels = self.browser.run("return [...document.querySelectorAll('.label')].map((label) => label.textContent)")
        self.assertEqual(len(labels), 5)
        self.click(".label:nth-child(2)")
        tid = labels[1].split()[-1]
        self.assertIn(f"tid={tid}", self.fragment())
        self.assertEqual(self.shown_folded(), self.folded(f"--tid={tid}"))
        self.assertEqual(self.browser.run("return document.querySelector('.label:nth-child(2)').getAttribute('aria-pressed')"), "true")
        self.click(".label:nth-child(1)")
        other = labels[0].split()[-1]
        self.assertEqual(self.shown_folded(), self.folded(f"--tid={tid},{other}"))
        self.back()
        self.assertEqual(self.shown_folded(), self.folded(f"--tid={tid}"))
        self.browser.run("const rows = document.querySelector('.timeline select'); rows.value = 'process'; rows.dispatchEvent(new Event('change'))")
        self.settle()
        self.assertIn("rows=process", self.fragment())

    def test_zoom_history_and_reload(self):
        self.open_golden("unwound")
        before = self.frames()
        size = self.browser.run("const canvas = document.querySelector('canvas.flame'); return [canvas.clientWidth, canvas.clientHeight]")
        x, y, width = min((frame for frame in before if 100 < frame[2] < 0.9 * size[0]), key=lambda frame: frame[1])
        self.pointer("canvas.flame", ((x + width / 2) / size[0], (y + 9) / size[1]))
        self.assertIn("zoom=", self.fragment())
        zoomed = self.frames()
        self.assertNotEqual(zoomed, before)
        self.assertEqual(sum(1 for frame in zoomed if abs(frame[2] - size[0]) < 0.1 and frame[1] <= y), y / 18 + 1)
        self.back()
        self.assertEqual(self.frames(), before)
        self.back("forward")
        self.assertEqual(self.frames(), zoomed)
        self.browser.driver.refresh()
        self.wait_until("return document.documentElement.dataset.ready === 'yes'")
        self.assertEqual(self.frames(), zoomed)
        self.focus("canvas.flame")
        self.press(*[ESCAPE] * int(y / 18))
        self.assertEqual(self.frames(), before)

    def test_keys_walk_through_the_frames(self):
        self.open_golden("threads")
        self.focus("canvas.flame")
        self.press(DOWN)
        self.assertTrue(self.status(".flameview").startswith("all"), self.status(".flameview"))
        self.press(DOWN)
        name = self.status(".flameview").split(" \u00b7 ")[0]
        self.assertIn(name, {stack[0] for stack in self.folded()})
        self.assertRegex(self.status(".flameview"), r"total [\d.,]+ ms: \d+\.\d\d % of the selection")
        self.press(RIGHT)
        self.assertNotEqual(self.status(".flameview").split(" \u00b7 ")[0], "")
        self.press(LEFT, ENTER)
        self.assertIn("zoom=", self.fragment())
        self.press(UP, "?")
        self.assertTrue(self.browser.run("return document.querySelector('#help').open"))
        self.press(ESCAPE)
        self.assertFalse(self.browser.run("return document.querySelector('#help').open"))

    def test_keys_select_a_time(self):
        self.open_golden("threads")
        everything = self.samples()
        self.focus("canvas.strip")
        self.press(RIGHT, RIGHT, RIGHT)
        ActionChains(self.browser.driver, duration=0).key_down(SHIFT).send_keys(RIGHT * 3).key_up(SHIFT).perform()
        self.settle()
        self.settle()
        self.assertIn("time=", self.fragment())
        self.assertLess(self.samples(), everything)
        self.press(ENTER)
        self.assertIn("view=", self.fragment())
        self.press(ESCAPE)
        self.assertEqual(self.samples(), everything)

    def search(self, text):
        self.press("/")
        self.browser.run("document.querySelector('#search').value = ''")
        self.press(text, ENTER)
        return self.browser.run("return document.querySelector('#found').textContent")

    def test_search_says_the_share_once(self):
        self.open_golden("unwound")
        stacks = self.folded()
        total = sum(stacks.values())
        name = collections.Counter(frame for stack in stacks for frame in stack[1:] if len(frame) > 3).most_common(1)[0][0]
        for text, test in ((name, lambda frame: name.lower() in frame.lower()), (name.upper(), lambda frame: name.lower() in frame.lower()),
                           (f"/^{re.escape(name)}$/", lambda frame: frame == name), ("/NOSUCH/", lambda frame: False)):
            weight = sum(weight for stack, weight in stacks.items() if any(map(test, stack)))
            self.assertIn(f"{100 * weight / total:.2f} % of the selection", self.search(text), text)
        self.assertIn("not a regular expression", self.search("/(/"))
        self.search(name)
        rows = self.browser.run("return [...document.querySelectorAll('.functions td.name')].map((cell) => cell.textContent)")
        self.assertTrue(rows and all(name.lower() in row.lower() for row in rows), rows)
        self.press("0")
        self.assertEqual(self.browser.run("return document.querySelector('#found').textContent"), "")

    def test_the_first_screen_has_timeline_and_stacks(self):
        self.open_golden("unwound")
        box = lambda selector: self.browser.run("const {top, bottom} = document.querySelector(arguments[0]).getBoundingClientRect(); return [top, bottom]", selector)
        self.assertGreater(box("canvas.strip")[0], 0)
        self.assertLess(box("canvas.flame")[0], 400)
        self.assertFalse(self.browser.run("return document.querySelector('.overview details').open"))
        gist = self.browser.run("return document.querySelector('.overview summary').innerText")
        self.assertIn(f"{self.samples()} samples of 1 event", gist)
        self.browser.run("scrollTo(0, 1000)")
        self.settle()
        self.assertLess(abs(box("#search")[0]), 20, "the search stays in sight")

    def test_a_search_is_seen_while_it_is_typed(self):
        self.open_golden("unwound")
        name = self.browser.run("return document.querySelector('.functions td.name button').textContent")
        look = lambda: self.browser.driver.find_element(By.CSS_SELECTOR, "canvas.flame").screenshot_as_png
        before, length = look(), self.browser.run("return history.length")
        self.press("/", *name)
        self.assertIn("of the selection", self.browser.run("return document.querySelector('#found').textContent"))
        self.assertNotEqual(look(), before, "what does not match is pale")
        self.assertEqual(self.browser.run("return history.length"), length)
        self.press(ENTER)
        self.assertIn("search=", self.fragment())
        self.assertEqual(self.browser.run("return document.activeElement.localName"), "body")
        self.press("n")
        self.assertIn(name, self.status(".flameview"))

    def test_a_function_of_the_table_selects_its_stacks(self):
        self.open_golden("unwound")
        name = self.browser.run("return document.querySelector('.functions td.name button').textContent")
        self.click(".functions td.name button")
        right = {stack: weight for stack, weight in self.folded().items() if name in stack}
        self.assertEqual(self.shown_folded(), right)
        self.back()
        self.assertEqual(self.shown_folded(), self.folded())

    def test_a_box_of_the_heat_map_selects_values(self):
        self.open_payloads(["a", "b", "c"])
        self.press("2")
        cells = self.browser.run("const {counts} = document.querySelector('canvas.heat').cells; return counts.reduce((a, b) => a + b, 0)")
        self.assertEqual(cells, 60)
        rows = self.browser.run("return [...document.querySelectorAll('.distribution tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual([int(row[2]) for row in rows], [9, 9, 9, 9, 8, 8, 8])
        self.assertEqual(rows[0][0], "1 KiB")
        self.click(".distribution tbody tr:nth-child(3) button")
        self.assertEqual(self.samples(), 9)
        self.back()
        self.pointer("canvas.heat", (0.01, 0.02), (0.3, 0.3), (0.995, 0.6))
        self.assertIn("low=", self.fragment())
        box = self.samples()
        self.assertTrue(0 < box < 60, box)
        self.press("3")
        self.assertIn(f"{box} samples", self.status(".events"))
        self.press("2")
        self.focus("canvas.heat")
        self.press(ESCAPE, "0", LEFT)

    def test_a_box_is_explained_as_heatmap_explains_it(self):
        """By threads, functions and fields with the same counts and the same G2; ranges of numbers are heatmap's alone."""
        fields = [Field("took", unit="ns", role="value"), Field("kind", size=4), Field("pad", size=4)]
        events = made_payload.capture(True, io=fields).named("reader", 101).named("writer", 103)
        for i in range(400):
            is_slow = i % 10 == 3
            events.sample(raw=struct.pack("<QII", 5_000_000 + i if is_slow else 1000 + i * 7, i % 3 + is_slow, 0), tid=103 if is_slow else 101,
                          chain=[CHAIN[0], made.LEAF_B + 4 if is_slow else CHAIN[1], CHAIN[2]])
        (self.folder / "perf.data").write_bytes(events.file())
        box = json.loads(self.tacho("heatmap", "--json", "--box", "..,4000000..6000000", "--field", "took", *SYMBOLS, status=None).stdout)
        self.tacho("page", "-o", "page.html", *SYMBOLS, status=None)
        self.open("#tab=values&field=took&low=4000000&high=6000000")
        self.assertEqual(self.samples(), 40)
        rows = self.browser.run("return [...document.querySelectorAll('.frequent tbody tr')].map((row) => [row.cells[0].textContent, row.cells[3].textContent])")
        wanted = {(f"{row['g2']:.1f}", row["kind"], row["name"]) for row in box["rows"] if row["kind"] != "stack"}
        self.assertEqual({what.split(' ')[0] for _, what in rows} & {'thread', 'function'}, {'thread', 'function'}, rows)
        self.assertIn('took 4 ms to 6 ms', self.selection())
        for g2, what in rows:
            self.assertTrue(any(g2 == one and name in what for one, _, name in wanted), (g2, what, wanted))
        self.assertIn("360 outside", self.browser.run("return document.querySelector('.beside p').textContent"))
        points = self.browser.run("return document.querySelector('canvas.heat').cells.points.length")
        self.assertEqual(points, 400, "few samples in sight are single values")

    def test_keys_choose_boxes_of_the_heat_map(self):
        self.open_payloads(["a", "b", "c"])
        self.press("2")
        self.focus("canvas.heat")
        self.press("n", "n")
        ActionChains(self.browser.driver, duration=0).key_down(SHIFT).send_keys(RIGHT * 12 + UP * 12).key_up(SHIFT).perform()
        self.settle()
        chosen = int(re.match(r"(\d+) samples, \d+\.\d\d % of all", self.status(".values"))[1])
        self.assertGreater(chosen, 1)
        self.press(ENTER)
        self.assertEqual(self.samples(), chosen)
        self.press(ESCAPE)
        self.assertEqual(self.status(".values"), "")

    def test_folded_text_is_copied(self):
        self.open_golden("threads")
        self.browser.driver.find_element(By.XPATH, "//button[text()='Folded text']").click()
        self.browser.driver.find_element(By.XPATH, "//button[text()='Copy']").click()
        length, chosen, said = self.browser.run("""const box = document.querySelector('#folded textarea');
            return [box.value.length, box.selectionEnd - box.selectionStart, document.querySelector('#folded button').textContent]""")
        self.assertEqual((chosen, said), (length, "Copied"))
        self.press(ESCAPE)

    def test_weights_in_samples_are_offered_once(self):
        self.open_golden("threads")
        is_hidden = "return document.querySelector('#by').hidden"
        self.assertFalse(self.browser.run(is_hidden))
        events = made_payload.capture(True, read=[Field("count")])
        for i in range(20):
            events.sample(raw=struct.pack("<Q", i), chain=CHAIN, period=1)
        (self.folder / "perf.data").write_bytes(events.file())
        self.tacho("page", "-o", "page.html", status=None)
        self.open()
        self.assertTrue(self.browser.run(is_hidden))

    def test_samples_are_shown_with_payload_and_stack(self):
        self.open_payloads(["a", "b", "needle"])
        self.press("3")
        self.focus("[role=listbox]")
        self.press(ENTER, DOWN, DOWN)
        details = self.browser.run("return document.querySelector('.details').innerText")
        self.assertIn("Sample 3 of 60", details)
        self.assertIn("4 KiB", details)
        self.assertIn("needle", details)
        self.assertIn("[spin]", details)
        self.search("needle")
        self.assertIn("20 samples match the search", self.status(".events"))

    def test_names_stay_text(self):
        self.open_payloads()
        shown = self.browser.run("return [...document.querySelectorAll('.functions td.name, .functions td.module')].map((cell) => cell.textContent)")
        for name in (NAMES[0], NAMES[3], "constructor", "__proto__", "right\\xe2\\x80\\xaeleft \u05d0\u05d1",
                     "bell\\x07 \U0001f525\U0001f468\u200d\U0001f680", NAMES[7]):
            self.assertTrue(any(name in cell for cell in shown), (name, shown))
        for tab in "123":
            self.press(tab)
        for selector in (".label:nth-child(2)", ".functions td.name button", ".event"):
            self.browser.run("document.querySelector(arguments[0])?.click()", selector)
            self.settle()
        for kind in ("thread", "process", "cpu"):
            self.browser.run("const rows = document.querySelector('.timeline select'); rows.value = arguments[0]; rows.dispatchEvent(new Event('change'))", kind)
            self.settle()
        self.press("0")
        self.search("onerror=")
        self.search("__proto__")
        self.assertIsNone(self.browser.run("return window.hit === undefined ? null : window.hit"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, b, script.data').length"), 0)
        for width in (390, 1280):
            self.browser.size(width)
            for tab in "231":
                self.press(tab)
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width, tab)
        hostile = "#function=" + "%3Cimg%20src=x%20onerror=window.hit=1%3E&time=a,b&zoom=-1&cpu=x&low=1e999&high=NaN&tab=__proto__&rows=constructor&event=%3Cb%3E"
        self.open(hostile)
        self.assertIsNone(self.browser.run("return window.hit === undefined ? null : window.hit"))
        self.assertEqual(self.samples(), 0)
        for graph in ("&graph=callers&zoom=1,1000000000", "&around=%3Cimg%20src=x%20onerror=window.hit=1%3E&zoom=2,-1", "&around=__proto__&graph=x"):
            self.open("#hide=%3Cb%3E&hide=constructor&module=__proto__&palette=constructor&recursion=1" + graph)
            self.assertIsNone(self.browser.run("return window.hit === undefined ? null : window.hit"))
            self.assertEqual(self.samples(), 60)
        self.press(*"hcmrbfps")
        self.open("#around=" + quote(NAMES[0]))
        self.assertIn(NAMES[0], self.browser.run("return document.querySelector('.changes').textContent"))
        self.assertGreater(self.browser.run("return document.querySelectorAll('.panel.stacks canvas.flame')[1].drawn.length"), 1)
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, b').length"), 0)

    def test_a_capture_without_samples_says_so(self):
        (self.folder / "perf.data").write_bytes(made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started().file())
        self.tacho("page", "-o", "page.html", status=None)
        self.open()
        self.press("2", "3", "1", "0")
        self.assertEqual(self.samples(), 0)

    def test_a_comparison(self):
        self.open_golden("comm", "--base", GOLDEN / "captures/threads.data")
        self.assertIn("before:", self.selection())
        heads = self.browser.run("return [...document.querySelectorAll('.functions th')].map((head) => head.textContent)")
        self.assertEqual(heads, ["Self", "Total", "Before", "Change", "Function", "Module"])
        self.focus("canvas.flame")
        self.press(DOWN, DOWN)
        self.assertRegex(self.status(".flameview"), r"before [\d.]+ %, after [\d.]+ %: [+\u2212][\d.]+ points")
        self.assertEqual(self.browser.run("return document.querySelector('.flameview select').value"), "after")
        self.browser.run("const side = document.querySelector('.flameview select'); side.value = 'before'; side.dispatchEvent(new Event('change'))")
        self.settle()
        before = folded_lines(self.tacho("folded", "-i", GOLDEN / "captures/threads.data", *SYMBOLS, status=None).stdout.decode())
        threads = collections.Counter()
        for stack, weight in before.items():
            threads[stack[0]] += weight
        wide = self.browser.run("return document.querySelector('canvas.flame').clientWidth")
        shown = sorted(width for _, y, width in self.frames() if y == 18)
        for width, weight in zip(shown, sorted(threads.values()), strict=True):
            self.assertAlmostEqual(width, wide * weight / sum(threads.values()), delta=0.01)
        self.back()
        self.browser.run("[...document.querySelectorAll('.functions th button')].find((one) => one.textContent === 'Total').click()")
        self.settle()
        self.assertIn("sort=total", self.fragment())
        self.back()
        changes = self.browser.run("return [...document.querySelectorAll('.functions tbody tr')].map((row) => row.cells[3].textContent)")
        sizes = [abs(float(change.replace("\u2212", "-"))) for change in changes]
        self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_dark_and_light(self):
        self.open_golden("threads")
        def look():
            pictures = [self.browser.driver.find_element(By.CSS_SELECTOR, f"canvas.{name}").screenshot_as_png for name in ("flame", "strip", "bars")]
            return self.browser.run("const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]") + pictures

        looks = {}
        for scheme in ("light", "dark", "light"):
            self.browser.prefers(scheme)
            self.settle()
            self.settle()
            looks[scheme] = look()
        self.assertTrue(all(a != b for a, b in zip(looks["light"], looks["dark"])))

    def test_words_stand_out_from_their_ground(self):
        """All text has a contrast of at least 4.5 by the formula of WCAG, dark and light."""
        self.open_golden("unwound")
        for scheme in ("light", "dark"):
            self.browser.prefers(scheme)
            self.settle()
            pairs = self.browser.run("""const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue('--' + name).trim();
                return [['ink', 'paper'], ['muted', 'paper'], ['ink', 'box'], ['muted', 'box'], ['ink', 'on'], ['ink', 'selected'], ['match-ink', 'match'],
                        ['more', 'paper'], ['less', 'paper']].map((pair) => pair.map(of));""")
            for ink, paper in pairs:
                bright, dim = sorted((luminance(ink), luminance(paper)), reverse=True)
                self.assertGreaterEqual((bright + 0.05) / (dim + 0.05), 4.5, f"{scheme}: {ink} on {paper}")
        self.browser.prefers("light")

    def test_a_narrow_window_has_everything(self):
        self.browser.size(390)
        self.addCleanup(self.browser.size, 1280)
        self.open_golden("unwound")
        for tab in "123":
            self.press(tab)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.press("1")
        self.assertLessEqual(max(x + width for x, _, width in self.frames()), 370)
        self.browser.size(1280)
        self.settle()
        self.settle()
        self.assertGreater(max(width for _, _, width in self.frames()), 400)

    def test_on_paper_everything_is_there(self):
        self.open_golden("unwound")
        self.browser.prefers("dark")
        self.addCleanup(self.browser.prefers, "light")
        self.browser.run("""window.looks = [];
            const look = () => { const box = document.querySelector('.flamebox'), [root] = document.querySelector('canvas.flame').drawn;
              looks.push([getComputedStyle(document.body).backgroundColor, box.clientHeight === box.scrollHeight, root[3],
                          getComputedStyle(document.querySelector('header')).position]); };
            for (const type of ['beforeprint', 'afterprint']) addEventListener(type, look);""")
        before = len(self.frames())
        self.assertTrue(self.browser.printed().startswith(b"%PDF"))
        paper, screen = self.browser.run("return looks")
        self.assertEqual(paper[0], "rgb(255, 255, 255)", "light")
        self.assertTrue(paper[1], "the flame graph is whole")
        self.assertLessEqual(paper[2], 700)
        self.assertEqual(paper[3], "static")
        self.assertEqual((screen[0], screen[3]), ("rgb(22, 22, 22)", "sticky"))
        self.assertEqual(len(self.frames()), before)

    def test_a_tap_says_what_is_there_and_a_second_one_zooms(self):
        self.browser.telephone()
        self.addCleanup(self.browser.no_telephone)
        self.open_golden("unwound")
        self.browser.run("document.querySelector('canvas.flame').scrollIntoView({block: 'center'})")
        self.settle()
        x, y = self.browser.run("const box = document.querySelector('canvas.flame').getBoundingClientRect(); return [box.x + 20, box.y + 18 * 2 + 9]")
        self.browser.tap(x, y)
        self.settle()
        self.assertFalse(self.browser.run("return document.querySelector('.tip').hidden"))
        self.assertIn("of the selection", self.browser.run("return document.querySelector('.tip').textContent"))
        self.assertEqual(self.fragment(), "")
        self.browser.tap(x, y)
        self.settle()
        self.settle()
        self.assertIn("zoom=", self.fragment())

    def test_code_scrolls_in_itself_on_a_telephone(self):
        """Also below a name without blanks: what is wider than the screen makes all of the page smaller."""
        self.browser.telephone()
        self.addCleanup(self.browser.no_telephone)
        self.open_golden("unwound", "--source")
        name = self.browser.run("return document.querySelector('.functions tbody .name').textContent")
        self.open("#code=" + quote(name))
        self.assertLess(390, self.browser.run("return document.querySelector('.codeview .scroll').scrollWidth"))
        self.open("#code=" + quote("std::" + 100 * "basic_string"))
        self.assertIn("no code of this function", self.browser.run("return document.querySelector('.codeview').textContent"))
        self.assertTrue(self.browser.run("return document.querySelector('.codeview .scroll').hidden"))
        for fragment in (quote(name), quote("std::" + 100 * "basic_string")):
            self.open("#code=" + fragment)
            self.assertEqual(self.browser.run("return [document.documentElement.scrollWidth, innerWidth]"), [390, 390])
            self.assertLess(self.browser.run("return document.querySelector('.codename').clientHeight"), 90)

    def test_the_table_is_one_stop_of_the_tab_key(self):
        self.open_golden("unwound")
        stops = self.browser.run("return [...document.querySelectorAll('.functions tbody button')].map((one) => one.tabIndex)")
        self.assertGreater(len(stops), 3)
        self.assertEqual(sorted(stops), [-1] * (len(stops) - 1) + [0])
        self.focus(".functions tbody button[tabindex='0']")
        focused = lambda: self.browser.run("const cell = document.activeElement; return [cell.closest('tr').rowIndex, cell.textContent]")
        self.press(DOWN, DOWN)
        self.assertEqual(focused()[0], 3)
        name = focused()[1]
        self.press("c")
        self.assertEqual(self.fragment(), "#" + self.browser.run("return new URLSearchParams({around: arguments[0]}).toString()", name))
        self.assertEqual(focused()[1], name, "the focus stays")
        self.press("\ue011")  # Home
        self.assertEqual(focused()[0], 1)

    def test_a_stack_of_hundred_thousand_frames_loads(self):
        self.open_golden("threads")
        (self.folder / "page.html").write_text(deep_page((self.folder / "page.html").read_text(), 100_000))
        self.open()
        self.assertEqual(self.samples(), 1)
        self.focus("canvas.flame")
        self.press(DOWN, DOWN, DOWN)
        self.assertTrue(self.status(".flameview").startswith("f0"))
        self.browser.run("document.querySelector('.flamebox').scrollTop = 1e9")
        self.settle()
        self.assertGreater(len(self.frames()), 5)
        rows = self.browser.run("return [...document.querySelectorAll('.functions tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(rows[0][:2], ["100.00 %", "100.00 %"], "recursive calls count once")
        self.click(".functions td.name button")

    def cpu_milliseconds(self):
        """CPU time of scripts in the page's main thread, which does not depend on the machine's load."""
        metrics = self.browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return 1000 * next(metric["value"] for metric in metrics if metric["name"] == "ScriptDuration")

    def test_a_selection_of_many_samples_takes_less_than_a_tenth_of_a_second(self):
        self.open_golden("threads")
        (self.folder / "page.html").write_text(wide_page((self.folder / "page.html").read_text(), 300_000))
        self.browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        self.open()
        self.assertEqual(self.samples(), 300_000)
        for fragment, count in (("#time=0.1,0.2", 100_001), ("#cpu=1", 150_000), ("#rows=thread&tid=1", 3000), ("#rows=process", 300_000),
                                ("#function=function+7", 1500), ("#search=function", 300_000), ("#tab=values", 300_000), ("#tab=events", 300_000)):
            before = self.cpu_milliseconds()
            self.browser.run("location.hash = arguments[0]", fragment)
            self.settle()
            self.settle()
            self.assertLess(self.cpu_milliseconds() - before, 100, fragment)
            self.assertEqual(self.samples(), count, fragment)


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


if __name__ == "__main__":
    programs.main()
