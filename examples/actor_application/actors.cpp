// SPDX-License-Identifier: Apache-2.0
#include "actors.hpp"

#include <chrono>

using namespace troupe;

caf::behavior market(caf::event_based_actor* self, unsigned seed) {
  return {
    [self, book = simulated_book{seed}](words::credit, int quotes) mutable {
      const auto reader = caf::actor_cast<caf::actor>(self->current_sender());
      for (int i = 0; i < quotes; ++i)
        actors::send(self, reader, book.next());
    }};
}

caf::behavior publisher(caf::event_based_actor* self, trainer trains,
                        predictor predicts) {
  return {[=, steps = 0](words::trained) mutable {
    if (++steps % 40 != 0)
      return;
    actors::ask(self, trains, caf::infinite, ask_parameters{})
      .then(
        [=](const parameter_set& newer) {
          actors::send(self, predicts, newer);
        },
        [](const caf::error&) {}); // busy: there is a next time
  }};
}

caf::behavior desk::make_behavior() {
  return {[this](words::trade) {
            done_ = make_response_promise<desk_report>();
            ask_quotes();
            return done_;
          },
          [this](const quote& next) { on_quote(next); },
          [this](words::offer) { offer_batch(); }};
}

void desk::ask_quotes() {
  expected_ = quotes_per_batch;
  auto* self = this;
  actors::send(self, with_.market, words::credit_v, quotes_per_batch);
}

void desk::on_quote(const quote& next) {
  history_.add(next);
  const auto move = history_.last_move();
  if (forecast_ && move != 0) {
    ++report_.moves;
    report_.right += (*forecast_ > 0) == (move > 0);
  }
  forecast_.reset();
  if (--expected_ == 0) {
    batch_ = share_batch(history_.take(memory_));
    offer_batch();
  }
}

void desk::offer_batch() {
  auto* self = this;
  actors::ask(self, with_.trains, caf::infinite, train_batch{batch_})
    .then([this](const trained_step&) { on_trained(); },
          [this, self](const caf::error& why) {
            if (code_of(why) != errc::busy) {
              done_.deliver(why);
              return;
            }
            ++report_.busy;
            actors::send_later(self, self, std::chrono::milliseconds{1},
                               words::offer_v);
          });
}

void desk::on_trained() {
  auto* self = this;
  actors::send(self, with_.publisher, words::trained_v);
  if (++trained_ == batches_per_desk)
    done_.deliver(report_);
  else
    ask_forecast();
}

void desk::ask_forecast() {
  auto* self = this;
  actors::ask(self, with_.predicts, caf::infinite,
              predict_batch{share_batch(history_.newest(memory_))})
    .then(
      [this](const prediction& answer) {
        forecast_ = answer.outputs.at(with_.forecast).values<float>()[0];
        ask_quotes();
      },
      [this](const caf::error& why) { done_.deliver(why); });
}
