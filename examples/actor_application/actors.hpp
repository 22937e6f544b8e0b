// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quote_history.hpp"

#include <troupe/actors/caf/caf.hpp>
#include <troupe/training/actors/predictor.hpp>
#include <troupe/training/actors/trainer.hpp>

#include <caf/event_based_actor.hpp>

#include <optional>
#include <string>

constexpr int quotes_per_batch = 32, batches_per_desk = 150;

/// What a desk answers at the end of its day.
struct desk_report {
  int busy = 0;  ///< times that the trainer had enough to do
  int moves = 0; ///< that the predictor was asked for, and that were not 0
  int right = 0; ///< of which it knew the direction
};

// The messages of this program. They stay within the process.
CAF_BEGIN_TYPE_ID_BLOCK(market_example, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(market_example, (quote))
CAF_ADD_TYPE_ID(market_example, (desk_report))
CAF_ADD_ATOM(market_example, words, credit, "credit")
CAF_ADD_ATOM(market_example, words, trade, "trade")
CAF_ADD_ATOM(market_example, words, offer, "offer")
CAF_ADD_ATOM(market_example, words, trained, "trained")
CAF_END_TYPE_ID_BLOCK(market_example)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(quote)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(desk_report)

/// The feed of one instrument. `(credit, n)` lets it send n quotes to who asks;
/// it then waits for more credit.
caf::behavior market(caf::event_based_actor* self, unsigned seed);

/// Gives the predictor the trainer's parameters. Gets `trained` for each step.
caf::behavior publisher(caf::event_based_actor* self, troupe::trainer trains,
                        troupe::predictor predicts);

/// Whom a desk works with.
struct desk_partners {
  caf::actor market;
  troupe::trainer trains;
  troupe::predictor predicts;
  caf::actor publisher;
  std::string forecast; ///< the predictor's output
};

/// Follows one instrument. It has each batch of quotes trained; then it asks
/// for a forecast of the next move, and gives the market credit for the next
/// batch. So it has one batch at a time: when the trainer is busy, the desk
/// keeps its batch and the market waits. `trade` is answered with a
/// `desk_report` at the end.
class desk : public caf::event_based_actor {
public:
  desk(caf::actor_config& cfg, desk_partners partners)
    : event_based_actor(cfg), with_(std::move(partners)) {}

protected:
  caf::behavior make_behavior() override;

private:
  void ask_quotes();
  void on_quote(const quote& next);
  void offer_batch();
  void on_trained();
  void ask_forecast();

  desk_partners with_;
  troupe::arena memory_{troupe::make_host_memory_source()};
  quote_history history_;
  troupe::shared_batch batch_;    ///< is offered to the trainer
  std::optional<float> forecast_; ///< of the next quote's move
  caf::typed_response_promise<desk_report> done_;
  desk_report report_;
  int expected_ = 0; ///< quotes that are still to come
  int trained_ = 0;
};
