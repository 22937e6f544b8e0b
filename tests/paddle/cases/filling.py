# SPDX-License-Identifier: Apache-2.0
"""Ops that fill a tensor: with one value, with an attribute's, at random."""
import numpy as np
from oracle import Lod, case

random = np.random.RandomState(3)
FLOAT, DOUBLE, INT32, INT64, BOOL = 5, 6, 2, 3, 0


def kept(name, op, inputs, dtype, attrs):
    case("filling", name, op, inputs, {"Out": dtype}, attrs)


def make_values():
    for dtype, number, name, values in (
            ("float32", FLOAT, "fp32_values", [0.1, -2.0, 3.5]), ("float64", DOUBLE, "fp64_values", [0.1, -2.0, 1e300]),
            ("int32", INT32, "int32_values", [1, -2, 2**31 - 1]), ("int64", INT64, "int64_values", [1, -2, 2**62 + 1]),
            ("bool", BOOL, "bool_values", [1, 0, 2])):
        kept(f"values_{dtype}", "assign_value", {}, dtype, {"shape": [3, 1], "dtype": number, name: values})
    kept("values_scalar", "assign_value", {}, "float32", {"shape": [], "dtype": FLOAT, "fp32_values": [4.0]})


def make_random():
    def drawn(name, op, inputs, dtype, attrs):
        case("filling", name, op, inputs, {"Out": dtype}, attrs, ignore=["Out"])
    x = np.zeros((5, 2), "float32")
    for op in ("uniform_random", "gaussian_random", "randint"):
        dtype, number = ("int64", INT64) if op == "randint" else ("float32", FLOAT)
        more = {"low": 2, "high": 5} if op == "randint" else {}
        drawn(op, op, {}, dtype, {"shape": [3, 2], "dtype": number, **more})
        drawn(f"{op}_shape_tensor", op, {"ShapeTensor": np.int64([2, 3])}, dtype, {"dtype": number, **more})
        drawn(f"{op}_shape_list", op, {"ShapeTensorList": [np.int32([2]), np.int32([3])]}, dtype,
              {"shape": [-1, 3], "dtype": number, **more})
    drawn("randint_int32", "randint", {}, "int32", {"shape": [3], "dtype": INT32, "low": -2, "high": 1})
    drawn("uniform_random_float64", "uniform_random", {}, "float64", {"shape": [3], "dtype": DOUBLE})
    drawn("truncated_gaussian_random", "truncated_gaussian_random", {}, "float32", {"shape": [3, 2], "dtype": FLOAT})
    drawn("uniform_random_like", "uniform_random_batch_size_like", {"Input": x}, "float32",
          {"shape": [3, -1], "dtype": FLOAT, "output_dim_idx": 1, "input_dim_idx": 0})
    drawn("uniform_random_like_sequences", "uniform_random_batch_size_like", {"Input": Lod(x, [2, 3])}, "float32",
          {"shape": [-1, 3], "dtype": FLOAT})
    # An interval of one number, so that only the diagonal is something else.
    for name, attrs in (("diagonal", {"diag_num": 3, "diag_step": 4}), ("diagonal_dense", {"diag_num": 5}),
                        ("diagonal_full", {"diag_num": 2, "diag_step": 10})):
        kept(f"uniform_random_{name}", "uniform_random", {}, "float32",
             {"shape": [3, 4], "dtype": FLOAT, "min": 0.5, "max": 0.5, "diag_val": -2.0, **attrs})


def make():
    make_values()
    make_random()
    for dtype, number, value in (("float32", FLOAT, 1.5), ("float64", DOUBLE, -0.1), ("int64", INT64, 7.0), ("bool", BOOL, 1.0)):
        kept(f"constant_{dtype}", "fill_constant", {}, dtype, {"shape": [2, 3], "dtype": number, "value": value})
    kept("constant_text", "fill_constant", {}, "float32", {"shape": [3], "dtype": FLOAT, "str_value": "0.3"})
    kept("constant_scalar", "fill_constant", {}, "float32", {"shape": [], "dtype": FLOAT, "value": 2.0})
    kept("constant_shape_tensor", "fill_constant", {"ShapeTensor": np.int64([2, 1, 3])}, "float32", {"dtype": FLOAT, "value": 3.0})
    kept("constant_shape_list", "fill_constant", {"ShapeTensorList": [np.int32([2]), np.int32([4])]}, "float32",
         {"shape": [-1, 4], "dtype": FLOAT, "value": 3.0})
    kept("constant_value_tensor", "fill_constant", {"ValueTensor": np.float32([0.25])}, "float32", {"shape": [2], "dtype": FLOAT})
    x = random.uniform(-1, 1, (5, 2)).astype("float32")
    for dtype, number in (("float32", -1), ("int64", INT64)):
        kept(f"any_like_{dtype}", "fill_any_like", {"X": x}, dtype, {"dtype": number, "value": 2.0})
    kept("any_like_sequences", "fill_any_like", {"X": Lod(x, [2, 3])}, "float32", {"value": 1.0})
    kept("zeros_like", "fill_zeros_like", {"X": Lod(x, [2, 3])}, "float32", {})
    kept("batch_size_like", "fill_constant_batch_size_like", {"Input": x}, "float32",
         {"shape": [3, -1], "dtype": FLOAT, "value": 4.0, "output_dim_idx": 1, "input_dim_idx": 0})
    kept("batch_size_like_sequences", "fill_constant_batch_size_like", {"Input": Lod(x, [2, 3])}, "float32",
         {"shape": [-1, 3], "dtype": FLOAT, "value": 4.0})
