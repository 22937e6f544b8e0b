// SPDX-License-Identifier: Apache-2.0
//
// How long requests take in an application's actor system while nothing else
// runs, and while a trainer trains a built-in net there: to an actor of the
// application, and to a predictor of that net. A thread asks every 1.7 ms.
#include <troupe/actors/configure.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/training/actors/predictor.hpp>
#include <troupe/training/actors/trainer.hpp>
#include <troupe/training/data/classifier.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

struct latency_options {
  std::string scheduler = "troupe";
  std::string net = "mlp";
  std::int64_t batch = 64;
  double seconds = 2; ///< of each measurement
};

std::unique_ptr<caf::actor_system> make_system(caf::actor_system_config& config,
                                               const latency_options& o) {
  const auto workers = std::max<std::size_t>(2, usable_cores());
  if (o.scheduler == "troupe")
    return make_actor_system(config, workers);
  init_message_types();
  actors::set_option(config, "scheduler.max-threads", workers);
  actors::set_option(config, "scheduler.policy", o.scheduler.c_str());
  return std::make_unique<caf::actor_system>(config);
}

template <class T, class Handle, class Message>
T ask(caf::scoped_actor& self, const Handle& whom, Message question) {
  std::optional<T> got;
  actors::ask(self, whom, caf::infinite, std::move(question))
    .receive([&](T& value) { got = std::move(value); },
             [](caf::error& why) { throw std::runtime_error(text_of(why)); });
  return std::move(*got);
}

/// Calls `request` at intervals. Returns the times that it took, sorted, in us.
template <class Request>
std::vector<double> times_of(const latency_options& o, Request request) {
  constexpr std::chrono::microseconds interval{1700};
  std::vector<double> times;
  const auto end = clock::now() + std::chrono::duration<double>{o.seconds};
  while (times.empty() || clock::now() < end) {
    std::this_thread::sleep_for(interval);
    const auto begin = clock::now();
    request();
    times.push_back(
      std::chrono::duration<double, std::micro>{clock::now() - begin}.count());
  }
  std::ranges::sort(times);
  return times;
}

caf::behavior answering(caf::event_based_actor*) {
  return {[](int x) { return x + 1; }};
}

/// Keeps a trainer busy: sends a batch when one has been trained.
class feeder : public caf::event_based_actor {
public:
  feeder(caf::actor_config& config, trainer to, shared_batch batch)
    : caf::event_based_actor(config), to_(std::move(to)),
      batch_(std::move(batch)) {}

  caf::behavior make_behavior() override {
    constexpr int ahead = 2;
    for (int i = 0; i < ahead; ++i)
      send_batch();
    return {[this](int) { return steps_; }};
  }

private:
  void send_batch() {
    request(to_, caf::infinite, train_batch{batch_})
      .then(
        [this](const trained_step&) {
          ++steps_;
          send_batch();
        },
        [this](const caf::error&) { quit(); });
  }

  trainer to_;
  shared_batch batch_;
  int steps_ = 0;
};

void print(const char* whom, const char* when,
           const std::vector<double>& times) {
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(
      share * static_cast<double>(times.size() - 1))];
  };
  std::printf("%s, %s: %.1f us (90 %%: %.1f, 99 %%: %.1f)\n", whom, when,
              at(0.5), at(0.9), at(0.99));
}

class measurement {
public:
  explicit measurement(const latency_options& o)
    : o_(o), system_(make_system(config_, o)), self_(*system_) {
    const auto model = graph::build_model(o.net);
    program_ = make_training_program(model.startup, model.main);
    const auto found = find_classifier(program_.test);
    if (!found)
      throw std::runtime_error("the net is no classifier");
    predictor_options asks;
    asks.outputs.push_back(found->logits);
    trainer_options trains;
    trains.session.executor.devices = parse_devices("cpu");
    trains_ = spawn_trainer(*system_, program_, trains);
    const auto parameters =
      ask<parameter_set>(self_, trains_, ask_parameters{});
    predicts_ = spawn_predictor(*system_, program_.test, parameters, asks);
    own_ = system_->spawn(answering);
    auto one =
      make_synthetic_source(program_.feeds, 1, 1, memory_)->batch(0, 0);
    one.erase(found->label);
    question_ = share_batch(std::move(one));
  }

  void run() {
    ask_all("idle");
    const auto batch = share_batch(
      make_synthetic_source(program_.feeds, o_.batch, 2, memory_)->batch(0, 0));
    const auto feeds = system_->spawn<feeder>(trains_, batch);
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    const auto begin = clock::now();
    const auto before = ask<int>(self_, feeds, 0);
    ask_all("beside a trainer");
    const auto steps = ask<int>(self_, feeds, 0) - before;
    const auto ms =
      std::chrono::duration<double, std::milli>{clock::now() - begin}.count();
    std::printf("a step of the trainer: %.3f ms\n", ms / std::max(1, steps));
    self_->send_exit(feeds, caf::exit_reason::kill);
    ask<trainer_state>(self_, trains_, stop_training{});
    self_->send_exit(predicts_, caf::exit_reason::user_shutdown);
  }

private:
  void ask_all(const char* when) {
    ask<prediction>(self_, predicts_, predict_batch{question_});
    print("an actor", when, times_of(o_, [&] { ask<int>(self_, own_, 1); }));
    print("a predictor", when, times_of(o_, [&] {
            ask<prediction>(self_, predicts_, predict_batch{question_});
          }));
  }

  latency_options o_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scoped_actor self_;
  arena memory_{make_host_memory_source()};
  training_program program_;
  trainer trains_;
  predictor predicts_;
  caf::actor own_;
  shared_batch question_;
};

} // namespace

} // namespace troupe::bench

int main(int count, char** words) try {
  CLI::App app{"Latency of requests in an actor system beside a trainer."};
  troupe::bench::latency_options o;
  app
    .add_option("--scheduler", o.scheduler,
                "of the system: Troupe's, or CAF's by its name")
    ->check(CLI::IsMember({"troupe", "sharing", "stealing"}))
    ->capture_default_str();
  app.add_option("--net", o.net, "a built-in classifier")
    ->capture_default_str();
  app.add_option("--batch", o.batch, "samples of a step of the trainer")
    ->check(CLI::Range(1, 1'000'000))
    ->capture_default_str();
  app.add_option("--seconds", o.seconds, "of each measurement")
    ->check(CLI::Range(0.01, 3600.0))
    ->capture_default_str();
  CLI11_PARSE(app, count, words);
  troupe::bench::measurement{o}.run();
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
