// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::trace {

// The layout of a .trt file; docs/trace.md describes it. All numbers are
// little-endian.

/// Grows when a reader of the old version would misread a file. New kinds of
/// blocks do not count: readers skip what they do not know.
/// 1: the first one. 2: events of parcels. 3: events of waits for cores.
inline constexpr std::uint32_t format_version = 3;

/// The first bytes of a file. Like PNG's, they show whether a transfer as text
/// has damaged it.
inline constexpr std::array<char, 8> file_magic{'\x89', 'T',  'R',    'T',
                                                '\r',   '\n', '\x1a', '\n'};

struct file_head {
  std::array<char, 8> magic = file_magic;
  std::uint32_t version = format_version;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(file_head) == 16);

enum class block_kind : std::uint32_t {
  run = 1,    ///< `run_info`, as JSON
  graph = 2,  ///< `graph_info`, as JSON
  phases = 3, ///< phases, as JSON; a later block adds to earlier ones
  events = 4, ///< events_head, then events (event_codec.hpp)
  end = 5,    ///< empty: the file was closed
  stacks = 6, ///< call stacks of workers, as JSON
  actors = 7, ///< what is new of the application's actors, as JSON
  /// As `events`, of kinds that are of actors. Readers of old versions skip it.
  actor_events = 8,
};

struct block_head {
  block_kind kind{};
  std::uint32_t bytes = 0;    ///< of the payload, which follows
  std::uint64_t checksum = 0; ///< of the payload (base/fingerprint.hpp)
};
static_assert(sizeof(block_head) == 16);

/// No block is longer.
inline constexpr std::size_t most_block_bytes = std::size_t{256} << 20;

/// At the beginning of a block of events. Two readings of both clocks, around
/// the events, turn ticks into nanoseconds.
struct events_head {
  std::uint64_t count = 0;
  std::uint64_t lost = 0; ///< before this block, since the last one
  std::uint64_t first_ticks = 0;
  std::uint64_t last_ticks = 0;
  std::int64_t first_ns = 0; ///< since the begin of the trace
  std::int64_t last_ns = 0;
};
static_assert(sizeof(events_head) == 48);

/// A block with head and checksum, to be written at once.
std::string make_block(block_kind kind, std::string_view payload);

} // namespace troupe::trace
