// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// How steps run: what handles wait for, and the base of traced actors.
namespace troupe::actors {

/// State of a handle in a running step.
enum class progress : std::uint8_t {
  waits,    ///< waits for messages
  is_ready, ///< ready, waits for its stream
  runs,     ///< runs on a worker
  launched, ///< its launch is pending
  is_done,  ///< has sent all its messages
  no_step,  ///< no step has run yet
};

/// A chain of handles in which each link waits for the next.
struct wait_chain {
  /// A handle and its state in a step.
  struct link {
    handle_id handle = no_handle;
    std::string name; ///< "conv2d#12@cpu:1"
    step_id step = 0;
    progress how_far = progress::waits;
    std::uint32_t messages = 0;    ///< still missing
    std::uint32_t of_messages = 0; ///< per step
    std::string stream;            ///< an op's stream
    std::size_t worker = 0;        ///< the worker that runs the op
  };
  std::vector<link> links;
  /// Set if the last link waits although all its senders are done: the handle
  /// whose message has not arrived, or the start of the step. With several
  /// senders, their names with "or" between them, because a counter does not
  /// tell which message is missing.
  std::string missing;
  /// Set if the last link waits for other ranks: which ones are missing, or how
  /// far the values have come. Of a `recv`: the rank that sends.
  std::optional<comm::waiting_call> call = {};
  /// Of the ranks that are missing there, those that somebody has paused.
  std::vector<std::size_t> paused = {};
  /// What the workers run, if the last link is ready and no worker runs an op
  /// of its stream.
  struct busy_worker {
    std::size_t worker;
    std::string op;
  };
  std::vector<busy_worker> busy = {};
};

/// A collective that a device of this process has begun and that is not over.
struct collective_wait {
  handle_id handle = no_handle; ///< the device's part in it
  step_id step = 0;
  /// Who has arrived, who is missing, and since when the device waits.
  comm::waiting_call call;
};

/// One line per link: "relu#3@cpu:0, step 7: waits for 1 of 2 messages".
std::string to_string(const wait_chain& chain);
/// The line of one link.
std::string to_string(const wait_chain::link& link);
/// What the workers run while the last link waits for one: "worker 0 runs
/// mul#3@cpu:0, worker 1 runs mul#4@cpu:1", or "no worker runs an op". Empty if
/// the last link does not wait for a worker.
std::string workers_text(const wait_chain& chain);
/// The op of the last link, and its call: "all_reduce#9@cpu:0 (all_reduce of
/// w@GRAD)". Only if it waits for other ranks.
std::string call_text(const wait_chain& chain);
/// What the last link waits for that other ranks do: "all_reduce#9@cpu:0
/// (all_reduce of w@GRAD) waits for rank 1; ranks 0, 2 have arrived". Empty if
/// it does not wait for others.
std::string ranks_text(const wait_chain& chain);

} // namespace troupe::actors
