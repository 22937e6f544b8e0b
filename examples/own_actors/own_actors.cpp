// SPDX-License-Identifier: Apache-2.0
// An application that trains beside two CAF actors of its own, and records the
// messages of both kinds of actors in one trace.
//
// usage: own_actors [FILE.trt]
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/traced_actor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace {

using next = caf::atom_constant<caf::atom("next")>;
using fed = caf::atom_constant<caf::atom("fed")>;
using loss = caf::atom_constant<caf::atom("loss")>;

constexpr int batch_size = 16, steps = 50;

/// Prints how the training goes.
class reporter : public troupe::traced<caf::event_based_actor> {
public:
  reporter(caf::actor_config& cfg, std::shared_ptr<troupe::recorder> to)
    : traced(cfg, std::move(to)) {}
  const char* name() const override { return "reporter"; }

protected:
  caf::behavior make_behavior() override {
    return {[this](fed, int samples) { samples_ += samples; },
            [this](loss, std::uint64_t step, double value) {
              if (step % 10 == 9)
                std::printf("step %d loss %.4f, %d samples\n",
                            static_cast<int>(step), value, samples_);
            }};
  }

private:
  int samples_ = 0;
};

/// The source of feeds: numbers from -1 to 1.
class feeder : public troupe::traced<caf::event_based_actor> {
public:
  feeder(caf::actor_config& cfg, std::shared_ptr<troupe::recorder> to,
         caf::actor tells)
    : traced(cfg, std::move(to)), tells_(std::move(tells)) {}
  const char* name() const override { return "feeder"; }

protected:
  caf::behavior make_behavior() override {
    return {[this](next) {
      std::uniform_real_distribution<float> any{-1, 1};
      std::vector<float> xs(batch_size);
      for (auto& x : xs)
        x = any(random_);
      send(tells_, fed::value, batch_size);
      return xs;
    }};
  }

private:
  caf::actor tells_;
  std::mt19937 random_{1};
};

troupe::tensor column(troupe::arena& memory, const std::vector<float>& values) {
  auto made =
    troupe::tensor::make(memory, {batch_size, 1}, troupe::dtype::float32);
  std::copy(values.begin(), values.end(), made.data<float>());
  return made;
}

/// Makes a network that learns y = 2x.
void add_line(troupe::graph::network& net) {
  using namespace troupe;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto far = layers::square(layers::sub(layers::fc(x, 1), y));
  optimizer::sgd({.learning_rate = 0.3f}).minimize(layers::mean(far));
}

void train(caf::actor_system& system, const char* file) {
  using namespace troupe;
  graph::network net;
  add_line(net);
  executor_options options;
  options.parameters = std::make_shared<scope>();
  options.trace.emplace();
  options.trace->file = file;
  options.trace->command = "own_actors";
  options.system = &system;
  run_startup(net.startup, *options.parameters);
  executor exe{net.main, options};

  const auto reports = system.spawn<reporter>(exe.shared_trace());
  const auto feeds = system.spawn<feeder>(exe.shared_trace(), reports);
  caf::scoped_actor self{system};
  arena memory{make_host_memory_source()};
  for (int step = 0; step < steps; ++step) {
    std::vector<float> xs;
    self->request(feeds, caf::infinite, next::value)
      .receive([&](std::vector<float>& got) { xs = std::move(got); },
               [](const caf::error&) {});
    auto ys = xs;
    for (auto& y : ys)
      y *= 2;
    const auto result =
      exe.run({{"x", column(memory, xs)}, {"y", column(memory, ys)}});
    self->send(reports, loss::value, std::uint64_t{result.step}, result.loss);
  }
  // Before the executor: its trace then has their ends.
  for (const auto& each : {feeds, reports}) {
    self->send_exit(each, caf::exit_reason::user_shutdown);
    self->wait_for(each);
  }
}

} // namespace

int main(int argc, char** argv) try {
  caf::actor_system_config config;
  troupe::configure(config, 2);
  caf::actor_system system{config};
  train(system, argc > 1 ? argv[1] : "own_actors.trt");
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
