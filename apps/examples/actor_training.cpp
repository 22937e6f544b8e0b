// SPDX-License-Identifier: Apache-2.0
// An application whose own actors feed a trainer and ask a predictor. Markets
// make prices; desks cut them into batches and share one trainer. A desk that
// hears that the trainer is busy keeps its batch, and asks its market for no
// more prices until it fits.
#include <troupe/actors/configure.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/actors/predictor.hpp>
#include <troupe/training/actors/trainer.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace troupe;
using tick = caf::atom_constant<caf::atom("tick")>;
using offer = caf::atom_constant<caf::atom("offer")>;
using train = caf::atom_constant<caf::atom("train")>;

constexpr int window = 8, batch_size = 32, batches = 150;

/// The next price of a market: it swings, with some noise.
class price_model {
public:
  explicit price_model(unsigned seed) : random_(seed) {}
  float next() {
    std::normal_distribution<float> noise{0, 0.01f};
    const float now = 1.9f * last_ - 0.95f * before_ + noise(random_);
    before_ = last_;
    return last_ = now;
  }

private:
  std::mt19937 random_;
  float last_ = 1, before_ = 0.8f;
};

caf::behavior market(caf::event_based_actor*, unsigned seed) {
  return {[prices = price_model{seed}](tick) mutable { return prices.next(); }};
}

/// Windows of prices, and for each the price that follows.
feed_map make_batch(arena& memory, const std::vector<float>& prices) {
  const auto count = static_cast<std::int64_t>(prices.size()) - window;
  auto seen = tensor::make(memory, {count, window}, dtype::float32);
  auto next = tensor::make(memory, {count, 1}, dtype::float32);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(prices.data() + i, window, seen.data<float>() + i * window);
    next.data<float>()[i] = prices[static_cast<std::size_t>(i + window)];
  }
  return {{"seen", seen}, {"next", next}};
}

/// Has `batches` batches trained, and then answers how often it heard "busy".
class desk : public caf::event_based_actor {
public:
  desk(caf::actor_config& cfg, caf::actor prices, trainer trains)
    : event_based_actor(cfg), market_(std::move(prices)),
      trainer_(std::move(trains)) {}

protected:
  caf::behavior make_behavior() override {
    return {[this](train) {
              done_ = make_response_promise<int>();
              ask_market();
              return done_;
            },
            [this](offer) { offer_batch(); }};
  }

private:
  void ask_market() {
    request(market_, caf::infinite, tick::value).then([this](float price) {
      prices_.push_back(price);
      if (prices_.size() < batch_size + window)
        return ask_market();
      batch_ = share_batch(make_batch(memory_, prices_));
      prices_.clear();
      offer_batch();
    });
  }

  void offer_batch() {
    request(trainer_, caf::infinite, train_batch{batch_})
      .then(
        [this](const trained_step&) {
          if (++trained_ < batches)
            ask_market();
          else
            done_.deliver(busy_);
        },
        [this](const caf::error& why) {
          if (code_of(why) != errc::busy) {
            done_.deliver(why);
            return;
          }
          ++busy_;
          delayed_send(this, std::chrono::milliseconds{1}, offer::value);
        });
  }

  caf::actor market_;
  trainer trainer_;
  arena memory_{make_host_memory_source()};
  std::vector<float> prices_;
  shared_batch batch_;
  caf::typed_response_promise<int> done_;
  int trained_ = 0, busy_ = 0;
};

/// Asks and waits. Throws what was answered instead of a `T`.
template <class T, class Handle, class Message>
T ask(caf::scoped_actor& self, const Handle& whom, Message question) {
  std::optional<T> got;
  self->request(whom, caf::infinite, std::move(question))
    .receive([&](T& value) { got = std::move(value); },
             [](caf::error& why) { throw std::runtime_error(text_of(why)); });
  return std::move(*got);
}

/// Mean square error of the predicted prices, and of the last price as a guess.
void compare(caf::scoped_actor& self, const predictor& predicts,
             const std::string& output) {
  arena memory{make_host_memory_source()};
  price_model unseen{99};
  std::vector<float> prices(1000);
  for (auto& price : prices)
    price = unseen.next();
  auto batch = make_batch(memory, prices);
  const auto next = batch.extract("next").mapped();
  const auto answer =
    ask<prediction>(self, predicts, predict_batch{share_batch(batch)});
  const auto guessed = answer.outputs.at(output).values<float>();
  double error = 0, naive = 0;
  for (std::size_t i = 0; i < guessed.size(); ++i) {
    const double came = next.values<float>()[i];
    error += (guessed[i] - came) * (guessed[i] - came);
    naive += (prices[i + window - 1] - came) * (prices[i + window - 1] - came);
  }
  std::printf("after %llu steps: error %.5f, of the last price %.5f\n",
              static_cast<unsigned long long>(answer.steps),
              error / static_cast<double>(guessed.size()),
              naive / static_cast<double>(guessed.size()));
}

void run(caf::actor_system& system) {
  graph::network net;
  auto seen = net.data("seen", {-1, window});
  auto next = net.data("next", {-1, 1});
  auto guess = layers::fc(layers::fc(seen, 16, {.act = "relu"}), 1);
  auto far = layers::square(layers::sub(guess, next));
  optimizer::adam({.learning_rate = 0.01f}).minimize(layers::mean(far));
  const auto program = make_training_program(net.startup, net.main);

  trainer_options options;
  options.most_waiting = 1;
  const auto trains = spawn_trainer(system, program, options);
  caf::scoped_actor self{system};
  const auto open_desk = [&](unsigned seed) {
    const auto opened = system.spawn<desk>(system.spawn(market, seed), trains);
    return self->request(opened, caf::infinite, train::value);
  };
  std::vector<decltype(open_desk(0))> desks;
  for (unsigned seed = 1; seed <= 4; ++seed)
    desks.push_back(open_desk(seed));
  int busy = 0;
  for (auto& each : desks)
    each.receive(
      [&](int times) { busy += times; },
      [](const caf::error& why) { throw std::runtime_error(text_of(why)); });
  std::printf("the trainer was busy %d times\n", busy);
  predictor_options answers;
  answers.outputs = {guess.name()};
  const auto predicts = spawn_predictor(
    system, program.test, ask<parameter_set>(self, trains, ask_parameters{}),
    answers);
  compare(self, predicts, guess.name());
  ask<trainer_state>(self, trains, stop_training{});
}

} // namespace

int main() try {
  caf::actor_system_config config;
  troupe::configure(config, 2);
  caf::actor_system system{config};
  run(system);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
