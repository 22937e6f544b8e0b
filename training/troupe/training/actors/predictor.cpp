// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/predictor.hpp>

#include <troupe/base/error.hpp>
#include <troupe/training/actors/actor_door.hpp>
#include <troupe/training/actors/handle_answer.hpp>
#include <troupe/training/actors/predictor_front.hpp>
#include <troupe/training/inference/merged_batch.hpp>
#include <troupe/training/inference/predicting_executor.hpp>
#include <troupe/training/output_program.hpp>

#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// Something waits for the predictor: requests, or steps that have ended.
struct look_again {};
/// The next step is due.
struct time_is_up {};

} // namespace

} // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_predictor_inside,
                        troupe::actors::type_ids::predictor_inside)
CAF_ADD_TYPE_ID(troupe_predictor_inside, (troupe::look_again))
CAF_ADD_TYPE_ID(troupe_predictor_inside, (troupe::time_is_up))
CAF_END_TYPE_ID_BLOCK(troupe_predictor_inside)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::look_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::time_is_up)

namespace troupe {

namespace {

using inference::predicting_executor;
using inference::request_batch;

using inner_predictor = predictor::extend<actors::answers<look_again, void>,
                                          actors::answers<time_is_up, void>>;

/// A step that has ended.
struct ended_batch {
  std::uint64_t batch = 0;
  step_outcome outcome;
};

/// Where threads that end steps leave them for the predictor. Any thread.
class ended_batches {
public:
  explicit ended_batches(std::shared_ptr<actors::actor_door> door)
    : door_(std::move(door)) {}

  void add(ended_batch batch) {
    {
      std::lock_guard guard{mutex_};
      batches_.push_back(std::move(batch));
    }
    door_->leave(look_again{});
  }
  std::vector<ended_batch> take() {
    std::lock_guard guard{mutex_};
    return std::exchange(batches_, {});
  }

private:
  std::shared_ptr<actors::actor_door> door_;
  std::mutex mutex_;
  std::vector<ended_batch> batches_; // guarded by the mutex
};

/// What a predictor is made of.
struct predictor_parts {
  std::shared_ptr<const graph::program> program;
  predictor_options options;
  std::shared_ptr<inference::request_queue> queue;

  std::shared_ptr<predicting_executor> with(const parameter_set& from) const {
    return std::make_shared<predicting_executor>(program, options, *queue,
                                                 from);
  }
  /// Steps that run, and requests that wait, keep the old executor.
  void replace(const parameter_set& from) const { queue->use(with(from)); }
};

class predictor_actor final : public inner_predictor::base {
public:
  predictor_actor(caf::actor_config& cfg, predictor_parts parts,
                  std::shared_ptr<predicting_executor> first)
    : inner_predictor::base(cfg), parts_(std::move(parts)),
      door_(std::make_shared<actors::actor_door>(*this)),
      ended_(std::make_shared<ended_batches>(door_)) {
    queue().open(std::move(first),
                 [door = door_] { door->leave(look_again{}); });
  }

  const char* name() const override { return "predictor"; }

  void on_exit() override {
    const error why(errc::cancelled, "the predictor has ended");
    queue().close(why);
    door_->close();
    for (auto& [id, batch] : running_)
      inference::refuse(batch, why);
    for (auto& promise : std::exchange(stops_, {}))
      promise.deliver(to_caf(why));
    running_.clear(); // cancels steps, and waits for them
    keeps_alive_ = nullptr;
    queue().ends();
  }

protected:
  behavior_type make_behavior() override {
    return {[this](const predict_batch& m) { return ask(m.feeds); },
            [this](const parameter_set& m) { return replace(m); },
            [this](const ask_handle& m) { return find(m); },
            [this](const ask_state&) { return queue().counts(); },
            [this](const stop_predicting&) { return stop(); },
            [this](look_again) { look(); },
            [this](time_is_up) {
              has_alarm_ = false;
              begin_steps();
            }};
  }

private:
  template <class T>
  using promise_of = caf::typed_response_promise<T>;

  inference::request_queue& queue() { return *parts_.queue; }

  promise_of<prediction> ask(const shared_batch& feeds) {
    auto promise = this->make_response_promise<promise_of<prediction>>();
    try {
      queue().add(feeds, [promise](prediction_outcome outcome) mutable {
        if (outcome.failure)
          promise.deliver(to_caf(*outcome.failure));
        else
          promise.deliver(std::move(outcome.answer));
      });
    } catch (const error& why) {
      promise.deliver(to_caf(why));
    }
    settle();
    return promise;
  }

  caf::result<void> replace(const parameter_set& from) {
    try {
      if (!stops_.empty())
        throw told_to_stop();
      parts_.replace(from);
      return caf::unit;
    } catch (const error& why) {
      return to_caf(why);
    }
  }

  caf::result<caf::actor> find(const ask_handle& wanted) {
    if (const auto by = queue().now())
      return actors::handle_answer(by->exe(), wanted.name);
    return to_caf(told_to_stop());
  }

  static error told_to_stop() {
    return error(errc::cancelled, "the predictor has been told to stop");
  }

  promise_of<prediction_counts> stop() {
    auto promise = this->make_response_promise<promise_of<prediction_counts>>();
    stops_.push_back(promise);
    queue().close(told_to_stop());
    settle();
    return promise;
  }

  void look() {
    for (auto& step : ended_->take())
      step_ended(step);
    begin_steps();
  }

