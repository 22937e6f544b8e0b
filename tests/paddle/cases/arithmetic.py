# SPDX-License-Identifier: Apache-2.0
"""Scaling, clipping, sums of several tensors, running sums."""
import numpy as np
from oracle import Rows, case

random = np.random.RandomState(4)
DTYPES = ("float64", "int32", "int64")


def floats(*dims, dtype="float32", low=-3, high=3):
    return random.uniform(low, high, dims).astype(dtype)


def integers(*dims, dtype="int64"):
    return random.randint(-9, 10, dims).astype(dtype)


def numbers(*dims, dtype):
    return floats(*dims, dtype=dtype) if dtype[0] == "f" else integers(*dims, dtype=dtype)


def plain(op, name, x, attrs=None, grads=("X",), extra=None, **options):
    case("arithmetic", name, op, {"X": x, **(extra or {})}, {"Out": str(x.dtype)},
         attrs, grads=list(grads), **options)


def make():
    scales()
    clips()
    running_sums()
    for count in (1, 2, 3):
        case("arithmetic", f"sum_{count}", "sum",
             {"X": [floats(3, 5) for _ in range(count)]}, {"Out": "float32"})
    case("arithmetic", "sum_grad", "sum", {"X": [floats(2), floats(2)]},
         {"Out": "float32"}, grads=["X"])
    for dtype in DTYPES:
        case("arithmetic", f"sum_{dtype}", "sum",
             {"X": [numbers(3, 5, dtype=dtype) for _ in range(3)]}, {"Out": dtype})
    case("arithmetic", "sum_scalar_and_vector", "sum",
         {"X": [floats(1), floats()]}, {"Out": "float32"})
    case("arithmetic", "sum_rows_and_tensor", "sum",
         {"X": [floats(4, 2), Rows(floats(3, 2), [2, 0, 2], 4)]}, {"Out": "float32"})


def scales():
    for name, attrs in {"default": {}, "both": {"scale": -1.5, "bias": 0.75},
                        "before": {"scale": 2.0, "bias": 0.5, "bias_after_scale": False},
                        "bias": {"bias": 2.0}}.items():
        plain("scale", f"scale_{name}", floats(3, 5), attrs)
    for dtype in DTYPES:
        plain("scale", f"scale_{dtype}", numbers(3, 5, dtype=dtype),
              {"scale": 2.0, "bias": 3.0}, ())
        plain("scale", f"scale_fractions_{dtype}", numbers(3, 5, dtype=dtype),
              {"scale": 1.75, "bias": -2.75, "bias_after_scale": False}, ())
    plain("scale", "scale_tensor", floats(3, 5), {"scale": 9.0, "bias": 1.0}, (),
          {"ScaleTensor": np.array([0.5], "float32")})
    plain("scale", "scale_scalar", np.array(2, "float32"), {"scale": 3.0})
    for dtype in ("float32",) + DTYPES:
        plain("increment", f"increment_{dtype}", numbers(1, dtype=dtype),
              {"step": 2.0}, ())
    case("arithmetic", "increment_in_place", "increment", {"X": np.array([7])},
         {"Out": "=X"}, {"step": 1.0})


def clips():
    plain("clip", "clip", floats(3, 5), {"min": -1.0, "max": 1.5})
    plain("clip", "clip_at_bounds", np.array([-1, -0.5, 0, 1, 2], "float32"),
          {"min": -1.0, "max": 1.0})
    plain("clip", "clip_tensors", floats(3, 5), {"min": -9.0, "max": 9.0},
          extra={"Min": np.array([-0.5], "float32"), "Max": np.array([2], "float32")})
    plain("clip", "clip_min_tensor", floats(3, 5), {"min": -9.0, "max": 0.5},
          extra={"Min": np.array([-0.5], "float32")})
    for dtype in DTYPES:
        plain("clip", f"clip_{dtype}", numbers(3, 5, dtype=dtype),
              {"min": -1.5, "max": 2.5}, ())


def running_sums():
    for name, attrs in {"default": {}, "first": {"axis": 0}, "flatten": {"flatten": True},
                        "exclusive": {"axis": 1, "exclusive": True},
                        "reverse": {"axis": 1, "reverse": True},
                        "both": {"axis": 0, "exclusive": True, "reverse": True},
                        "flat_reverse": {"flatten": True, "reverse": True}}.items():
        plain("cumsum", f"cumsum_{name}", floats(3, 4, 2), attrs)
    for dtype in DTYPES:
        plain("cumsum", f"cumsum_{dtype}", numbers(3, 4, dtype=dtype), {"axis": 1}, ())
