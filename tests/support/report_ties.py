"""Compares two texts of `report --stdio`, ignoring the order of rows with equal numbers.

perf sorts rows and branches of call graphs by their share. Among equals it goes by where its objects happened to lie
in memory, so those orders come out otherwise in another run. Everything else counts, byte for byte.
"""
import re

ROW = re.compile(rb"^ *(?:\d+ +)?\d+\.\d\d%")
SHARE = re.compile(rb"--(\d+(?:\.\d\d%)?)--|^ *(\d+\.\d\d%) *$|^(\d+\.\d\d%) ", re.MULTILINE)
CHANCE = re.compile(rb"^# \(Tip: ")


def blocks(text):
    """[(share, [lines])]: each row with the graph below it; lines outside of the tables have no share."""
    found = []
    # perf reads an uninitialized word there, so the mark is random.
    for line in text.replace(b"[...] (inlined)", b"[...]").split(b"\n"):
        if CHANCE.match(line):
            continue
        row = ROW.match(line)
        if row and not re.match(rb"^\d+\.\d\d% \S+;?\S*$", line):
            found.append((row.group(0), [line]))
        elif line.startswith(b"#") or not found or found[-1][0] is None:
            if not found or found[-1][0] is not None:
                found.append((None, []))
            found[-1][1].append(line)
        else:
            found[-1][1].append(line)
    # The last row of a table has the empty lines after it, whichever of equal rows that is.
    for _, lines in found:
        while len(lines) > 1 and not lines[-1].strip():
            lines.pop()
    return found


def has_equal_branches(lines):
    shares = [next(filter(None, match.groups())) for match in SHARE.finditer(b"\n".join(lines[1:]))]
    return len(shares) != len(set(shares))


def bare(lines):
    """The text of a graph without its lines."""
    return sorted(re.sub(rb"^[ |]*-*", b"", line).strip() for line in lines)


def difference(ours, theirs):
    """("", number of blocks that differ by the order of equals only), or what differs and 0."""
    mine, other = blocks(ours), blocks(theirs)
    if [share for share, _ in mine] != [share for share, _ in other]:
        at = next((i for i, (a, b) in enumerate(zip(mine, other)) if a[0] != b[0]), min(len(mine), len(other)))
        return f"row {at} of {len(other)} (ours {len(mine)}): {mine[at:at + 1]} against {other[at:at + 1]}", 0
    ties, start = 0, 0
    while start < len(mine):
        end = start + 1
        while end < len(mine) and mine[start][0] is not None and mine[end][0] == mine[start][0]:
            end += 1
        left = [lines for _, lines in other[start:end]]
        for _, lines in mine[start:end]:
            equal = next((i for i, theirs_lines in enumerate(left) if theirs_lines == lines), None)
            if equal is not None:
                ties += equal != 0
                del left[equal]
                continue
            same = next((i for i, theirs_lines in enumerate(left) if theirs_lines[0] == lines[0]
                         and bare(theirs_lines) == bare(lines) and has_equal_branches(lines)), None)
            if same is None:
                return first_difference(lines, left[0]), 0
            ties += 1
            del left[same]
        start = end
    return "", ties


def first_difference(mine, other):
    for number, (a, b) in enumerate(zip(mine, other)):
        if a != b:
            context = b"\n".join(other[max(0, number - 3):number]).decode(errors="replace")
            return f"\n{context}\n- {b!r}\n+ {a!r}"
    return f"{len(other)} lines against ours, {len(mine)}, below {other[0]!r}"
