// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/outside_op.hpp>
#include <troupe/actors/placement.hpp>
#include <troupe/actors/tasks/batch_exchange.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/actors/tasks/op_tasks.hpp>
#include <troupe/actors/tasks/output_check.hpp>
#include <troupe/actors/tasks/task_memory.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/part_runner.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors {

class transport;

/// The storages of a graph's variables and the tasks of its ops, independent of
/// what runs the ops.
///
/// Thread rule: one thread; tasks run as described in `op_task`.
class graph_tasks {
public:
  /// Everything in it must outlive the tasks.
  struct parts {
    const graph::program* program; ///< exposed (graph/sub_blocks.hpp)
    const graph::ssa_graph* graph;
    std::span<const std::shared_ptr<device>> devices;
    scope* parameters;
    const kernel_table* kernels;
    std::size_t slots = 1; ///< number of step slots
    /// Runs parts of large collectives and of updates for all devices; null:
    /// they are not divided.
    part_runner* helpers = nullptr;
    std::size_t workers = 1; ///< number of helpers plus the op's own worker
    bool check_nan = false;
    /// Tasks are made for devices that are here.
    placement where = {};
    /// The ends of the graph's transfers, if it has any.
    transport* transfers = nullptr;
    /// Memory for values that collectives merge, if ranks are in several
    /// processes; null: that of the device.
    arena* merged_values = nullptr;
    /// The expected order of ops; values are laid out in the order in which
    /// they are made. Empty: program order.
    std::span<const handle_id> order = {};
    /// `executor_options::outside_ops`; null: there are none
    const std::map<std::string, std::shared_ptr<outside_op>, std::less<>>*
      outside_ops = nullptr;
  };

  explicit graph_tasks(const parts& p);

  /// Makes the task of an op that runs on stream `on`. It lives as long as this
  /// object. Throws error(unsupported_op) naming an op type without a kernel.
  op_task& make_task(const graph::op_handle& op, stream& on);
  /// A task for runs without kernels: it does nothing, or calls `call`, which
  /// outlives this object, if that is not null.
  op_task& make_empty_task(const graph::op_handle& op,
                           const std::function<void(handle_id)>& call);

  /// Must not be called after `forget_storages`.
  storage& storage_of(handle_id var);
  /// A fed variable on one device.
  struct fed_variable {
    handle_id handle; ///< version 0 of the variable
    storage value;
  };
  /// Null if the graph has no such feed.
  const fed_variable* find_fed(std::string_view name, std::size_t device) const;
  storage_places& places() noexcept { return *places_; }

  /// Null if no collective has a handle per device. If devices are in other
  /// processes, the caller joins the group before the first step.
  collective_ranks* ranks() const noexcept { return ranks_.get(); }

  /// A fetch task's variable and device; index: position in
  /// step_state::fetched.
  struct fetch_entry {
    std::string name;
    std::size_t device;
    handle_id op;
  };
  const std::vector<fetch_entry>& fetches() const noexcept { return fetches_; }

  /// By storage of the graph: its number in `places`; `no_temporary` for a
  /// persistable variable or one in another process. Valid until
  /// `forget_storages`.
  const std::vector<std::uint32_t>& temporary_of_storage() const noexcept {
    return temporary_of_;
  }
  static constexpr std::uint32_t no_temporary = UINT32_MAX;

  /// Frees data that is needed only to make tasks; tasks have copies.
  void forget_storages() {
    std::vector<storage>{}.swap(storages_);
    std::vector<std::uint32_t>{}.swap(temporary_of_);
  }

private:
  std::uint32_t number_temporaries();
  std::vector<task_argument> bind_inputs(const graph::op_handle& op);
  std::vector<task_argument> bind(const std::vector<op_slot>& slots,
                                  std::span<const handle_id> handles);
  std::unique_ptr<op_task> make(const graph::op_handle& op, stream& on);
  std::unique_ptr<op_task> make_kernel_task(const graph::op_handle& op,
                                            stream& on);
  /// Null unless the op is computed outside of the graph.
  std::unique_ptr<op_task> make_outside(const graph::op_handle& op, stream& on);
  void find_updates_for_all();
  bool updates_for_all(const graph::op_handle& op) const;
  stream& wide_stream(std::size_t device);
  const task_place& place_of(const graph::op_handle& o, stream& on);
  std::unique_ptr<op_task> make_fetch(const graph::op_handle& op, stream& on);
  std::unique_ptr<op_task> make_group_task(const graph::op_handle& op);
  std::unique_ptr<op_task> make_joint_task(const graph::op_handle& op);
  std::unique_ptr<op_task> make_task_of_rank(const graph::op_handle& op);
  std::vector<storage> storages_of(std::span<const handle_id> vars);
  std::vector<device*> all_devices() const;
  comm::local_group_options group_options() const {
    return {parts_.helpers, parts_.workers};
  }
  std::unique_ptr<op_task> make_transfer_task(const graph::op_handle& op);
  exchange_place exchange_on(std::size_t device);
  bool is_here(std::size_t device) const {
    return parts_.where.is_here(device);
  }
  bool is_temporary_here(const graph::var_handle& v) const;
  std::vector<bool> merged_storages() const;
  void make_ranks();

  parts parts_;
  const graph::ssa_graph& graph_;
  output_check outputs_;
  arena host_memory_;
  task_memory task_memory_;
  std::map<std::pair<const stream*, std::size_t>, task_place> places_of_tasks_;
  std::unique_ptr<storage_places> places_;
  // placeholder for all values of devices in other processes
  variable elsewhere_;
  std::vector<storage> storages_;           // by var_handle::storage
  std::vector<std::uint32_t> temporary_of_; // by var_handle::storage
  std::map<std::pair<std::string_view, std::size_t>, fed_variable> fed_;
  std::vector<fetch_entry> fetches_;
  std::vector<std::unique_ptr<op_task>> tasks_;
  std::unique_ptr<collective_ranks> ranks_;
  // Ops that one CPU device runs for all devices, sorted. While the other
  // devices wait for the result, their workers share the work. These ops use
  // additional wide streams of the devices, which are made on demand.
  std::vector<const graph::op_desc*> updates_for_all_;
  std::vector<std::unique_ptr<stream>> wide_streams_;
};

} // namespace troupe::actors