  void begin_steps() {
    auto next = next_step();
    for (; !next.batch.empty(); next = next_step())
      begin(std::move(next.batch));
    if (next.due && !std::exchange(has_alarm_, true))
      set_alarm(*next.due);
    settle();
  }

  /// CAF's clock holds on to the predictor until the alarm, also if it ends
  /// before. So an alarm is never far away.
  void set_alarm(inference::waiting_requests::clock::time_point due) {
    using clock = inference::waiting_requests::clock;
    constexpr clock::duration longest = std::chrono::seconds{1};
    auto* self = this;
    actors::send_later(self, self, std::min(due - clock::now(), longest),
                       time_is_up{});
  }

  inference::next_step next_step() {
    const bool is_free =
      !runs_alone_ && running_.size() < parts_.options.executor.steps_in_flight;
    return queue().next(is_free, running_.empty());
  }

  void begin(request_batch batch) {
    const auto id = next_batch_++;
    auto& by = *batch.front().by;
    try {
      std::vector<const feed_map*> parts;
      for (auto& item : batch)
        parts.push_back(&item.request->feeds());
      by.exe().run_async(inference::merged_feeds(parts, memory_),
                         parts_.options.outputs,
                         [id, ended = ended_](step_outcome outcome) {
                           ended->add({id, std::move(outcome)});
                         });
    } catch (const error& why) {
      return failed(std::move(batch), why);
    }
    runs_alone_ = batch.front().alone;
    running_.emplace(id, std::move(batch));
  }

  void step_ended(const ended_batch& ended) {
    auto batch = std::move(running_.extract(ended.batch).mapped());
    runs_alone_ = false;
    queue().step_ended();
    const auto& failure = ended.outcome.failure;
    if (failure)
      failed(std::move(batch), *failure);
    // Waking many callers takes time, in which the next step can run. Who has
    // asked for the end gets its answer after them.
    if (stops_.empty())
      begin_steps();
    if (!failure)
      answer(batch, ended.outcome.result);
  }

  /// The values of one request can make a step fail; then steps that have begun
  /// behind it are cancelled. The other requests are not to suffer, so they run
  /// again. Each of them does at most twice.
  void failed(request_batch batch, const error& why) {
    const bool is_cancelled = why.code() == errc::cancelled;
    if (batch.front().alone || (batch.size() == 1 && !is_cancelled))
      return inference::refuse(batch, why);
    for (auto& item : batch) {
      item.alone = !is_cancelled || item.was_cancelled;
      item.was_cancelled = is_cancelled;
    }
    queue().put_back(std::move(batch));
  }

  void answer(const request_batch& batch, const step_result& result) {
    std::vector<std::int64_t> samples;
    std::int64_t all = 0;
    for (auto& item : batch)
      all += samples.emplace_back(item.request->samples());
    try {
      if (parts_.options.max_batch > 1)
        inference::require_samples(result, parts_.options.outputs, all);
      auto outputs =
        inference::split_outputs(samples, result, parts_.options.outputs);
      for (std::size_t i = 0; i < batch.size(); ++i)
        batch[i].request->answer(
          {{std::move(outputs[i]), batch[i].by->steps()}, {}});
    } catch (const error& why) {
      inference::refuse(batch, why);
    }
  }

  /// Threads that work for the predictor keep it alive, and so do requests.
  /// Ends it once it is to stop and they do not.
  void settle() {
    const bool rests = running_.empty() && queue().empty();
    if (rests != !keeps_alive_)
      keeps_alive_ = rests ? nullptr : caf::strong_actor_ptr{this->ctrl()};
    if (!rests || stops_.empty())
      return;
    for (auto& promise : std::exchange(stops_, {}))
      promise.deliver(queue().counts());
    this->quit(caf::exit_reason::normal);
  }

  predictor_parts parts_;
  std::shared_ptr<actors::actor_door> door_;
  std::shared_ptr<ended_batches> ended_;
  caf::strong_actor_ptr keeps_alive_;
  std::map<std::uint64_t, request_batch> running_; // by number
  std::vector<promise_of<prediction_counts>> stops_;
  std::uint64_t next_batch_ = 0;
  bool runs_alone_ = false; // the request that must
  bool has_alarm_ = false;
  arena memory_{make_host_memory_source()}; // of merged feeds
};

} // namespace

actors::predictor_front actors::start_predictor(caf::actor_system& system,
                                                const graph::program& test,
                                                const parameter_set& parameters,
                                                predictor_options options) {
  register_types<caf::id_block::troupe_training>();
  register_types<caf::id_block::troupe_predictor_inside>();
  predictor_parts parts;
  parts.program = std::make_shared<const graph::program>(
    make_output_program(test, options.outputs));
  options.executor.system = &system;
  options.executor.loss.clear();
  options.executor.fetches = options.outputs;
  options.executor.borrow_feeds = true; // nobody changes a request's feeds
  parts.queue =
    std::make_shared<inference::request_queue>(parts.program, options);
  parts.options = std::move(options);
  auto first = parts.with(parameters);
  parts.options.executor.trace.emplace(); // later ones would replace its file
  auto queue = parts.queue;
  auto replace = [parts](const parameter_set& from) { parts.replace(from); };
  return {system.spawn<predictor_actor>(std::move(parts), std::move(first)),
          std::move(queue), std::move(replace)};
}

predictor spawn_predictor(caf::actor_system& system, const graph::program& test,
                          const parameter_set& parameters,
                          predictor_options options) {
  return actors::start_predictor(system, test, parameters, std::move(options))
    .address;
}

} // namespace troupe
