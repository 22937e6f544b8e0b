// SPDX-License-Identifier: Apache-2.0

// What follows an executor from its construction to its end.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.attach") {

namespace {

struct seen {
  std::optional<std::uint64_t> steps_at_begin, steps_at_end;
};

/// Looks at an executor when it is made and when it is destroyed.
class watcher {
public:
  watcher(executor& of, seen& into) : of_(of), into_(into) {
    into_.steps_at_begin = of_.steps_ended();
  }
  ~watcher() { into_.steps_at_end = of_.steps_ended(); }
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

private:
  executor& of_;
  seen& into_;
};

} // namespace

TEST_CASE("what is attached comes with the executor and leaves before it") {
  const auto net = make_mlp();
  seen by_watcher;
  const executor* given = nullptr;
  {
    executor_options options;
    options.parameters = net.parameters();
    options.attach = [&](executor& exe) {
      given = &exe;
      return std::make_shared<watcher>(exe, by_watcher);
    };
    executor exe{net.main, options};
    CHECK(given == &exe);
    CHECK(by_watcher.steps_at_begin == 0);
    exe.run(net.batch(0, 4));
    exe.submit(net.batch(1, 4)); // still runs when the executor ends
    CHECK_FALSE(by_watcher.steps_at_end);
  }
  CHECK(by_watcher.steps_at_end.value_or(0) >= 1);
}

TEST_CASE("an executor need not have anything attached") {
  const auto net = make_mlp();
  executor_options options;
  options.parameters = net.parameters();
  options.attach = [](executor&) { return nullptr; };
  executor exe{net.main, options};
  CHECK(exe.run(net.batch(0, 4)).samples.size() == 1);
}

TEST_CASE("what cannot be attached is an error of the constructor") {
  const auto net = make_mlp();
  executor_options options;
  options.parameters = net.parameters();
  options.attach = [](executor&) -> std::shared_ptr<void> {
    throw error(errc::io_failure, "no room on the wall");
  };
  const auto e = caught([&] { executor{net.main, options}; });
  CHECK(e.code() == errc::io_failure);
  options.attach = {};
  executor exe{net.main, options}; // the scope is as it was
  CHECK(exe.run(net.batch(0, 4)).samples.size() == 1);
}

} // TEST_SUITE("actors.attach")
