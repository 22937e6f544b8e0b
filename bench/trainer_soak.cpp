// SPDX-License-Identifier: Apache-2.0
//
// Makes trainers, predictors and inference sessions, uses them, and ends them,
// again and again. Then compares the process with what it was after half of
// them: threads, descriptors, heap and resident memory must not have grown.
#include <troupe/actors/configure.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/actors/predictor.hpp>
#include <troupe/training/actors/trainer.hpp>
#include <troupe/training/inference_session.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace troupe::bench {

namespace {

/// What the process has.
struct holdings {
  long threads = 0;
  long descriptors = 0;
  long heap_kib = 0;     ///< that is in use
  long resident_kib = 0; ///< also cached by allocators
};

long number_in_status(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key) {
      long number = 0;
      status >> number;
      return number;
    }
  throw std::runtime_error("no " + key + " in /proc/self/status");
}

holdings look() {
  holdings now;
  now.threads = number_in_status("Threads:");
  now.descriptors =
    std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                  std::filesystem::directory_iterator{});
  now.heap_kib = static_cast<long>(mallinfo2().uordblks / 1024);
  now.resident_kib = number_in_status("VmRSS:");
  return now;
}

void print(int round, const holdings& h) {
  std::printf("%d: %ld threads, %ld descriptors, %ld KiB of heap, %ld KiB "
              "resident\n",
              round, h.threads, h.descriptors, h.heap_kib, h.resident_kib);
}

/// False if something is left of the rounds in between.
bool is_flat(const holdings& before, const holdings& after) {
  constexpr long heap_kib = 64, resident_kib = 16 * 1024;
  return after.threads <= before.threads
         && after.descriptors <= before.descriptors
         && after.heap_kib <= before.heap_kib + heap_kib
         && after.resident_kib <= before.resident_kib + resident_kib;
}

template <class T, class Handle, class Message>
T ask(caf::scoped_actor& self, const Handle& whom, Message question) {
  std::optional<T> got;
  self->request(whom, caf::infinite, std::move(question))
    .receive([&](T& value) { got = std::move(value); },
             [](caf::error& why) { throw std::runtime_error(text_of(why)); });
  return std::move(*got);
}

/// A network, and what it is asked.
class asked_network {
public:
  asked_network() {
    graph::network net;
    const auto x = net.data("x", {-1, 16});
    const auto y = layers::fc(layers::fc(x, 32, {.act = "relu"}), 1);
    const auto far = layers::sub(y, net.data("y", {-1, 1}));
    optimizer::adam().minimize(layers::mean(layers::square(far)));
    output_ = y.name();
    program_ = make_training_program(net.startup, net.main);
    for (const auto& [name, width] : {std::pair{"x", 16}, {"y", 1}}) {
      auto value = tensor::make(memory_, {8, width}, dtype::float32);
      std::ranges::fill(value.values<float>(), 0.5f);
      batch_.emplace(name, value);
    }
  }

  /// A trainer on two devices, a predictor and a session, from begin to end.
  void run_once(caf::actor_system& system) const {
    caf::scoped_actor self{system};
    trainer_options options;
    options.session.executor.devices = parse_devices("cpu:2");
    const auto trains = spawn_trainer(system, program_, options);
    for (int i = 0; i < 3; ++i)
      ask<trained_step>(self, trains, train_batch{share_batch(batch_)});
    const auto parameters = ask<parameter_set>(self, trains, ask_parameters{});
    const feed_map question{{"x", batch_.at("x")}};
    const auto predicts = spawn_predictor(system, program_.test, parameters,
                                          {.outputs = {output_}});
    ask<prediction>(self, predicts, predict_batch{share_batch(question)});
    inference_session session{
      program_.test,
      parameters,
      {.executor = {.threads = 2}, .outputs = {output_}}};
    session.predict(question).get();
    ask<trainer_state>(self, trains, stop_training{});
    self->send_exit(predicts, caf::exit_reason::user_shutdown);
    self->wait_for(trains, predicts);
  }

private:
  arena memory_{make_host_memory_source()};
  training_program program_;
  std::string output_;
  feed_map batch_;
};

/// Waits until nothing is left, for as long as threads may take to end.
bool becomes_flat(const holdings& before) {
  const auto give_up =
    std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!is_flat(before, look())) {
    if (std::chrono::steady_clock::now() > give_up)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return true;
}

int run(int rounds) {
  caf::actor_system_config config;
  const auto owned = make_actor_system(config, 2);
  auto& system = *owned;
  const asked_network network;
  holdings before;
  for (int round = 1; round <= rounds; ++round) {
    network.run_once(system);
    if (round == rounds / 2)
      before = look();
    if (round % (rounds / 10) == 0)
      print(round, look());
  }
  if (becomes_flat(before))
    return 0;
  std::fprintf(stderr, "something is left of trainers that have ended\n");
  return 1;
}

} // namespace

} // namespace troupe::bench

int main(int count, char** words) try {
  CLI::App app{"Makes and ends trainers; checks that nothing is left."};
  int trainers = 1000;
  app.add_option("--trainers", trainers, "how many, one after the other")
    ->check(CLI::Range(20, 1'000'000))
    ->capture_default_str();
  CLI11_PARSE(app, count, words);
  return troupe::bench::run(trainers);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
