# SPDX-License-Identifier: Apache-2.0
"""Ops that join tensors along an axis and take them apart again."""
import numpy as np
from oracle import case

random = np.random.RandomState(3)


def values(*dims, dtype="float32"):
    return (random.uniform(-3, 3, dims) * (1 if dtype[0] == "f" else 9)).astype(dtype)


def join(name, op, x, attrs, grads=("X",), **more):
    out = "Out" if op == "concat" else "Y"
    inputs = {"X": x, **more}
    case("joining", f"{op}_{name}", op, inputs, {out: str(x[0].dtype)}, attrs, grads=grads)


def make_concat():
    def parts(dtype="float32"):
        return [values(2, n, 3, dtype=dtype) for n in (1, 4, 2)]
    join("middle", "concat", parts(), {"axis": 1})
    join("negative_axis", "concat", parts(), {"axis": -2})
    join("first", "concat", [values(2, 3), values(1, 3)], {"axis": 0})
    join("last", "concat", [values(2, 3), values(2, 2)], {"axis": 1})
    join("one_gradient", "concat", parts(), {"axis": 1}, grads=["X1"])
    join("last_gradient", "concat", parts(), {"axis": 1}, grads=["X2"])
    join("axis_tensor", "concat", parts(), {"axis": 0},
         AxisTensor=np.array([1], "int32"))
    for dtype in ("float64", "int32", "int64", "bool", "uint8"):
        join(dtype, "concat", parts(dtype), {"axis": 1},
             grads=["X"] if dtype == "float64" else [])


def make_stack():
    def parts(dtype="float32", n=3):
        return [values(2, 3, dtype=dtype) for _ in range(n)]
    for axis in (0, 1, 2, -1, -2):
        join(f"axis{axis}", "stack", parts(), {"axis": axis})
    join("one", "stack", parts(n=1), {"axis": 1})
    join("scalars", "stack", [values(), values()], {"axis": 0})
    join("one_gradient", "stack", parts(), {"axis": 1}, grads=["X1"])
    join("int64", "stack", parts("int64"), {"axis": 0}, grads=[])


def take_apart(name, op, x, count, attrs, grads=("X",), **more):
    out = "Y" if op == "unstack" else "Out"
    case("joining", f"{op}_{name}", op, {"X": x, **more}, {out: [str(x.dtype)] * count},
         attrs, grads=grads, grad_outputs=[out])


def make_split():  # of negative axes Paddle's op computes nonsense
    x = values(2, 6, 3)
    for name, axis, count, attrs in (
            ("equal", 1, 3, {"num": 3}), ("last", 2, 3, {"num": 3}),
            ("first", 0, 2, {"num": 2}), ("sections", 1, 3, {"sections": [1, 3, 2]}),
            ("rest", 1, 3, {"sections": [1, -1, 2]}),
            ("sections_last", 2, 2, {"sections": [1, 2]}),
            ("one", 1, 1, {"num": 1})):
        take_apart(name, "split", x, count, {"axis": axis, "num": 0, "sections": [], **attrs})
    take_apart("axis_tensor", "split", x, 3, {"axis": 0, "num": 3, "sections": []},
               AxisTensor=np.array([1], "int32"))
    take_apart("section_tensors", "split", x, 2, {"axis": 1, "num": 0, "sections": [-1, -1]},
               grads=[], SectionsTensorList=[np.array([n], "int32") for n in (2, 4)])
    for dtype in ("float64", "int32", "int64", "bool"):
        take_apart(dtype, "split", values(4, 2, dtype=dtype), 2,
                   {"axis": 0, "num": 2, "sections": []}, grads=[])


def make_unstack():
    x = values(2, 3, 4)
    for axis in (0, 1, -1):
        take_apart(f"axis{axis}", "unstack", x, x.shape[axis],
                   {"axis": axis, "num": x.shape[axis]})
    take_apart("int64", "unstack", values(2, 3, dtype="int64"), 2, {"axis": 0, "num": 2},
               grads=[])


def make_coalesce():
    for name, attrs in (("copy", {"copy_data": True}), ("constant", {"set_constant": True, "constant": 0.5}),
                        ("packed", {"copy_data": True, "use_align": False}),
                        ("aligned", {"copy_data": True, "align_size": 64})):
        case("joining", f"coalesce_{name}", "coalesce_tensor", {"Input": [values(3, 5), values(7)]},
             {"Output": ["=Input0", "=Input1"], "FusedOutput": "float32"}, {"dtype": 5, **attrs},
             # What lies between the parts is uninitialised in Paddle.
             ignore=() if name == "packed" else ("FusedOutput",))


def make_unbind():
    x = values(2, 3, 4)
    for axis in (0, 1, -1):
        take_apart(f"axis{axis}", "unbind", x, x.shape[axis], {"axis": axis})
    take_apart("int64", "unbind", values(2, 3, dtype="int64"), 2, {"axis": 0}, grads=[])


def make():
    make_concat()
    make_stack()
    make_split()
    make_unstack()
    make_coalesce()
    make_unbind()
