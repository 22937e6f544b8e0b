# SPDX-License-Identifier: Apache-2.0
"""Repetition along axes, and edges around tensors."""
import numpy as np
from oracle import case

random = np.random.RandomState(7)


def values(*dims, dtype="float32"):
    return random.uniform(-9, 9, dims).astype(dtype)


def ints(*v):
    return np.array(v, "int32")


def expand(op, name, x, attrs, grads=("X",), **more):
    case("expanding", f"{op}_{name}", op, {"X": x, **more}, {"Out": str(x.dtype)}, attrs,
         grads=grads)


def make_expand():
    for name, dims, target in (
            ("first", (1, 3), [4, 3]), ("last", (3, 1), [3, 2]), ("rank", (3,), [2, 4, 3]),
            ("kept", (1, 3), [2, -1]), ("middle", (2, 1, 3), [2, 4, 3]),
            ("alternating", (1, 2, 1, 3), [2, 2, 3, 3]), ("same", (2, 3), [2, 3]),
            ("one", (1,), [5]), ("scalar", (), [2, 3])):
        expand("expand_v2", name, values(*dims), {"shape": target})
    expand("expand_v2", "shape_input", values(1, 3), {"shape": [-1, -1]}, Shape=ints(2, 3))
    expand("expand_v2", "shape_tensors", values(1, 3), {"shape": [-1, -1]},
           expand_shapes_tensor=[ints(2), ints(3)])
    expand("expand_as_v2", "y", values(1, 3), {"target_shape": [2, 4, 3]}, Y=values(2, 4, 3))
    expand("expand_as_v2", "attribute", values(4, 1), {"target_shape": [4, 3]})
    for name, dims, times in (
            ("rows", (2, 3), [3, 1]), ("columns", (2, 3), [1, 2]), ("both", (2, 3), [2, 3]),
            ("rank", (2, 3), [2, 2, 1]), ("fewer", (2, 2, 3), [2]), ("one", (2, 3), [1, 1]),
            ("scalar", (), [3])):
        expand("tile", name, values(*dims), {"repeat_times": times})
    expand("tile", "input", values(2, 3), {"repeat_times": [-1, -1]}, RepeatTimes=ints(2, 2))
    expand("tile", "tensors", values(2, 3), {"repeat_times": [-1, -1]},
           repeat_times_tensor=[ints(1), ints(3)])
    for dtype in ("float64", "int32", "int64", "bool"):
        grads = ["X"] if dtype == "float64" else []
        expand("expand_v2", dtype, values(1, 2, dtype=dtype), {"shape": [3, 2]}, grads)
        expand("tile", dtype, values(2, dtype=dtype), {"repeat_times": [2]}, grads)
    case("expanding", "meshgrid", "meshgrid", {"X": [values(3), values(2), values(4)]},
         {"Out": ["float32"] * 3}, grads=["X"], grad_outputs=["Out"])


def make_pad():
    expand("pad", "matrix", values(2, 3), {"paddings": [1, 0, 2, 1], "pad_value": 0.5})
    expand("pad", "rank3", values(2, 2, 3), {"paddings": [0, 1, 1, 1, 2, 0], "pad_value": -1.0})
    expand("pad", "vector", values(4), {"paddings": [2, 3], "pad_value": 0.0})
    expand("pad", "none", values(2, 3), {"paddings": [0, 0, 0, 0], "pad_value": 0.0})
    for mode in ("constant", "reflect", "replicate", "circular"):
        for layout, dims in (("NCDHW", (2, 2, 3, 4, 3)), ("NDHWC", (1, 3, 4, 3, 2))):
            expand("pad3d", f"{mode}_{layout}", values(*dims),
                   {"paddings": [1, 2, 2, 0, 1, 1], "mode": mode, "value": 1.5,
                    "data_format": layout})
    expand("pad3d", "image", values(1, 2, 1, 3, 4),
           {"paddings": [1, 1, 2, 0, 0, 0], "mode": "constant", "value": 0.0})
    expand("pad3d", "input", values(1, 1, 2, 2, 2), {"paddings": [0] * 6, "mode": "constant", "value": 2.0},
           Paddings=ints(1, 0, 0, 1, 1, 0))
    expand("pad3d", "float64", values(1, 1, 2, 2, 2, dtype="float64"),
           {"paddings": [1, 1, 1, 1, 1, 1], "mode": "reflect"})


def make():
    make_expand()
    make_pad()
