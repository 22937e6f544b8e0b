// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/pretend_capture.hpp>
#include <kernels/cuda/pretend_driver.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::test {

// What the queues of a pretend driver hold. The driver's lock guards all of it.

struct pretend_queue;

/// How much of each queue, by number, comes before a point.
using past = std::map<std::uint64_t, std::uint64_t>;

/// A recorded event.
struct mark {
  bool comes_after(const mark& other) const;
  pretend_queue* of = nullptr; ///< where it was recorded; exists until reached
  past before = {};
  std::uint64_t reached = 0; ///< how many were reached before it, and it
  std::shared_ptr<pretend_capture> recorded_in = {}; ///< null: it is not
  pretend_capture::frontier frontier = {};           ///< there
};
using shared_mark = std::shared_ptr<mark>;

/// See `pretend_driver::meet`.
struct pretend_driver::meeting {
  bool can_begin() const;
  /// True if a queue that has come to it waits until somebody ends it.
  bool hangs() const;

  std::vector<pretend_queue*> of;
  joint_work work;
  mishap goes_wrong = mishap::none;
  bool begun = false;
  bool ended = false; ///< nothing runs any more
};
using shared_meeting = pretend_driver::shared_meeting;

struct entry {
  std::function<void()> run = {}; ///< a kernel or a copy
  shared_meeting meets = {};      ///< work of several queues
  shared_mark reaches = {};       ///< an event is recorded here
  shared_mark waits = {};         ///< an event to wait for
  std::unique_ptr<pretend_launch> graph = {};
  bool fails = false;

  bool can_run() const {
    if (meets)
      return meets->begun || meets->ended || meets->can_begin();
    return !waits || waits->reached > 0;
  }
};

struct pretend_graph final : cuda::gpu_graph {
  std::shared_ptr<const captured_work> work;
};

struct pretend_event final : cuda::gpu_event {
  shared_mark recorded; // null: never
};

struct pretend_queue final : cuda::gpu_queue {
  using leaver = std::function<void(pretend_queue&)>;

  pretend_queue(leaver leaves, int on_gpu, std::uint64_t made,
                std::uint64_t goes_ahead)
    : leave(std::move(leaves)), gpu(on_gpu), number(made), haste(goes_ahead) {}
  ~pretend_queue() override { leave(*this); }

  void* handle() noexcept override { return this; }
  bool can_run() const { return !entries.empty() && entries.front().can_run(); }
  bool has_come_to(const pretend_driver::meeting& m) const {
    return !entries.empty() && entries.front().meets.get() == &m;
  }
  /// True if the mark is reached before what is queued next runs.
  bool comes_after(const mark& m) const;
  void come_after(const past& other) {
    for (auto& [queue, queued] : other)
      before[queue] = std::max(before[queue], queued);
  }

  const leaver leave;
  const int gpu;
  const std::uint64_t number;
  std::deque<entry> entries;
  past before;                    ///< of what is queued next
  std::vector<shared_mark> asked; ///< waits of what is queued next
  /// Runs on with this probability, in eighths, although nobody waits.
  std::uint64_t haste;
};

/// True if the mark is reached before a point with this past.
inline bool includes(const past& before, const mark& m) {
  const auto found = before.find(m.of->number);
  return found != before.end() && found->second >= m.before.at(m.of->number);
}

inline bool mark::comes_after(const mark& other) const {
  return includes(before, other);
}

inline bool pretend_queue::comes_after(const mark& m) const {
  return includes(before, m);
}

inline bool pretend_driver::meeting::hangs() const {
  return !ended && goes_wrong != mishap::none;
}

inline bool pretend_driver::meeting::can_begin() const {
  return !hangs() && std::ranges::all_of(of, [this](const auto* q) {
    return q->has_come_to(*this);
  });
}

} // namespace troupe::test
