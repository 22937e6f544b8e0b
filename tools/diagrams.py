"""Draws the diagrams of the pages, which are text for GitHub (Mermaid), as SVG for the site.
Knows what the pages use: `flowchart`, drawn by Graphviz's `dot`, and `sequenceDiagram`.
"""
import html
import re
import shutil
import subprocess

FONT = 12     # pixels
LETTER = 7.2  # width of one, about
ROW = 26
HEAD = 30     # height of a participant's box


def svg(text):
    """None if the program that would draw it is not installed."""
    lines = [line.strip() for line in text.strip().splitlines()]
    kind, *direction = lines[0].split()
    if kind == "flowchart":
        return flowchart(direction[0], lines[1:]) if shutil.which("dot") else None
    if kind == "sequenceDiagram":
        return Sequence(lines[1:]).svg()
    raise ValueError(f"no diagram {kind}")


def in_colour_of_text(picture):
    """The site has a dark mode."""
    picture = picture.replace('"black"', '"currentColor"')
    return picture.replace("<svg ", '<svg fill="currentColor" style="max-width:100%;height:auto" ', 1)


# -- flowchart ----------------------------------------------------------------

NODE = re.compile(r"(\w+)(?:\[([^\]]*)\])?\s*")
ARROW = re.compile(r"-->\s*|--\s+(.*?)\s+-->\s*")


def flowchart(direction, lines):
    """Lines as `a[text] --> b -- text of the arrow --> c`."""
    names, edges = {}, []
    for line in filter(None, lines):
        at, last, arrow = 0, None, None
        while at < len(line):
            node = NODE.match(line, at)
            if not node:
                raise ValueError(f"no node: {line[at:]}")
            names[node[1]] = node[2] or names.get(node[1], node[1])
            if last:
                edges.append((last, node[1], arrow))
            last, at = node[1], node.end()
            if at < len(line):
                found = ARROW.match(line, at)
                if not found:
                    raise ValueError(f"no arrow: {line[at:]}")
                arrow, at = found[1], found.end()
    quoted = lambda text: '"' + text.replace('"', '\\"') + '"'
    dot = [f"digraph {{ rankdir={direction} bgcolor=transparent",
           "node [shape=box style=rounded fontname=sans fontsize=11 height=0.4]",
           "edge [fontname=sans fontsize=10 arrowsize=0.7]"]
    dot += [f"{quoted(name)} [label={quoted(text)}]" for name, text in names.items()]
    dot += [f"{quoted(a)} -> {quoted(b)}" + (f" [label={quoted(' ' + text + ' ')}]" if text else "")
            for a, b, text in edges]
    drawn = subprocess.run(["dot", "-Tsvg"], input="\n".join([*dot, "}"]), text=True,
                           stdout=subprocess.PIPE, check=True).stdout
    # Without the XML header, comments, and tooltips that repeat the names.
    drawn = re.sub(r"<!--.*?-->|<title>.*?</title>", "", drawn[drawn.index("<svg"):], flags=re.S)
    return in_colour_of_text(re.sub(r"\n+", "\n", drawn))


# -- sequenceDiagram ----------------------------------------------------------

PARTICIPANT = re.compile(r"participant (\w+)(?: as (.*))?$")
MESSAGE = re.compile(r"(\w+?)(-?->>)(\w+): (.*)$")
NOTE = re.compile(r"Note over (\w+): (.*)$")


class Sequence:
    """Participants side by side, messages below each other."""

    def __init__(self, lines):
        self.names, self.rows = {}, []
        for line in filter(None, lines):
            found = PARTICIPANT.match(line)
            if found:
                self.names[found[1]] = found[2] or found[1]
                continue
            found = MESSAGE.match(line) or NOTE.match(line)
            if not found:
                raise ValueError(f"no message: {line}")
            self.rows.append(found.groups())
        self.parts = []
        self.place()

    def place(self):
        """Each participant as far from the last as its box and the texts need."""
        order = list(self.names)
        width = {name: len(text) * LETTER + 16 for name, text in self.names.items()}
        self.x, at = {order[0]: width[order[0]] / 2 + 1}, 0.0
        for i, name in enumerate(order[1:], 1):
            last = order[i - 1]
            at = self.x[last] + (width[last] + width[name]) / 2 + 12
            for row in self.rows:
                if len(row) == 4 and name in (row[0], row[2]):
                    other = row[2] if name == row[0] else row[0]
                    if other in self.x:
                        at = max(at, self.x[other] + len(row[3]) * LETTER + 24)
            self.x[name] = at
        self.width = self.x[order[-1]] + width[order[-1]] / 2 + 1
        self.box_width = width

    def text(self, x, y, text):
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle">'
                          f"{html.escape(text)}</text>")

    def box(self, x, y, width, height):
        self.parts.append(f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" '
                          f'height="{height}" rx="4" fill="none" stroke="black"/>')

    def message(self, y, sender, arrow, to, text):
        x1, x2 = self.x[sender], self.x[to]
        dashes = ' stroke-dasharray="5 4"' if arrow == "-->>" else ""
        self.text((x1 + x2) / 2, y - 5, text)
        self.parts.append(f'<line x1="{x1:.0f}" y1="{y}" x2="{x2:.0f}" y2="{y}" '
                          f'stroke="black"{dashes}/>')
        back = -7 if x2 > x1 else 7
        self.parts.append(f'<path d="M{x2:.0f} {y} l{back} -4 v8 z"/>')

    def svg(self):
        bottom = HEAD + ROW * (len(self.rows) + 1)
        for name, text in self.names.items():
            self.box(self.x[name], 1, self.box_width[name], HEAD - 2)
            self.text(self.x[name], HEAD / 2 + 4, text)
            self.parts.append(f'<line x1="{self.x[name]:.0f}" y1="{HEAD}" x2="{self.x[name]:.0f}" '
                              f'y2="{bottom}" stroke="black" stroke-opacity="0.3"/>')
        for i, row in enumerate(self.rows):
            y = HEAD + ROW * (i + 1)
            if len(row) == 4:
                self.message(y, *row)
            else:
                self.text(self.x[row[0]], y - 5, row[1])
                self.box(self.x[row[0]], y - 19, len(row[1]) * LETTER + 12, 20)
        body = "\n".join(self.parts)
        return in_colour_of_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {bottom}" '
            f'width="{self.width:.0f}" font-family="sans-serif" font-size="{FONT}">\n'
            f"{body}\n</svg>")
