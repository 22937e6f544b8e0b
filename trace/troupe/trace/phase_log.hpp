// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/clock.hpp>
#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::trace {

/// Measures the phases of a start, one after the other. Thread rule: one thread
/// at a time.
class phase_log {
public:
  /// Ends the phase that is measured, and begins another one.
  void begin(std::string name) {
    end();
    measured_.push_back({std::move(name), now_ns(), 0});
  }
  /// Ends the phase that is measured, if there is one.
  void end() {
    if (!measured_.empty() && measured_.back().end == 0)
      measured_.back().end = now_ns();
  }
  /// Adds a phase that others have measured, by now_ns.
  void add(std::string name, std::uint64_t begin_ns, std::uint64_t end_ns) {
    measured_.push_back({std::move(name), begin_ns, end_ns});
  }
  /// Adds the phases of another log.
  void append(const phase_log& more) {
    measured_.insert(measured_.end(), more.measured_.begin(),
                     more.measured_.end());
  }
  /// The phases that have ended, with times since `begin_ns`, by now_ns.
  std::vector<phase> since(std::uint64_t begin_ns) const {
    std::vector<phase> phases;
    for (auto& m : measured_)
      if (m.end != 0)
        phases.push_back({m.name, static_cast<std::int64_t>(m.begin - begin_ns),
                          static_cast<std::int64_t>(m.end - begin_ns)});
    return phases;
  }

private:
  struct measured_phase {
    std::string name;
    std::uint64_t begin, end; ///< by now_ns; 0: it has not ended
  };
  std::vector<measured_phase> measured_;
};

} // namespace troupe::trace
