// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/trainer.hpp>

#include <troupe/base/error.hpp>
#include <troupe/training/actors/actor_door.hpp>
#include <troupe/training/actors/handle_answer.hpp>
#include <troupe/training/actors/work_queue.hpp>

#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace troupe {

namespace {

/// A training step that has ended, for the trainer.
struct ended_step {
  std::shared_ptr<step_outcome> outcome;
};
/// The step of an evaluation that has ended.
struct ended_evaluation {
  std::uint64_t number = 0;
  std::shared_ptr<step_outcome> outcome;
};
/// Somebody who looks at the run lets it go on, or lets a step through.
struct freed_steps {};
/// A snapshot is on the disk, or could not be written.
struct ended_writing {
  std::optional<std::string> failure;
};

} // namespace

} // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_trainer_inside,
                        troupe::actors::type_ids::trainer_inside)
CAF_ADD_TYPE_ID(troupe_trainer_inside, (troupe::ended_step))
CAF_ADD_TYPE_ID(troupe_trainer_inside, (troupe::ended_evaluation))
CAF_ADD_TYPE_ID(troupe_trainer_inside, (troupe::ended_writing))
CAF_ADD_TYPE_ID(troupe_trainer_inside, (troupe::freed_steps))
CAF_END_TYPE_ID_BLOCK(troupe_trainer_inside)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ended_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ended_evaluation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ended_writing)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::freed_steps)

namespace troupe {

namespace {

using inner_trainer = trainer::extend<
  actors::answers<ended_step, void>, actors::answers<ended_evaluation, void>,
  actors::answers<ended_writing, void>, actors::answers<freed_steps, void>>;

/// Of a batch that a message brought.
const feed_map& feeds_of(const shared_batch& batch) {
  if (!batch)
    throw error(errc::invalid_argument, "a message without a batch");
  return *batch;
}

class trainer_actor final : public inner_trainer::base {
public:
  trainer_actor(caf::actor_config& cfg, std::unique_ptr<training_session> what,
                const trainer_options& options)
    : inner_trainer::base(cfg), session_(std::move(what)),
      fetches_(options.session.executor.fetches),
      queue_(options.most_waiting, options.session.executor.steps_in_flight,
             [this] { return pace().reserve_step(); }),
      door_(std::make_shared<actors::actor_door>(*this)) {
    pace().when_steps_may_begin([door = door_] { door->leave(freed_steps{}); });
  }

  const char* name() const override { return "trainer"; }

  void on_exit() override {
    door_->close();
    queue_.stop(error(errc::cancelled, "the trainer has been told to exit"));
    const error ended(errc::cancelled, "the trainer has ended");
    for (auto& step : steps_)
      step.promise.deliver(to_caf(ended));
    steps_.clear();
    for (auto& e : evaluations_)
      e.promise.deliver(to_caf(ended));
    evaluations_.clear();
    if (snapshot_)
      snapshot_->promise.deliver(to_caf(ended));
    snapshot_.reset();
    for (auto& promise : stops_)
      promise.deliver(to_caf(ended));
    stops_.clear();
    subscriptions_.clear();
    session_.reset(); // cancels steps, and waits for them
    keeps_alive_ = nullptr;
  }

protected:
  behavior_type make_behavior() override {
    return {
      [this](const train_batch& m) { return add_batch(m.feeds); },
      [this](const evaluate_batch& m) { return add_evaluation(m.feeds); },
      [this](const change_learning_rate& m) { return add_rate(m.rate); },
      [this](const pause_training&) {
        queue_.pause();
        settle();
      },
      [this](const resume_training&) {
        queue_.go_on();
        settle();
      },
      [this](const take_snapshot&) { return add_snapshot(); },
      [this](const save_program_to& m) { return add_saving(m.folder); },
      [this](const ask_parameters&) { return add_question(); },
      [this](const ask_state&) { return state(); },
      [this](const stop_training&) { return stop(); },
      [this](const subscribe& m) { return begin(m); },
      [this](const unsubscribe& m) { end(m); },
      [this](const ask_handle& m) {
        return actors::handle_answer(session_->exe(), m.name);
      },
      [this](const ended_step& m) { step_ended(*m.outcome); },
      [this](const ended_evaluation& m) { evaluation_ended(m); },
      [this](const ended_writing& m) { snapshot_written(m.failure); },
      [this](const freed_steps&) {
        queue_.try_again();
        settle();
      },
    };
  }

private:
  template <class T>
  using promise_of = caf::typed_response_promise<T>;

  struct running_step {
    promise_of<trained_step> promise;
    std::uint64_t number = 0; // of the run
  };
  struct running_evaluation {
    std::uint64_t number = 0;
    shared_batch feeds;
    promise_of<evaluation> promise;
    std::unique_ptr<executor> tester;
  };
  struct running_snapshot {
    promise_of<taken_snapshot> promise;
    taken_snapshot answer;
  };
  struct subscription {
    std::uint64_t number = 0;
    subscribe wanted;
    std::size_t waiting = 0;
    std::uint64_t dropped = 0;
  };

