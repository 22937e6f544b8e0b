// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/comm/collective.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

using namespace comm_test;
using namespace troupe::comm;

TEST_SUITE("comm.collective") {

namespace {

constexpr collective_kind all_kinds[] = {
  collective_kind::all_reduce, collective_kind::reduce,
  collective_kind::broadcast, collective_kind::all_gather,
  collective_kind::reduce_scatter};
constexpr reduce_op all_ops[] = {reduce_op::sum, reduce_op::mean,
                                 reduce_op::max};
constexpr dtype all_types[] = {dtype::float32, dtype::float16, dtype::bfloat16,
                               dtype::int32};
constexpr std::size_t all_ranks[] = {1, 2, 3, 4, 8};

bool moves_elements(collective_kind kind) {
  return kind == collective_kind::all_gather
         || kind == collective_kind::reduce_scatter;
}

// One collective over random tensors, and what it must give.
struct scenario {
  collective_options options;
  std::size_t ranks;
  std::int64_t elements; // of one rank's slice
  dtype type;
  std::vector<tensor> inputs;

  scenario(const collective_options& with, std::size_t of, std::int64_t n,
           dtype t)
    : options(with), ranks(of), elements(n), type(t) {
    auto scatter = options.kind == collective_kind::reduce_scatter;
    auto slice = scatter ? n * std::int64_t(ranks) : n;
    for (unsigned r = 0; r < ranks; ++r)
      inputs.push_back(random_tensor({slice, 1}, type, r * 7919 + unsigned(n)));
  }

  std::vector<tensor> make_outputs(bool in_place) const {
    if (in_place)
      return clones(inputs);
    auto gather = options.kind == collective_kind::all_gather;
    auto n = gather ? elements * std::int64_t(ranks) : elements;
    std::vector<tensor> outputs;
    for (std::size_t r = 0; r < ranks; ++r)
      outputs.push_back(poisoned_tensor({n, 1}, type));
    return outputs;
  }

  double reduced(std::size_t i) const {
    double sum = 0, greatest = -1e300;
    for (auto& input : inputs) {
      if (!input)
        continue;
      sum += get(input, i);
      greatest = std::max(greatest, get(input, i));
    }
    if (options.op == reduce_op::max)
      return greatest;
    auto result = options.op == reduce_op::mean ? sum / double(ranks) : sum;
    return type == dtype::int32 ? std::trunc(result) : result;
  }

  double expected(std::size_t rank, std::size_t i) const {
    auto n = std::size_t(elements);
    switch (options.kind) {
    case collective_kind::broadcast: return get(inputs[options.root], i);
    case collective_kind::all_gather:
      return inputs[i / n] ? get(inputs[i / n], i % n) : 0;
    case collective_kind::reduce_scatter: return reduced(rank * n + i);
    default: return reduced(i);
    }
  }

  double tolerance(double value) const {
    switch (type) {
    case dtype::int32: return 0;
    case dtype::float16: return std::abs(value) * 0x1p-11 + 0x1p-18;
    case dtype::bfloat16: return std::abs(value) * 0x1p-8 + 0x1p-15;
    default: return 1e-5;
    }
  }

  bool gets_result(std::size_t rank) const {
    return options.kind != collective_kind::reduce || rank == options.root;
  }

  // Elements that are not as expected.
  std::size_t wrong(const std::vector<tensor>& outputs) const {
    std::size_t count = 0;
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t i = 0;
           gets_result(r) && i < std::size_t(outputs[r].numel()); ++i) {
        auto want = expected(r, i);
        count += !(std::abs(get(outputs[r], i) - want) <= tolerance(want));
      }
    return count;
  }
};

std::vector<tensor> run_once(const scenario& s, bool in_place) {
  auto outputs = s.make_outputs(in_place);
  auto c = make_local_collective(s.ranks, s.options);
  run(*c, in_place ? std::vector<tensor>(outputs) : s.inputs, outputs);
  return outputs;
}

void check_all_ranks_and_sizes(collective_options options, dtype type) {
  for (auto ranks : all_ranks)
    for (auto elements : {0, 1, 7, 31, 33, 100, 1027}) {
      CAPTURE(ranks);
      CAPTURE(elements);
      options.root = ranks / 2;
      scenario s{options, ranks, elements, type};
      auto kept = clones(s.inputs);
      CHECK(s.wrong(run_once(s, false)) == 0);
      CHECK(std::equal(kept.begin(), kept.end(), s.inputs.begin(), same_bits));
      if (!moves_elements(options.kind))
        CHECK(s.wrong(run_once(s, true)) == 0);
    }
}

// Runs the parts of a bound collective on `threads` threads, in an order that
// `seed` shuffles.
void run_shuffled(collective& c, std::size_t threads, unsigned seed) {
  std::vector<std::size_t> order(c.parts());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), std::minstd_rand{seed});
  std::vector<std::jthread> workers;
  for (std::size_t t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      for (auto i = t; i < order.size(); i += threads)
        c.run_part(order[i]);
    });
}

} // namespace

TEST_CASE("every kind, op and dtype equals a double-precision reference") {
  for (auto kind : all_kinds)
    for (auto op : all_ops)
      for (auto type : all_types) {
        INFO(to_string(kind), " op ", int(op), " ", to_string(type));
        check_all_ranks_and_sizes({.kind = kind, .op = op}, type);
      }
}

