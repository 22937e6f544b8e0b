// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace troupe {

/// As long as it lives, blocks that the calling thread returns count as used by
/// work of several streams, not only of the stream whose work returns them.
class used_by_several {
public:
  used_by_several() noexcept : before_(std::exchange(now_, true)) {}
  ~used_by_several() { now_ = before_; }
  used_by_several(const used_by_several&) = delete;
  used_by_several& operator=(const used_by_several&) = delete;

  static bool now() noexcept { return now_; }

private:
  static inline constinit thread_local bool now_ = false;
  bool before_;
};

} // namespace troupe
