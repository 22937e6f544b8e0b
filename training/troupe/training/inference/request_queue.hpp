// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/steps/scatter.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/training/inference/waiting_requests.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::inference {

/// What a predictor can do next.
struct next_step {
  request_batch batch; ///< what begins now; empty: nothing
  /// If nothing begins, but will: when to look again.
  std::optional<waiting_requests::clock::time_point> due;
};

/// Where requests wait until their predictor begins them. A request that does
/// not fit the program is refused here, on its own thread, so it never shares a
/// step with others.
///
/// The predictor is told only what it does not know: that something waits while
/// it could begin, or that a step has become full before it was due. A batch of
/// many requests therefore costs a message or two.
///
/// Thread rule: any thread for `add`, `check`, `use`, `now`, `counts` and
/// `wait_for_end`, the predictor's handlers for the rest.
class request_queue {
public:
  /// Throws error(invalid_argument) for options out of range, and naming a feed
  /// or an output that lacks the batch on axis 0 although requests are to be
  /// merged.
  /// @param program makes the outputs, and only these
  request_queue(std::shared_ptr<const graph::program> program,
                const predictor_options& options);

  /// Opens the queue. Requests that come later run on `first`.
  /// @param tell called on the thread of a request when the predictor has to
  ///   ask for its next step
  void open(std::shared_ptr<predicting_executor> first,
            std::function<void()> tell);
  /// Refuses all that waits, and all that comes, with `why`.
  void close(const error& why);
  ///@{
  /// The predictor calls `ends` when it does nothing more, once.
  void ends();
  void wait_for_end() const;
  ///@}
  /// Requests that come later run on `by`. Throws the reason of `close`.
  void use(std::shared_ptr<predicting_executor> by);
  /// On which requests run that come now. Null before `open` and after `close`.
  std::shared_ptr<predicting_executor> now() const;

  /// The samples of a request. Throws what the executor throws for such feeds,
  /// and error(invalid_argument) without feeds or with one that would set a
  /// parameter.
  std::int64_t check(const shared_batch& feeds) const;
  /// Lets a request in. Throws as `check` does, error(busy) if too many
  /// requests wait, and the reason of `close`. `answer` is then not called.
  void add(shared_batch feeds, std::function<void(prediction_outcome)> answer);

  /// The requests of the next step.
  /// @param is_free a step could begin; if not, the predictor asks again when
  ///   one has ended
  /// @param is_idle no step runs
  next_step next(bool is_free, bool is_idle);
  /// Puts requests that have begun before all others again.
  void put_back(request_batch batch);
  void step_ended();
  bool empty() const;
  prediction_counts counts() const;

private:
  bool has_to_tell();

  std::shared_ptr<const graph::program> program_;
  actors::needed_feeds needed_;
  std::size_t devices_;
  std::size_t most_waiting_;
  std::function<void()> tell_;

  mutable std::mutex mutex_; // guards what follows
  waiting_requests waiting_;
  std::shared_ptr<predicting_executor> now_;
  /// What the predictor waits for.
  enum class listening : std::uint8_t { not_at_all, to_any, to_full };
  listening listens_ = listening::to_any;
  std::optional<error> closed_;
  bool has_ended_ = false;
  mutable std::condition_variable end_;
  prediction_counts counts_; // without `waiting`
};

} // namespace troupe::inference
