// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/trace/trace.hpp>
#include <troupe/trace/trace_format.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace troupe::trace {

/// A reading of two clocks at one moment: ticks (base/spin.hpp), and
/// nanoseconds.
struct clock_reading {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0; ///< see now_ns
  static clock_reading now() noexcept;
};

/// Throws error(io_failure) with the path if `trace_writer` cannot replace it,
/// as far as that can be told without writing: if it is a folder, a disk, a
/// socket or a device that takes nothing (/dev/full), if its folder is missing,
/// or if this user may not write there. Changes nothing. A pipe is not opened.
void require_trace_place(const std::filesystem::path& path);

/// Writes a .trt file (docs/trace.md). Each block is written by one call to the
/// system, so a process that is killed leaves whole blocks, and at most one
/// that is cut.
///
/// Thread rule: one thread at a time.
class trace_writer {
public:
  /// What happens to a file of that name.
  enum class existing {
    replaced,
    refused, ///< the constructor throws; also if the name is a link
  };
  /// Creates the file. Throws error(io_failure) with the path; as
  /// `require_trace_place` does, if a file is to be replaced.
  explicit trace_writer(const std::filesystem::path& path,
                        existing file = existing::replaced);

  void write(const run_info& run);
  void write(const graph_info& graph);
  void write(std::span<const phase> phases);
  void write(std::span<const worker_stack> stacks);
  /// What is new of the application's actors; before events that name them.
  /// Writes nothing if that is nothing.
  /// @param begin_ns the begin of the trace by now_ns
  void write(const actor_table::changes& found, std::uint64_t begin_ns);
  /// Writes events with times in ticks.
  /// @param lost events that were overwritten since the last call
  /// @param first,last readings of the clocks at the beginning of the trace and
  ///   now, or closer to the events
  /// @param begin_ns the begin of the trace by now_ns
  void write(std::span<const trace_event> events, std::uint64_t lost,
             const clock_reading& first, const clock_reading& last,
             std::uint64_t begin_ns);
  /// Marks the file as complete.
  void close();

  std::uint64_t bytes() const noexcept { return bytes_; }
  const std::filesystem::path& path() const noexcept { return path_; }

private:
  void put(std::string_view block);
  void put_events(block_kind kind, std::span<const trace_event> events,
                  const events_head& like);

  std::filesystem::path path_;
  descriptor file_;
  std::uint64_t bytes_ = 0;
  std::string payload_; // kept to reuse its memory
};

} // namespace troupe::trace
