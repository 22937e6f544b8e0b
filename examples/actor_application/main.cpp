// SPDX-License-Identifier: Apache-2.0
// Four desks follow a simulated market each. They share a trainer, which learns
// from their quotes, and a predictor, which they ask where the price goes next.
#include "actors.hpp"

#include <troupe/actors/configure.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using namespace troupe;

/// Asks and waits. Throws what was answered instead of a `T`.
template <class T, class Handle, class Message>
T ask(caf::scoped_actor& self, const Handle& whom, Message question) {
  std::optional<T> got;
  actors::ask(self, whom, caf::infinite, std::move(question))
    .receive([&](T& value) { got = std::move(value); },
             [](caf::error& why) { throw std::runtime_error(text_of(why)); });
  return std::move(*got);
}

/// Opens the desks and waits for the end of their day.
desk_report trade_all(caf::scoped_actor& self, desk_partners partners) {
  std::vector<caf::actor> desks;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    partners.market = self->spawn(market, seed);
    desks.push_back(self->spawn<desk>(partners));
  }
  // All begin before the first one is waited for.
  using answer =
    decltype(actors::ask(self, desks[0], caf::infinite, words::trade_v));
  std::vector<answer> days;
  for (const auto& each : desks)
    days.push_back(actors::ask(self, each, caf::infinite, words::trade_v));
  desk_report all;
  for (auto& day : days)
    std::move(day).receive(
      [&](const desk_report& report) {
        all.busy += report.busy;
        all.moves += report.moves;
        all.right += report.right;
      },
      [](const caf::error& why) { throw std::runtime_error(text_of(why)); });
  return all;
}

/// Forecasts of a day that the trainer has not seen, and the last move as a
/// guess of the next.
void compare(caf::scoped_actor& self, const desk_partners& with) {
  arena memory{make_host_memory_source()};
  simulated_book book{99};
  quote_history history;
  for (int i = 0; i < 2000; ++i)
    history.add(book.next());
  auto day = history.take(memory);
  const auto seen = day.at("seen"), moves = day.extract("move").mapped();
  const auto answer =
    ask<prediction>(self, with.predicts, predict_batch{share_batch(day)});
  const auto forecasts = answer.outputs.at(with.forecast);
  int all = 0, right = 0, repeated = 0;
  for (std::int64_t i = 0; i < moves.numel(); ++i) {
    const auto came = moves.data<float>()[i];
    const auto last = seen.data<float>()[(i + 1) * features - 1];
    all += came != 0;
    right += forecasts.data<float>()[i] * came > 0;
    repeated += last * came > 0;
  }
  std::printf("unseen day, after %llu steps: %d of %d directions right; "
              "the last move again: %d\n",
              static_cast<unsigned long long>(answer.steps), right, all,
              repeated);
}

void run(caf::actor_system& system) {
  graph::network net;
  auto seen = net.data("seen", {-1, features});
  auto move = net.data("move", {-1, 1});
  auto forecast = layers::fc(layers::fc(seen, 16, {.act = "relu"}), 1);
  auto cost = layers::mean(layers::square(layers::sub(forecast, move)));
  optimizer::adam({.learning_rate = 0.01f}).minimize(cost);
  const auto program = make_training_program(net.startup, net.main);

  caf::scoped_actor self{system};
  desk_partners with;
  with.forecast = forecast.name();
  with.trains = spawn_trainer(system, program, {.most_waiting = 1});
  with.predicts =
    spawn_predictor(system, program.test,
                    ask<parameter_set>(self, with.trains, ask_parameters{}),
                    {.outputs = {forecast.name()}});
  with.publisher = self->spawn(publisher, with.trains, with.predicts);

  const auto day = trade_all(self, with);
  std::printf("%d batches trained, the trainer was busy %d times\n",
              4 * batches_per_desk, day.busy);
  std::printf("meanwhile, %d of %d directions right\n", day.right, day.moves);

  actors::send(self, with.predicts,
               ask<parameter_set>(self, with.trains, ask_parameters{}));
  compare(self, with);
  self->send_exit(with.publisher, caf::exit_reason::user_shutdown);
  ask<trainer_state>(self, with.trains, stop_training{});
}

} // namespace

int main() try {
  troupe::actors::register_types<caf::id_block::market_example>();
  caf::actor_system_config config;
  const auto system = troupe::make_actor_system(config, 2);
  run(*system);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
