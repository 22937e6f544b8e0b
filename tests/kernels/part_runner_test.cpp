// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/part_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace troupe {

TEST_SUITE("kernels.part_runner") {

namespace {

using order = std::vector<std::size_t>;

// Runs the parts last first and notes how many it was given.
class last_first final : public part_runner {
public:
  void run(std::size_t parts, const part_function& part) override {
    asked.push_back(parts);
    for (std::size_t i = parts; i > 0; --i)
      part(i - 1);
  }

  order asked;
};

order run_with(part_runner* helpers, std::size_t parts) {
  order seen;
  run_parts(helpers, parts, [&](std::size_t i) { seen.push_back(i); });
  return seen;
}

// A context on a stream with such helpers.
struct fixture {
  std::unique_ptr<device> cpu = make_cpu_device(0);
  attribute_map attributes;
  step_info step;
  last_first helpers;

  std::unique_ptr<stream> make(int width, part_runner* with) {
    return cpu->make_stream({.name = {}, .width = width, .helpers = with});
  }
  kernel_context on(stream* queue) {
    return {*cpu, queue, attributes, {}, {}, step};
  }
  static order parts_of(const kernel_context& ctx, std::size_t parts) {
    order seen;
    ctx.in_parts(parts, [&](std::size_t i) { seen.push_back(i); });
    return seen;
  }
};

} // namespace

TEST_CASE("without helpers the caller runs each part once, in order") {
  CHECK(run_with(nullptr, 4) == order{0, 1, 2, 3});
  CHECK(run_with(nullptr, 1) == order{0});
  CHECK(run_with(nullptr, 0) == order{});
}

TEST_CASE("helpers are given all parts of a work that has several") {
  last_first helpers;
  CHECK(run_with(&helpers, 3) == order{2, 1, 0});
  CHECK(run_with(&helpers, 2) == order{1, 0});
  CHECK(helpers.asked == order{3, 2});
}

TEST_CASE("helpers are not asked for a single part or none") {
  last_first helpers;
  CHECK(run_with(&helpers, 1) == order{0});
  CHECK(run_with(&helpers, 0) == order{});
  CHECK(helpers.asked.empty());
}

TEST_CASE("an exception of a part comes out") {
  last_first helpers;
  const auto fail = [](std::size_t i) {
    if (i == 1)
      throw std::runtime_error("broken");
  };
  for (part_runner* each : {static_cast<part_runner*>(nullptr),
                            static_cast<part_runner*>(&helpers)})
    CHECK_THROWS_WITH_AS(run_parts(each, 2, fail), "broken",
                         std::runtime_error);
}

TEST_CASE("a part function refers to its callable") {
  int calls = 0;
  auto count = [&calls, own = 0](std::size_t) mutable { calls = ++own; };
  const part_function part(count);
  const part_function copy = part;
  part(0);
  copy(0);
  CHECK(calls == 2);
}

TEST_CASE_FIXTURE(fixture, "a CPU stream has the helpers that it was given") {
  CHECK(make(3, &helpers)->helpers() == &helpers);
  CHECK(make(3, nullptr)->helpers() == nullptr);
  CHECK(cpu->make_stream({})->helpers() == nullptr);
}

TEST_CASE_FIXTURE(fixture, "a kernel has one worker unless a stream has more") {
  CHECK(on(nullptr).workers() == 1);
  const auto alone = make(3, nullptr);
  CHECK(on(alone.get()).workers() == 1);
  const auto narrow = make(1, &helpers);
  CHECK(on(narrow.get()).workers() == 1);
  const auto wide = make(3, &helpers);
  CHECK(on(wide.get()).workers() == 3);
}

TEST_CASE_FIXTURE(fixture, "a kernel without helpers runs parts in order") {
  const auto alone = make(3, nullptr);
  const auto narrow = make(1, &helpers);
  for (stream* queue :
       {static_cast<stream*>(nullptr), alone.get(), narrow.get()})
    CHECK(parts_of(on(queue), 4) == order{0, 1, 2, 3});
  CHECK(helpers.asked.empty());
}

TEST_CASE_FIXTURE(fixture, "a kernel hands its parts to the stream's helpers") {
  const auto wide = make(2, &helpers);
  const auto ctx = on(wide.get());
  CHECK(parts_of(ctx, 5) == order{4, 3, 2, 1, 0});
  CHECK(parts_of(ctx, 1) == order{0});
  CHECK(parts_of(ctx, 0) == order{});
  CHECK(helpers.asked == order{5});
}

} // TEST_SUITE("kernels.part_runner")

} // namespace troupe
