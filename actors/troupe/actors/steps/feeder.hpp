// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/steps/scatter.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/scope.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe {
class recorder;
} // namespace troupe

namespace troupe::actors {

class graph_tasks;
struct step_state;

/// Brings the feeds of a step to the devices in two phases: copying, which can
/// fail, and moving the copies into place, which cannot. Each device has a
/// stream for its feeds, so that those of the next step arrive while this one
/// computes.
///
/// Thread rule: the executor's thread.
class feeder {
public:
  struct parts {
    const graph::block* declarations = nullptr;
    const needed_feeds* needed = nullptr;
    std::vector<std::shared_ptr<device>> devices;
    placement where;
    scope* parameters = nullptr;
    const graph_tasks* tasks = nullptr;
    recorder* trace = nullptr;
    bool borrows = false; ///< `executor_options::borrow_feeds`
  };

  /// Everything that `p` points to must outlive the feeder.
  explicit feeder(parts p);

  /// Queues copies of each device's share of `feeds` that it does not borrow,
  /// which hold the samples of
  /// this process's devices, for step `id` with state `step`, and sets
  /// `step_state::fed`. The caller may change feeds that were copied as soon
  /// as this returns. Persistable variables have then arrived, because the host
  /// can read them in the scope. Throws error(out_of_memory) naming variable
  /// and device; all copies are then discarded.
  void copy(const feed_map& feeds, step_state& step, step_id id);
  /// Moves the copies to where the step reads them.
  void set() noexcept;
  /// Bytes of all feeds that were copied so far. Any thread.
  std::uint64_t copied_bytes() const noexcept {
    return copied_bytes_.load(std::memory_order_relaxed);
  }
  /// Discards the copies.
  void drop() noexcept { fed_.clear(); }

private:
  /// The copy of a feed for one device, and where the step reads it.
  struct fed_value {
    variable* place;
    tensor value;
  };

  tensor brought_to(std::size_t device, const tensor& value);
  void copy_to(std::size_t device, const std::string& name, const tensor& value,
               const step_state& step, step_id id);
  void note_arrivals(const feed_map& feeds, step_state& step);

  parts parts_;
  std::vector<std::unique_ptr<stream>> queues_; // null: in another process
  std::vector<fed_value> fed_;
  // Relaxed, because it is only a statistic.
  std::atomic<std::uint64_t> copied_bytes_{0};
};

} // namespace troupe::actors
