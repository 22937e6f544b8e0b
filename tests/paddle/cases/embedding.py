# SPDX-License-Identifier: Apache-2.0
"""Embeddings: ids with and without a last axis of one, dense and sparse
gradients, a padding id."""
import numpy as np
from oracle import case

random = np.random.RandomState(2)
TABLE = random.uniform(-1, 1, (7, 3)).astype("float32")


def lookup(op, name, ids, attrs=None, table=TABLE, ids_type="int64"):
    case("embedding", f"{op}_{name}", op,
         {"W": table, "Ids": np.array(ids, ids_type)}, {"Out": str(table.dtype)},
         {"is_sparse": False, "padding_idx": -1, **(attrs or {})}, grads=["W"])


def make():
    for op, ids in (("lookup_table", [[4], [0], [4], [6], [2]]),
                    ("lookup_table_v2", [[4, 0, 2], [4, 6, 2]])):
        lookup(op, "dense", ids)
        lookup(op, "sparse", ids, {"is_sparse": True})
        lookup(op, "dense_padding", ids, {"padding_idx": 4})
        lookup(op, "sparse_padding", ids, {"padding_idx": 4, "is_sparse": True})
        lookup(op, "float64", ids, table=TABLE.astype("float64"))
    lookup("lookup_table", "rank3", [[[4], [0]], [[1], [0]]])
    lookup("lookup_table_v2", "int32", [3, 3, 5], ids_type="int32")
    lookup("lookup_table_v2", "trailing_one", [[3], [5]])
