// SPDX-License-Identifier: Apache-2.0
// Updates that add up the gradients of several devices as they read them, or
// that make them from the devices' factors.
#include <kernels/cpu/optimizer/update_case.hpp>
#include <kernels/cpu/shared_run.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cpu/conv/filter_blocks.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.merging_update") {

namespace {

const std::vector<const char*> gradients{"g", "g1", "g2"};

/// Values of several pieces, the last one short, and a gradient per device.
op_chain before_merging(const shape& dims = {70, 131}) {
  auto ops = before_update(dims);
  for (auto name : {"g1", "g2"})
    ops.put(name, dims);
  return ops;
}

void merge(op_chain& ops, const update& u) {
  step(ops, u, std::string("merging_") + u.type, gradients);
}

/// Adds the others to the first of `present`, in their order, and updates.
void add_and_update(op_chain& ops, const update& u,
                    std::vector<const char*> present) {
  auto sum = ops.elements(present[0]);
  for (std::size_t i = 1; i < present.size(); ++i) {
    const auto next = ops.elements(present[i]);
    for (std::size_t at = 0; at < sum.size(); ++at)
      sum[at] += next[at];
  }
  ops.put("sum", ops.at("p").as_tensor().dims());
  std::ranges::copy(sum, ops.at("sum").as_tensor().data<float>());
  step(ops, u, u.type, {"sum"});
}

void check_same(op_chain& a, op_chain& b) {
  for (auto name : {"p", "a", "b"}) {
    CAPTURE(name);
    CHECK(a.elements(name) == b.elements(name));
  }
}

void put_in_blocks(op_chain& ops, const std::string& name) {
  static arena memory{make_host_memory_source()};
  auto& var = ops.at(name);
  const tensor plain = var.as_tensor();
  var.set(cpu::in_filter_blocks(plain, name, cpu::filter_blocks(plain.dims()),
                                memory));
}

/// A parameter of several pieces and the factors of its gradient per device.
op_chain before_gathering(const sizes& samples, const shape& dims = {500, 300},
                          precision factors = precision::float32) {
  auto ops = before_update(dims, cpu_kernels({.factors = factors}));
  for (std::size_t device = 0; device < samples.size(); ++device) {
    ops.put("x" + std::to_string(device), {samples[device], 500});
    ops.put("d" + std::to_string(device), {samples[device], 300});
  }
  return ops;
}

slot_names factors_of(const std::vector<std::size_t>& devices) {
  constexpr std::array<std::array<const char*, 2>, 3> names{
    {{"x0", "d0"}, {"x1", "d1"}, {"x2", "d2"}}};
  slot_names factors;
  for (auto device : devices)
    factors.emplace_back("X", names[device][0]);
  for (auto device : devices)
    factors.emplace_back("Out@GRAD", names[device][1]);
  return factors;
}

void gather(op_chain& ops, const update& u,
            const std::vector<std::size_t>& devices,
            std::int32_t y_num_col_dims = 1) {
  auto attributes = u.attributes;
  attributes.set("y_num_col_dims", y_num_col_dims);
  const slot_names inputs{{"Param", "p"}, {"LearningRate", "lr"}};
  ops.run((std::string("gathered_") + u.type).c_str(),
          inputs + u.state_in + factors_of(devices),
          slot_names{{"ParamOut", "p"}} + u.state_out, attributes);
}

/// The gathered gradient, then the update.
void gather_and_update(op_chain& ops, const update& u,
                       const std::vector<std::size_t>& devices) {
  ops.run("gathered_mul_grad", slot_names{{"Y", "p"}} + factors_of(devices),
          {{"Y@GRAD", "g"}});
  step(ops, u);
}

/// Momentum of a parameter [rows, 64] with so many gradients.
op_case momentum(std::int64_t rows, std::size_t devices) {
  op_case c{.type = "merging_momentum",
            .inputs = {{"Param", {random_values({rows, 64}, 1)}},
                       {"Velocity", {random_values({rows, 64}, 2)}},
                       {"LearningRate", {random_values({1}, 3)}}},
            .outputs = {{"ParamOut", 1}, {"VelocityOut", 1}}};
  for (std::size_t device = 0; device < devices; ++device)
    c.inputs["Grad"].push_back(random_values({rows, 64}, 4 + device));
  return c;
}

} // namespace

