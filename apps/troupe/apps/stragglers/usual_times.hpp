// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/tracing/usual_time.hpp>
#include <troupe/apps/stragglers/op_digest.hpp>

#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::apps {

/// How long ops usually take: here, and on the rank that is the fastest.
///
/// Thread rule: any thread.
class usual_times {
public:
  /// What this rank's ops took in the last window.
  void set_own(const op_digest& window);
  /// What they took on the ranks that were the fastest.
  void set_fastest(const std::vector<fastest_rank>& all);
  /// Zeros for what is not known.
  usual_time of(const op_key& op) const;

private:
  mutable std::mutex mutex_; // guards the map
  std::map<op_key, usual_time> times_;
};

} // namespace troupe::apps
