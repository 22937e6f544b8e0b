// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/predictor.hpp>

#include <troupe/base/error.hpp>
#include <troupe/training/actors/actor_door.hpp>
#include <troupe/training/actors/work_queue.hpp>
#include <troupe/training/output_program.hpp>

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace troupe {

namespace {

/// The step of a request has ended, for the predictor.
struct ended_prediction {
  std::shared_ptr<step_outcome> outcome;
};

} // namespace

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ended_prediction)

namespace troupe {

namespace {

using inner_predictor = predictor::extend<caf::reacts_to<ended_prediction>>;

/// A program with parameters that nobody else has.
class predicting_executor {
public:
  predicting_executor(std::shared_ptr<const graph::program> program,
                      executor_options options, const parameter_set& from)
    : steps_(from.steps) {
    if (!from.values)
      throw error(errc::invalid_argument, "a message without parameters");
    options.parameters = copy_parameters(*from.values, *program);
    exe_.emplace(std::move(program), std::move(options));
  }

  executor& exe() { return *exe_; }
  /// Of the run that made the parameters.
  std::uint64_t steps() const { return steps_; }

private:
  std::uint64_t steps_;
  std::optional<executor> exe_;
};

class predictor_actor final : public inner_predictor::base {
public:
  predictor_actor(caf::actor_config& cfg,
                  std::shared_ptr<const graph::program> program,
                  const predictor_options& options,
                  std::unique_ptr<predicting_executor> first)
    : inner_predictor::base(cfg), program_(std::move(program)),
      options_(options), now_(std::move(first)),
      queue_(options.most_waiting, options.executor.steps_in_flight),
      door_(std::make_shared<actors::actor_door>(*this)) {}

  const char* name() const override { return "predictor"; }

  void on_exit() override {
    door_->close();
    queue_.stop(error(errc::cancelled, "the predictor has been told to exit"));
    for (auto& promise : running_)
      promise.deliver(
        to_caf(error(errc::cancelled, "the predictor has ended")));
    running_.clear();
    now_.reset(); // cancels steps, and waits for them
    keeps_alive_ = nullptr;
  }

protected:
  behavior_type make_behavior() override {
    return {[this](const predict_batch& m) { return add_request(m.feeds); },
            [this](const parameter_set& m) { return add_parameters(m); },
            [this](const ended_prediction& m) { step_ended(*m.outcome); }};
  }

private:
  template <class T>
  using promise_of = caf::typed_response_promise<T>;

  template <class T, class Start>
  promise_of<T> add(Start begin, bool needs_rest) {
    auto promise = this->make_response_promise<promise_of<T>>();
    queue_.add(
      {[promise, begin]() mutable { begin(promise); },
       [promise](const error& why) mutable { promise.deliver(to_caf(why)); },
       needs_rest});
    settle();
    return promise;
  }

  promise_of<prediction> add_request(const shared_batch& batch) {
    return add<prediction>(
      [this, batch](promise_of<prediction>& promise) {
        if (!batch)
          throw error(errc::invalid_argument, "a message without a batch");
        now_->exe().run_async(
          *batch, options_.outputs, [door = door_](step_outcome outcome) {
            door->leave(ended_prediction{
              std::make_shared<step_outcome>(std::move(outcome))});
          });
        running_.push_back(promise);
      },
      false);
  }

  promise_of<void> add_parameters(const parameter_set& from) {
    return add<void>(
      [this, from](promise_of<void>& promise) {
        now_ = std::make_unique<predicting_executor>(program_,
                                                     options_.executor, from);
        static_cast<caf::response_promise&>(promise).deliver(caf::unit);
        queue_.ended();
      },
      true);
  }

  void step_ended(const step_outcome& outcome) {
    auto promise = std::move(running_.front());
    running_.pop_front();
    actors::deliver_to(promise, [&] {
      if (outcome.failure)
        throw *outcome.failure;
      prediction answer{{}, now_->steps()};
      for (auto& name : options_.outputs)
        answer.outputs.emplace(name, outcome.result.merged(name));
      return answer;
    });
    queue_.ended();
    settle();
  }

  /// Threads that work for the predictor keep it alive.
  void settle() {
    keeps_alive_ =
      queue_.is_at_rest() ? nullptr : caf::strong_actor_ptr{this->ctrl()};
  }

  std::shared_ptr<const graph::program> program_;
  predictor_options options_;
  std::unique_ptr<predicting_executor> now_;
  actors::work_queue queue_;
  std::shared_ptr<actors::actor_door> door_;
  caf::strong_actor_ptr keeps_alive_;
  std::deque<promise_of<prediction>> running_; // oldest first
};

} // namespace

predictor spawn_predictor(caf::actor_system& system, const graph::program& test,
                          const parameter_set& parameters,
                          predictor_options options) {
  if (options.most_waiting == 0)
    throw error(errc::invalid_argument,
                "a predictor for which nothing may wait");
  auto program = std::make_shared<const graph::program>(
    make_output_program(test, options.outputs));
  options.executor.system = &system;
  options.executor.loss.clear();
  options.executor.fetches = options.outputs;
  auto first = std::make_unique<predicting_executor>(program, options.executor,
                                                     parameters);
  return system.spawn<predictor_actor>(std::move(program), options,
                                       std::move(first));
}

} // namespace troupe
