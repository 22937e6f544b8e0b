// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is asked of a trained network, and how it answers: for callers on any
// thread (inference_session.hpp) and for actors (actors/predictor.hpp).

#include <troupe/actors/executor.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/scope.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A batch that several holders share. Nobody changes it.
using shared_batch = std::shared_ptr<const feed_map>;
/// Makes one.
inline shared_batch share_batch(feed_map feeds) {
  return std::make_shared<const feed_map>(std::move(feeds));
}

/// Copies of the parameters and statistics of a test program.
struct parameter_set {
  std::shared_ptr<const scope> values; ///< in plain layout
  std::uint64_t steps = 0;             ///< after so many steps of the run
};

/// The answer to a request.
struct prediction {
  /// Plain, in host memory; as many samples on axis 0 as the request had. They
  /// are views of one batch's outputs, which stay in memory as long as one of
  /// its answers does.
  std::map<std::string, tensor, std::less<>> outputs;
  std::uint64_t steps = 0; ///< of the parameters, as in `parameter_set`
};

/// How a request went.
struct prediction_outcome {
  prediction answer;            ///< of a request that has not failed
  std::optional<error> failure; ///< why it has
};

/// How a network answers requests.
///
/// A step runs on the samples of one request or of several. While no more
/// steps can begin, requests wait, and the next step takes as many of them as
/// fit. Merged requests may differ in their numbers of samples. Those that
/// differ in other extents are in different steps. Merging changes results only
/// by rounding, as any other size of a batch does.
struct predictor_options {
  /// Devices of this process, kernels, steps in flight. Parameters, loss and
  /// fetches are set by the predictor; feeds are borrowed. Each set of
  /// parameters has an executor of its own, and `attach` is called for each;
  /// `trace` is that of the first.
  executor_options executor = {};
  /// Variables of the program that are answered; at least one.
  std::vector<std::string> outputs = {};
  /// Samples of a step that is made of several requests, at least 1. A request
  /// with more is a step of its own. With 1, each request is; only then may
  /// feeds and outputs lack the batch on axis 0.
  std::int64_t max_batch = 64;
  /// How long a request may wait for others while a step could begin, from 0 to
  /// a day. It waits no longer once `max_batch` samples wait. 0: a step begins
  /// at once, with the requests that have come while others ran.
  std::chrono::microseconds max_delay{0};
  /// Requests that wait, at least 1. One more is refused with error(busy).
  std::size_t most_waiting = 1024;
  /// If set, a request that is run at the start, alone and as often as fits
  /// into `max_batch`, so that the first real requests find kernels and memory
  /// prepared. Its outputs are checked as those of any request.
  shared_batch example = {};
};

/// What a predictor has done since its start.
struct prediction_counts {
  std::uint64_t requests = 0; ///< that were let in
  std::uint64_t refused = 0;  ///< with error(busy)
  std::uint64_t steps = 0;    ///< that have ended, including failed ones
  std::size_t waiting = 0;    ///< requests that have not begun, now
};

} // namespace troupe
