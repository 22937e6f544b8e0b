// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/recorder.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::trace {

// An event takes some eight bytes instead of 32: most fields differ little from
// those of the event before. Each event is a byte of kind and flags, then
// numbers of seven bits per byte: the time since the event before (signed); the
// sender, as a difference (signed); and, if their flags are set, the receiver,
// as a difference to the sender (signed), the step, as a difference (signed),
// the worker plus one, and the amount.

/// Appends the events to `out`. Their times are in ticks.
void encode_events(std::span<const trace_event> events,
                   std::uint64_t first_ticks, std::string& out);

/// Appends `count` events to `into`. Throws error(bad_file) if the bytes are
/// not `count` events.
void decode_events(std::string_view bytes, std::size_t count,
                   std::uint64_t first_ticks, std::vector<trace_event>& into);

} // namespace troupe::trace