  /// A board can hold the run up too.
  run_pace& pace() const { return session_->exe().pace(); }

  /// Adds work whose answer is a `T`. What needs no rest trains.
  template <class T, class Start>
  promise_of<T> add(Start start, bool needs_rest = true,
                    bool writes_files = false) {
    auto promise = this->make_response_promise<promise_of<T>>();
    queue_.add({[this, promise, start]() mutable { start(promise); },
                [this, promise](const error& why) mutable {
                  refused_ += why.code() == errc::busy;
                  failed_ +=
                    why.code() != errc::busy && why.code() != errc::cancelled;
                  pace().return_step(); // of a batch that has not begun
                  promise.deliver(to_caf(why));
                },
                needs_rest, writes_files, !needs_rest});
    settle();
    return promise;
  }

  promise_of<trained_step> add_batch(const shared_batch& batch) {
    return add<trained_step>(
      [this, batch](promise_of<trained_step>& promise) {
        const auto number = session_->position().steps + steps_.size();
        session_->run_async(
          feeds_of(batch), due_at(number),
          [door = door_](step_outcome outcome) {
            door->leave(
              ended_step{std::make_shared<step_outcome>(std::move(outcome))});
          });
        steps_.push_back({promise, number});
      },
      false);
  }

  void step_ended(step_outcome& outcome) {
    auto step = std::move(steps_.front());
    steps_.pop_front();
    if (outcome.failure) {
      ++failed_;
      step.promise.deliver(to_caf(*outcome.failure));
    } else {
      auto& result = outcome.result;
      std::int64_t samples = 0;
      for (auto n : result.samples)
        samples += n;
      session_->count_step(result.loss, samples);
      last_loss_ = result.loss;
      publish(step.number, result);
      step.promise.deliver(trained_step{step.number, result.loss, result.losses,
                                        samples, result.ms});
    }
    queue_.ended();
    settle();
  }

  promise_of<evaluation> add_evaluation(const shared_batch& batch) {
    return add<evaluation>([this, batch](promise_of<evaluation>& promise) {
      auto options = session_->options_of_evaluation();
      options.parameters = session_->copied_parameters();
      const auto fetches = options.fetches;
      auto tester = std::make_unique<executor>(session_->program().test,
                                               std::move(options));
      const auto number = next_number_++;
      tester->run_async(
        feeds_of(batch), fetches, [door = door_, number](step_outcome outcome) {
          door->leave(ended_evaluation{
            number, std::make_shared<step_outcome>(std::move(outcome))});
        });
      evaluations_.push_back({number, batch, promise, std::move(tester)});
    });
  }

  void evaluation_ended(const ended_evaluation& ended) {
    const auto found = std::ranges::find(evaluations_, ended.number,
                                         &running_evaluation::number);
    auto evaluated = std::move(*found);
    evaluations_.erase(found);
    actors::deliver_to(evaluated.promise, [&] {
      if (ended.outcome->failure)
        throw *ended.outcome->failure;
      return evaluation_of(session_->program(), *evaluated.feeds,
                           ended.outcome->result);
    });
    queue_.ended();
    settle();
  }

  promise_of<void> add_rate(double rate) {
    return add<void>([this, rate](promise_of<void>& promise) {
      session_->set_learning_rate(rate);
      finish(promise);
    });
  }

  promise_of<taken_snapshot> add_snapshot() {
    return add<taken_snapshot>(
      [this](promise_of<taken_snapshot>& promise) {
        taken_snapshot answer{session_->snapshot_name(),
                              session_->position().steps};
        session_->take_snapshot(
          [door = door_](const std::optional<std::string>& failure) {
            door->leave(ended_writing{failure});
          });
        snapshot_ = {promise, std::move(answer)};
        queue_.begins_writing();
        queue_.ended();
      },
      true, true);
  }

  void snapshot_written(const std::optional<std::string>& failure) {
    auto written = *std::exchange(snapshot_, std::nullopt);
    if (failure)
      written.promise.deliver(to_caf(error(errc::io_failure, *failure)));
    else
      written.promise.deliver(std::move(written.answer));
    queue_.ended_writing();
    settle();
  }

  promise_of<void> add_saving(const std::string& folder) {
    return add<void>([this, folder](promise_of<void>& promise) {
      session_->save(folder);
      finish(promise);
    });
  }

  promise_of<parameter_set> add_question() {
    return add<parameter_set>([this](promise_of<parameter_set>& promise) {
      promise.deliver(parameter_set{session_->copied_parameters(),
                                    session_->position().steps});
      queue_.ended();
    });
  }

