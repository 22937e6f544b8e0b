// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// How far a handle is with a step that is under way.
enum class progress : std::uint8_t {
  waits,    ///< for messages
  is_ready, ///< waits for its stream
  runs,     ///< on a worker
  launched, ///< its launch is pending
  is_done,  ///< it has told everybody
};

/// Who waits for whom: each link waits for the next one.
struct wait_chain {
  /// A handle in a step, and how far it is.
  struct link {
    handle_id handle = no_handle;
    std::string name; ///< "conv2d#12@cpu:1"
    step_id step = 0;
    progress how_far = progress::waits;
    std::uint32_t messages = 0;    ///< that have not come yet
    std::uint32_t of_messages = 0; ///< that a step sends
    std::string stream;            ///< that an op runs on
    std::size_t worker = 0;        ///< that runs the op
  };
  std::vector<link> links;
  /// The last link waits although all who tell it have done so: the handle
  /// whose message has not arrived, or the start of the step.
  std::string missing;
};

/// A line per link: "relu#3@cpu:0, step 7: waits for 1 of 2 messages".
std::string to_string(const wait_chain& chain);
/// One of these lines.
std::string to_string(const wait_chain::link& link);

} // namespace troupe::actors
