// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/job_queue.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/skip_case.hpp>

#include "../late_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using actors::progress;

TEST_SUITE("actors.wait_finder") {

namespace {

executor_options options_for(const small_net& net) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.threads = 2;
  o.parameters = net.parameters();
  return o;
}

/// Kernels of `tanh` on a device wait until the gate is open.
struct gate {
  std::atomic<int> inside{0};
  std::atomic<bool> open{false};

  std::shared_ptr<const kernel_table> kernels() {
    class gated final : public kernel {
    public:
      explicit gated(gate& at) : at_(at) {}
      void run(kernel_context& ctx) override {
        ++at_.inside;
        while (!at_.open)
          std::this_thread::yield();
        const auto x = ctx.input("X");
        auto out = ctx.output("Out", x.dims(), x.type());
        std::copy_n(x.data<float>(), x.numel(), out.data<float>());
      }

    private:
      gate& at_;
    };
    auto table = std::make_shared<kernel_table>(cpu_kernels());
    table->add("tanh", device_kind::cpu, [this](const attribute_map&) {
      return std::make_unique<gated>(*this);
    });
    return table;
  }
};

/// The kernel of `tanh` on device 1 stops until it is released.
class stopped_op {
public:
  std::shared_ptr<const kernel_table> kernels() {
    class stopping final : public kernel {
    public:
      explicit stopping(stopped_op& at) : at_(at) {}
      void run(kernel_context& ctx) override {
        if (ctx.on().id().index == 1)
          at_.stop();
        const auto x = ctx.input("X");
        auto out = ctx.output("Out", x.dims(), x.type());
        std::copy_n(x.data<float>(), x.numel(), out.data<float>());
      }

    private:
      stopped_op& at_;
    };
    auto table = std::make_shared<kernel_table>(cpu_kernels());
    table->add("tanh", device_kind::cpu, [this](const attribute_map&) {
      return std::make_unique<stopping>(*this);
    });
    return table;
  }

  /// Waits until the op is stopped and returns its worker.
  std::size_t worker_of_op() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return on_.has_value(); });
    return *on_;
  }
  void release() {
    std::lock_guard guard{mutex_};
    released_ = true;
    changed_.notify_all();
  }

private:
  void stop() {
    std::unique_lock guard{mutex_};
    on_ = worker::current()->index();
    changed_.notify_all();
    changed_.wait(guard, [this] { return released_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::size_t> on_;
  bool released_ = false;
};

/// True if each link of a step's chain waits for the next.
bool is_chain(const graph::ssa_graph& g, const actors::wait_chain& chain) {
  for (std::size_t i = 0; i + 1 < chain.links.size(); ++i)
    if (chain.links[i].how_far != progress::waits
        || std::ranges::none_of(g.edges, [&](const graph::edge& e) {
             return e.from == chain.links[i + 1].handle
                    && e.to == chain.links[i].handle && e.distance == 0;
           }))
      return false;
  return true;
}

} // namespace

TEST_CASE("why follows the waits to the running op and names its worker") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  const auto net = make_mlp();
  auto options = options_for(net);
  gate stop;
  options.kernels = stop.kernels();
  executor exe{net.main, options};
  const auto step = exe.submit(net.batch(0, 4));
  while (stop.inside < 2)
    std::this_thread::yield();
  for (handle_id id = 0; id < exe.graph().size(); ++id) {
    const auto chain = exe.why(id);
    REQUIRE_FALSE(chain.links.empty());
    CAPTURE(to_string(chain));
    const auto& last = chain.links.back();
    CHECK(chain.links.front().handle == id);
    if (chain.links.front().how_far == progress::is_done)
      continue;
    CHECK(last.how_far == progress::runs);
    CHECK(last.name.starts_with("tanh#"));
    CHECK(last.worker < 2);
    CHECK(chain.missing.empty());
  }
  const auto text = to_string(exe.why());
  CHECK(text.find("runs on worker ") != text.npos);
  stop.open = true;
  CHECK(std::isfinite(exe.wait(step).loss));
  CHECK(exe.why().links.empty()); // no step is under way
}

