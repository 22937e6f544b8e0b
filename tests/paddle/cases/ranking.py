# SPDX-License-Identifier: Apache-2.0
"""Largest and smallest elements, sorted ones. No two elements are equal: which
of them comes first, Paddle leaves open."""
import numpy as np
from oracle import case

random = np.random.RandomState(9)
NUMBERS = ("float64", "int32", "int64")


def values(*dims, dtype="float32"):
    n = int(np.prod(dims))
    return (random.permutation(n) * 3 - n).reshape(dims).astype(dtype)


def rank(op, name, x, attrs, grads=("X",), **more):
    case("ranking", f"{op}_{name}", op, {"X": x, **more},
         {"Out": str(x.dtype), "Indices": "int64"}, attrs, grads=grads)


def make_top_k():
    x = values(3, 5, 4)
    rank("top_k", "rows", x, {"k": 2})
    rank("top_k", "matrix", values(4, 6), {"k": 1})
    rank("top_k", "k_input", values(3, 5), {"k": 1}, K=np.array([2], "int32"), grads=[])
    for axis in (0, 1, -1):
        for largest in (True, False):
            rank("top_k_v2", f"axis{axis}_{'largest' if largest else 'smallest'}", x,
                 {"k": 2, "axis": axis, "largest": largest, "sorted": True})
    rank("top_k_v2", "all", x, {"k": 4, "axis": 2, "largest": True, "sorted": True})
    rank("top_k_v2", "k_input", values(3, 5), {"k": 1, "axis": -1, "largest": True, "sorted": True},
         K=np.array([3], "int32"), grads=[])
    nan = np.array([[1, np.nan, 3, 2]], "float32")
    for largest in (True, False):
        rank("top_k_v2", f"nan_{'largest' if largest else 'smallest'}", nan,
             {"k": 3, "axis": 1, "largest": largest, "sorted": True}, grads=[])
    for dtype in NUMBERS:
        rank("top_k_v2", dtype, values(3, 5, dtype=dtype),
             {"k": 2, "axis": 1, "largest": True, "sorted": True},
             grads=["X"] if dtype == "float64" else [])


def make_argsort():
    x = values(3, 5, 4)
    for axis in (0, 1, 2, -1):
        for descending in (False, True):
            rank("argsort", f"axis{axis}_{'down' if descending else 'up'}", x,
                 {"axis": axis, "descending": descending})
    rank("argsort", "nan", np.array([1, np.nan, -3, 2], "float32"), {"axis": 0, "descending": False},
         grads=[])
    rank("argsort", "scalar", np.array(2, "float32"), {"axis": -1, "descending": False}, grads=[])
    for dtype in NUMBERS:
        rank("argsort", dtype, values(7, dtype=dtype), {"axis": 0, "descending": False},
             grads=["X"] if dtype == "float64" else [])


def make_extremes():
    x = values(3, 5, 4)
    for op in ("arg_max", "arg_min"):
        def best(name, y=x, out="int64", **attrs):
            case("ranking", f"{op}_{name}", op, {"X": y}, {"Out": out},
                 {"axis": -1, "keepdims": False, "flatten": False, "dtype": 3, **attrs})
        for axis in (0, 1, 2, -2):
            best(f"axis{axis}", axis=axis)
        best("keep", axis=1, keepdims=True)
        best("flat", flatten=True)
        best("flat_keep", flatten=True, keepdims=True)
        best("int32", axis=0, dtype=2, out="int32")
        best("vector", values(6), axis=0)
        best("equal", np.array([[1, 3, 3, 1, 1]], "float32"))
        for dtype in NUMBERS:
            best(f"of_{dtype}", values(4, 3, dtype=dtype), axis=0)


def make():
    make_top_k()
    make_argsort()
    make_extremes()
