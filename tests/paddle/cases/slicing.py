# SPDX-License-Identifier: Apache-2.0
"""Regular parts of tensors, and tensors in another order along axes."""
import numpy as np
from oracle import case

random = np.random.RandomState(6)


def values(*dims, dtype="float32"):
    return random.uniform(-9, 9, dims).astype(dtype)


def ints(*v, dtype="int32"):
    return np.array(v, dtype)


def cut(op, name, x, axes, starts, ends, strides=None, grads=("Input",), drop=(),
        flags=None, **more):
    attrs = {"axes": axes, "starts": starts, "ends": ends,
             "infer_flags": flags or [1] * len(axes), "decrease_axis": list(drop)}
    if strides:
        attrs["strides"] = strides
    case("slicing", f"{op}_{name}", op, {"Input": x, **more}, {"Out": str(x.dtype)},
         attrs, grads=grads)


def make_slice():
    x = values(4, 5, 3)
    for name, axes, starts, ends, drop in (
            ("rows", [0], [1], [3], []), ("middle", [1], [1], [4], []),
            ("last", [2], [0], [2], []), ("three", [0, 1, 2], [1, 2, 0], [3, 5, 1], []),
            ("negative", [0, 2], [-3, -2], [-1, 100], []), ("beyond", [1], [-100], [100], []),
            ("drop", [1], [2], [3], [1]), ("drop_two", [0, 2], [3, 0], [4, 1], [0, 2]),
            ("drop_last", [1], [-1], [10000000], [1]),
            ("drop_all", [0, 1, 2], [1, 1, 1], [2, 2, 2], [0, 1, 2]),
            ("empty", [1], [3], [3], [])):
        cut("slice", name, x, axes, starts, ends, drop=drop,
            grads=[] if name == "empty" else ["Input"])
    cut("slice", "tensors", x, [0, 1], [-1, -1], [-1, -1], flags=[-1, -1],
        StartsTensor=ints(1, 2), EndsTensor=ints(3, 4))
    cut("slice", "long_tensors", x, [1], [-1], [-1], flags=[-1],
        StartsTensor=ints(-3, dtype="int64"), EndsTensor=ints(9, dtype="int64"))
    cut("slice", "tensor_lists", x, [0, 1], [-1, -1], [-1, -1], flags=[-1, -1],
        StartsTensorList=[ints(1), ints(2)], EndsTensorList=[ints(3), ints(4)])
    cut("slice", "tensor_list_drop", x, [1], [-1], [-1], flags=[-1], drop=[1],
        StartsTensorList=[ints(1)], EndsTensorList=[ints(2)])
    for dtype in ("float64", "int32", "int64", "bool", "float16", "int8", "uint8", "int16"):
        cut("slice", dtype, values(3, 2, dtype=dtype), [0], [1], [3],
            grads=["Input"] if dtype == "float64" else [])


def make_strided_slice():
    x = values(4, 6, 3)
    for name, axes, starts, ends, strides in (
            ("every_second", [1], [0], [6], [2]), ("odd", [1], [1], [6], [2]),
            ("backwards", [0], [-1], [-5], [-1]), ("backwards_two", [1], [5], [0], [-2]),
            ("beyond", [0, 2], [3, -1], [-100, -9], [-2, -2]),
            ("two", [0, 1], [0, 1], [4, 5], [3, 2]), ("negative", [1], [-5], [-1], [3]), ("reversed", [0], [2147483647], [-1], [-1]),
            ("from_middle", [1], [3], [-1], [-2])):
        cut("strided_slice", name, x, axes, starts, ends, strides)
    cut("strided_slice", "drop", x, [0], [1], [2], [1], drop=[0], grads=[])
    cut("strided_slice", "tensors", x, [1], [-1], [-1], [-1], flags=[-1],
        StartsTensor=ints(0), EndsTensor=ints(5), StridesTensor=ints(2))
    cut("strided_slice", "tensor_lists", x, [1], [-1], [-1], [-1], flags=[-1],
        StartsTensorList=[ints(0)], EndsTensorList=[ints(5)], StridesTensorList=[ints(2)])
    for dtype in ("float64", "int32", "int64", "bool"):
        cut("strided_slice", dtype, values(5, 2, dtype=dtype), [0], [0], [5], [2],
            grads=["Input"] if dtype == "float64" else [])