TEST_CASE("results are bit-equal for any number and order of parts") {
  for (auto kind : all_kinds)
    for (auto type : {dtype::float32, dtype::bfloat16})
      for (std::size_t ranks : {2, 3}) {
        INFO(to_string(kind), " ", to_string(type), " ranks ", ranks);
        collective_options options{.kind = kind, .op = reduce_op::mean};
        scenario s{options, ranks, 200'003, type};
        auto whole = run_once(s, false);
        CHECK(s.wrong(whole) == 0);
        for (std::size_t parts : {2, 3, 7, 64}) {
          options.max_parts = parts;
          auto c = make_local_collective(ranks, options);
          auto outputs = s.make_outputs(false);
          c->bind(s.inputs, outputs);
          CHECK(c->parts() > 1);
          CHECK(c->parts() <= parts);
          run_shuffled(*c, 3, unsigned(parts));
          c->finish();
          for (std::size_t r = 0; r < ranks; ++r)
            if (s.gets_result(r))
              CHECK(same_bits(whole[r], outputs[r]));
        }
      }
}

TEST_CASE("float32 elements are added in rank order") {
  std::vector<tensor> inputs;
  for (auto value : {1e8f, 1.0f, -1e8f, 1.0f}) {
    inputs.push_back(tensor::make(host(), {1}, dtype::float32));
    set(inputs.back(), 0, value);
  }
  auto outputs = clones(inputs);
  run(*make_local_collective(4, {}), inputs, outputs);
  CHECK(get(outputs[3], 0) == ((1e8f + 1.0f) + -1e8f) + 1.0f);
}

TEST_CASE("halves are added in float32 and rounded once") {
  std::vector<tensor> inputs;
  for (auto value : {2048.0, 1.0, 1.0}) {
    inputs.push_back(tensor::make(host(), {1}, dtype::float16));
    set(inputs.back(), 0, value);
  }
  auto outputs = clones(inputs);
  run(*make_local_collective(3, {}), inputs, outputs);
  CHECK(get(outputs[0], 0) == 2050.0);
}

TEST_CASE("an int32 mean does not overflow in between") {
  std::vector<tensor> inputs(2);
  for (auto& input : inputs) {
    input = tensor::make(host(), {1}, dtype::int32);
    set(input, 0, 2147483647);
  }
  auto outputs = clones(inputs);
  run(*make_local_collective(2, {.op = reduce_op::mean}), inputs, outputs);
  CHECK(get(outputs[0], 0) == 2147483647);
}

TEST_CASE("a NaN of any rank is in the result of sum and max") {
  for (auto op : {reduce_op::sum, reduce_op::max})
    for (std::size_t bad = 0; bad < 3; ++bad) {
      std::vector<tensor> inputs;
      for (unsigned r = 0; r < 3; ++r)
        inputs.push_back(random_tensor({5}, dtype::float32, r));
      set(inputs[bad], 2, std::nan(""));
      auto outputs = clones(inputs);
      run(*make_local_collective(3, {.op = op}), inputs, outputs);
      CHECK(std::isnan(get(outputs[1], 2)));
      CHECK(!std::isnan(get(outputs[1], 3)));
    }
}

TEST_CASE("tensors larger than the caches go past them to other memory") {
  for (auto kind : all_kinds) {
    INFO(to_string(kind));
    scenario s{{.kind = kind, .max_parts = 2}, 2, 3'000'001, dtype::float32};
    CHECK(s.wrong(run_once(s, false)) == 0);
  }
}

TEST_CASE("broadcast keeps the bits of any dtype") {
  auto value = poisoned_tensor({3, 3}, dtype::int64);
  std::vector<tensor> inputs{tensor{}, value};
  std::vector<tensor> outputs{tensor::make(host(), {3, 3}, dtype::int64),
                              tensor::make(host(), {3, 3}, dtype::int64)};
  run(
    *make_local_collective(2, {.kind = collective_kind::broadcast, .root = 1}),
    inputs, outputs);
  CHECK(same_bits(outputs[0], value));
  CHECK(same_bits(outputs[1], value));
}

TEST_CASE("an instance is bound again with other sizes and dtypes") {
  auto c = make_local_collective(2, {.max_parts = 4});
  for (auto type : all_types)
    for (auto elements : {100'000, 3}) {
      scenario s{{}, 2, elements, type};
      auto outputs = s.make_outputs(false);
      run(*c, s.inputs, outputs);
      CHECK(s.wrong(outputs) == 0);
      CHECK(c->parts() == 0);
    }
}

TEST_CASE("an idle rank contributes nothing and still gets the result") {
  for (auto kind : all_kinds)
    for (auto op : all_ops)
      for (auto type : all_types) {
        INFO(to_string(kind), " op ", int(op), " ", to_string(type));
        scenario s{{.kind = kind, .op = op}, 3, 45, type};
        auto outputs = s.make_outputs(false);
        s.inputs[1] = {};
        run(*make_local_collective(3, s.options), s.inputs, outputs);
        CHECK(s.wrong(outputs) == 0);
        s.inputs[2] = {};
        run(*make_local_collective(3, s.options), s.inputs, outputs);
        CHECK(s.wrong(outputs) == 0);
      }
}

TEST_CASE("sum and mean of idle ranks alone give zeros") {
  for (auto kind : {collective_kind::all_reduce, collective_kind::reduce,
                    collective_kind::reduce_scatter})
    for (auto op : {reduce_op::sum, reduce_op::mean}) {
      scenario s{{.kind = kind, .op = op}, 2, 45, dtype::float16};
      auto outputs = s.make_outputs(false);
      run(*make_local_collective(2, s.options), std::vector<tensor>(2),
          outputs);
      for (std::size_t i = 0; i < 45; ++i)
        CHECK(get(outputs[0], i) == 0);
    }
}
} // TEST_SUITE("comm.collective")
