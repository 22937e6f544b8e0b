// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/trace_event.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace troupe {

std::string_view to_string(event_kind kind) noexcept {
  static constexpr std::array<std::string_view, event_kinds> names{
    "step_begin",     "step_end",     "feed",           "fetch",
    "failure",        "run_begin",    "run_end",        "completion",
    "hand_over",      "help_begin",   "help_end",       "arrival",
    "merge_begin",    "merge_end",    "allocation",     "deallocation",
    "message",        "parcel_sent",  "parcel_arrived", "mail",
    "handling_begin", "handling_end", "core_wait"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

constexpr std::array<std::string_view, 4> level_names{"off", "steps", "ops",
                                                      "messages"};

} // namespace

std::string_view to_string(trace_level level) noexcept {
  return level_names[static_cast<std::size_t>(level)];
}

trace_level parse_trace_level(std::string_view text) {
  const auto found = std::ranges::find(level_names, text);
  if (found == level_names.end())
    throw error(errc::invalid_argument,
                "'" + std::string{text}
                  + "' is no level of a trace (off, steps, ops, messages)");
  return static_cast<trace_level>(found - level_names.begin());
}

} // namespace troupe
