// SPDX-License-Identifier: Apache-2.0
// A combined parameter file, of a program with tensors and selected rows.

#include "fuzz/fuzz_target.hpp"

#include <troupe/graph/paddle/parameter_file.hpp>

namespace troupe::fuzz {

namespace {

/// One variable of known shape, one of unknown extents, one of rows.
graph::program make_program() {
  graph::program p;
  const auto add = [&](const char* name, graph::var_kind kind, dtype type,
                       const shape& dims) {
    p.main().add_var({.name = name,
                      .kind = kind,
                      .type = type,
                      .dims = dims,
                      .persistable = true});
  };
  add("a", graph::var_kind::dense, dtype::float32, {2, 3});
  add("b", graph::var_kind::dense, dtype::int64, {-1, -1});
  add("c", graph::var_kind::selected_rows, dtype::float32, {10, 2});
  return p;
}

} // namespace

memory_allowance allowance() {
  return {.per_byte = 64};
}

void run_target(std::string_view bytes) {
  static const graph::program p = make_program();
  const memory_file file(bytes);
  arena memory(make_host_memory_source());
  scope values;
  graph::load_parameters(p, file.path(), values, memory);
}

} // namespace troupe::fuzz