def set_value(name, x, axes=(), starts=(), ends=(), steps=None, value=None, numbers=None, grads=None,
              shape=None, **more):
    inputs = {"Input": x, **({} if value is None else {"ValueTensor": value})}
    inputs.update({k: more.pop(k) for k in list(more) if k.endswith("TensorList")})
    attrs = {"axes": list(axes), "starts": list(starts), "ends": list(ends),
             "steps": list(steps or [1] * len(axes)), "decrease_axes": [], "none_axes": [],
             "dtype": {"float32": 5, "float64": 6, "int32": 2, "int64": 3, "bool": 0}[str(x.dtype)],
             "values": numbers or [], "shape": shape or ([len(numbers)] if numbers else []), **more}
    if grads is None:
        grads = ["Input"] + (["ValueTensor"] if value is not None else [])
    case("slicing", f"set_value_{name}", "set_value", inputs, {"Out": str(x.dtype)}, attrs, grads=grads)


def make_set_value():
    x = values(4, 3, 2)
    for name, axes, starts, ends, steps in (
            ("rows", [0], [1], [3], None), ("all", [], [], [], None), ("two", [0, 2], [0, -1], [2, 10], None),
            ("steps", [0], [0], [4], [3]), ("backwards", [0], [3], [-1], [-1]),
            ("backwards_two", [0], [2147483647], [-4], [-2]), ("beyond", [0], [-9], [2], None),
            ("far_back", [0], [2], [-100], [-1]), ("empty", [0], [9], [12], None)):
        # Paddle's gradient of an empty part ends by a signal; backwards beyond the first element it
        # takes another part than the op does.
        set_value(name, x, axes, starts, ends, steps, numbers=[1.5],
                  grads=[] if name in ("empty", "far_back") else None)
    set_value("column", x, [1], [0], [3], [2], numbers=[1.0, 2.0, 3.0, 4.0], shape=[2, 2])
    set_value("dropped", x, [0], [-1], [10000], decrease_axes=[0], numbers=[1.0, 2.0])
    for name, dims in (("tensor", (2, 3, 2)), ("tensor_repeated", (1, 2)), ("tensor_scalar", ()),
                       ("tensor_middle", (2, 1, 2)), ("tensor_one", (1,)), ("tensor_more_axes", (1, 2, 3, 1))):
        set_value(name, x, [0], [1], [3], value=values(*dims), grads=["Input"] if name == "tensor_more_axes" else None)
    set_value("tensor_steps", x, [0, 1], [3, 0], [-1, 3], [-2, 2], value=values(2, 1, 2))
    set_value("tensor_dropped", x, [0, 1], [1, 2], [3, 3], decrease_axes=[1], value=values(2, 2))
    # Paddle's gradient of a value does not know of none_axes.
    set_value("tensor_none", x, [0], [1], [3], none_axes=[1], value=values(2, 1, 3, 2), grads=["Input"])
    set_value("tensor_none_dropped", x, [1], [1], [2], none_axes=[1], decrease_axes=[1], value=values(4, 1, 2))
    set_value("tensor_none_last", x, none_axes=[3], value=values(2, 1), grads=["Input"])
    set_value("lists", x, [0, 1], [], [], StartsTensorList=[ints(1), ints(0)], EndsTensorList=[ints(4), ints(2)],
              StepsTensorList=[ints(2), ints(1)], value=values(2))
    for dtype, numbers in (("float64", [0.1]), ("int32", [7]), ("int64", [2**62 + 1]), ("bool", [True])):
        set_value(dtype, values(3, 2, dtype=dtype), [0], [1], [3], numbers=numbers,
                  grads=["Input"] if dtype == "float64" else [])


def order(op, name, x, attrs, grads=("X",), **more):
    case("slicing", f"{op}_{name}", op, {"X": x, **more}, {"Out": str(x.dtype)}, attrs,
         grads=grads)


def make_order():
    x = values(3, 4, 2)
    for axes in ([0], [1], [-1], [0, 2], [0, 1, 2]):
        order("flip", "_".join(map(str, axes)), x, {"axis": axes})
    for name, axes, shifts in (("rows", [0], [1]), ("back", [1], [-1]), ("far", [1], [9]),
                               ("two", [0, 2], [2, 1]), ("twice", [1, 1], [1, 2]),
                               ("flat", [], [5])):
        order("roll", name, x, {"axis": axes, "shifts": shifts})
    order("roll", "tensor", x, {"axis": [1], "shifts": []},
          ShiftsTensor=ints(2, dtype="int64"), grads=[])
    for dtype in ("float64", "int32", "int64", "bool"):
        order("flip", dtype, values(3, 2, dtype=dtype), {"axis": [0]}, grads=[])
        if dtype != "bool":
            order("roll", dtype, values(3, 2, dtype=dtype), {"axis": [0], "shifts": [1]}, grads=[])


def make():
    make_slice()
    make_strided_slice()
    make_order()
    make_set_value()
