# SPDX-License-Identifier: Apache-2.0
"""Ops that fill a tensor with one value."""
import numpy as np
from oracle import Lod, case

random = np.random.RandomState(3)
FLOAT, DOUBLE, INT64, BOOL = 5, 6, 3, 0


def kept(name, op, inputs, dtype, attrs):
    case("filling", name, op, inputs, {"Out": dtype}, attrs)


def make():
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
