"""The public headers, and what they declare, for the tools of this folder. The public
headers are those under HEADERS in the CMakeLists.txt of each layer.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

NAMESPACE = re.compile(r"(?:inline )?namespace ([\w:]+) \{")
CLASS = re.compile(r"(?:class|struct) (?:\[\[\w+\]\] )?(\w+)(?: final)? ?[:{]")
ENUM = re.compile(r"enum (?:class )?(\w+)")
# A function's name is the last word before its parameters. Declarations begin
# at the left margin: clang-format sees to that.
FUNCTION = re.compile(r"[\w:<>,*&\[\]() \n]*?\b(operator\S+?|\w+)\(")
VARIABLE = re.compile(r"extern (?:const )?[\w:<>]+ (\w+)")
NO_SYMBOL = ("inline ", "constexpr ", "template", "using ", "enum ", "#", "//",
             "}", "concept ", "static ", "requires ", "friend ", "typedef ", "static_assert",
             "public:", "protected:", "private:", "class ", "struct ")


def public_headers():
    """The paths, each below the folder of its layer."""
    for listing in sorted(ROOT.glob("*/CMakeLists.txt")):
        for block in re.findall(r"HEADERS\n((?:\s+\S+\.hpp\n)+)", listing.read_text()):
            for name in block.split():
                yield listing.parent / name


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def statements(text):
    """The declarations of a header that begin at the left margin, each with its
    namespace."""
    space = []
    for part in re.split(r"\n(?=\S)", "\n" + without_comments(text)):
        found = NAMESPACE.match(part)
        if found:
            space.append(found[1])
        elif part.startswith("}") and space and not part.startswith("};"):
            # `}` at the margin ends a namespace or an inline function's body.
            if part.strip() == "}" and open_body:
                open_body = False
            else:
                space.pop()
        else:
            open_body = part.rstrip().endswith("{") or (
                "{" in part and "}" not in part.rsplit("{", 1)[1])
            yield "::".join(space), part


def declarations(header):
    """(kind, namespace, name) of the classes, enums, and the functions and variables
    with a symbol, that a header declares for its users."""
    for space, part in statements(header.read_text()):
        if not space.startswith("troupe") or "detail" in space:
            continue
        for kind, pattern in (("class", CLASS), ("enum", ENUM)):
            found = pattern.match(part)
            if found:
                yield kind, space, found[1]
        if part.startswith(NO_SYMBOL):
            continue
        found = VARIABLE.match(part)
        if found:
            yield "variable", space, found[1]
            continue
        found = FUNCTION.match(re.sub(r"\[\[.*?\]\]\s*", "", part))
        if found:
            yield "function", space, found[1]
