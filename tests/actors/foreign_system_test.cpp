// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/configure.hpp>

#include <actors/application.hpp>
#include <actors/one_op_program.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::chrono::seconds patience{60};

/// An application's own actor system.
struct foreign_application {
  enum class kind { stealing, sharing, troupe };
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;

  foreign_application(kind k, int threads) {
    if (k == kind::sharing)
      actors::set_option(config, "scheduler.policy", "sharing");
    system = k == kind::troupe
               ? make_actor_system(config, threads)
               : make_plain_system(config, static_cast<std::size_t>(threads));
  }
};

using kind = foreign_application::kind;

executor_options options_for(const small_net& net, foreign_application* app) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  if (app)
    o.system = &*app->system;
  return o;
}

std::vector<double> train(const small_net& net, executor& exe, int steps) {
  std::vector<double> losses;
  for (int s = 0; s < steps; ++s)
    losses.push_back(exe.run(net.batch(static_cast<std::uint64_t>(s), 6)).loss);
  return losses;
}

/// Losses of an executor with its own actor system.
std::vector<double> expected(const small_net& net, int steps) {
  executor exe{net.main, options_for(net, nullptr)};
  return train(net, exe, steps);
}

/// Runs `act` with every kind of system that an application may have.
template <class Act>
void in_all_systems(Act act) {
  for (auto k : {kind::stealing, kind::sharing, kind::troupe})
    for (int threads : {1, 2, 4}) {
      CAPTURE(static_cast<int>(k));
      CAPTURE(threads);
      foreign_application app{k, threads};
      act(app);
    }
}

caf::behavior doubling(caf::event_based_actor*) {
  return {[](int x) { return 2 * x; }};
}

/// Asks `to` and returns whether the answer is right.
bool answers_with(caf::scoped_actor& self, const caf::actor& to, int x) {
  bool right = false;
  self->request(to, patience, x)
    .receive([&](int y) { right = y == 2 * x; }, [](const caf::error&) {});
  return right;
}

/// An actor that calls `act` in its handler before it answers.
template <class Act>
caf::actor spawn_doer(foreign_application& app, Act act) {
  return app.system->spawn([act](caf::event_based_actor*) -> caf::behavior {
    return {[act](int x) {
      act();
      return 2 * x;
    }};
  });
}

/// Copies its input, once the test says so.
struct held_kernel final : kernel {
  held_kernel(std::latch& begun, std::latch& go_on)
    : begun_(begun), go_on_(go_on) {}
  void run(kernel_context& ctx) override {
    begun_.count_down();
    go_on_.wait();
    const auto x = ctx.input("X");
    auto out = ctx.output("Out", x.dims(), x.type());
    std::ranges::copy(x.values<float>(), out.values<float>().begin());
  }

private:
  std::latch& begun_;
  std::latch& go_on_;
};

} // namespace

