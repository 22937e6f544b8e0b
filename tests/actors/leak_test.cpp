// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/handles.hpp>

#include <actors/application.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <troupe/actors/configure.hpp>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include <malloc.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.leak") {

namespace {

// A sanitizer's allocator does not support mallinfo2, but finds leaks itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool can_measure = false;
#else
constexpr bool can_measure = true;
#endif

executor_options options_for(const small_net& net) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  return o;
}

/// Bytes that are still allocated after 80 calls of `round`, beyond those after
/// the 20 calls before them.
long growth(const std::function<void()>& round) {
  for (int i = 0; i < 20; ++i)
    round();
  const auto before = mallinfo2().uordblks;
  for (int i = 20; i < 100; ++i)
    round();
  const auto after = mallinfo2().uordblks;
  return can_measure ? static_cast<long>(after) - static_cast<long>(before) : 0;
}

constexpr long allowed = 64 * 1024;

struct leak_application {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;

  explicit leak_application(bool own_policy) {
    system =
      own_policy ? make_actor_system(config, 2) : make_plain_system(config, 2);
  }
};

bool gone(const caf::actor_addr& addr) {
  return caf::actor_cast<caf::strong_actor_ptr>(addr) == nullptr;
}

} // namespace

TEST_CASE("executors with their own actor systems do not leak memory") {
  auto net = make_mlp();
  CHECK(growth([&] {
          executor exe{net.main, options_for(net)};
          for (std::uint64_t s = 0; s < 3; ++s)
            exe.run(net.batch(s, 4));
        })
        < allowed);
}

TEST_CASE("executors in a shared actor system do not leak memory") {
  for (bool own_policy : {true, false}) {
    CAPTURE(own_policy);
    leak_application app{own_policy};
    auto net = make_mlp();
    for (auto form : {edge_form::counter, edge_form::message}) {
      CAPTURE(static_cast<int>(form));
      CHECK(growth([&] {
              auto options = options_for(net);
              options.system = &*app.system;
              options.hooks.form = form;
              executor exe{net.main, options};
              for (std::uint64_t s = 0; s < 3; ++s)
                exe.run(net.batch(s, 4));
            })
            < allowed);
    }
  }
}

TEST_CASE("executors destroyed with steps in flight do not leak memory") {
  for (bool own_policy : {true, false}) {
    CAPTURE(own_policy);
    leak_application app{own_policy};
    auto net = make_mlp();
    CHECK(growth([&] {
            auto options = options_for(net);
            options.system = &*app.system;
            options.steps_in_flight = 3;
            executor exe{net.main, options};
            for (std::uint64_t s = 0; s < 3; ++s)
              exe.submit(net.batch(s, 4));
          })
          < allowed);
  }
}

TEST_CASE("failed steps and constructions do not leak memory") {
  auto net = make_mlp();
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[0] = 99;
  leak_application app{true};
  CHECK(growth([&] {
          auto options = options_for(net);
          options.system = &*app.system;
          executor exe{net.main, options};
          caught([&] { exe.run(bad); });
          options.parameters = {};
          caught([&] { executor other(net.main, options); });
        })
        < allowed);
}

TEST_CASE("memory does not grow during long training") {
  auto net = make_word2vec();
  executor exe{net.main, options_for(net)};
  std::uint64_t seed = 0;
  CHECK(growth([&] { exe.run(net.batch(seed++ % 7, 6)); }) < allowed);
}

TEST_CASE("destroying an executor terminates and frees all its actors") {
  for (auto form : {edge_form::counter, edge_form::message, edge_form::mixed}) {
    CAPTURE(static_cast<int>(form));
    leak_application app{true};
    auto net = make_mlp();
    std::vector<caf::actor_addr> all;
    std::size_t ended = 0;
    {
      auto options = options_for(net);
      options.system = &*app.system;
      options.hooks.form = form;
      executor exe{net.main, options};
      for (handle_id id = 0; id < exe.graph().size(); ++id) {
        const auto handle = handle_address(exe, id);
        handle->attach_functor([&ended] { ++ended; });
        all.push_back(handle.address());
      }
      exe.submit(net.batch(0, 4));
      CHECK(std::none_of(all.begin(), all.end(), gone));
    }
    CHECK(ended == all.size());
    CHECK(std::all_of(all.begin(), all.end(), gone));
  }
}

} // TEST_SUITE("actors.leak")
