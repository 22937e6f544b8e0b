# SPDX-License-Identifier: Apache-2.0
"""Makes the op cases of all families, or of those that are named."""
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

if __name__ == "__main__":
    families = sys.argv[1:] or sorted(
        f[:-3] for f in os.listdir(os.path.join(HERE, "cases")) if f.endswith(".py"))
    for family in families:
        importlib.import_module(f"cases.{family}").make()