TEST_SUITE("actors.foreign_system") {

TEST_CASE("losses are the same as with the executor's own actor system") {
  auto net = make_lenet();
  const auto losses = expected(net, 4);
  in_all_systems([&](foreign_application& app) {
    executor exe{net.main, options_for(net, &app)};
    CHECK(train(net, exe, 4) == losses);
  });
}

TEST_CASE("steps in flight complete in any actor system") {
  auto net = make_mlp();
  const auto losses = expected(net, 9);
  in_all_systems([&](foreign_application& app) {
    auto options = options_for(net, &app);
    options.steps_in_flight = 3;
    executor exe{net.main, options};
    std::vector<step_id> ids;
    for (std::uint64_t s = 0; s < 9; ++s)
      ids.push_back(exe.submit(net.batch(s, 6)));
    std::vector<double> got;
    for (auto id : ids)
      got.push_back(exe.wait(id).loss);
    CHECK(got == losses);
    exe.submit(net.batch(0, 6)); // runs while the executor is destroyed
  });
}

TEST_CASE("an application's actor answers while steps run") {
  auto net = make_mlp();
  in_all_systems([&](foreign_application& app) {
    auto peer = app.system->spawn(doubling);
    caf::scoped_actor self{*app.system};
    executor exe{net.main, options_for(net, &app)};
    int right = 0;
    for (int s = 0; s < 10; ++s) {
      const auto id = exe.submit(net.batch(static_cast<std::uint64_t>(s), 6));
      for (int i = 0; i < 5; ++i)
        right += answers_with(self, peer, s * 100 + i);
      exe.wait(id);
    }
    CHECK(right == 50);
  });
}

TEST_CASE("an application's actor answers while ops keep all workers") {
  for (int threads : {1, 2}) {
    const auto workers = static_cast<std::int64_t>(worker_count(threads));
    foreign_application app{kind::troupe, threads};
    caf::scoped_actor self{*app.system};
    const auto peer = app.system->spawn(doubling);
    std::latch all_busy{workers}, has_answered{1};
    const auto make = [&](const attribute_map&) -> std::unique_ptr<kernel> {
      return std::make_unique<held_kernel>(all_busy, has_answered);
    };
    auto kernels = std::make_shared<kernel_table>(cpu_kernels());
    kernels->add("held", device_kind::cpu, kernel_maker{make});
    executor_options options;
    options.devices = parse_devices("cpu:" + std::to_string(workers));
    options.kernels = kernels;
    options.system = app.system.get();
    executor exe{one_op_program("held"), options};
    arena memory{make_host_memory_source()};
    auto step = exe.run_async(
      {{"x", tensor::make(memory, {workers, 1}, dtype::float32)}});
    all_busy.wait();
    CHECK(answers_with(self, peer, 21));
    has_answered.count_down();
    step.get();
  }
}

TEST_CASE("two executors run steps concurrently in one actor system") {
  auto first = make_mlp();
  auto second = make_word2vec();
  const auto first_losses = expected(first, 5);
  const auto second_losses = expected(second, 5);
  in_all_systems([&](foreign_application& app) {
    executor a{first.main, options_for(first, &app)};
    executor b{second.main, options_for(second, &app)};
    std::vector<double> of_a, of_b;
    for (std::uint64_t s = 0; s < 5; ++s) {
      const auto in_a = a.submit(first.batch(s, 6));
      const auto in_b = b.submit(second.batch(s, 6));
      of_b.push_back(b.wait(in_b).loss);
      of_a.push_back(a.wait(in_a).loss);
    }
    CHECK(of_a == first_losses);
    CHECK(of_b == second_losses);
  });
}

TEST_CASE("executors can be created and destroyed in one actor system") {
  auto net = make_mlp();
  const auto losses = expected(net, 2);
  in_all_systems([&](foreign_application& app) {
    for (int i = 0; i < 10; ++i) {
      executor exe{net.main, options_for(net, &app)};
      CHECK(train(net, exe, 2) == losses);
    }
  });
}

TEST_CASE("an actor's message handler may run steps") {
  auto net = make_mlp();
  const auto losses = expected(net, 3);
  in_all_systems([&](foreign_application& app) {
    std::vector<double> got;
    auto trainer = spawn_doer(app, [&] {
      executor exe{net.main, options_for(net, &app)};
      got = train(net, exe, 3);
      exe.submit(net.batch(0, 6)); // runs while the executor is destroyed
    });
    caf::scoped_actor self{*app.system};
    for (int round = 0; round < 3; ++round) {
      CHECK(answers_with(self, trainer, round));
      CHECK(got == losses);
    }
  });
}

TEST_CASE("message handlers may run steps on all workers at once") {
  auto net = make_mlp();
  const auto losses = expected(net, 3);
  in_all_systems([&](foreign_application& app) {
    constexpr std::size_t count = 5;
    std::vector<std::vector<double>> got(count);
    std::vector<caf::actor> trainers;
    for (std::size_t i = 0; i < count; ++i)
      trainers.push_back(spawn_doer(app, [&, i] {
        executor exe{net.main, options_for(net, &app)};
        for (int round = 0; round < 3; ++round)
          train(net, exe, 2);
        executor fresh{net.main, options_for(net, &app)};
        got[i] = train(net, fresh, 3);
      }));
    caf::scoped_actor self{*app.system};
    for (auto& t : trainers)
      self->send(t, 1);
    for (auto& t : trainers)
      CHECK(answers_with(self, t, 2));
    for (auto& g : got)
      CHECK(g == losses);
  });
}

TEST_CASE("a handler that runs steps does not starve other actors") {
  auto net = make_mlp();
  in_all_systems([&](foreign_application& app) {
    auto peer = app.system->spawn(doubling);
    std::atomic<bool> begun{false};
    auto trainer = spawn_doer(app, [&] {
      begun = true;
      executor exe{net.main, options_for(net, &app)};
      train(net, exe, 5);
    });
    caf::scoped_actor self{*app.system};
    self->send(trainer, 1);
    while (!begun)
      std::this_thread::yield();
    for (int i = 0; i < 20; ++i)
      CHECK(answers_with(self, peer, i));
    CHECK(answers_with(self, trainer, 3));
  });
}

TEST_CASE(
  "an executor in a kernel of its own system is refused with an error") {
  const auto net = make_mlp();
  in_all_systems([&](foreign_application& app) {
    auto options = options_for(net, &app);
    executor inner{net.main, options};
    auto nested = std::make_shared<kernel_table>(cpu_kernels());
    nested->add("relu", device_kind::cpu, [&](const attribute_map&) {
      struct runs_another : kernel {
        executor* other;
        feed_map feeds;
        runs_another(executor* o, feed_map f) : other(o), feeds(std::move(f)) {}
        void run(kernel_context&) override { other->run(feeds); }
      };
      return std::make_unique<runs_another>(&inner, net.batch(0, 6));
    });
    options.kernels = nested;
    options.parameters = net.parameters();
    executor outer{net.main, options};
    const auto why = caught([&] { outer.run(net.batch(0, 6)); });
    CHECK(why.code() == errc::invalid_argument);
    CHECK(why.where().op_type == "relu");
    CHECK(says(why, "in a kernel of its own actor system"));
    CHECK(inner.run(net.batch(0, 6)).loss > 0); // outside of it, it runs
  });
}

TEST_CASE("an error in a handler's step reaches the handler") {
  auto net = make_mlp();
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[0] = 99;
  in_all_systems([&](foreign_application& app) {
    std::optional<errc> code;
    auto trainer = spawn_doer(app, [&] {
      executor exe{net.main, options_for(net, &app)};
      try {
        exe.run(bad);
      } catch (const error& e) {
        code = e.code();
      }
    });
    caf::scoped_actor self{*app.system};
    CHECK(answers_with(self, trainer, 1));
    CHECK(code == errc::out_of_range);
  });
}

} // TEST_SUITE("actors.foreign_system")

