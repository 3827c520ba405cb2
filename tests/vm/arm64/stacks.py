"""Stacks of `script` texts: perf's own of the machine that recorded, beside tacho's of the same capture elsewhere."""
import subprocess
from collections import Counter

SHOWN = 6  # kinds of differences, for each capture
# Differences that are known to be perf's: it shows a function twice, by a link register that the function has used since, or a
# signed address; or addresses that are none.
KNOWN_TO_DIFFER = {"plain": 0.01, "kernel": 0.01, "fp": 0.02, "simpleperf": 0.01, "simpleperf_fp": 0.02}  # share of the samples
# Captures of the same source as `plain`, where perf 6.1's libunwind gives up: it does not know .cfi_negate_ra_state, and has no
# .debug_frame of programs. There the stacks must equal the ones that perf found for `plain`.
LIKE_PLAIN = ("pac", "pac_leaf", "debug_frame", "sve", "simpleperf_pac", "simpleperf_debug_frame")
WITHOUT_PERF = ("bare_pac",)  # the same, of another source: all stacks must be whole
OWN = ("leaf", "middle", "recurse", "saves_many", "variable", "large", "compare", "sorts", "on_signal", "on_own_stack", "interrupted",
       "last_call", "round_of_calls", "thread", "main")
OF_PLAIN_AT_LEAST = 0.99  # the samples of rare places, as the dynamic linker's, are not in both


def samples_in(text):
    """(first line, [(address, name, file)], leaf first) of each sample."""
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        frames = []
        for line in lines[1:]:
            address, rest = line.split(None, 1)
            name, _, file = rest.rpartition(" (")
            frames.append((int(address, 16), name.strip(), file.rstrip(")")))
        yield " ".join(lines[0].split()), frames


def is_same_frame(theirs, ours, is_interrupted):
    """A capture of perf's has no vdso, so its names are not here. What a signal interrupted is no return address, but perf
    takes 1 from it as from those on arm64 (not on x86-64)."""
    if theirs[2] == ours[2] == "[vdso]":
        return theirs[0] == ours[0]
    return theirs == ours or (is_interrupted and (theirs[0] + 1, *theirs[1:]) == ours)


def where_they_part(theirs, ours):
    """How many frames are the same, from the leaf on."""
    same = 0
    while same < min(len(theirs), len(ours)) and is_same_frame(
            theirs[same], ours[same], same > 0 and theirs[same - 1][1] in ("__kernel_rt_sigreturn", "bare_return")):
        same += 1
    return same


def compare(theirs, ours):
    """Counts, and kinds of differences with one example each: by what the last common frame and the next ones are."""
    counts, kinds, examples = Counter(), Counter(), {}
    pairs = list(zip(samples_in(theirs), samples_in(ours)))
    counts["samples of perf"], counts["of tacho"] = (sum(1 for _ in samples_in(text)) for text in (theirs, ours))
    for (head, mine), (other_head, other) in pairs:
        counts["whole by perf"] += bool(mine) and is_bottom(mine[-1])
        counts["whole by tacho"] += bool(other) and is_bottom(other[-1])
        same = where_they_part(mine, other)
        if head == other_head and same == len(mine) == len(other):
            counts["equal"] += 1
            continue
        name = lambda frames, at: f"{frames[at][1]} ({frames[at][2]})" if 0 <= at < len(frames) else "-"  # noqa: E731
        kind = (name(mine, same - 1), name(mine, same), name(other, same)) if head == other_head else ("heads", head, other_head)
        kinds[kind] += 1
        examples.setdefault(kind, (head, mine, other, same))
    return counts, kinds, examples


def is_bottom(frame):
    return frame[1] in ("_start", "thread_start", "clone", "__clone") or "libc.so" in frame[2]


def own_calls(frames):
    """The functions of calls.c, and where a signal came, leaf first."""
    names = []
    for at, (_, name, file) in enumerate(frames):
        is_return = file == "[vdso]" and at > 0 and frames[at - 1][2] != "[vdso]" and frames[at - 1][0] < 1 << 63  # and not of a system call
        if is_return or name in OWN:
            names.append("(signal)" if is_return else name)
    return tuple(names)


def compare_with_plain(plain, ours):
    """The number of tacho's stacks that are among perf's of `plain`, and the others."""
    known = {own_calls(frames) for _, frames in samples_in(plain)}
    stacks = [own_calls(frames) for _, frames in samples_in(ours)]
    unknown = Counter(stack for stack in stacks if stack not in known)
    return len(stacks), sum(unknown.values()), unknown


def compare_all(folder, programs, captures, fields):
    """Exit status: 0 when the stacks are perf's, or the ones that perf should have found."""
    differ = 0
    for name in captures:
        theirs = (folder / f"out/{name}.txt").read_text()
        done = subprocess.run([programs / "tacho", "script", "--no-inline", "--max-stack", "512", "-i", folder / f"out/{name}.data", "--symfs", folder / "root",
                               "--kallsyms", folder / "out/kallsyms", "-F", fields], capture_output=True, text=True, check=True)
        (folder / f"out/{name}.tacho.txt").write_text(done.stdout)
        counts, kinds, examples = compare(theirs, done.stdout)
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in counts.items()), flush=True)
        if name in LIKE_PLAIN:
            stacks, others, unknown = compare_with_plain((folder / "out/plain.txt").read_text(), done.stdout)
            print(f"    {stacks - others} of {stacks} are stacks that perf found of plain")
            for stack, times in unknown.most_common(SHOWN):
                print(f"    {times} times another: {' '.join(stack)}")
            differ += stacks == 0 or others > (1 - OF_PLAIN_AT_LEAST) * stacks
            continue
        for kind, times in kinds.most_common(SHOWN):
            print(f"    {times} times after {kind[0]}: perf has {kind[1]}, tacho {kind[2]}, as at {examples[kind][0]}")
        samples = counts["samples of perf"]
        wrong = samples - counts["whole by tacho"] if name in WITHOUT_PERF else sum(kinds.values())
        differ += samples == 0 or samples != counts["of tacho"] or wrong > KNOWN_TO_DIFFER.get(name, 0) * samples
    return 1 if differ else 0
