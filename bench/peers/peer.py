"""Shared by the peers of bench/compare: the nets' inputs, the start file that
`troupe bench train --save-start` writes, turns, memory figures. Uses only the
standard library.
"""
import argparse
import json
import math
import os
import statistics
import struct
import sys
import time
import zipfile

# Inputs of the nets: name, shape with the batch, and the limit of whole
# numbers (None: real numbers).
FEEDS = {
    "mlp": [("image", (64, 784), None), ("label", (64, 1), 10)],
    "lenet": [("image", (64, 1, 28, 28), None), ("label", (64, 1), 10)],
    "resnet18": [("image", (32, 3, 32, 32), None), ("label", (32, 1), 10)],
    "resnet50": [("image", (4, 3, 224, 224), None), ("label", (4, 1), 1000)],
    "resnext50": [("image", (4, 3, 224, 224), None), ("label", (4, 1), 1000)],
    "gpt": [("tokens", (8, 128), 256), ("targets", (8, 128, 1), 256)],
    "widedeep": [("ids", (512, 26), 100_000), ("dense", (512, 13), None),
                 ("click", (512, 1), 2)],
    "word2vec": [("first", (128, 1), 2000), ("second", (128, 1), 2000),
                 ("third", (128, 1), 2000), ("fourth", (128, 1), 2000),
                 ("next", (128, 1), 2000)],
}
BATCHES = 8  # made in advance and used in turn
LEARNING_RATE = 0.01


def momentum_of(net):
    return 0.0 if net == "widedeep" else 0.9


class StartFile:
    """The initial values and batches of all sides. Arrays are tuples (dtype as
    NumPy writes it, shape, bytearray) and are read one at a time."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)
        self.names = [name[:-len(".npy")] for name in self.archive.namelist()]

    def parameters(self):
        """Names of Troupe's parameters, "fc_0.w_0"."""
        return [name[len("param/"):] for name in self.names
                if name.startswith("param/")]

    def parameter(self, name):
        return self.array("param/" + name)

    def batches(self):
        """One dictionary of arrays per batch."""
        found = {}
        for name in self.names:
            if name.startswith("feed/"):
                _, number, feed = name.split("/", 2)
                found.setdefault(int(number), {})[feed] = self.array(name)
        return [found[number] for number in sorted(found)]

    def array(self, name):
        """Format: numpy.lib.format, versions 1.0 and 2.0."""
        with self.archive.open(name + ".npy") as file:
            magic = file.read(8)
            size = struct.unpack("<H", file.read(2)) if magic[6] == 1 \
                else struct.unpack("<I", file.read(4))
            text = file.read(size[0]).decode("latin1")
            dtype = text.split("'descr': '")[1].split("'")[0]
            extents = text.split("'shape': (")[1].split(")")[0]
            shape = tuple(int(n) for n in extents.split(",") if n.strip())
            data = bytearray(math.prod(shape) * int(dtype[2:]))
            file.readinto(data)
            return dtype, shape, data


def process_bytes(what):
    """VmRSS: memory that this process uses now; VmHWM: its peak."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(what + ":"):
                return int(line.split()[1]) * 1024
    return 0


def forget_peak():
    """Resets VmHWM, so that the memory used for loading does not count."""
    with open("/proc/self/clear_refs", "w") as references:
        references.write("5")


def timed(step, count, first):
    """Calls step(i), which returns the loss, `count` times."""
    ms, losses = [], []
    for i in range(first, first + count):
        start = time.perf_counter()
        losses.append(step(i))
        ms.append(1e3 * (time.perf_counter() - start))
    return ms, losses


def take_turns(name, step, memory_at_start):
    """Each line of standard input is a number of steps. Runs them and answers
    with a line of JSON, as `troupe bench train --turns` does."""
    print(json.dumps({"peer": name}), flush=True)
    forget_peak()
    done = 0
    for line in sys.stdin:
        ms, losses = timed(step, int(line), done)
        done += int(line)
        grown = process_bytes("VmHWM") - memory_at_start
        print(json.dumps({"ms": ms, "losses": losses, "grown_bytes": grown}),
              flush=True)


def measure(name, arguments, step):
    warm, _ = timed(step, 3, 0)
    count = arguments.steps or max(5, min(2000, int(3000 / warm[-1])))
    ms, losses = timed(step, count, len(warm))
    if not math.isfinite(losses[-1]):
        sys.exit("the loss is not finite")
    if os.environ.get("RANK", "0") == "0":  # of torchrun
        print(json.dumps({"peer": name, "net": arguments.net,
                          "threads": arguments.threads,
                          "ms": statistics.median(ms), "min_ms": min(ms),
                          "loss": losses[-1]}))


def threads_asked():
    """The option --threads, for those who need it before they load a library."""
    parser = argparse.ArgumentParser(add_help=False)
    add_threads(parser)
    return parser.parse_known_args()[0].threads


def add_threads(parser):
    parser.add_argument("--threads", type=int, default=2)


def openmp_binding(threads, cores):
    """Settings that bind each OpenMP thread to a core if the threads take all
    cores, as Troupe binds its workers (take_all_cores in base/cores.hpp)."""
    if threads != len(cores):
        return {}
    return {"OMP_PROC_BIND": "true",
            "OMP_PLACES": ",".join(f"{{{core}}}" for core in sorted(cores))}


def bind_openmp():
    """To be called before OpenMP's library is loaded."""
    os.environ.update(openmp_binding(threads_asked(), os.sched_getaffinity(0)))


def parse_arguments(description, modes):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("net", choices=sorted(FEEDS))
    add_threads(parser)
    parser.add_argument("--mode", choices=modes, default=modes[0])
    parser.add_argument("--steps", type=int, default=0,
                        help="steps that are timed (default: 3 s of them)")
    parser.add_argument("--start", help="initial values and batches, as "
                        "troupe bench train --save-start writes them")
    parser.add_argument("--turns", action="store_true",
                        help="run as many steps as each line of standard "
                        "input says")
    return parser.parse_args()


def run(name, arguments, step, memory_at_start):
    if arguments.turns:
        take_turns(name, step, memory_at_start)
    else:
        measure(name, arguments, step)
