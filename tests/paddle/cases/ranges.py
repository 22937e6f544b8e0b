# SPDX-License-Identifier: Apache-2.0
"""Sequences of numbers, numbers of elements, lines with a one."""
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
    for dims in ((3, 2, 4), (5,), ()):
        x = np.zeros(dims, "float32")
        case("ranges", f"shape_rank{len(dims)}", "shape", {"Input": x}, {"Out": "int32"})
        case("ranges", f"size_rank{len(dims)}", "size", {"Input": x}, {"Out": "int64"})
    make_one_hot()


def make_one_hot():
    def one_hot(name, x, depth=4, dtype=5, out="float32", **more):
        case("ranges", f"one_hot_v2_{name}", "one_hot_v2", {"X": x, **more}, {"Out": out},
             {"depth": depth, "dtype": dtype})
    one_hot("long", np.array([[1, 0], [3, 3]]))
    one_hot("int", np.array([2, 0], "int32"))
    one_hot("column", np.array([[2], [0]]))
    one_hot("double", np.array([2, 0]), dtype=6, out="float64")
    one_hot("integers", np.array([2, 0]), dtype=3, out="int64")
    one_hot("bool", np.array([2, 0]), dtype=0, out="bool")
    one_hot("depth_tensor", np.array([2, 4]), depth=1, depth_tensor=np.array([5], "int32"))
