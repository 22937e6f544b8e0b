"""Describes the machine of a measurement, and how busy it was besides."""
import json
import os
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")  # per second
# Instruction sets that a table names; other ones say little about speed.
NAMED = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX512_BF16",
         "avx512_vnni": "AVX512_VNNI", "amx_bf16": "AMX"}


def busy_seconds(stat):
    """Seconds that all cores together were busy since the start of the machine,
    from the text of /proc/stat. Includes what the host took (steal)."""
    user, nice, system, _, _, irq, softirq, steal = map(
        int, stat.split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def process_seconds(pid):
    """Seconds of computing time of a process and those of its children that it
    has waited for."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS


class OtherLoad:
    """Measures how many cores other programs keep busy.

    own: processes of the measurement, besides this one and its children that
    have ended
    """

    def __init__(self, own=()):
        self.pids = [os.getpid(), *own]
        self.started = time.monotonic()
        self.at_start = self.others_seconds()

    def others_seconds(self):
        with open("/proc/stat") as file:
            return busy_seconds(file.read()) \
                - sum(map(process_seconds, self.pids))

    def cores(self):
        """The mean since the start."""
        taken = self.others_seconds() - self.at_start
        return max(0.0, taken / (time.monotonic() - self.started))


def span(values, form):
    """"3" or "3 to 5"."""
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def instruction_sets(machine):
    if machine.get("without_avx512"):
        return "held back to AVX2"
    return ", ".join(NAMED[name] for name in machine["instruction_sets"]
                     if name in NAMED) or "no AVX2"


def describe(machines):
    """One line about a machine that was measured once or several times."""
    last = machines[-1]
    text = (f"{last['cores']} cores of {last['processor']} "
            f"({instruction_sets(last)}), "
            f"{span([m['gflops'] for m in machines], '{:.0f}')} GFLOP/s, "
            f"{span([m['gb_per_s'] for m in machines], '{:.1f}')} GB/s")
    loads = [m["other_cores"] for m in machines if "other_cores" in m]
    if loads:
        text += (f"; other programs kept {span(loads, '{:.1f}')} cores busy "
                 "meanwhile")
    return text


def json_of(troupe, *arguments):
    return json.loads(subprocess.run(
        [troupe, *arguments, "--json"], check=True, stdin=subprocess.DEVNULL,
        capture_output=True, text=True).stdout)


def measure(troupe):
    """The machine and what it can reach."""
    return json_of(troupe, "bench", "train", "mlp", "--devices", "cpu:1",
                   "--steps", "3")["machine"]


def versions_of_troupe(troupe):
    """"troupe 0.1.0 with oneDNN 2.6.3 and OpenBLAS 0.3.21"."""
    found = json_of(troupe, "doctor")
    kernels = " and ".join(f"{name} {version}"
                           for name, version in found["libraries"].items()
                           if name in ("oneDNN", "OpenBLAS"))
    return f"troupe {found['version']}" + (f" with {kernels}" if kernels else "")
