#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the graphs that ParallelExecutor dumped (BuildStrategy's
debug_graphviz_path) hold: op handles by type, and the merged gradients.

usage: graph_counts.py FOLDER > tests/data/paddle_programs/graphs.json

FOLDER has a folder per program with ssa_allreduce2_multi_devices_graph and
ssa_reduce2_multi_devices_graph.
"""
import collections
import json
import pathlib
import re
import sys

FILES = {"all_reduce": "ssa_allreduce2_multi_devices_graph",
         "reduce": "ssa_reduce2_multi_devices_graph"}
MERGING = ("all_reduce", "fused_all_reduce", "reduce")


def labels(text, prefix):
    found = re.findall(rf'^({prefix}_\d+) \[label="([^"\\]*)', text, re.M)
    return dict(found)


def describe(text):
    ops, variables = labels(text, "op"), labels(text, "var")
    merged = {variables[var]
              for var, op in re.findall(r"^(var_\d+) -> (op_\d+)", text, re.M)
              if ops[op] in MERGING}
    return {"ops": dict(sorted(collections.Counter(ops.values()).items())),
            "merged": sorted(merged - {"dummy"})}


def main():
    folder = pathlib.Path(sys.argv[1])
    graphs = {net.name: {strategy: describe((net / file).read_text())
                         for strategy, file in FILES.items()}
              for net in sorted(folder.iterdir())}
    print(json.dumps(graphs, indent=1))


main()