  void finish(promise_of<void>& promise) {
    actors::fulfil(promise);
    queue_.ended();
  }

  trainer_state state() const {
    return {session_->position().steps,
            last_loss_,
            queue_.waiting(),
            queue_.running(),
            queue_.is_paused() || pace().is_paused(),
            failed_,
            refused_};
  }

  promise_of<trainer_state> stop() {
    auto promise = this->make_response_promise<promise_of<trainer_state>>();
    stops_.push_back(promise);
    queue_.stop(error(errc::cancelled, "the trainer has been told to stop"));
    settle();
    return promise;
  }

  /// After each message: keeps the trainer alive while threads work for it, or
  /// a board holds up what waits; ends it once it is to stop and nothing runs.
  void settle() {
    const bool rests = queue_.is_at_rest();
    const bool is_held = queue_.waiting() > 0 && pace().is_paused();
    keeps_alive_ =
      rests && !is_held ? nullptr : caf::strong_actor_ptr{this->ctrl()};
    if (!rests || stops_.empty())
      return;
    for (auto& promise : std::exchange(stops_, {}))
      promise.deliver(state());
    this->quit(caf::exit_reason::normal);
  }

  caf::result<void> begin(const subscribe& wanted) {
    const auto& loss = session_->program().loss;
    if (std::ranges::find(fetches_, wanted.variable) == fetches_.end()
        && wanted.variable != loss)
      return to_caf(error(errc::not_found,
                          "not among the fetches of this trainer's executor",
                          {.variable = wanted.variable}));
    if (wanted.every == 0 || wanted.most_waiting == 0 || !wanted.to)
      return to_caf(error(errc::invalid_argument,
                          "a subscription needs a receiver, a number of steps "
                          "and room for a value",
                          {.variable = wanted.variable}));
    subscriptions_.push_back({next_number_++, wanted, 0, 0});
    return caf::unit;
  }

  void end(const unsubscribe& unwanted) {
    std::erase_if(subscriptions_, [&unwanted](const subscription& one) {
      return one.wanted.variable == unwanted.variable
             && one.wanted.to == unwanted.to;
    });
  }

  std::vector<std::string> due_at(std::uint64_t step) const {
    std::vector<std::string> names;
    for (auto& s : subscriptions_)
      if (step % s.wanted.every == 0
          && std::ranges::find(names, s.wanted.variable) == names.end())
        names.push_back(s.wanted.variable);
    return names;
  }

  void publish(std::uint64_t step, const step_result& result) {
    for (auto& s : subscriptions_) {
      const auto found = result.fetched.find(s.wanted.variable);
      if (step % s.wanted.every != 0 || found == result.fetched.end())
        continue;
      if (s.waiting >= s.wanted.most_waiting) {
        ++s.dropped;
        continue;
      }
      ++s.waiting;
      send_value(s, {s.wanted.variable, step, found->second,
                     std::exchange(s.dropped, 0)});
    }
  }

  void send_value(const subscription& s, variable_value value) {
    const auto answered = [this, number = s.number] {
      const auto found =
        std::ranges::find(subscriptions_, number, &subscription::number);
      if (found != subscriptions_.end())
        --found->waiting;
    };
    auto* self = this;
    actors::ask(self, s.wanted.to, caf::infinite, std::move(value))
      .then([answered] { answered(); }, // other answers come as errors
            [this, answered, number = s.number](const caf::error& why) {
              answered();
              if (why == caf::sec::request_receiver_down)
                std::erase_if(subscriptions_,
                              [number](const subscription& one) {
                                return one.number == number;
                              });
            });
  }

  std::unique_ptr<training_session> session_;
  std::vector<std::string> fetches_;
  actors::work_queue queue_;
  std::shared_ptr<actors::actor_door> door_;
  caf::strong_actor_ptr keeps_alive_;
  std::list<running_step> steps_; // oldest first
  std::list<running_evaluation> evaluations_;
  std::optional<running_snapshot> snapshot_;
  std::vector<promise_of<trainer_state>> stops_;
  std::vector<subscription> subscriptions_;
  std::uint64_t next_number_ = 0;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t failed_ = 0;
  std::uint64_t refused_ = 0;
};

} // namespace

trainer spawn_trainer(caf::actor_system& system, training_program program,
                      trainer_options options) {
  if (options.most_waiting == 0)
    throw error(errc::invalid_argument, "a trainer for which nothing may wait");
  actors::register_types<caf::id_block::troupe_training>();
  actors::register_types<caf::id_block::troupe_trainer_inside>();
  options.session.executor.system = &system;
  auto session =
    std::make_unique<training_session>(std::move(program), options.session);
  return system.spawn<trainer_actor>(std::move(session), options);
}

} // namespace troupe
