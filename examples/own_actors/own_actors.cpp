// SPDX-License-Identifier: Apache-2.0
// An application that trains beside two CAF actors of its own, and records the
// messages of both kinds of actors in one trace.
//
// usage: own_actors [FILE.trt]
#include <troupe/actors/caf/caf.hpp>
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

// The messages of this program.
CAF_BEGIN_TYPE_ID_BLOCK(own_actors, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(own_actors, (std::vector<float>))
CAF_ADD_ATOM(own_actors, words, next, "next")
CAF_ADD_ATOM(own_actors, words, fed, "fed")
CAF_ADD_ATOM(own_actors, words, loss, "loss")
CAF_END_TYPE_ID_BLOCK(own_actors)

namespace {

constexpr int batch_size = 16, steps = 50;

/// Prints how the training goes.
class reporter : public troupe::traced<caf::event_based_actor> {
public:
  reporter(caf::actor_config& cfg, std::shared_ptr<troupe::recorder> to)
    : traced(cfg, std::move(to)) {}
  const char* name() const override { return "reporter"; }

protected:
  caf::behavior make_behavior() override {
    return {[this](words::fed, int samples) { samples_ += samples; },
            [this](words::loss, std::uint64_t step, double value) {
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
    return {[this](words::next) {
      std::uniform_real_distribution<float> any{-1, 1};
      std::vector<float> xs(batch_size);
      for (auto& x : xs)
        x = any(random_);
      auto* self = this;
      troupe::actors::send(self, tells_, words::fed_v, batch_size);
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
    actors::ask(self, feeds, caf::infinite, words::next_v)
      .receive([&](std::vector<float>& got) { xs = std::move(got); },
               [](const caf::error&) {});
    auto ys = xs;
    for (auto& y : ys)
      y *= 2;
    const auto result =
      exe.run({{"x", column(memory, xs)}, {"y", column(memory, ys)}});
    actors::send(self, reports, words::loss_v, std::uint64_t{result.step},
                 result.loss);
  }
  // Before the executor: its trace then has their ends.
  for (const auto& each : {feeds, reports}) {
    self->send_exit(each, caf::exit_reason::user_shutdown);
    self->wait_for(each);
  }
}

} // namespace

int main(int argc, char** argv) try {
  troupe::actors::register_types<caf::id_block::own_actors>();
  caf::actor_system_config config;
  const auto system = troupe::make_actor_system(config, 2);
  train(*system, argc > 1 ? argv[1] : "own_actors.trt");
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
