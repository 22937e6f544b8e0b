# SPDX-License-Identifier: Apache-2.0
"""Sequences of numbers."""
import numpy as np
from oracle import case


def make():
    for name, dtype, start, end, step in (
            ("float", "float32", 0.5, 4, 0.7), ("double", "float64", 1, 2, 0.1),
            ("int", "int32", 0, 10, 3), ("long", "int64", 2, 17, 5),
            ("down", "int64", 7, -2, -3), ("down_float", "float32", 1, -1, -0.3)):
        bounds = {k: np.array([v], dtype) for k, v in
                  (("Start", start), ("End", end), ("Step", step))}
        case("ranges", f"range_{name}", "range", bounds, {"Out": dtype})
