"""Parser of SVGs of tacho flamegraph, without their script."""
import collections
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

SVG = "{http://www.w3.org/2000/svg}"
ROW = 17


@dataclass
class Frame:
    name: str
    kind: str
    module: str
    row: int
    x: float
    width: float
    weight: int
    own: int
    before: int = 0
    after: int = 0
    noise: float = 0
    line: str = ""
    classes: list = field(default_factory=list)
    path: tuple = ()


class Picture:
    def __init__(self, svg):
        self.root = ElementTree.fromstring(svg)
        metadata = {one.get("class"): one.text or "" for one in self.root.findall(f"{SVG}metadata")}
        modules = metadata["modules"].split("\n")
        lines = metadata["lines"].split("\n") if "lines" in metadata else []
        self.names = []
        for number, line in enumerate(metadata["names"].split("\n")):
            kind, module, name = line.split(" ", 2)
            self.names.append((name, kind, modules[int(module)], lines[number] if lines else ""))
        self.notes = [one.text for one in self.root.iter(f"{SVG}text") if one.get("class") == "note"]
        self.panes = [self.frames(pane) for pane in self.root.findall(f"{SVG}g") if pane.get("class") == "pane"]

    def frames(self, pane):
        found, path, base = [], [], None
        for rect in pane.find(f"{SVG}g[@class='frames']"):
            number = lambda key, kind=int: kind(rect.get(key, "0"))
            base = number("y") if base is None else base
            name, kind, module, line = self.names[number("n")]
            frame = Frame(name, kind, module, abs(number("y") - base) // ROW, number("x", float), number("width", float),
                          number("w", float), number("s", float), number("b", float), number("a", float),
                          number("e", float), line, rect.get("class").split())
            del path[frame.row:]
            # Names as in folded text: ';' separates frames, and thread names have no blanks.
            path.append((name.replace(" ", "_") if kind == "t" else name).replace(";", ":"))
            frame.path = tuple(path[1:])  # without "all"
            found.append(frame)
        return found

    def weights(self, pane=0):
        """{names from the root: weight}; siblings of one name, as of two modules, are added up."""
        sums = collections.Counter()
        for frame in self.panes[pane]:
            sums[frame.path] += frame.weight
        return dict(sums)


def weights_of_folded(text):
    """The same of lines "root;...;leaf WEIGHT"."""
    sums = collections.Counter()
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        names = stack.split(";")
        for end in range(len(names) + 1):
            sums[tuple(names[:end])] += int(weight)
    return dict(sums)
