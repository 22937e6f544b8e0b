// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/configure.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/actors/trainer.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <cstdio>
#include <exception>

using namespace troupe;

training_program describe() {
  graph::network net;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto guess = layers::fc(x, 1);
  auto cost = layers::mean(layers::square(layers::sub(guess, y)));
  optimizer::sgd({.learning_rate = 0.2f}).minimize(cost);
  return make_training_program(net.startup, net.main);
}

// 8 points of the line y = 2 * x + 1, from x = `first` on.
shared_batch points(arena& memory, float first) {
  auto x = tensor::make(memory, {8, 1}, dtype::float32);
  auto y = tensor::make(memory, {8, 1}, dtype::float32);
  for (int i = 0; i < 8; ++i) {
    x.data<float>()[i] = first + static_cast<float>(i) / 8;
    y.data<float>()[i] = 2 * x.data<float>()[i] + 1;
  }
  return share_batch({{"x", x}, {"y", y}});
}

// Asked to feed so many batches, it sends one when the one before it has been
// trained, and answers with the last loss.
caf::behavior feeder(caf::event_based_actor* self, trainer trains,
                     float first) {
  return {[=](int batches) {
    auto done = self->make_response_promise<double>();
    arena memory(make_host_memory_source());
    const auto batch = points(memory, first);
    self->request(trains, caf::infinite, train_batch{batch})
      .then(
        [=](const trained_step& step) mutable {
          if (batches == 1)
            done.deliver(step.loss);
          else
            done.delegate(caf::actor_cast<caf::actor>(self), batches - 1);
        },
        [=](const caf::error& why) mutable { done.deliver(why); });
    return done;
  }};
}

int main() try {
  caf::actor_system_config config;
  configure(config, 2);
  caf::actor_system system{config};

  trainer trains = spawn_trainer(system, describe());
  caf::scoped_actor self{system};
  auto left = self->spawn(feeder, trains, -1.0f);
  auto right = self->spawn(feeder, trains, 0.0f);

  auto from_left = self->request(left, caf::infinite, 100);
  auto from_right = self->request(right, caf::infinite, 100);
  auto print_error = [](const caf::error& why) {
    std::printf("%s\n", text_of(why).c_str());
  };
  from_left.receive([](double loss) { std::printf("left: loss %.2f\n", loss); },
                    print_error);
  from_right.receive(
    [](double loss) { std::printf("right: loss %.2f\n", loss); }, print_error);

  self->request(trains, caf::infinite, stop_training{})
    .receive(
      [](const trainer_state& last) {
        std::printf("%d steps\n", static_cast<int>(last.steps));
      },
      print_error);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