TEST_SUITE("actors.configure") {

TEST_CASE("CAF's actor features work under Troupe's scheduler policy") {
  for (int threads : {1, 2}) {
    foreign_application app{kind::troupe, threads};
    caf::scoped_actor self{*app.system};
    // An actor that asks another one before it answers.
    auto other = app.system->spawn(doubling);
    auto asking =
      app.system->spawn([other](caf::event_based_actor* me) -> caf::behavior {
        return {[me, other](int x) {
          auto promise = me->make_response_promise();
          me->request(other, caf::infinite, x).then([promise](int y) mutable {
            promise.deliver(y);
          });
          return promise;
        }};
      });
    for (int i = 0; i < 300; ++i)
      REQUIRE(answers_with(self, asking, i));
    // An actor that sends itself a delayed message before it answers.
    auto late =
      app.system->spawn([](caf::event_based_actor* me) -> caf::behavior {
        auto promise = std::make_shared<caf::response_promise>();
        return {[me, promise](int x) {
                  *promise = me->make_response_promise();
                  me->delayed_send(me, std::chrono::milliseconds(5),
                                   std::string("later"), x);
                  return *promise;
                },
                [promise](const std::string&, int x) {
                  promise->deliver(2 * x);
                  *promise = {}; // would keep the actor alive
                }};
      });
    CHECK(answers_with(self, late, 4));
    auto detached = app.system->spawn<caf::detached>(doubling);
    CHECK(answers_with(self, detached, 5));
    auto hidden = app.system->spawn<caf::hidden>(doubling);
    CHECK(answers_with(self, hidden, 6));
  }
}

TEST_CASE("a system shuts down although messages to its actors are pending") {
  for (int round = 0; round < 20; ++round) {
    foreign_application app{kind::troupe, 1 + round % 2};
    for (int i = 0; i < 10; ++i)
      caf::anon_send(app.system->spawn(doubling), i);
  }
}

TEST_CASE("messages sent by threads outside the system are not lost") {
  foreign_application app{kind::troupe, 2};
  auto counted = std::make_shared<std::atomic<int>>(0);
  auto counter =
    app.system->spawn([counted](caf::event_based_actor*) -> caf::behavior {
      return {[counted](int x) { *counted += x; }};
    });
  std::vector<std::thread> senders;
  for (int t = 0; t < 3; ++t)
    senders.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        caf::anon_send(counter, 1);
    });
  for (auto& s : senders)
    s.join();
  while (*counted < 6000)
    std::this_thread::yield();
  CHECK(*counted == 6000);
}

} // TEST_SUITE("actors.configure")
