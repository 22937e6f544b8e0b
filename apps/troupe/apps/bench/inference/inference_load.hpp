// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/data/samples.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/kernels/precision.hpp>
#include <troupe/training/inference_session.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::apps {

/// Requests of a benchmark, and the answers that they must get.
class known_answers {
public:
  /// Draws samples, and computes their answers in float32, without a session.
  /// Answers of a session with bfloat16 `factors` may differ by more. Throws
  /// usage_error if the program has no variable `output`, or if that is empty
  /// and the program classifies nothing, and error(invalid_argument) if two
  /// samples have answers that are too alike to tell a reply to the wrong
  /// caller.
  known_answers(const program_bundle& bundle, const std::string& output,
                std::uint64_t seed, precision factors);

  const std::string& output() const noexcept { return output_; }
  const parameter_set& parameters() const noexcept { return parameters_; }
  std::int64_t samples() const noexcept { return expected_.dims()[0]; }

  /// Samples [first, first + count) as a request.
  feed_map request(std::int64_t first, std::int64_t count) const;
  /// True if this is the answer to that request, but for rounding.
  bool is_answer(const prediction& answer, std::int64_t first,
                 std::int64_t count) const;

private:
  void require_distinct() const;

  arena memory_{make_host_memory_source()};
  std::string output_;
  parameter_set parameters_;
  feed_map samples_;
  tensor expected_; ///< [samples, ...] float32
  float tolerance_ = 0;
};

/// What asks a session.
enum class caller_kind : std::uint8_t {
  threads,  ///< each waits for its answer
  functions ///< each is called with its answer, on a worker, as an actor is
};

/// Callers that each ask, get the answer, and ask again.
struct inference_load {
  caller_kind kind = caller_kind::threads;
  std::size_t callers = 64;
  std::uint64_t requests = 0;    ///< of all callers
  std::int64_t most_samples = 1; ///< of a request, drawn from 1 on
  std::uint64_t seed = 0;
};

/// What was measured; several measurements add up.
struct inference_figures {
  samples latency;            ///< ns, of each request
  samples per_second;         ///< requests, of each measurement
  std::uint64_t requests = 0; ///< that were answered
  std::uint64_t wrong = 0;    ///< replies that are not the answer
};

/// Puts the load on a session, once, and adds to `figures`. Throws the error of
/// a request that fails.
void measure(const inference_load& load, const known_answers& known,
             inference_session& session, inference_figures& figures);

} // namespace troupe::apps
