#!/usr/bin/env python3
"""Makes the manual page of one command from its --help, which walks the same rows as the parser.

  help_to_man.py VERSION PROGRAM [COMMAND]      e.g. help_to_man.py 1.2.3 build/bin/tacho-report script
"""
import re
import subprocess
import sys

SEE_ALSO = r"\fBtacho\fR(1), \fBtacho-record\fR(1), \fBtacho-script\fR(1), \fBtacho-report\fR(1), \fBperf\fR(1)"


def escaped(text):
    """Text that roff prints as it is."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return re.sub(r"^\.", r"\&.", text, flags=re.MULTILINE)


def options(block):
    """[(spelling, help)] from the lines below "Options:"."""
    found = []
    for line in block.splitlines():
        match = re.match(r"(?:  -|      --)", line)
        if match:
            spelling, _, text = line.strip().partition("  ")
            found.append([spelling, [text.strip()]])
        elif line.strip():
            found[-1][1].append(line.strip())
    return [(spelling, " ".join(part for part in text if part)) for spelling, text in found]


def notes(epilog):
    """Indented lines (examples) stay as they are; the others are filled, and an empty line ends a paragraph."""
    for line in epilog.rstrip().splitlines():
        if not line.strip():
            yield ".PP"
        elif line[0] == " ":
            yield from [".nf", escaped(line), ".fi"]
        else:
            yield escaped(line)


def sections(epilog):
    """[(title, text)]: paragraphs that begin with "Examples:" or "Exit status:" have sections of their own."""
    titles = {"Examples:": "EXAMPLES", "Exit status:": "EXIT STATUS"}
    found = {}
    for paragraph in re.split(r"\n{2,}", epilog.strip("\n")):
        word = next((word for word in titles if paragraph.startswith(word)), "")
        found.setdefault(titles.get(word, "NOTES"), []).append(paragraph.removeprefix(word).strip("\n") if word else paragraph)
    return [(title, "\n\n".join(found[title])) for title in ("NOTES", "EXAMPLES", "EXIT STATUS") if title in found]


def page(version, name, text):
    usage, rest = text.split("\n\n", 1)
    description, rest = rest.split("\n\nOptions:\n", 1)
    block, _, epilog = rest.partition("\n\n")
    common = ""
    if epilog.startswith("Common options:\n"):
        common, _, epilog = epilog.removeprefix("Common options:\n").partition("\n\n")
    synopsis = usage.removeprefix("Usage: ")
    program = " ".join(name.split("-", 1))
    summary = re.split(r"(?<=[.;:])\s", " ".join(description.split()))[0].rstrip(".;:")
    out = [
        f'.TH {name.upper()} 1 "" "tacho {version}" "tacho"',
        ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}",
        ".SH SYNOPSIS", f"\\fB{escaped(program)}\\fR {escaped(synopsis.removeprefix(program).strip())}",
        ".SH DESCRIPTION", escaped(description),
        ".SH OPTIONS",
    ]
    for title, rows in [("", block), (".SS Common options", common)]:
        out += [title] if rows and title else []
        for spelling, meaning in options(rows):
            out += [".TP", f"\\fB{escaped(spelling)}\\fR", escaped(meaning)]
    for title, text in sections(epilog):
        out += [f".SH {title}", *notes(text.lstrip(" ") if title == "EXIT STATUS" else text)]
    out += [".SH SEE ALSO", SEE_ALSO]
    return "\n".join(out) + "\n"


def main():
    version, program, *command = sys.argv[1:]
    text = subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout
    name = "tacho-" + command[0].lstrip("-") if command else program.rsplit("/", 1)[-1]
    sys.stdout.write(page(version, name, text))


if __name__ == "__main__":
    main()
