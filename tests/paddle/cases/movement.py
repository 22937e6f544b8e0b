# SPDX-License-Identifier: Apache-2.0
"""Ops that give a tensor another shape, order of axes or dtype."""
import numpy as np
from oracle import case

random = np.random.RandomState(5)
DTYPES = ("float64", "int32", "int64", "bool", "uint8", "int8", "int16", "float16")


def values(*dims, dtype="float32"):
    return random.uniform(-9, 9, dims).astype(dtype)


def move(name, op, x, attrs=None, grads=("X",), **more):
    out = {"Out": str(x.dtype)}
    if op[-1] == "2" or op.startswith("flatten_"):
        out["XShape"] = str(x.dtype)
    case("movement", f"{op}_{name}", op, {"X": x, **more}, out, attrs, grads=grads)


def ints(*v):
    return np.array(v, "int32")


def make_reshape():
    x = values(2, 3, 4)
    for op in ("reshape", "reshape2"):
        move("explicit", op, x, {"shape": [4, 6]})
        move("inferred", op, x, {"shape": [3, -1]})
        move("copied", op, x, {"shape": [0, -1]})
    move("scalar", "reshape2", values(1), {"shape": []})
    move("shape_input", "reshape2", x, {"shape": [6, -1]}, Shape=ints(6, 4))
    move("shape_input_inferred", "reshape2", x, {"shape": [-1, 4]}, Shape=ints(6, -1))
    move("shape_tensors", "reshape2", x, {"shape": [-1, 4, 2]},
         ShapeTensor=[ints(3), ints(4), ints(2)])
    for dtype in DTYPES:
        move(dtype, "reshape2", values(2, 3, dtype=dtype), {"shape": [6]},
             grads=["X"] if dtype == "float64" else [])


def make_squeeze():
    x = values(1, 3, 1, 2)
    for name, axes in (("all", []), ("one", [0]), ("negative", [-2]), ("two", [0, 2]),
                       ("other_extent", [1, 2])):
        move(name, "squeeze2", x, {"axes": axes})
    x = values(3, 2)
    for name, axes in (("first", [0]), ("last", [-1]), ("several", [0, 2, 4]),
                       ("unordered", [2, 0]), ("negative", [-3])):
        move(name, "unsqueeze2", x, {"axes": axes})
    move("axes_tensor", "unsqueeze2", x, {"axes": []}, AxesTensor=ints(1, 0))
    move("axes_tensors", "unsqueeze2", x, {"axes": []}, AxesTensorList=[ints(0), ints(-1)])
    for dtype in DTYPES:
        move(dtype, "squeeze2", values(1, 2, dtype=dtype), {"axes": [0]}, grads=[])
        if dtype != "float16":
            move(dtype, "unsqueeze2", values(2, dtype=dtype), {"axes": [0]}, grads=[])


def make_flatten():
    x = values(2, 3, 4, 2)
    for axis in (0, 1, 3, 4):
        move(f"axis{axis}", "flatten2", x, {"axis": axis})
    for start, stop in ((0, 0), (1, 2), (0, -1), (-3, -2), (1, 3)):
        move(f"{start}_{stop}", "flatten_contiguous_range", x,
             {"start_axis": start, "stop_axis": stop})
    move("scalar", "flatten_contiguous_range", values(), {"start_axis": 0, "stop_axis": -1})


def make_transpose():
    x = values(2, 3, 4)
    for op in ("transpose", "transpose2"):
        move("matrix", op, values(3, 5), {"axis": [1, 0]})
        move("rotate", op, x, {"axis": [2, 0, 1]})
    move("keep_last", "transpose2", x, {"axis": [1, 0, 2]})
    move("negative", "transpose2", x, {"axis": [0, -1, -2]})
    move("scalar", "transpose2", values(), {"axis": []})
    move("rank5", "transpose2", values(2, 1, 3, 2, 2), {"axis": [4, 1, 3, 0, 2]})
    for dtype in DTYPES:
        move(dtype, "transpose2", values(2, 3, dtype=dtype), {"axis": [1, 0]}, grads=[])


def make_copies():
    number = {"float32": 5, "float64": 6, "int32": 2, "int64": 3, "bool": 0,
              "uint8": 20, "int8": 21, "int16": 1, "float16": 4}
    for op in ("assign", "share_data", "memcpy"):
        attrs = {"dst_place_type": 0} if op == "memcpy" else {}
        move("float32", op, values(2, 3), attrs, grads=["X"] if op == "assign" else [])
    for dtype in DTYPES:
        move(dtype, "assign", values(2, 3, dtype=dtype), grads=[])
    x = np.array([0, 1, 2.7, 100.5, 0.2, 7])
    for source in number:
        for target in number:
            floats = source.startswith("float") and target.startswith("float")
            case("movement", f"cast_{source}_{target}", "cast",
                 {"X": x.astype(source)}, {"Out": target},
                 {"in_dtype": number[source], "out_dtype": number[target]},
                 grads=["X"] if floats else [], tolerance=1e-3 if "float16" in (source, target) else 1e-6)
    negative = np.array([-1.7, -3, 0])
    for target in ("int32", "int64", "float64", "bool"):
        case("movement", f"cast_negative_{target}", "cast",
             {"X": negative.astype("float32")}, {"Out": target},
             {"in_dtype": 5, "out_dtype": number[target]})


def make():
    make_reshape()
    make_squeeze()
    make_flatten()
    make_transpose()
    make_copies()
