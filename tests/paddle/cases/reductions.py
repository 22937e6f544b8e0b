# SPDX-License-Identifier: Apache-2.0
"""Ops that make one element of many: sums, extremes, norms."""
import numpy as np
from oracle import case

random = np.random.RandomState(3)

SETTINGS = {
    "all": {"reduce_all": True},
    "default": {},
    "last": {"dim": [-1]},
    "first_kept": {"dim": [0], "keep_dim": True},
    "middle": {"dim": [1]},
    "two": {"dim": [0, -1]},
    "two_kept": {"dim": [1, 2], "keep_dim": True},
    "all_kept": {"reduce_all": True, "keep_dim": True},
    "no_axes": {"dim": []},
}


def floats(*dims, dtype="float32", low=0.3, high=2):
    return random.uniform(low, high, dims).astype(dtype)


def reduced(op, name, x, attrs, grads=("X",), out=None, **options):
    case("reductions", f"{op}_{name}", op, {"X": x}, {"Out": out or str(x.dtype)},
         attrs, grads=list(grads), **options)


def make():
    for op in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"):
        for name, attrs in SETTINGS.items():
            reduced(op, name, floats(3, 5, 4), attrs)
        reduced(op, "long_rows", floats(3, 37, low=0.9, high=1.1), {"dim": [1]})
        reduced(op, "scalar", np.array(0.7, "float32"), {"dim": [0]}, ())
        reduced(op, "float64", floats(3, 4, dtype="float64"), {"dim": [-1]},
                tolerance=1e-9)
        for dtype in ("int32", "int64"):
            x = random.randint(-4, 5, (3, 4)).astype(dtype)
            out = "int64" if op == "reduce_sum" else dtype
            reduced(op, dtype, x, {"dim": [1]}, (), out)
    ties = np.array([[1, 3, 3], [2, 2, 1]], "float32")
    for op in ("reduce_max", "reduce_min"):
        reduced(op, "ties", ties, {"dim": [1]})
        reduced(op, "negative", -floats(3, 5), {"dim": [0]})
    reduced("reduce_sum", "bool", random.rand(3, 4) > 0.5, {"dim": [1]}, (), "int64")
    reduced("reduce_sum", "out_dtype", floats(3, 4),
            {"dim": [1], "in_dtype": 5, "out_dtype": 6}, out="float64")
    reduced("reduce_sum", "int32_to_float32",
            random.randint(-4, 5, (3, 4)).astype("int32"),
            {"dim": [1], "in_dtype": 2, "out_dtype": 5}, (), "float32")
    for op in ("reduce_all", "reduce_any"):
        for name in ("all", "last", "first_kept", "two"):
            reduced(op, name, random.rand(3, 2, 4) > 0.4, SETTINGS[name], (), "bool")
        reduced(op, "float32", np.array([[0, 1], [2, 3]], "float32"), {"dim": [1]},
                (), "bool")
    reduced("mean", "matrix", floats(3, 5), {})
    reduced("mean", "scalar", np.array(2, "float32"), {})
    reduced("mean", "float64", floats(3, 5, dtype="float64"), {}, tolerance=1e-9)
    norms()


def norms():
    for order in (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, np.inf, -np.inf):
        reduced("p_norm", str(order), floats(3, 5, low=-2),
                {"porder": float(order), "axis": 1})
    reduced("p_norm", "kept", floats(3, 5, 2), {"porder": 2.0, "axis": 1, "keepdim": True})
    reduced("p_norm", "asvector", floats(3, 5), {"porder": 2.0, "asvector": True})
    reduced("p_norm", "asvector_kept", floats(3, 5),
            {"porder": 3.0, "asvector": True, "keepdim": True})
    reduced("p_norm", "zero", np.zeros((2, 3), "float32"), {"porder": 2.0, "axis": 1})
    reduced("p_norm", "float64", floats(3, 5, dtype="float64"),
            {"porder": 2.0, "axis": 0}, tolerance=1e-9)
    for name in ("all", "last", "two", "two_kept"):
        reduced("frobenius_norm", name, floats(3, 5, 4, low=-2), SETTINGS[name])
    for name, attrs in {"all": {"reduce_all": True}, "last": {"axis": [-1]},
                        "kept": {"axis": [0, 2], "keepdim": True},
                        "default": {}}.items():
        reduced("logsumexp", name, floats(3, 5, 4, low=-9, high=9), attrs)
    reduced("logsumexp", "large", np.array([[1000, 999], [-1000, -np.inf]], "float32"),
            {"axis": [1]})
    reduced("logsumexp", "float64", floats(3, 4, dtype="float64"), {"axis": [1]},
            tolerance=1e-9)
