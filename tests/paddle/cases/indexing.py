# SPDX-License-Identifier: Apache-2.0
"""Elements named by indices or conditions."""
import numpy as np
from oracle import case

random = np.random.RandomState(8)


def values(*dims, dtype="float32"):
    return random.uniform(-9, 9, dims).astype(dtype)


def run(op, name, inputs, attrs=None, grads=("X",), out=None):
    case("indexing", f"{op}_{name}", op, inputs, {"Out": out or str(inputs["X"].dtype)},
         attrs, grads=grads)


def make_gather():
    x = values(4, 3, 2)
    index = np.array([3, 0, 0])
    for axis in (0, 1, 2):
        i = index % x.shape[axis]
        # Paddle's own gradient is wrong on CPUs for axes behind the first: it
        # adds the gradients of the first outer slice to all of them.
        run("gather", f"axis{axis}", {"X": x, "Index": i}, {"axis": axis},
            [] if axis else ["X"])
        run("index_select", f"dim{axis}", {"X": x, "Index": i}, {"dim": axis})
    run("gather", "int32", {"X": x, "Index": index.astype("int32")}, {"axis": 0})
    run("gather", "column", {"X": x, "Index": index.reshape(3, 1)}, {"axis": 0})
    run("gather", "scalar", {"X": x, "Index": np.array(2)}, {"axis": 0})
    run("gather", "scalar_axis1", {"X": x, "Index": np.array(2)}, {"axis": 1}, [])
    run("gather", "vector", {"X": values(5), "Index": index}, {"axis": 0})
    run("gather", "axis_input", {"X": x, "Index": np.array([1, 1, 0, 0]),
                                 "Axis": np.array([2], "int32")}, {"axis": 0}, [])
    run("index_select", "int32", {"X": x, "Index": index.astype("int32")}, {"dim": 0})
    for name, i in (("rows", [[3], [0], [3]]), ("pairs", [[1, 2], [0, 0], [1, 2]]),
                    ("elements", [[1, 2, 1], [0, 0, 0]]), ("rank3", [[[1, 2]], [[0, 1]]]),
                    ("one", [2, 1])):
        run("gather_nd", name, {"X": x, "Index": np.array(i)})
    run("gather_nd", "int32", {"X": x, "Index": np.array([[1], [1]], "int32")})
    for dtype in ("float64", "int32", "int64", "bool"):
        grads = ["X"] if dtype == "float64" else []
        y = values(3, 2, dtype=dtype)
        run("gather_nd", dtype, {"X": y, "Index": np.array([[1, 1]])}, {}, grads)
        if dtype != "bool":
            run("gather", dtype, {"X": y, "Index": np.array([1, 1])}, {"axis": 0}, grads)
            run("index_select", dtype, {"X": y, "Index": np.array([1, 1])}, {"dim": 0}, grads)


def make_scatter():
    x = values(4, 3)
    for name, ids, overwrite in (("overwrite", [1, 3], True), ("twice", [1, 1, 3], True),
                                 ("add", [1, 1, 3], False)):
        run("scatter", name, {"X": x, "Ids": np.array(ids), "Updates": values(len(ids), 3)},
            {"overwrite": overwrite}, ["X", "Updates"])
    run("scatter", "int32", {"X": x, "Ids": np.array([2], "int32"), "Updates": values(1, 3)},
        {"overwrite": True}, ["X", "Updates"])
    run("scatter", "scalar", {"X": x, "Ids": np.array(1), "Updates": values(3)},
        {"overwrite": True}, ["X", "Updates"])
    run("scatter", "only_updates", {"X": x, "Ids": np.array([1]), "Updates": values(1, 3)},
        {"overwrite": True}, ["Updates"])
    run("scatter", "integers", {"X": values(4, 3, dtype="int64"), "Ids": np.array([1, 1]),
                                "Updates": values(2, 3, dtype="int64")},
        {"overwrite": False}, [])
    for name, index, dims in (("rows", [[1], [1], [3]], (3, 3)), ("elements", [[1, 2], [0, 0]], (2,)),
                              ("rank3", [[[1]], [[2]]], (2, 1, 3))):
        run("scatter_nd_add", name, {"X": x, "Index": np.array(index), "Updates": values(*dims)},
            {}, ["X", "Updates"])
    run("scatter_nd_add", "double", {"X": values(4, dtype="float64"), "Index": np.array([[1], [1]]),
                                     "Updates": values(2, dtype="float64")}, {}, ["X", "Updates"])


def make_where():
    x, y = values(3, 4), values(3, 4)
    run("where", "float32", {"Condition": x > y, "X": x, "Y": y}, grads=["X", "Y"])
    run("where", "only_y", {"Condition": x > y, "X": x, "Y": y}, grads=["Y"])
    for dtype in ("float64", "int32", "int64"):
        run("where", dtype, {"Condition": x > 0, "X": x.astype(dtype), "Y": y.astype(dtype)},
            grads=["X", "Y"] if dtype == "float64" else [])
    for name, condition in (("bool", x > 0), ("rank1", np.array([True, False, True])),
                            ("none", np.zeros((2, 2), bool)), ("int32", np.array([[0, 2], [1, 0]], "int32")),
                            ("float32", np.array([0, .5], "float32"))):
        case("indexing", f"where_index_{name}", "where_index", {"Condition": condition},
             {"Out": "int64"})


def make():
    make_gather()
    make_scatter()
    make_where()
