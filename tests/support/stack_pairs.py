"""The same stacks twice: a probe with two events, one whose stacks the kernel walks (eh) and one that libdw unwinds from copies of
the stack (dwarf). Both take every hit, so their samples come in pairs that can be compared frame by frame."""
from collections import Counter

COPIED = 65528  # bytes of the stack, as much as the kernel copies
NOWHERE = 2**64 - 1  # where libdw stops at the end of a copy
BOTTOMS = ("_start", "_dl_start_user", "clone3", "__clone3", "clone", "__clone", "__GI___clone",
           "runtime.goexit.abi0", "runtime.mstart.abi0", "runtime.rt0_go.abi0", "_rt0_amd64_linux")
APART = 0.001  # seconds at most between the two samples of a hit

# Write one byte to nowhere from many depths: through callbacks of C, generators, sorting and recursion. The first write asks
# for the tables of libraries that nobody else has mapped; there is a second to build them.
PYTHON_WORK = """
import json, os, re, time
out = os.open('/dev/null', os.O_WRONLY)
os.write(out, b'x')
time.sleep(1)
def put(value=None):
    os.write(out, b'x')
    return 0
def deep(depth, call):
    return call() if depth == 0 else deep(depth - 1, call)
for i in range(60):
    deep(i % 9, put)
    deep(i % 5, lambda: json.dumps({'a': [object()]}, default=put))
    sorted([i], key=put)
    re.sub('[0-9]', lambda match: str(put()), '1')
    sum(put(value) for value in map(put, [i]))
"""
PERL_WORK = """
open(my $out, '>', '/dev/null');
syswrite($out, 'x');
sleep(1);
sub put { syswrite($out, 'x'); 0 }
sub deep { my ($depth, $call) = @_; $depth == 0 ? $call->() : deep($depth - 1, $call) }
for my $i (1 .. 60) {
  deep($i % 9, \\&put);
  my @sorted = sort { put(); $a <=> $b } (2, 1);
  my $text = '1'; $text =~ s/(1)/put()/e;
  deep($i % 4, sub { map { put() } (1) });
  eval 'put()';
}
"""


def events(probe, period=1, copied=COPIED):
    """Options of `tacho record`."""
    return ["-m", "32M", "-e", f"{probe}/period={period},call-graph=ehframe,name=walked/",
            "-e", f"{probe}/period={period},call-graph=dwarf,stack-size={copied},name=copied/"]


def samples_in(text):
    """(thread, seconds, event, frames, leaf first) of `tacho script -F tid,time,event,ip,sym --no-inline`."""
    for block in text.split("\n\n"):
        head, *lines = [line for line in block.splitlines() if line.strip()] or [""]
        words = head.split()
        if len(words) >= 3:
            yield words[0], float(words[1].rstrip(":")), words[-1].rstrip(":"), [
                (int(line.split()[0], 16), line.split(None, 1)[-1].strip()) for line in lines]


def paired(samples, first):
    """(walked, copied) frames of each hit, with `first` as the first event. A hit without one of the two samples is left out."""
    waiting = {}
    for thread, time, name, frames in samples:
        if name == first:
            waiting[thread] = (time, frames)
        elif thread in waiting:
            begin, others = waiting.pop(thread)
            if time - begin < APART:
                yield (others, frames) if first == "walked" else (frames, others)


def pairs(text):
    """(walked, copied) frames of each hit. The kernel gives each hit to the events in the same order: the wrong one would pair a
    sample with one of the next hit, and leave some of each thread without another one."""
    samples = list(samples_in(text))
    return max((list(paired(samples, first)) for first in ("copied", "walked")), key=len)


def agree(walked, copied):
    """How many frames, from the leaf on, are those of the other. libdw's are one byte before the return address."""
    count = 0
    for (mine, _), (theirs, _) in zip(walked, copied):
        if mine - theirs not in (0, 1):
            break
        count += 1
    return count


def is_whole(frames):
    """Whether the stack reaches the first function of the thread."""
    return bool(frames) and frames[-1][1] in BOTTOMS


def compare(text, bottom=is_whole, others=None):
    """Counts of pairs: "equal"; "walked is shorter" and "copied is shorter", where one is the begin of the other;
    "different"; whole ones of each; and examples of different ones. `others`: a Counter of all that are not equal, by
    what they are, the last frame that both have, and the next one of each."""
    counts, examples = Counter(), []
    for walked, copied in pairs(text):
        if copied and copied[-1][0] == NOWHERE:
            copied = copied[:-1]
        counts["pairs"] += 1
        counts["walked whole"] += bottom(walked)
        counts["copied whole"] += bottom(copied)
        same = agree(walked, copied)
        if same == len(walked) == len(copied):
            kind = "equal"
        elif same == len(walked):
            kind = "walked is shorter"
        elif same == len(copied):
            kind = "copied is shorter"
        else:
            kind = "different"
            examples.append((walked, copied, same))
        counts[kind] += 1
        if others is not None and kind != "equal":
            last, mine, theirs = (name_at(frames, at) for frames, at in ((walked, same - 1), (walked, same), (copied, same)))
            others[kind, last, mine, theirs] += 1
    return counts, examples


def name_at(frames, at):
    return frames[at][1] if 0 <= at < len(frames) else "-"