TEST_CASE("gradients are added up in the order of devices, to the same bits") {
  for (const auto& u : updates) {
    CAPTURE(u.type);
    auto merging = before_merging(), adding = before_merging();
    for (int step = 0; step < 2; ++step) {
      merge(merging, u);
      add_and_update(adding, u, gradients);
      check_same(merging, adding);
    }
    auto other = before_merging();
    CHECK(merging.elements("p") != other.elements("p"));
  }
}

TEST_CASE("a device without a gradient adds nothing") {
  for (const auto& u : updates)
    for (std::size_t idle = 0; idle < gradients.size(); ++idle) {
      CAPTURE(u.type);
      CAPTURE(idle);
      auto merging = before_merging(), adding = before_merging();
      auto present = gradients;
      present.erase(present.begin() + static_cast<std::ptrdiff_t>(idle));
      merging.at(gradients[idle]) = {};
      merge(merging, u);
      add_and_update(adding, u, present);
      check_same(merging, adding);
    }
}

TEST_CASE("one gradient of several devices is enough") {
  for (const auto& u : updates) {
    CAPTURE(u.type);
    auto merging = before_merging(), alone = before_merging();
    merging.at("g") = {};
    merging.at("g2") = {};
    merge(merging, u);
    step(alone, u, u.type, {"g1"});
    check_same(merging, alone);
  }
}

TEST_CASE("without any gradient all stays as it is") {
  for (const auto& u : updates) {
    CAPTURE(u.type);
    auto merging = before_merging(), before = before_merging();
    for (auto g : gradients)
      merging.at(g) = {};
    merge(merging, u);
    check_same(merging, before);
  }
}

TEST_CASE("gradients of filters are merged as they lie") {
  const shape dims{32, 48, 3, 3};
  const std::vector<std::set<std::string>> blocks{
    {"g", "g1", "g2"}, {"g"}, {"g1", "g2"}, {"g2"}};
  for (const auto& u : updates)
    for (const auto& in_blocks : blocks) {
      CAPTURE(u.type);
      CAPTURE(in_blocks.size());
      auto merging = before_merging(dims), adding = before_merging(dims);
      for (const auto& name : in_blocks)
        put_in_blocks(merging, name);
      merge(merging, u);
      CHECK(cpu::lies_in_filter_blocks(merging.at("p").as_tensor())
            == in_blocks.contains("g"));
      add_and_update(adding, u, gradients);
      check_same(merging, adding);
    }
}

TEST_CASE("the first device may lack the gradient of a filter") {
  const shape dims{32, 16, 3, 3};
  for (const auto& u : updates) {
    CAPTURE(u.type);
    auto merging = before_merging(dims), adding = before_merging(dims);
    merging.at("g") = {};
    for (auto name : {"g1", "g2"})
      put_in_blocks(merging, name);
    merge(merging, u);
    CHECK(cpu::lies_in_filter_blocks(merging.at("p").as_tensor()));
    add_and_update(adding, u, {"g1", "g2"});
    check_same(merging, adding);
  }
}

TEST_CASE("workers share the sum, to the same bits") {
  for (std::size_t devices : {2, 3, 5})
    CHECK(check_op(plain(), momentum(3000, devices), same_bits).size() == 2);
}

TEST_CASE("a gradient made in pieces has the bits of one made at once") {
  for (const auto& u : updates)
    for (const sizes& samples : {sizes{9, 8}, sizes{32, 31, 32}, sizes{1}}) {
      CAPTURE(u.type);
      CAPTURE(samples.size());
      std::vector<std::size_t> devices(samples.size());
      std::iota(devices.begin(), devices.end(), std::size_t{0});
      auto gathering = before_gathering(samples);
      auto making = before_gathering(samples);
      for (int step = 0; step < 2; ++step) {
        gather(gathering, u, devices);
        gather_and_update(making, u, devices);
        check_same(gathering, making);
      }
      CHECK(gathering.elements("p") != before_gathering(samples).elements("p"));
    }
}

