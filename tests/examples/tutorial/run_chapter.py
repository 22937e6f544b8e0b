"""Runs a chapter's program in an empty folder that has the repository's `data`, and
compares what it prints with the block ```output of the chapter's page: words and whole
numbers must be equal, numbers with a decimal point close.

usage: run_chapter.py PAGE DATA COMMAND...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

NUMBER = re.compile(r"-?\d+\.\d+")


def shown_in(page):
    text = pathlib.Path(page).read_text()
    return re.search(r"^```output\n(.*?)^```", text, flags=re.M | re.S)[1]


def printed_by(command, data):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "data").symlink_to(data)
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                             check=False)
    if ran.returncode != 0:
        sys.exit(f"exit code {ran.returncode}: {ran.stderr}")
    return ran.stdout


def is_close(one, other):
    """Kernels round differently on other processors, and training makes more of it."""
    return abs(one - other) <= 0.02 + 0.1 * abs(other)


def is_same(printed, shown):
    return (NUMBER.sub("#", printed) == NUMBER.sub("#", shown) and
            all(is_close(float(a), float(b)) for a, b in
                zip(NUMBER.findall(printed), NUMBER.findall(shown))))


def main():
    page, data, *command = sys.argv[1:]
    shown = shown_in(page)
    # Other processes of a launch print whenever they come to it.
    printed = "".join(line for line in printed_by(command, data).splitlines(True)
                      if not re.match(r"\d+\| ", line))
    if not is_same(printed, shown):
        sys.exit(f"{page} shows:\n{shown}but the program printed:\n{printed}")


if __name__ == "__main__":
    main()
