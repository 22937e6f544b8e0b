// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/comm/local/group_merge.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;

TEST_SUITE("comm.group_merge") {

namespace {

/// One variable on each of several devices.
class merged_variable {
public:
  explicit merged_variable(std::size_t ranks) {
    for (std::size_t r = 0; r < ranks; ++r)
      devices_.push_back(make_cpu_device(static_cast<int>(r)));
    inputs_.resize(ranks);
    outputs_.resize(ranks);
  }

  void put(std::size_t rank, tensor value) {
    inputs_[rank].set(std::move(value));
  }
  void put(std::size_t rank, selected_rows value) {
    inputs_[rank].set(std::move(value));
  }
  variable& in(std::size_t rank) { return inputs_[rank]; }
  variable& out(std::size_t rank) { return outputs_[rank]; }
  const tensor& result(std::size_t rank) { return outputs_[rank].as_tensor(); }
  device& on(std::size_t rank) { return *devices_[rank]; }

  void merge(collective_kind kind = collective_kind::all_reduce,
             std::size_t root = 0) {
    std::vector<device*> ranks;
    std::vector<rank_value> values;
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      ranks.push_back(devices_[r].get());
      values.push_back({"x", &inputs_[r], &outputs_[r]});
    }
    local::group_merge{std::move(ranks), {}}.run(kind, root, values);
  }

private:
  std::vector<std::unique_ptr<device>> devices_;
  std::vector<variable> inputs_, outputs_;
};

tensor ten_floats(unsigned seed) {
  return random_tensor({10}, dtype::float32, seed);
}

selected_rows one_row(std::int64_t row) {
  return {{row}, 100, random_tensor({1, 3}, dtype::float32, unsigned(row))};
}

void check_error(merged_variable& x, collective_kind kind, std::size_t root,
                 errc code, const char* message) {
  const auto e = caught([&] { x.merge(kind, root); });
  CHECK(e.code() == code);
  CHECK(e.message() == message);
}

// What a kernel does that writes variable `var` as its output "Out".
tensor write_as_kernel(device& on, variable& var, float value) {
  attribute_map attributes;
  const argument_list outputs{{"Out", "x", &var}};
  step_info step;
  kernel_context ctx{on, nullptr, attributes, {}, outputs, step};
  auto result = ctx.output("Out", {8}, dtype::float32);
  std::ranges::fill(result.values<float>(), value);
  return result;
}

} // namespace

TEST_CASE("all_reduce gives every rank the first value's memory, shared") {
  merged_variable x{3};
  for (unsigned r : {1, 2})
    x.put(r, ten_floats(r));
  const auto want = get(x.in(1).as_tensor(), 4) + get(x.in(2).as_tensor(), 4);
  const auto* memory = x.in(1).as_tensor().raw();
  x.merge();
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(x.result(r).raw() == memory);
    CHECK(x.result(r).is_shared());
    CHECK(get(x.result(r), 4) == doctest::Approx(want));
  }
}

TEST_CASE("values that other variables share are not overwritten") {
  for (auto kind : {collective_kind::all_reduce, collective_kind::reduce}) {
    merged_variable x{2};
    const auto value = ten_floats(1), kept = clone(value, host());
    x.put(0, value.share());
    x.put(1, ten_floats(2));
    x.merge(kind);
    CHECK(same_bits(value, kept));
    CHECK(x.result(0).raw() != value.raw());
    CHECK(get(x.result(0), 3) != get(value, 3));
  }
}

TEST_CASE("reduce gives its root alone the sum, in the root's memory") {
  merged_variable x{3};
  for (unsigned r : {0, 1, 2})
    x.put(r, ten_floats(r));
  const auto* memory = x.in(1).as_tensor().raw();
  x.merge(collective_kind::reduce, 1);
  CHECK(x.result(1).raw() == memory);
  CHECK(!x.result(1).is_shared());
  CHECK(!x.out(0).has_value());
  CHECK(!x.out(2).has_value());
}

