#!/usr/bin/env python3
"""The heat map in a browser: tooltips, keys, a choice of boxes, history, dark and light; names stay text; no network."""
import json
import struct

import browser
import made_payload
import programs
from made_payload import Field

if browser.webdriver:
    from selenium.webdriver.common.actions.action_builder import ActionBuilder
LEFT, RIGHT, UP, DOWN, ESCAPE = "\ue012", "\ue014", "\ue013", "\ue015", "\ue00c"
HOSTILE = ["</script><img src=x onerror=window.hit=1>", "]]><script>window.hit=1</script>", "\u202eright\u2066left", "'\"`${window.hit=1}",
           "x" * 10_000, "__proto__"]


@browser.needs_browser
class HeatMapInABrowser(browser.PageTest, programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.draw()

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.requests(), [])

    def draw(self, name="io", field="lat", unit="ns", words=()):
        """Four columns of a second, and rows for powers of two from 16 to 127; in each column 1, 2 and 3 samples of 16, 32 and 64."""
        capture = made_payload.capture(**{name: [Field(field, unit=unit, role="value")]})
        for second in range(4):
            for value in (16, 32, 33, 64, 65, 66):
                capture.time = (5 + second) * 1_000_000_000
                capture.sample(raw=struct.pack("<Q", value))
        (self.folder / "perf.data").write_bytes(capture.file())
        self.tacho("heatmap", "-o", "a.svg", "--interval", "1", "--log", "1", *words)
        self.browser.open(self.folder / "a.svg")

    def said(self):
        return self.browser.run("return document.querySelector('#foot').textContent;")

    def middle_of(self, column, row):
        x, y, width, height = self.browser.run(
            "const b = document.querySelector('.ground').getBoundingClientRect(); return [b.x, b.y, b.width, b.height];")
        return int(x + width * (column + 0.5) / 4), int(y + height * (2.5 - row) / 3)

    def drag(self, start, end):
        actions = ActionBuilder(self.browser.driver, duration=0)
        pointer = actions.pointer_action
        pointer.move_to_location(*self.middle_of(*start)).pointer_down().move_to_location(*self.middle_of(*end)).pointer_up()
        actions.perform()
        self.settle()

    def reported(self, words):
        done = self.tacho("heatmap", "--json", "--box", words, status=None)
        return json.loads(done.stdout)

    def test_a_click_says_what_the_box_is_and_the_words_for_it(self):
        self.drag((2, 1), (2, 1))
        self.assertIn("2 samples, 8.33 % of all", self.said())
        self.assertIn("7 s to 8 s", self.said())
        self.assertIn("lat 32 ns to 64 ns", self.said())
        words = self.said().split("--box ")[1]
        self.assertEqual(words, "7..8,32..63")
        self.assertEqual(self.reported(words)["inside"], 2)
        self.assertEqual(self.fragment(), "#box=7..8,32..63")

    def test_a_drag_chooses_several_boxes(self):
        self.drag((3, 2), (1, 1))
        self.assertIn("15 samples, 62.50 % of all", self.said())
        words = self.said().split("--box ")[1]
        self.assertEqual(words, "6..9,32..127")
        self.assertEqual(self.reported(words)["inside"], 15)
        self.assertIn("tacho heatmap -i perf.data --field lat --box", self.said())

    def test_keys_go_from_box_to_box(self):
        self.press(RIGHT)
        self.assertIn("--box 5..6,16..31", self.said())
        self.press(RIGHT, UP, UP, UP)
        self.assertIn("3 samples", self.said())
        self.assertIn("--box 6..7,64..127", self.said())
        self.press(LEFT, LEFT, LEFT, DOWN)
        self.assertIn("--box 5..6,32..63", self.said())
        self.press(RIGHT, shift=True)
        self.press(DOWN, shift=True)
        self.assertIn("--box 5..7,16..63", self.said())
        self.assertIn("6 samples", self.said())
        self.press("n")
        self.assertIn("--box 6..7,32..63", self.said())
        self.press("N", "N")
        self.assertIn("--box 5..6,64..127", self.said())
        self.press("c")
        self.assertIn("--box 5..6,64..127", self.browser.run("return String(getSelection())"))
        self.press("?")
        self.assertFalse(self.browser.run("return document.querySelector('#help').hidden"))
        self.press(ESCAPE)
        self.assertTrue(self.browser.run("return document.querySelector('#help').hidden"))
        self.press(ESCAPE)
        self.assertEqual(self.said(), "")

    def test_history_and_reload(self):
        self.drag((0, 0), (0, 0))
        self.drag((2, 1), (3, 2))
        chosen = self.said()
        self.browser.driver.refresh()
        self.assertEqual(self.said(), chosen)
        self.browser.run("history.back()")
        self.settle()
        self.settle()
        self.assertIn("--box 5..6,16..31", self.said())
        self.browser.open(self.folder / "a.svg", "#box=7..9,32..127")
        self.assertEqual(self.said(), chosen)
        for nonsense in ("#box=7..9,33..127", "#box=<img>", "#box=1..2", "#zoom=3", "#box=..,.."):
            self.browser.open(self.folder / "a.svg", nonsense)
            self.assertEqual(self.said(), "")

    def test_offsets_have_words_too(self):
        self.tacho("heatmap", "-o", "a.svg", "--offset")
        self.browser.open(self.folder / "a.svg")
        self.press(RIGHT)
        self.assertIn("--box 5..6,0..0.02", self.said())
        self.assertIn("6 samples", self.said())

    def test_tooltip(self):
        actions = ActionBuilder(self.browser.driver, duration=0)
        actions.pointer_action.move_to_location(*self.middle_of(1, 2))
        actions.perform()
        tip = self.browser.run("return document.querySelector('#tip').innerText")
        self.assertIn("3 samples", tip)
        self.assertIn("--box 6..7,64..127", tip)

    def test_dark_and_light_have_letters_that_can_be_read(self):
        def luminance(colour):
            red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
                                for value in (int(part) / 255 for part in colour[4:-1].split(",")[:3]))
            return 0.2126 * red + 0.7152 * green + 0.0722 * blue
        self.press(RIGHT)
        seen = {}
        for scheme in ("light", "dark"):
            self.browser.prefers(scheme)
            fill = lambda what: self.browser.run("return getComputedStyle(document.querySelector(arguments[0])).fill", what)
            seen[scheme] = [fill(what) for what in ("#bg", ".axis text", ".boxes rect")]
            pairs = [(seen[scheme][0], seen[scheme][1])]
            for box in (".headbox", "#foot", "#help", "#tip"):
                pairs.append(tuple(self.browser.run("const s = getComputedStyle(document.querySelector(arguments[0])); "
                                                    "return [s.backgroundColor, s.color];", box)))
            for ground, letters in pairs:
                dark, light = sorted((luminance(ground), luminance(letters)))
                self.assertGreaterEqual((light + 0.05) / (dark + 0.05), 4.5, (scheme, ground, letters))
        self.browser.prefers("light")
        self.assertTrue(all(a != b for a, b in zip(*seen.values())), seen)

    def test_a_narrow_window_has_all_of_the_map(self):
        self.browser.size(390)
        self.addCleanup(self.browser.size, 1280)
        self.settle()
        right = self.browser.run("return document.querySelector('.ground').getBoundingClientRect().right")
        self.assertTrue(360 < right <= 390, right)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.drag((3, 2), (3, 2))
        self.assertIn("--box 8..9,64..127", self.said())

    def test_hostile_names_stay_text(self):
        for name in HOSTILE:
            self.draw(name=name, field=name[:200], unit=name[:50])
            self.press(RIGHT, UP, "n", "c", "?", "?")
            self.assertIn("--box", self.said())
            self.assertIsNone(self.browser.run("return window.hit === undefined ? null : window.hit"))
            self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)
            self.assertEqual(self.browser.run("return document.querySelectorAll('script').length"), 1)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 1280)

    def test_an_empty_map_is_no_error(self):
        (self.folder / "perf.data").write_bytes(made_payload.capture(io=[Field("lat", unit="ns", role="value")]).file())
        self.tacho("heatmap", "-o", "a.svg")
        self.browser.open(self.folder / "a.svg", "#box=1..2,3..4")
        self.press(RIGHT, "n", "c", "0")
        self.assertEqual(self.said(), "")


if __name__ == "__main__":
    programs.main()
