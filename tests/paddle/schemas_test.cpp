// SPDX-License-Identifier: Apache-2.0
// The shapes and gradient ops that Troupe's schemas give for the ops of
// Paddle's cases, against what Paddle computed and appended.

#include <troupe/base/error.hpp>
#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace troupe::graph {

TEST_SUITE("paddle.schemas") {

namespace {

namespace fs = std::filesystem;

using name_set = std::set<std::string>;

bool fits(const shape& inferred, const shape& actual) {
  return std::ranges::equal(inferred, actual,
                            [](auto a, auto b) { return a == b || a == -1; });
}

class schema_case {
public:
  explicit schema_case(const fs::path& path)
    : arrays_(read_npz(path, memory_)), program_(read(path)) {}

  /// Shapes and dtypes of the forward op's outputs.
  void check_shapes() {
    auto vars = program_.main();
    for (auto& [name, var] : vars.vars)
      var.persistable = false;
    infer_shapes(forward(), vars, schemas_);
    for (const auto& name : forward().output_names()) {
      CAPTURE(name);
      const auto& var = vars.var(name);
      if (auto value = arrays_.find("out:" + name); value != arrays_.end()) {
        INFO(to_string(var.dims), " for ", to_string(value->second.dims()));
        CHECK(fits(var.dims, value->second.dims()));
        CHECK(to_string(var.type) == to_string(value->second.type()));
      }
    }
  }

  /// The gradient ops write what Paddle's write and read nothing else.
  void check_gradients() {
    const auto& ops = program_.main().ops;
    if (ops.size() < 2)
      return;
    name_set types, written, slots;
    for (auto op = ops.begin() + 1; op != ops.end(); ++op)
      collect(*op, types, written, slots);
    name_set own_types, own_written, own_slots;
    const gradient_context context{forward(), [&](const std::string& name) {
                                     return written.contains(name + "@GRAD");
                                   }};
    for (const auto& op :
         make_gradient(find_schema(schemas_, forward()), context))
      collect(op, own_types, own_written, own_slots);
    CHECK(own_types == types);
    CHECK(std::ranges::includes(own_written, written));
    CHECK(std::ranges::includes(slots, own_slots));
  }

private:
  static void collect(const op_desc& op, name_set& types, name_set& written,
                      name_set& slots) {
    types.insert(op.type);
    for (const auto& name : op.output_names())
      if (name != "@EMPTY@")
        written.insert(name);
    for (const auto& slot : op.inputs)
      if (!slot.arguments.empty())
        slots.insert(slot.name);
  }

  const op_desc& forward() const { return program_.main().ops.front(); }

  program read(const fs::path& path) const {
    const auto bytes = arrays_.at("program").values<std::uint8_t>();
    return parse_program(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
      path.string());
  }

  arena memory_{make_host_memory_source()};
  named_tensors arrays_;
  program program_;
  op_schema_table schemas_ = op_schemas();
};

void check_schemas(const std::string& family) {
  const auto folder = fs::path{TROUPE_TEST_DATA} / "paddle_ops" / family;
  std::size_t cases = 0;
  for (auto& entry : fs::directory_iterator(folder)) {
    INFO(entry.path().stem().string());
    ++cases;
    try {
      schema_case c{entry.path()};
      c.check_shapes();
      c.check_gradients();
    } catch (const error& e) {
      FAIL_CHECK(std::string{e.what()});
    }
  }
  CHECK(cases > 0);
}

} // namespace

TEST_CASE("shapes and gradient ops are Paddle's") {
  for (auto family :
       {"activations",    "arithmetic", "convolutions", "elementwise",
        "embedding",      "expanding",  "filling",      "indexing",
        "joining",        "losses",     "metrics",      "movement",
        "normalizations", "products",   "ranges",       "ranking",
        "recurrent",      "reductions", "sequences",    "slicing",
        "triangles"}) {
    CAPTURE(family);
    check_schemas(family);
  }
}
} // TEST_SUITE("paddle.schemas")

} // namespace troupe::graph