TEST_CASE("an idle root of a reduce gets the sum of the others") {
  merged_variable x{2};
  x.put(1, ten_floats(1));
  x.merge(collective_kind::reduce, 0);
  CHECK(same_bits(x.result(0), x.in(1).as_tensor()));
  CHECK(x.result(0).raw() != x.in(1).as_tensor().raw());
}

TEST_CASE("broadcast shares the root's memory, whatever others hold") {
  for (auto type : {dtype::float32, dtype::int64, dtype::uint8}) {
    merged_variable x{3};
    const auto value = poisoned_tensor({10}, type);
    const auto before = clone(value, host());
    x.put(0, one_row(7));
    x.put(2, value);
    x.merge(collective_kind::broadcast, 2);
    for (std::size_t r = 0; r < 3; ++r)
      CHECK(x.result(r).raw() == value.raw());
    CHECK(same_bits(value, before));
  }
}

TEST_CASE("writing one rank's shared result leaves the others as they are") {
  merged_variable x{2};
  for (int step = 0; step < 3; ++step) {
    // A step's kernels write both gradients, which are then merged.
    const auto a = write_as_kernel(x.on(0), x.in(0), 1.0f + float(step));
    const auto b = write_as_kernel(x.on(1), x.in(1), 2.0f);
    CHECK(a.raw() != b.raw());
    x.merge();
    for (std::size_t r : {0, 1})
      x.in(r).set(x.result(r));
    CHECK(x.in(0).as_tensor().raw() == x.in(1).as_tensor().raw());
    CHECK(get(x.in(1).as_tensor(), 7) == 3.0 + step);
  }
  write_as_kernel(x.on(1), x.in(1), 9.0f);
  CHECK(get(x.in(1).as_tensor(), 0) == 9.0);
  CHECK(get(x.in(0).as_tensor(), 0) == 5.0);
}

TEST_CASE("a group of one rank shares nothing") {
  merged_variable x{1};
  x.put(0, ten_floats(1));
  x.merge();
  CHECK(!x.result(0).is_shared());
  CHECK(same_bits(x.result(0), ten_floats(1)));
}

TEST_CASE("rows are concatenated for every rank, and share their values") {
  merged_variable x{3};
  x.put(0, one_row(7));
  x.put(2, one_row(3));
  x.merge();
  for (std::size_t r = 0; r < 3; ++r) {
    const auto& rows = x.out(r).as_rows();
    CHECK(rows.rows == std::vector<std::int64_t>{7, 3});
    CHECK(rows.values.raw() == x.out(0).as_rows().values.raw());
    CHECK(rows.values.is_shared());
  }
  x.merge(collective_kind::reduce, 1);
  CHECK(!x.out(1).as_rows().values.is_shared());
}

TEST_CASE("ranks that do not fit together are named") {
  using enum collective_kind;
  merged_variable x{2};
  check_error(x, all_reduce, 0, errc::invalid_argument,
              "all_reduce: no rank has a value");
  check_error(x, broadcast, 1, errc::invalid_argument,
              "broadcast: rank 1 is the root and has no value");
  check_error(x, reduce, 2, errc::invalid_argument,
              "reduce: root 2 of 2 ranks");
  x.put(0, one_row(3));
  check_error(x, broadcast, 0, errc::invalid_argument,
              "broadcast: rank 0 gives rows, expected a tensor");
  x.put(1, ten_floats(1));
  check_error(x, all_reduce, 0, errc::invalid_argument,
              "all_reduce: rank 1 gives a tensor, another rank rows");
  x.put(0, random_tensor({11}, dtype::float32, 0));
  check_error(x, all_reduce, 0, errc::shape_mismatch,
              "all_reduce: rank 1 gives float32 [10], rank 0 float32 [11]");
  CHECK(!x.out(0).has_value());
}

TEST_CASE("a group without ranks and a wrong number of values are refused") {
  CHECK(caught([] {
          local::group_merge{{}, {}};
        }).message()
        == "a group without ranks");
  const auto device = make_cpu_device(0);
  local::group_merge two{{device.get(), device.get()}, {}};
  CHECK(caught([&] { two.run(collective_kind::all_reduce, 0, {}); }).message()
        == "all_reduce: 0 values for 2 ranks");
}

} // TEST_SUITE("comm.group_merge")
