#!/usr/bin/env python3
"""tacho page: its data are those of the capture, its content security policy forbids external resources, and names stay text."""
import collections
import json
import re
import shutil
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field, TEXT
from page_data import Page, Tags, folded_lines, policy_hash

GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
CAPTURES = ("threads", "unwound", "comm", "group", "payload", "uprobe", "latency", "pipe")
SCRIPT_LIMIT = 150_000  # bytes
CHAIN = [2**64 - 512, made.LEAF_A + 4, made.MAIN + 9]


class PageOfACapture(programs.Scratch):
    def page(self, *words, status=None):
        return Page(self.tacho("page", *words, status=status).stdout.decode())

    def test_stacks_equal_folded(self):
        stacks = 0
        for name in CAPTURES:
            capture = ["-i", GOLDEN / f"captures/{name}.data", *SYMBOLS]
            page = self.page(*capture)
            for number, event in enumerate(page.events()):
                if not page.head["capture"]["events"][number]["stacks"]:
                    continue
                done = self.tacho("folded", "--event", event, *capture, status=None)
                right = {stack: weight for stack, weight in folded_lines(done.stdout.decode()).items() if weight}
                self.assertEqual(page.folded(number), right, f"{name} {event}")
                stacks += len(right)
        self.assertGreater(stacks, 50)

    def test_a_time_or_a_thread_selects_what_folded_selects(self):
        capture = ["-i", GOLDEN / "captures/threads.data", *SYMBOLS]
        page = self.page(*capture)
        times, start = page.columns["time"], int(page.head["capture"]["start"])
        first, last = times[len(times) // 4], times[len(times) // 2]
        seconds = lambda offset: f"{(start + offset) // 10**9}.{(start + offset) % 10**9:09}"
        done = self.tacho("folded", "--time", f"{seconds(first)},{seconds(last)}", *capture, status=None)
        self.assertEqual(page.folded(0, lambda i: first <= times[i] <= last), folded_lines(done.stdout.decode()))
        threads = page.columns["thread"]
        for thread, tid in enumerate(page.columns["threads.tid"]):
            done = self.tacho("folded", f"--tid={tid}", *capture, status=None)
            self.assertEqual(page.folded(0, lambda i: threads[i] == thread), folded_lines(done.stdout.decode()))

    def test_functions_have_their_source_lines(self):
        page = self.page("-i", GOLDEN / "captures/unwound.data", *SYMBOLS)
        names, lines = page.columns["frame.name"], page.columns["frame.line"]
        shown = {page.texts[name]: page.texts[line] for name, line in zip(names, lines)}
        self.assertEqual(shown["(anonymous namespace)::nested<2>"], "shapes.cc:37")

    def test_payloads_are_there_field_by_field(self):
        page = self.page("-i", GOLDEN / "captures/payload.data")
        fields = page.head["capture"]["events"][0]["fields"]
        by_name = {page.texts[field["name"]]: page.columns[f"field.0.{i}"] for i, field in enumerate(fields)}
        self.assertEqual(by_name["bytes"], [512, 4096, 512, 70000])
        self.assertEqual([page.texts[text] for text in by_name["op"]], ["READ", "WRITE", "READ", "WRITE"])
        self.assertEqual(page.columns["weight"], [1000, 3000, 2000, 0])
        self.assertTrue(page.texts[by_name["from"][0]].startswith("0xffffffff81"))

    def test_weights_have_the_unit_of_the_field_that_is_the_period(self):
        """The same unit as in other pictures, whether or not the field is the event's main value."""
        fields = [Field("took", unit="us", role="value"), Field("size", unit="bytes", role="sum")]
        for period, unit in ((lambda took, size: size, "bytes"), (lambda took, size: 7, "samples")):
            capture = made_payload.capture(True, read=fields)
            for took, size in ((10, 4096), (20, 512)):
                capture.sample(raw=struct.pack("<QQ", took, size), period=period(took, size), chain=CHAIN)
            (self.folder / "perf.data").write_bytes(capture.file())
            page, picture = self.page(), self.tacho("flamegraph", status=None).stdout.decode()
            shown = page.texts[page.head["capture"]["events"][0]["unit"]]
            self.assertIn(f'data-unit="{shown}"', picture)
            self.assertEqual(shown, unit)

    def test_the_policy_names_the_script_and_the_style_and_nothing_else(self):
        page = self.page("-i", GOLDEN / "captures/threads.data")
        tags = Tags(page.text)
        script, style = tags.texts("script", without=["type"]), tags.texts("style")
        self.assertEqual((len(script), len(style)), (1, 1))
        self.assertEqual(page.policy(), f"default-src 'none'; script-src {policy_hash(script[0])}; style-src "
                                        f"{policy_hash(style[0])}; base-uri 'none'; form-action 'none'")
        self.assertLess(len(script[0].encode()), SCRIPT_LIMIT)
        self.assertEqual({name for name, _ in tags.found},
                         {"html", "head", "meta", "title", "style", "body", "main", "p", "noscript", "script"})
        # Names of namespaces begin with http:// too, and are not requested.
        self.assertFalse(re.search(r"https?://(?!www.w3.org/)|\bon\w+=\"", page.text.split("<style>")[0] + script[0]))

    def test_the_script_without_blanks_says_the_same(self):
        """join_modules.cmake takes blanks around operators out, also in texts: these have none."""
        for folder in ("report/browser", "report/views"):
            for module in (programs.ROOT / folder).rglob("*.js"):
                code = re.sub(r"(?m)(^| ) *// .*$", "", module.read_text())
                for text in re.findall(r"'(?:[^'\\\n]|\\.)*'", code):
                    self.assertNotRegex(text, r" (=>|=|===|!==|&&|\|\|) | // ", module.name)

    def test_the_script_puts_no_text_into_markup(self):
        for module in (programs.ROOT / "report/views/page").glob("*.js"):
            text = module.read_text()
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch(",
                         "XMLHttpRequest", "import("):
                self.assertNotIn(word, text, module.name)

    def test_the_same_input_gives_the_same_bytes(self):
        words = ["page", "-i", GOLDEN / "captures/unwound.data", *SYMBOLS]
        first = self.tacho(*words, status=None).stdout
        self.assertTrue(all(first == self.tacho(*words, status=None).stdout for _ in range(3)))

    def test_samples_beyond_the_limit_are_counted(self):
        done = self.tacho("page", "-i", GOLDEN / "captures/threads.data", "--max-samples", "40", status=None)
        page = Page(done.stdout.decode())
        self.assertEqual(len(page.columns["node"]), 40)
        self.assertEqual(page.head["capture"]["left_out"], 69)
        self.assertIn("holds the first 40 samples and leaves 69 out", done.stderr.decode())

    def hostile(self, names):
        """A capture of threads and payloads with these names."""
        capture = made_payload.capture(True, read=[Field("size", unit="bytes", role="value"), Field("path", TEXT, 1, 64)])
        for name in names:
            raw = name.encode()[:63]
            capture.named(name[:15])
            capture.sample(raw=struct.pack("<Q", 70) + raw + bytes(64 - len(raw)), chain=CHAIN)
        (self.folder / "perf.data").write_bytes(capture.file())

    def test_code_has_the_samples_that_annotate_counts(self):
        for name in ("unwound", "comm", "group"):
            capture = ["-i", GOLDEN / f"captures/{name}.data", *SYMBOLS]
            page = self.page("--source", *capture)
            columns, counts, first = page.columns, collections.Counter(page.columns["code"]), 0
            shown = {}
            for frame, rows in zip(columns["code.frame"], columns["code.rows"]):
                at, offsets = 0, []
                for size in columns["row.size"][first:first + rows]:
                    offsets.append(at)
                    at += size
                name = page.texts[columns["frame.name"][frame]]
                shown[name] = [(offset, page.texts[columns["row.text"][first + i]], columns["row.line"][first + i], counts[first + i + 1])
                               for i, offset in enumerate(offsets)]
                first += rows
            right = [json.loads(line) for line in self.tacho("annotate", "--json", *capture, status=None).stdout.decode().splitlines()]
            self.assertGreater(len(right), 0)
            for function in right:
                lines = [(line["offset"], line["text"], line.get("line", 0), sum(count["samples"] for count in line.get("counts", []))) for line in function["lines"]]
                self.assertEqual(shown[function["symbol"]], lines, function["symbol"])
            self.assertGreater(sum(sample > 0 for sample in columns["code"]), 10)
        self.assertNotIn("code", self.page(*capture).columns, "only on request")

    def test_names_are_data(self):
        names = ["</script><img src=x onerror=alert(1)>", "\"'`&<b>", "right\u202eleft", "]]><!--"]
        self.hostile(names)
        page = self.page("--title", "</title><script>alert(1)</script>")
        self.assertEqual(len(Tags(page.text).texts("script", without=["type"])), 1)
        self.assertEqual(page.texts[page.head["title"]], "</title><script>alert(1)</script>")
        self.assertIn(names[0], page.texts)
        self.assertIn("right\\xe2\\x80\\xaeleft", page.texts)

    def test_hidden_words_are_not_in_the_page(self):
        self.hostile(["secretary", "/home/secretary/key"])
        whole = self.page()
        self.assertIn("secretary", " ".join(whole.texts))
        for words in (["--redact"], ["--hash", "comm,payload"], ["--drop", "comm", "--drop", "payload"]):
            hidden = self.page(*words)
            self.assertNotIn("secretary", " ".join(hidden.texts), words)
            self.assertEqual(hidden.columns["weight"], whole.columns["weight"])
            self.assertTrue(any(note.startswith("comm (") for note in hidden.head["hidden"]))
        self.assertIn("secretary", " ".join(self.page("--redact", "--keep", "comm").texts))
        same = [self.page("--redact", "--key", "k").texts for _ in range(2)]
        self.assertEqual(*same)

    def test_addresses_in_payloads_are_hidden(self):
        page = self.page("-i", GOLDEN / "captures/payload.data", "--redact")
        self.assertFalse([text for text in page.texts if text.startswith("0xffffffff") or "0xffffffff" in text])
        self.assertIn("addresses in payloads (dropped)", page.head["hidden"])

    def test_paths_and_command_lines_can_be_left_out(self):
        capture = ["-i", GOLDEN / "captures/threads.data"]
        whole = self.page(*capture)
        command = whole.texts[whole.head["capture"]["command"]]
        self.assertIn("./crew 600 5", command)
        page = self.page(*capture, "--no-args")
        self.assertNotIn("crew 600", " ".join(page.texts))
        page = self.page(*capture, "--no-paths")
        self.assertFalse([text for text in page.texts if "/tmp/c/" in text or "golden/captures" in text])

    def test_a_comparison_has_the_sums_of_what_was_before(self):
        before, after = GOLDEN / "captures/threads.data", GOLDEN / "captures/comm.data"
        page = self.page("-i", after, "--base", before, *SYMBOLS)
        alone = self.page("-i", before, *SYMBOLS)
        self.assertEqual(sum(page.columns["base.0.weight"]), sum(alone.columns["weight"]))
        self.assertEqual(sum(page.columns["base.0.samples"]), len(alone.columns["weight"]))
        self.assertEqual(page.folded(0), self.page("-i", after, *SYMBOLS).folded(0))

    def test_two_builds_under_different_names_are_compared_by_function(self):
        chain = [made.CONTEXT_USER, made.LEAF_A + 4, made.MAIN + 9]
        for name, hits in (("spin_old", 1), ("spin_new", 2)):
            capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).named(name)
            capture.mapped(made.PID, made.START, 0x2000, 0, f"/tmp/c/{name}")
            for _ in range(hits):
                capture.sample(ip=made.LEAF_A + 4, chain=chain)
            (self.folder / name).write_bytes(capture.file())
            (self.folder / "root/tmp/c").mkdir(parents=True, exist_ok=True)
            shutil.copy(GOLDEN / "symfs/tmp/c/spin", self.folder / "root/tmp/c" / name)

        def compared(*words):
            done = self.tacho("page", "-i", "spin_new", "--base", "spin_old", "--symfs", "root", *words, status=None)
            page = Page(done.stdout.decode())
            before = page.paths(page.columns["base.0.node"])
            return page, set(page.paths(page.columns["node"])) & set(before), before, done.stderr.decode()
        hint = "no thread name in common"
        page, common, before, errors = compared()
        self.assertIn(hint, errors)
        self.assertEqual(common, set())
        self.assertEqual(page.texts[page.head["base"]["by_name"]], "spin_old with spin_new")
        self.assertEqual(before, [("spin_old", "main", "leaf_a")])
        page, common, before, errors = compared("--by", "none")
        self.assertNotIn(hint, errors)
        self.assertEqual(common, {("main", "leaf_a")})
        self.assertEqual(page.columns["base.0.weight"], [1000])
        self.assertEqual(page.folded(0), {("main", "leaf_a"): 2000})
        # A module that both have is compared with itself.
        page = self.page("-i", "spin_new", "--base", "spin_new", "--symfs", "root")
        self.assertNotIn("by_name", page.head["base"])
        self.assertEqual(page.paths(page.columns["base.0.node"]), [("spin_new", "main", "leaf_a")])

    def test_wrong_use_is_refused(self):
        for words, message in ((["--by", "pid"], "--by: 'pid' is not known; it is comm or none"),
                               (["--keep", "nothing"], "there is no class 'nothing'"),
                               (["--base", "b.data", "--where", "pid > 1"], "--where cannot be used with --base"),
                               (["--source", "--redact"], "--source shows names and addresses"),
                               (["--max-samples", "0"], "--max-samples")):
            done = self.tacho("page", "-i", GOLDEN / "captures/threads.data", *words, status=1)
            self.assertIn(message, done.stderr.decode())


if __name__ == "__main__":
    programs.main()
