#!/usr/bin/env python3
"""The flame graph in a browser: zoom, search, keys, history, filters, dark and light; names stay text; no network."""
import re
import struct

import browser
import made_capture
import made_payload
import programs
import thin_frames

if browser.webdriver:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.action_builder import ActionBuilder
ALT = "\ue00a"

TEXT = """app;main;parse;read_[k] 100
app;main;parse;rec;rec;rec;leaf 200
app;main;parse;rec;other 100
app;main;draw;read_[k] 150
app;main;draw;blit 250
app;main;draw;</script><img src=x onerror=alert(1)> 200
"""
TOTAL = 1000


@browser.needs_browser
class FlameGraphInABrowser(browser.PageTest, programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.draw(TEXT)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.requests(), [])

    def draw(self, text, *words):
        (self.folder / "a.folded").write_text(text)
        self.tacho("flamegraph", "--folded", "a.folded", "-o", "a.svg", *words)
        self.browser.open(self.folder / "a.svg")

    # What the browser shows.

    def shown(self):
        """{label: (x, width)} of the widest frame with each label."""
        return self.browser.run("""
            const names = document.querySelector('metadata.names').textContent.split('\\n').map((n) => n.split(' ').slice(2).join(' '));
            const found = {};
            for (const text of document.querySelectorAll('g.labels text'))
              if (!text.hasAttribute('display')) found[text.textContent] = +text.getAttribute('x') - 3;
            return found;""")

    def rects(self):
        return self.browser.run("""return [...document.querySelectorAll('g.frames rect')]
            .filter((r) => !r.hasAttribute('display'))
            .map((r) => [+r.getAttribute('x'), +r.getAttribute('y'), +r.getAttribute('width'), r.getAttribute('class')]);""")

    def click(self, label, alt=False):
        """Clicks at the frame below a label with real pointer events."""
        x, y = self.browser.run("""for (const text of document.querySelectorAll('g.labels text'))
            if (!text.hasAttribute('display') && text.textContent === arguments[0]) {
              const box = text.getBoundingClientRect();
              return [box.x + 1, box.y + box.height / 2];
            }
            return [0, 0];""", label)
        self.assertGreater(x, 0, label)
        actions = ActionBuilder(self.browser.driver, duration=0)
        if alt:
            actions.key_action.key_down(ALT)
        actions.pointer_action.move_to_location(int(x), int(y)).click()
        if alt:
            actions.key_action.pause(); actions.key_action.pause(); actions.key_action.pause()
            actions.key_action.key_up(ALT)
        actions.perform()
        self.settle()

    def said(self):
        return self.browser.run("return [document.querySelector('.found').textContent, document.querySelector('#foot').textContent];")

    # Tests.

    def test_zoom_history_and_reload(self):
        before = self.rects()
        self.assertEqual(len(before), 14)
        self.click("draw")
        self.assertTrue(self.browser.run("return document.querySelector('#tip').hidden"), "another frame is there now")
        zoomed = self.rects()
        wide = 1280 - 20
        self.assertEqual(sum(1 for x, y, width, kind in zoomed if abs(width - wide) < 0.1), 4, "all, app, main and draw")
        self.assertIn("zoom=", self.fragment())
        self.assertAlmostEqual(max(w for _, _, w, _ in zoomed if w < wide - 1), wide * 250 / 600, delta=0.2)
        self.click("blit")
        self.back()
        self.assertEqual(self.rects(), zoomed)
        self.back()
        self.assertEqual(self.rects(), before)
        self.browser.run("history.forward()")
        self.settle()
        self.settle()
        self.assertEqual(self.rects(), zoomed)
        self.browser.driver.refresh()
        self.assertEqual(self.rects(), zoomed)
        self.press("0")
        self.assertEqual(self.rects(), before)

    def test_search_tells_the_share_once(self):
        for text, share in (("rec", "30.00 %"), ("REC", "30.00 %"), ("/^(rec|blit)$/", "55.00 %"), ("/^REC$/i", "30.00 %"),
                            ("/^REC$/", "0.00 %"), ("read", "25.00 %"), ("onerror=", "20.00 %")):
            self.press("/")
            self.browser.run("document.querySelector('.search').value = ''")
            self.press(text, "\ue007")
            self.assertIn(f"{share} of all", self.said()[0], text)
        self.press("/")
        self.browser.run("document.querySelector('.search').value = ''")
        self.press("/(/", "\ue007")
        self.assertIn("not a regular expression", self.said()[0])
        self.press("\ue00c")
        self.assertEqual(self.said()[0], "")

    def test_the_share_of_the_view_is_shown_too(self):
        self.click("parse")
        self.press("/", "rec", "\ue007")
        self.assertIn("30.00 % of all, 75.00 % of the view", self.said()[0])
        self.press("n")
        self.assertIn("rec", self.said()[1])
        first = self.said()[1]
        self.press("n")
        self.assertNotEqual(self.said()[1], first)
        self.press("N")
        self.assertEqual(self.said()[1], first)

    def test_the_cursor_leaves_a_thin_frame_in_sight(self):
        self.draw("a;b 100000\na;c 130\n")
        self.press("/", "c", "\ue007", "n")
        cursor, frame = self.browser.run("""const box = (one) => { const {left, right} = one.getBoundingClientRect(); return [left, right]; };
            return [box(document.querySelector('.cursor')), box(document.querySelector('g.frames rect.match'))]""")
        self.assertLess(frame[1] - frame[0], 2)
        self.assertLessEqual(cursor[0], frame[0] - 2)
        self.assertGreaterEqual(cursor[1], frame[1] + 2)
        self.browser.run("scrollTo(0, 1e9)")
        self.assertEqual(self.browser.run("return scrollY % 1"), 0)

    def test_keys_walk_through_the_frames(self):
        self.press("\ue015")  # the first arrow key selects the root
        self.assertIn("all", self.said()[1])
        for name in ("app", "main", "draw", "blit"):
            self.press("\ue013")
            self.assertTrue(self.said()[1].startswith(name), self.said())
        self.assertIn("total 250: 25.00 % of all, 41.67 % of its caller", self.said()[1])
        cursor = self.browser.run("const c = document.querySelector('rect.cursor'); return c.hasAttribute('display') ? 0 : +c.getAttribute('width');")
        self.assertAlmostEqual(cursor, 1260 * 0.25, delta=0.2)
        self.press("\ue012")
        self.assertIn("img src", self.said()[1])
        self.press("\ue015", "\ue007")
        self.assertIn("zoom=", self.fragment())
        self.press("\ue00c")
        self.assertTrue(self.said()[1])
        self.press("?")
        self.assertTrue(self.browser.run("return !document.querySelector('#help').hidden"))
        self.press("\ue00c")
        self.assertTrue(self.browser.run("return document.querySelector('#help').hidden"))

    def test_filters(self):
        self.press("/", "rec", "\ue007")
        self.press("n", "f")
        labels = self.shown()
        self.assertIn("other", labels)
        self.assertNotIn("main", labels)
        self.press("u")
        self.assertIn("main", self.shown())
        self.press("r")
        self.assertEqual(sum(1 for *_, kind in self.rects() if "match" in kind), 1, "three rec are one")
        self.press("r")
        self.press("0")
        self.click("draw", alt=True)
        self.assertNotIn("draw", self.shown())
        self.assertIn("blit", self.shown())
        self.back()
        self.assertIn("draw", self.shown())

    def labels(self):
        """[graph, name, percent of its width] of labels in sight, from the top."""
        return self.browser.run("""return [...document.querySelectorAll('g.pane:not([display])')].flatMap((pane) => {
              const rects = [...pane.querySelectorAll('.frames rect:not([display])')], heading = pane.querySelector('.heading').textContent;
              return [...pane.querySelectorAll('.labels text:not([display])')].map((text) => {
                const x = +text.getAttribute('x') - 3, y = +text.getAttribute('y') - 12, {top} = text.getBoundingClientRect();
                const rect = rects.find((one) => Math.abs(+one.getAttribute('x') - x) < 0.2 && +one.getAttribute('y') === y);
                return [heading, text.textContent, Math.round(100 * rect.getAttribute('width') / (innerWidth - 20)), top];
              });
            }).sort((a, b) => a[3] - b[3] || (a[1] < b[1] ? -1 : 1)).map((label) => label.slice(0, 3));""")

    def test_bottom_up_the_callers_of_each_function_are_above_it(self):
        self.press("b")
        self.assertIn("graph=callers", self.fragment())
        labels = self.labels()
        self.assertEqual(labels[-1], ["", "all", 100])
        leaves = {name: width for _, name, width in labels[-6:-1]}
        self.assertEqual(leaves, {"read": 25, "leaf": 20, "other": 10, "blit": 25, "</script><img src=x onerror=alert(1)>": 20})
        self.click("blit")
        self.assertEqual([label[1:] for label in self.labels()], [[name, 100] for name in ("app", "main", "draw", "blit", "all")])
        self.browser.driver.refresh()
        self.assertEqual(self.labels()[-2][1:], ["blit", 100])
        self.press("/", "rec", "\ue007")
        self.assertIn("30.00 % of all", self.said()[0])
        self.press("\ue00c", "\ue00c")
        self.assertEqual(self.fragment(), "#graph=callers")
        self.press("b")
        self.assertEqual(self.fragment(), "")

    def test_callers_and_callees_of_a_function(self):
        self.press("c")
        self.assertEqual(self.fragment(), "", "no frame is selected")
        self.press("/", "/^rec$/", "\ue007", "n", "c", "/")
        self.assertIn("around=rec", self.fragment())
        callees = [label[1:] for label in self.labels() if label[0] == "Callees of rec"]
        callers = [label[1:] for label in self.labels() if label[0] == "Callers of rec"]
        self.assertEqual(sorted(callees), sorted([["rec", 100], ["rec", 67], ["rec", 67], ["leaf", 67], ["other", 33]]))
        self.assertEqual(callers, [["rec", 100], ["parse", 100], ["main", 100], ["app", 100]])
        self.assertEqual(self.labels()[len(callees)][0], "Callers of rec", "they are below")
        self.press("\ue00c")
        self.click("other")
        self.assertIn("around=other", self.fragment())
        self.press("\ue015")
        self.assertTrue(self.said()[1].startswith("other"), "from the callees to the callers")
        self.press("\ue015")
        self.assertTrue(self.said()[1].startswith("rec"), self.said()[1])
        self.assertIn("total 100: 10.00 % of all", self.said()[1])
        self.press("i")
        self.assertEqual([label[1] for label in self.labels() if label[0] == "Callers of other"], ["app", "main", "parse", "rec", "other"])
        self.press("\ue00c")
        self.assertNotIn("around", self.fragment())

    def test_addresses_of_places_that_are_not_there_show_everything(self):
        for fragment in ("#zoom=-1", "#zoom=99999", "#zoom=length", "#graph=callers&zoom=-1%2B4", "#graph=callers&zoom=3%2B99", "#graph=callers&zoom=x",
                         "#around=nothing", "#graph=callers&zoom=7"):
            self.browser.open(self.folder / "a.svg", fragment)
            self.assertGreaterEqual(len(self.labels()), 1, fragment)

    def test_buttons_do_what_keys_do(self):
        def press(text):
            for button in self.browser.driver.find_elements("css selector", ".tools button"):
                if button.text == text:
                    button.click()
                    return self.settle()
            self.fail(text)
        for button, key in (("Focus", "f"), ("Hide", "h"), ("Recursion", "r"), ("Module", "m"), ("Callers", "c"), ("Bottom-up", "b"), ("Flip", "i"), ("?", "?")):
            pictures = []
            for act in (lambda: press(button), lambda: self.press(key)):
                self.draw(TEXT)
                self.press("/", "parse", "\ue007", "n")
                act()
                help_is_shown = self.browser.run("return !document.querySelector('#help').hidden")
                pictures.append((self.rects(), self.fragment(), help_is_shown))
            self.assertEqual(*pictures, button)
        self.press("?", "f")
        press("Reset")
        self.assertEqual(self.fragment(), "")

    def test_icicle_and_palettes(self):
        y = {kind: y for _, y, _, kind in self.rects()}
        self.press("i")
        turned = {kind: y for _, y, _, kind in self.rects()}
        self.assertNotEqual(y, turned)
        self.assertEqual(min(y for _, y, _, _ in self.rects() if y == turned["a0"]), 0)
        self.press("p")
        self.assertIn("palette=warm", self.fragment())
        fill = lambda: self.browser.run("return getComputedStyle(document.querySelector('g.frames rect:nth-child(3)')).fill")
        warm = fill()
        self.press("p")
        self.assertNotEqual(fill(), warm)

    def test_the_script_gives_frames_the_colours_of_the_file(self):
        (self.folder / "before.folded").write_text("app;main;parse;r\u00e9c 1\napp;main;draw;blit 9\n" + TEXT)
        for words in ((), ("--palette", "module"), ("--palette", "wait"), ("--base", "before.folded")):
            self.draw(TEXT + "app;r\u00e9c;\u540d 50\n", *words)
            static = re.findall(r'<rect x="[^>]*? class="([^" ]+)[^>]* n="', (self.folder / "a.svg").read_text())
            self.assertGreater(len(static), 10)
            self.assertEqual(sorted(kind for *_, kind in self.rects()), sorted(static), words)

    def test_a_legend_of_modules_has_different_colours(self):
        names = [f"lib{number}.so" for number in range(8)]
        capture = made_capture.Capture(made_capture.Event("cpu-clock", made_capture.SOFTWARE, 0, made_capture.USUAL | made_capture.CALLCHAIN)).started()
        for number, name in enumerate(names):
            start = 0x7000_0000_0000 + number * 0x10000
            capture.mapped(made_capture.PID, start, 0x1000, 0, f"/no/{name}")
            capture.sample(ip=start + 8, period=100 - number, chain=[made_capture.CONTEXT_USER, start + 8])
        (self.folder / "perf.data").write_bytes(capture.file())
        self.tacho("flamegraph", "--palette", "module", "-o", "a.svg", status=None)
        static = re.findall(r'<rect [^>]*class="(m\d)"/><text [^>]*>([^<]*)</text>', (self.folder / "a.svg").read_text())
        self.assertEqual([name for _, name in static], names)
        self.assertEqual(len({look for look, _ in static}), 8)
        self.browser.open(self.folder / "a.svg")
        shown = self.browser.run("""return [...document.querySelectorAll('.legend > span')].map(
            (one) => [one.querySelector('rect').getAttribute('class'), one.textContent.trim()])""")
        self.assertEqual([tuple(one) for one in shown], static)

    def test_long_names_lose_template_arguments_and_then_their_middle(self):
        name = "std::vector<std::pair<int, long>>::emplace_back<int, long>(int&&, long&&)"
        self.draw(f"a;b 700\na;{name} 300\n")
        self.browser.size(1250)
        self.addCleanup(self.browser.size, 1280)
        self.settle()
        self.assertIn("std::vector<...>::emplace_back<...>(int&&, long&&)", self.shown())
        self.browser.size(850)
        self.settle()
        cut = next(label for label in self.shown() if "\u2026" in label)
        self.assertRegex(cut, r"^std::vector<>.*\u2026.*&&\)$")
        self.click(cut)
        self.settle()
        self.assertIn(name, self.shown(), "zoomed into, it is whole")

    def test_tooltip(self):
        rect = self.browser.driver.find_elements("css selector", "g.frames rect")[3]
        ActionChains(self.browser.driver, duration=0).move_to_element(rect).perform()
        tip = self.browser.run("return document.querySelector('#tip').innerText")
        self.assertIn("of all", tip)
        self.assertIn("self", tip)

    def test_dark_and_light(self):
        look = """const of = (one) => getComputedStyle(document.querySelector(one)).fill;
            return [of('#bg'), of('g.frames rect'), of('g.labels text')];"""
        self.browser.prefers("light")
        light = self.browser.run(look)
        self.browser.prefers("dark")
        dark = self.browser.run(look)
        self.browser.prefers("light")
        self.assertTrue(all(a != b for a, b in zip(light, dark)), (light, dark))

    def resize(self, width):
        self.browser.size(width)
        self.addCleanup(self.browser.size, 1280)
        for _ in range(100):  # "resize" is asynchronous
            self.settle()
            if self.rects()[0][2] == width - 20:
                return
        self.assertEqual(self.rects()[0][2], width - 20, "all of the window")

    def test_a_narrow_window_has_all_of_the_graph(self):
        self.resize(390)
        self.assertEqual(max(x + width for x, _, width, _ in self.rects()), 380)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)

    def test_a_telephone_shows_letters_that_can_be_read(self):
        self.browser.telephone()
        self.addCleanup(self.browser.no_telephone)
        self.draw(TEXT)
        scale, width, letter, button = self.browser.run("""const box = document.querySelector('g.frames rect').getBoundingClientRect();
            return [visualViewport.scale, box.width * visualViewport.scale,
                    document.querySelector('g.labels text').getBoundingClientRect().height * visualViewport.scale,
                    document.querySelector('.tools button').getBoundingClientRect().height * visualViewport.scale];""")
        self.assertLess(scale, 0.5)
        self.assertAlmostEqual(width, 370, delta=6)
        self.assertGreater(letter, 12)
        self.assertGreater(button, 20)
        x, y = self.browser.run("""const label = [...document.querySelectorAll('g.labels text')].find((one) => one.textContent === 'draw');
            const box = label.getBoundingClientRect(); return [box.x + 4, box.y + 4]""")
        self.browser.tap(x, y)
        self.settle()
        self.assertIn("draw", self.said()[1])
        self.assertEqual(self.fragment(), "", "a first tap says what is there")
        self.browser.tap(x, y)
        self.settle()
        self.assertIn("zoom=", self.fragment())

    def test_on_paper_the_graph_is_whole(self):
        self.draw(";".join(f"f{number}" for number in range(200)) + " 3\n")
        self.browser.run("""scrollTo(0, 500);
            window.looks = [];
            addEventListener('beforeprint', () => looks.push([document.documentElement.getAttribute('height'),
              document.querySelector('foreignObject.head').getAttribute('y'), document.documentElement.getAttribute('viewBox')]));""")
        self.assertTrue(self.browser.printed().startswith(b"%PDF"))
        height, y, box = self.browser.run("return looks[0]")
        self.assertEqual((height, y), ("100%", "0"))
        self.assertGreater(float(box.split()[3]), 200 * 17)
        self.assertGreater(float(self.browser.run("return document.documentElement.getAttribute('height')")), 200 * 17)

    def test_the_list_of_keys_gets_the_focus(self):
        self.press("?")
        self.assertEqual(self.browser.run("return [document.activeElement.id, document.activeElement.getAttribute('role')]"), ["help", "dialog"])
        self.press("?")
        self.assertEqual(self.browser.run("return document.activeElement.localName"), "svg")

    def test_hostile_names_stay_text(self):
        names = ["</script><img src=x onerror=window.hit=1>", "]]><script>window.hit=1</script>", "&lt;b&gt;", "x" * 10_000,
                 "\u05d0\u05d1", "'\"`${window.hit=1}", "constructor", "__proto__", "bell\a \U0001f525\U0001f468\u200d\U0001f680",
                 "std::map<" + 100 * "std::pair<int, " + "int" + 100 * "> " + ">::at"]
        self.draw("".join(f"root;{name} 10\n" for name in names))
        self.press("/", "x", "\ue007", "n", "f", "0")
        self.press("\ue013", "\ue013", "\ue014", "h", "u", "m", "c", "\ue015", "\ue015", "b", "0")
        self.assertIsNone(self.browser.run("return window.hit === undefined ? null : window.hit"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)

    def test_frames_that_vanished_can_be_clicked(self):
        (self.folder / "before.folded").write_text("app;gone;x 3\napp;gone;y 1\n" + TEXT)
        self.draw(TEXT, "--base", "before.folded")
        self.click("gone")
        self.assertIn("gone", self.said()[1])
        self.assertIn("before 0.40 %, after 0.00 %: \u22120.40 points", self.said()[1])
        self.assertRegex(self.fragment(), r"zoom=0%2C\d")
        self.press("/", "x", "\ue007")
        self.assertIn("1 frame matches: 0.30 % of all, 75.00 % of the view", self.said()[0])
        self.back()
        self.back()
        self.assertEqual(self.fragment(), "")

    def tip_of(self, number):
        """The tooltip of a frame of the first graph."""
        rect = self.browser.driver.find_elements("css selector", "g.frames rect")[number]
        ActionChains(self.browser.driver, duration=0).move_to_element(rect).perform()
        return self.browser.run("return document.querySelector('#tip').innerText").splitlines()

    def test_a_tooltip_has_shares_of_all_of_the_view_and_of_the_caller(self):
        self.assertEqual(self.tip_of(3), ["draw", "user", "total 600: 60.00 % of all, 60.00 % of its caller",
                                          "self 0: 0.00 % of all"])
        self.click("draw")
        blit = self.browser.run("""const names = document.querySelector('metadata.names').textContent.split('\\n');
            return [...document.querySelectorAll('g.frames rect')].findIndex((r) => names[r.getAttribute('n')] === 'u 0 blit');""")
        self.assertEqual(self.tip_of(blit), ["blit", "user", "total 250: 25.00 % of all, 41.67 % of the view, 41.67 % of its caller",
                                             "self 250: 25.00 % of all"])

    def test_a_tooltip_has_the_module_and_the_source_line(self):
        golden = programs.ROOT / "tests/golden"
        self.tacho("flamegraph", "-i", golden / "captures/unwound.data", "--symfs", golden / "symfs", "--kallsyms",
                   golden / "captures/kallsyms", "-o", "a.svg", status=None)
        self.browser.open(self.folder / "a.svg")
        self.press("/", "nested<2>", "\ue007", "n")
        self.assertIn("(anonymous namespace)::nested<2> \u00b7 shapes, user, shapes.cc:37 \u00b7 total", self.said()[1])

    def test_a_tooltip_of_a_difference_has_its_noise(self):
        for name, text in (("a2", "m;a 60\nm;b 40\n"), ("b1", "m;a 50\nm;b 50\n"), ("b2", "m;a 54\nm;b 46\n")):
            (self.folder / name).write_text(text)
        self.draw("m;a 56\nm;b 44\n", "--also", "a2", "--base", "b1,b2")
        self.assertEqual(self.tip_of(2)[-1], "before 52.00 %, after 58.00 %: +6.00 points (noise 8.00)")
        look = "return [...document.querySelectorAll('g.frames rect')].map((r) => r.getAttribute('class'))"
        self.assertEqual(self.browser.run(look), ["d0"] * 4)
        self.press("r")  # frames of a new tree keep their noise
        self.assertEqual(self.browser.run(look), ["d0"] * 4)
        self.assertIn("as much, within the noise", self.browser.run("return document.querySelector('.legend').textContent"))

    def test_a_tooltip_of_costs_per_event(self):
        sample_type = made_capture.USUAL | made_capture.CALLCHAIN
        for name, requests, cycles in (("before", 10, 1000), ("after", 20, 3000)):
            capture = made_capture.Capture(made_capture.Event("cycles", 0, 0, sample_type),
                                           made_capture.Event("request", 2, 77, sample_type, 1)).started()
            capture.sample(0, period=cycles, chain=[made_capture.CONTEXT_USER, made_capture.LEAF_A + 4])
            for _ in range(requests):
                capture.sample(1, period=1, chain=[made_capture.CONTEXT_USER, made_capture.MAIN])
            (self.folder / name).write_bytes(capture.file())
        self.tacho("flamegraph", "-i", "after", "--base", "before", "--per", "request", "-o", "a.svg", status=None)
        self.browser.open(self.folder / "a.svg")
        self.assertEqual(self.tip_of(1)[-1], "per request 100 cycles before, 150 cycles after: +50.00 points of all before")
        self.assertIn("costs more per request than before", self.browser.run("return document.querySelector('.legend').textContent"))

    def test_functions_of_a_module_as_one(self):
        golden = programs.ROOT / "tests/golden"
        self.tacho("flamegraph", "-i", golden / "captures/unwound.data", "--symfs", golden / "symfs", "--kallsyms",
                   golden / "captures/kallsyms", "-o", "a.svg", status=None)
        self.browser.open(self.folder / "a.svg")
        before = len(self.rects())
        self.press("/", "nested<2>", "\ue007", "n", "m")
        self.assertLess(len(self.rects()), before)
        self.assertIn("[shapes]", self.shown())
        self.assertIn("module=shapes", self.fragment())
        self.assertIn("shapes as one", self.said()[0])
        self.back()
        self.assertEqual(len(self.rects()), before)

    def test_marked_frames_stay_marked(self):
        self.draw(TEXT, "--highlight", "^rec$")
        marked = lambda: sum(1 for *_, kind in self.rects() if "marked" in kind)
        self.assertEqual(marked(), 3)
        self.press("r")
        self.assertEqual(marked(), 1)
        self.assertIn("marked: ^rec$: 30.00 % of all", self.browser.run("return document.querySelector('.headbox').textContent"))

    def test_the_name_of_the_selected_function_is_copied(self):
        self.press("y")
        self.assertEqual(self.browser.run("return String(getSelection())"), "", "no frame is selected")
        self.press("/", "/^rec$/", "\ue007", "n", "y")
        self.wait_until("return document.querySelector('#foot').textContent === 'rec copied'")
        self.assertEqual(self.browser.run("return String(getSelection())"), "rec")
        self.browser.run("navigator.clipboard.writeText = () => Promise.reject()")
        self.press("y")
        self.wait_until("return document.querySelector('#foot').textContent === 'rec Ctrl+C copies it'")

    def test_the_list_of_keys_has_all_that_work(self):
        self.press("?")
        reported = self.browser.run("return document.querySelector('#help').innerText")
        for key in ("arrows", "Enter, click", "Esc", "0", "/", "n, N", "f", "h, Alt+click", "r", "m", "c", "b", "i", "p", "y", "u, back", "?"):
            self.assertIn(f"{key}\n", reported)

    def test_a_window_of_another_size_is_filled(self):
        for width in (700, 1900, 1280):
            self.resize(width)
        self.browser.size(1280, 300)  # the window is lower than the graph: the foot is visible
        self.addCleanup(self.browser.size, 1280)
        self.settle()
        self.press("\ue013", "\ue013")
        box = self.browser.run("const b = document.querySelector('rect.cursor').getBoundingClientRect(); return [b.top, b.bottom];")
        self.assertTrue(0 <= box[0] and box[1] <= 300, box)

    def test_the_page_stays_where_it_is_scrolled_to(self):
        self.browser.size(1280, 300)
        self.addCleanup(self.browser.size, 1280)
        self.draw(";".join(f"f{number}" for number in range(30)) + " 3\n")
        bottom = self.browser.run("return document.documentElement.getBoundingClientRect().bottom - innerHeight")
        self.assertAlmostEqual(bottom, 0, delta=1, msg="first the graph's root is in sight")
        for y in (100, 33, 150):
            self.browser.run("scrollTo(0, arguments[0])", y)
            for _ in range(50):  # the head moves in the next animation frame
                self.settle()
                seen = self.browser.run("return [scrollY, document.querySelector('.headbox').getBoundingClientRect().top]")
                if seen == [y, 0]:
                    break
            self.assertEqual(seen, [y, 0])

    def test_many_lines_above_the_graph_scroll_away(self):
        for name in ("b1", "b2", "b3", "b4", "b5", "b6"):
            (self.folder / name).write_text(TEXT)
        self.browser.size(390, 400)
        self.addCleanup(self.browser.size, 1280)
        self.draw(TEXT, "--base", "b1,b2,b3,b4,b5,b6")
        self.browser.run("scrollTo(0, 50)")
        self.settle()
        self.assertEqual(self.browser.run("return document.querySelector('.headbox').getBoundingClientRect().top"), -50)
        self.press("\ue013")
        box = self.browser.run("const b = document.querySelector('rect.cursor').getBoundingClientRect(); return [b.top, b.bottom];")
        self.assertTrue(0 <= box[0] and box[1] <= 400, box)

    def test_the_legend_is_that_of_the_palette(self):
        legend = lambda: self.browser.run("return document.querySelector('.legend').innerText")
        self.assertIn("kernel", legend())
        self.browser.run("""const field = document.querySelector('select.palette');
            field.value = 'module'; field.dispatchEvent(new Event('change'));""")
        self.settle()
        self.assertNotIn("kernel", legend())
        self.assertIn("palette=module", self.fragment())

    def test_an_image_viewer_shows_the_graph(self):
        # In <img> no script runs, as in picture viewers.
        (self.folder / "a.html").write_text('<img id="i" src="a.svg">')
        self.browser.open(self.folder / "a.html")
        size = self.browser.run("const i = document.querySelector('#i'); return [i.naturalWidth, i.naturalHeight];")
        self.assertEqual(size[0], 1200)
        shot = self.folder / "a.png"
        self.browser.driver.find_element("css selector", "#i").screenshot(str(shot))
        self.assertGreater(shot.stat().st_size, 3000, "frames and names, not an empty box")

    def test_a_hostile_capture_stays_text(self):
        bad = "</script><img onerror=window.hit=1>"
        capture = made_payload.capture(True, wake=[made_payload.Field("delay", unit="ns]]>\"&", role="weight")])
        capture.features[made_capture.HOSTNAME] = made_capture.header_string(bad)
        capture.named(bad[:15]).mapped(made_capture.PID, 0x7000_0000_0000, 0x1000, 0, "/tmp/" + bad.replace("/", "") + "'\"`\u202e")
        for chain in ([2**64 - 512, 0x7000_0000_0010, made_capture.MAIN + 9], [2**64 - 512, made_capture.LEAF_A + 4]):
            capture.sample(raw=struct.pack("<Q", 70), chain=chain)
        (self.folder / "perf.data").write_bytes(capture.file())
        for words in ([], ["--title", bad, "--highlight", "img|script", "--by", "comm,event,cgroup"], ["--base", "perf.data"]):
            self.tacho("flamegraph", "-i", "perf.data", "-o", "a.svg", *words, status=None)
            self.browser.open(self.folder / "a.svg")
            self.press("/", "img", "\ue007", "n", "\ue013", "\ue013", "\ue014", "m", "h", "u", "p", "p", "c", "b", "0")
            self.tip_of(1)
            self.assertEqual(self.browser.run("return [window.hit === undefined, document.querySelectorAll('img').length]"), [True, 0])
            self.assertIn("<img onerror=", self.browser.run("return document.querySelector('.headbox').textContent"))

    def wait_until_found(self, words):
        self.browser.driver.set_script_timeout(30)
        self.browser.driver.execute_async_script("""const [wanted, done] = arguments, ask = () =>
            document.querySelector('.found').textContent.includes(wanted) ? done() : setTimeout(ask, 20);
            ask();""", words)
        return self.said()[0]

    def test_shares_of_frames_that_are_too_thin_are_those_of_script(self):
        capture = thin_frames.write(self.folder)
        stacks = thin_frames.stacks_of_script(
            self.tacho("script", "-F", "comm,period,ip,sym", *capture, status=None).stdout.decode())
        self.tacho("flamegraph", *capture, "-o", "a.svg", status=None)
        self.assertLess((self.folder / "a.svg").stat().st_size, 1_000_000, "100,000 frames")
        self.browser.open(self.folder / "a.svg")
        self.assertLess(len(self.rects()), 10)
        for search, pattern in (("malloc", "malloc"), ("/^h1/", "^h1"), ("/^(_int_malloc|h7)/", "^(_int_malloc|h7)"), ("H12345", "^h12345$")):
            share = thin_frames.share_of_matches(stacks, pattern)
            self.press("0", "/", search, "\ue007")
            said = self.wait_until_found(" match")
            self.assertIn(f": {share:.2f} % of all; this counts ", said)
            self.assertIn("too thin to be drawn", said)
        self.press("0", "/", "/^(_int_malloc|h7)/", "\ue007")
        self.click("serve")
        view = thin_frames.share_of_matches(stacks, "^(_int_malloc|h7)", within="serve")
        self.assertIn(f" % of all, {view:.2f} % of the view", self.said()[0])
        # A thin frame is drawn where it is wide, and counts in the totals of what is joined or left out.
        self.browser.open(self.folder / "a.svg", "#focus=h12345&search=serve")
        self.wait_until_found("0 frames match")
        self.assertIn("h12345", self.shown())
        self.browser.open(self.folder / "a.svg", "#hide=serve&search=h12345")
        self.wait_until_found("1 frame matches: 0.00 % of all")

    def test_gaps_say_what_is_in_them(self):
        capture = thin_frames.write(self.folder)
        stacks = thin_frames.stacks_of_script(
            self.tacho("script", "-F", "comm,period,ip,sym", *capture, status=None).stdout.decode())
        self.tacho("flamegraph", *capture, "-o", "a.svg", status=None)
        gaps = lambda: self.browser.run("return [...document.querySelectorAll('g.gaps text')].map((text) => text.textContent)")
        words = f"50,000 thinner, {thin_frames.share_of_matches(stacks, '^serve$'):.2f} %"
        self.assertIn(f">{words}</text>", (self.folder / "a.svg").read_text(), "without a script")
        self.browser.open(self.folder / "a.svg")
        self.press("/", "serve", "\ue007")
        self.wait_until_found(" match")
        self.assertEqual(gaps(), [words])
        self.browser.run("document.querySelector('g.gaps rect').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.settle()
        self.settle()
        self.assertRegex(self.fragment(), r"zoom=\d", "a click zooms into the caller")

    def test_each_unit_is_searched_in_its_own_graph(self):
        clock = made_capture.Event("cpu-clock", made_capture.SOFTWARE, 0, made_capture.USUAL | made_capture.CALLCHAIN)
        faults = made_capture.Event("page-faults", made_capture.SOFTWARE, 2, made_capture.USUAL | made_capture.CALLCHAIN)
        capture = made_capture.Capture(clock, faults).started()
        user, mapped = made_capture.CONTEXT_USER, 0x7000_0000_0000
        capture.mapped(made_capture.PID, mapped, 0x10000, 0, "//anon")
        (self.folder / f"perf-{made_capture.PID}.map").write_text(f"{mapped:x} 100 work\n{mapped + 256:x} 100 touch\n")
        for event, at, period in ((0, 4, 900), (0, 260, 100), (1, 260, 3), (1, 4, 1)):
            capture.sample(event, ip=mapped + at, period=period, chain=[user, mapped + at])
        (self.folder / "perf.data").write_bytes(capture.file())
        self.tacho("flamegraph", "--perf-map-dir", self.folder, "-o", "a.svg", status=None)
        self.browser.open(self.folder / "a.svg", "#search=touch")
        self.assertEqual(self.said()[0], "cpu-clock: 1 frame matches: 10.00 % of all \u00b7 page-faults: 1 frame matches: 75.00 % of all")
        shown = self.shown()
        self.assertIn("all: cpu-clock, 1 us", shown)
        self.assertIn("all: page-faults, 4", shown)

    def test_a_deep_stack_and_many_frames_load(self):
        self.draw(";".join(f"f{number % 5}" for number in range(100_000)) + " 3\n")
        self.press("\ue013", "\ue013", "\ue013")
        self.assertIn("f1", self.said()[1])
        self.draw("".join(f"a;b{number // 100};c{number} {100 + number % 7}\n" for number in range(30_000)), "--min-width", "0")
        took = self.browser.run("""const begin = performance.now();
            document.querySelectorAll('g.frames rect')[1].dispatchEvent(new MouseEvent('click', {bubbles: true}));
            dispatchEvent(new HashChangeEvent('hashchange'));
            return performance.now() - begin;""")
        self.assertLess(took, 2000)


if __name__ == "__main__":
    programs.main()
