// SPDX-License-Identifier: Apache-2.0
// Kernels that read indices from tensors never reach outside of another.

#include <kernels/cpu/hand_run.hpp>

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <string>

namespace troupe::test {

TEST_SUITE("kernels.cpu.bad_indices") {

namespace {

using ints = std::vector<std::int32_t>;

/// The error of a run: "code variable".
std::string failure_of(hand_run& op) {
  try {
    op.run();
    return "none";
  } catch (const error& e) {
    return std::string{to_string(e.code())} + " " + e.where().variable;
  }
}

/// An op on X [3, 2] and the index in `slot`.
std::string failure(const char* type, const char* slot, const shape& dims,
                    const std::vector<std::int64_t>& index,
                    attribute_map attributes = {},
                    const std::vector<const char*>& outputs = {"Out"}) {
  hand_run op(type, std::move(attributes));
  op.input("X", {3, 2}, {1, 2, 3, 4, 5, 6});
  op.labels(slot, dims, index);
  op.input("Updates", {1, 2}, {7, 8});
  op.input("Out@GRAD", {1, 2}, {7, 8});
  for (const char* name : outputs)
    op.output(name);
  return failure_of(op);
}

} // namespace

TEST_CASE("an index outside of its axis is an error that names the variable") {
  for (std::int64_t bad : {-1, 3, 1000000}) {
    CAPTURE(bad);
    CHECK(failure("gather", "Index", {1}, {bad}) == "out_of_range Index");
    CHECK(failure("gather_grad", "Index", {1}, {bad}, {}, {"X@GRAD"})
          == "out_of_range Index");
    CHECK(failure("index_select", "Index", {1}, {bad}) == "out_of_range Index");
    CHECK(failure("gather_nd", "Index", {1, 1}, {bad}) == "out_of_range Index");
    CHECK(failure("gather_nd_grad", "Index", {1, 1}, {bad}, {}, {"X@GRAD"})
          == "out_of_range Index");
    CHECK(failure("scatter", "Ids", {1}, {bad}) == "out_of_range Ids");
    CHECK(failure("scatter_grad", "Ids", {1}, {bad}, {}, {"X@GRAD"})
          == "out_of_range Ids");
    CHECK(failure("scatter_nd_add", "Index", {1, 1}, {bad})
          == "out_of_range Index");
  }
  CHECK(failure("gather", "Index", {1}, {2}, {{"axis", 1}})
        == "out_of_range Index");
  CHECK(failure("gather_nd", "Index", {1, 2}, {0, 2}) == "out_of_range Index");
  CHECK(failure("gather", "Index", {1}, {2}) == "none");
}

TEST_CASE("an index that names more axes than there are is an error") {
  CHECK(failure("gather_nd", "Index", {1, 3}, {0, 0, 0}) == "shape_mismatch ");
  CHECK(failure("gather", "Index", {1, 2}, {0, 0}) == "shape_mismatch ");
}

TEST_CASE("ids, lines and positions are checked too") {
  hand_run lookup("lookup_table");
  lookup.input("W", {3, 2}, {1, 2, 3, 4, 5, 6});
  lookup.labels("Ids", {1, 1}, {3});
  lookup.output("Out");
  CHECK(failure_of(lookup) == "out_of_range Ids");
  hand_run lines("one_hot_v2", {{"depth", 2}});
  lines.labels("X", {1}, {2});
  lines.output("Out");
  CHECK(failure_of(lines) == "out_of_range X");
  hand_run ranked("top_k_v2_grad", {{"axis", 1}});
  ranked.input("X", {1, 2}, {1, 2});
  ranked.input("Out@GRAD", {1, 1}, {1});
  ranked.labels("Indices", {1, 1}, {2});
  ranked.output("X@GRAD");
  CHECK(failure_of(ranked) == "out_of_range Indices");
}

TEST_CASE("parts that there are not are errors") {
  hand_run mirrored("pad3d", {{"paddings", ints{2, 0, 0, 0, 0, 0}},
                              {"mode", std::string{"reflect"}}});
  mirrored.input("X", {1, 1, 1, 1, 2}, {1, 2});
  mirrored.output("Out");
  CHECK(failure_of(mirrored) == "shape_mismatch ");
  hand_run dropped("slice", {{"axes", ints{0}},
                             {"starts", ints{0}},
                             {"ends", ints{2}},
                             {"decrease_axis", ints{0}}});
  dropped.input("Input", {2}, {1, 2});
  dropped.output("Out");
  CHECK(failure_of(dropped) == "shape_mismatch ");
  hand_run endless("range");
  endless.input("Start", {1}, {0});
  endless.input("End", {1}, {1});
  endless.input("Step", {1}, {0});
  endless.output("Out");
  CHECK(failure_of(endless) == "invalid_argument ");
  hand_run wider("conv2d_transpose", {{"output_size", ints{9, 9}}});
  wider.input("Input", {1, 1, 1, 1}, {1});
  wider.input("Filter", {1, 1, 2, 2}, {1, 2, 3, 4});
  wider.output("Output");
  CHECK(failure_of(wider) == "invalid_argument ");
}
} // TEST_SUITE("kernels.cpu.bad_indices")

} // namespace troupe::test