TEST_CASE("factors are rounded as the table says") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const sizes samples{200, 160};
  const auto before = [&](precision p) {
    return before_gathering(samples, {500, 300}, p);
  };
  auto gathering = before(precision::bfloat16);
  auto making = before(precision::bfloat16);
  auto exact = before(precision::float32);
  gather(gathering, updates[1], {0, 1});
  gather_and_update(making, updates[1], {0, 1});
  gather(exact, updates[1], {0, 1});
  check_same(gathering, making);
  CHECK(gathering.elements("p") != exact.elements("p"));
}

TEST_CASE("a device without samples has no factors") {
  for (const auto& u : updates)
    for (std::size_t idle : {0, 1, 2}) {
      CAPTURE(u.type);
      CAPTURE(idle);
      auto gathering = before_gathering({4, 5, 6});
      auto others = before_gathering({4, 5, 6});
      std::vector<std::size_t> present{0, 1, 2};
      present.erase(present.begin() + static_cast<std::ptrdiff_t>(idle));
      gathering.at("x" + std::to_string(idle)) = {};
      gathering.at("d" + std::to_string(idle)) = {};
      gather(gathering, u, {0, 1, 2});
      gather(others, u, present);
      check_same(gathering, others);
    }
}

TEST_CASE("without any factors all stays as it is") {
  for (const auto& u : updates) {
    CAPTURE(u.type);
    auto gathering = before_gathering({4}), before = before_gathering({4});
    gathering.at("x0") = {};
    gathering.at("d0") = {};
    gather(gathering, u, {0});
    check_same(gathering, before);
  }
}

TEST_CASE("a parameter of more extents is taken as the matrix that it is") {
  auto matrix = before_gathering({7, 7});
  auto deep = before_gathering({7, 7}, {50, 10, 300});
  gather(matrix, updates[1], {0, 1});
  gather(deep, updates[1], {0, 1}, 2);
  check_same(matrix, deep);
}

TEST_CASE("workers share the pieces") {
  op_case c{.type = "gathered_momentum",
            .inputs = {{"Param", {random_values({500, 300}, 1)}},
                       {"Velocity", {random_values({500, 300}, 2)}},
                       {"LearningRate", {random_values({1}, 3)}}},
            .outputs = {{"ParamOut", 1}, {"VelocityOut", 1}}};
  for (std::uint64_t device = 0; device < 2; ++device) {
    c.inputs["X"].push_back(random_values({32, 500}, 4 + device));
    c.inputs["Out@GRAD"].push_back(random_values({32, 300}, 6 + device));
  }
  check_op(plain(), c, near);
}

TEST_CASE("factors that do not fit are refused") {
  const auto refused = [](const shape& x, const shape& d, const shape& param,
                          const char* what, std::int32_t columns = 1) {
    auto ops = before_gathering({4}, param);
    ops.put("x0", x);
    ops.put("d0", d);
    CHECK_THROWS_WITH_AS(gather(ops, updates[1], {0}, columns),
                         doctest::Contains(what), error);
  };
  refused({4, 499}, {4, 300}, {500, 300}, "columns of X");
  refused({4, 500}, {3, 300}, {500, 300}, "columns of Out@GRAD");
  refused({4, 500}, {4, 299}, {500, 300}, "columns of Out@GRAD");
  refused({4, 500}, {4, 300}, {150000}, "cannot be split");
  refused({4, 500}, {4, 300}, {500, 300}, "cannot be split", 2);
}

TEST_CASE("gradients that do not fit are refused") {
  auto shapes = before_merging();
  shapes.put("g2", {70, 130});
  CHECK_THROWS_WITH_AS(merge(shapes, updates[1]), doctest::Contains("Grad"),
                       error);
  auto types = momentum(4, 2);
  types.inputs["Grad"][1].type = dtype::float64;
  CHECK_THROWS_AS(run_op(plain(), types), error);
  auto rows = before_merging();
  rows.at("g1").set(selected_rows{{1}, 70, rows.at("g2").as_tensor()});
  CHECK_THROWS_WITH_AS(merge(rows, updates[1]), doctest::Contains("rows"),
                       error);
}

} // TEST_SUITE("kernels.cpu.merging_update")

} // namespace troupe::test