TEST_CASE("why names an op that is stopped for a second, and its worker") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  using clock = std::chrono::steady_clock;
  using namespace std::chrono_literals;
  const auto net = make_mlp();
  auto options = options_for(net);
  stopped_op op;
  options.kernels = op.kernels();
  options.flight_recorder.level = trace_level::off;
  executor exe{net.main, options};
  CHECK(exe.trace().level() == trace_level::off);
  exe.submit(net.batch(0, 4));
  const auto on = op.worker_of_op();
  std::vector<double> us; // duration of each answer
  const auto ask = [&] {
    const auto begin = clock::now();
    auto chain = exe.why();
    us.push_back(
      std::chrono::duration<double, std::micro>(clock::now() - begin).count());
    return chain;
  };
  const auto is_named = [](const actors::wait_chain& chain) {
    return !chain.links.empty() && chain.links.back().name.starts_with("tanh#")
           && chain.links.back().name.ends_with("@cpu:1");
  };
  // The other device may still run ops, which the chain can lead to.
  for (const auto until = clock::now() + 60s;
       !is_named(ask()) && clock::now() < until;)
    std::this_thread::yield();
  // The op is stopped until the loop ends, so every answer comes in time.
  for (const auto until = clock::now() + 1s; clock::now() < until;) {
    const auto chain = ask();
    CAPTURE(to_string(chain));
    REQUIRE(is_named(chain));
    CHECK(chain.links.size() > 2);
    CHECK(chain.links.back().how_far == progress::runs);
    CHECK(chain.links.back().worker == on);
    CHECK(chain.missing.empty());
    CHECK(is_chain(exe.graph(), chain));
    std::this_thread::sleep_for(1ms);
  }
  op.release();
  CHECK(std::isfinite(exe.wait(0).loss));
  std::ranges::sort(us);
  MESSAGE("why answers in ", us[us.size() / 2], " us, at most ", us.back(),
          " us");
}

TEST_CASE("why reports an op that is launched but not complete") {
  const auto net = make_mlp();
  auto options = options_for(net);
  options.hooks.device_instances = {make_late_device(0, 1, 2000),
                                    make_late_device(1, 2, 2000)};
  executor exe{net.main, options};
  bool seen = false;
  for (int round = 0; round < 50 && !seen; ++round) {
    const auto step = exe.submit(net.batch(0, 4));
    while (exe.stats().steps == step && !seen) {
      const auto chain = exe.why();
      seen = !chain.links.empty()
             && chain.links.back().how_far == progress::launched;
    }
    exe.wait(step);
  }
  CHECK(seen);
}

TEST_CASE("a chain never ends at a handle that is done while a step runs") {
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  std::atomic<bool> over{false};
  std::size_t asked = 0, at_done = 0;
  std::thread asks{[&] {
    while (!over) {
      const auto chain = exe.why();
      ++asked;
      at_done +=
        !chain.links.empty() && chain.links.back().how_far == progress::is_done;
    }
  }};
  const auto feeds = net.batch(0, 4);
  for (int s = 0; s < 4000; ++s)
    exe.run(feeds);
  over = true;
  asks.join();
  CHECK(asked > 0);
  CHECK(at_done == 0);
}

TEST_CASE("why throws not_found for an unknown handle") {
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  const auto e =
    caught([&] { exe.why(static_cast<handle_id>(exe.graph().size())); });
  CHECK(e.code() == errc::not_found);
}

TEST_CASE("a handle is not done before the first step has run") {
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  const auto before = exe.why(0);
  REQUIRE(before.links.size() == 1);
  CHECK(before.links.front().how_far == progress::no_step);
  CHECK(to_string(before).ends_with(": no step has run yet\n"));
  exe.run(net.batch(0, 8));
  const auto after = exe.why(0);
  REQUIRE(after.links.size() == 1);
  CHECK(after.links.front().how_far == progress::is_done);
  CHECK(after.links.front().step == 0);
}

} // TEST_SUITE("actors.wait_finder")
