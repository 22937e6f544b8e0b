# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and vectors."""
import numpy as np
from oracle import case

random = np.random.RandomState(6)


def floats(*dims, dtype="float32"):
    return random.uniform(-1, 1, dims).astype(dtype)


def product(op, name, x, y, attrs=None, grads=("X", "Y"), **options):
    case("products", f"{op}_{name}", op, {"X": x, "Y": y}, {"Out": str(x.dtype)},
         attrs, grads=list(grads), **options)


# shapes of X and Y; batches repeat
V2 = {
    "matrices": ((3, 5), (5, 2)), "vectors": ((5,), (5,)),
    "matrix_vector": ((3, 5), (5,)), "vector_matrix": ((5,), (5, 3)),
    "batches": ((2, 3, 5), (2, 5, 4)), "one_y": ((2, 3, 5), (5, 4)),
    "one_x": ((3, 5), (2, 5, 4)), "repeated": ((2, 1, 3, 5), (1, 4, 5, 2)),
    "batch_vector": ((2, 3, 5), (5,)), "vector_batch": ((5,), (2, 5, 3)),
    "four": ((2, 3, 2, 4), (2, 3, 4, 3)),
}
V1 = {
    "matrices": ((3, 5), (5, 2)), "vectors": ((5,), (5,)),
    "matrix_vector": ((3, 5), (5,)), "batches": ((2, 3, 5), (2, 5, 4)),
    "one_y": ((2, 3, 5), (5, 4)), "four": ((2, 3, 2, 4), (2, 3, 4, 3)),
}


def flipped(dims):
    return dims[:-2] + (dims[-1], dims[-2])


def make():
    for name, (x, y) in V2.items():
        # Paddle's own gradient of a row times a batch throws
        product("matmul_v2", name, floats(*x), floats(*y),
                grads=() if name == "vector_batch" else ("X", "Y"))
    for name, (x, y) in V1.items():
        product("matmul", name, floats(*x), floats(*y), {"alpha": 1.0})
    for name in ("matrices", "batches", "four"):
        x, y = V1[name]
        for both in (False, True):
            product("matmul_v2", f"{name}_{'both' if both else 'x'}", floats(*flipped(x)),
                    floats(*(flipped(y) if both else y)), {"trans_x": True, "trans_y": both})
            product("matmul", f"{name}_{'both' if both else 'x'}", floats(*flipped(x)),
                    floats(*(flipped(y) if both else y)),
                    {"transpose_X": True, "transpose_Y": both, "alpha": 0.5})
    product("matmul_v2", "one_y_flipped", floats(2, 3, 5), floats(4, 5), {"trans_y": True})
    product("matmul", "flipped_vectors", floats(5), floats(3),
            {"transpose_X": True, "transpose_Y": True, "alpha": 1.0})
    product("matmul_v2", "flipped_vectors", floats(5, 5), floats(5),
            {"trans_x": True, "trans_y": True}, grads=())
    product("matmul", "alpha", floats(3, 5), floats(5, 2), {"alpha": -2.5})
    product("bmm", "float32", floats(2, 3, 5), floats(2, 5, 4))
    product("dot", "vectors", floats(5), floats(5))
    product("dot", "rows", floats(3, 5), floats(3, 5))
    for op in ("matmul_v2", "matmul", "bmm", "mul", "dot"):
        x, y = {"bmm": ((2, 3, 5), (2, 5, 4)), "dot": ((3, 5), (3, 5))}.get(op, ((3, 5), (5, 2)))
        product(op, "float64", floats(*x, dtype="float64"), floats(*y, dtype="float64"),
                tolerance=1e-9)
    for dtype in ("int32", "int64"):
        x, y = random.randint(-9, 9, (3, 5)), random.randint(-9, 9, (5, 2))
        product("matmul_v2", dtype, x.astype(dtype), y.astype(dtype), grads=())
        product("dot", dtype, x.astype(dtype), x.astype(dtype), grads=())
    product("mul", "matrices", floats(3, 5), floats(5, 2))
    product("mul", "flattened", floats(3, 5, 2), floats(10, 4))
    product("mul", "columns_2", floats(2, 3, 5), floats(5, 4), {"x_num_col_dims": 2})
    product("mul", "y_columns_2", floats(3, 6), floats(2, 3, 4, 2), {"y_num_col_dims": 2})
    product("mul", "both", floats(2, 2, 3, 2), floats(3, 2, 4, 2),
            {"x_num_col_dims": 2, "y_num_col_dims": 2})
    product("matmul_v2", "only_x", floats(3, 5), floats(5, 2), grads=["X"])
    product("matmul_v2", "only_y", floats(3, 5), floats(5, 2), grads=["Y"])
