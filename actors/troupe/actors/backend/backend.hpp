// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/graph/lowering_options.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

/// Everything specific to one kind of device: how devices and their streams are
/// made, the kernels, which memory the devices share, how they merge values,
/// and which passes pay off there. The executor works through this interface
/// only and never tests the kind itself.
///
/// Backends are stateless and live as long as the process. Thread rule: any
/// thread.
class backend {
public:
  virtual ~backend() = default;

  /// The kind of device that this backend supports.
  virtual device_kind kind() const noexcept = 0;
  /// Throws error(not_found) if the machine has no such device.
  virtual std::unique_ptr<device>
  make_device(int index, const device_options& options = {}) const = 0;
  /// Kernels for this kind. Throws error(unsupported_op) if the machine lacks
  /// the precision.
  virtual kernel_table kernels(const kernel_options& options) const = 0;
  /// True if the devices can access each other's memory directly, without a
  /// copy. Kernels on different devices can then read a variable at the same
  /// time, as kernels on one device can.
  virtual bool shares_memory() const noexcept = 0;
  /// Connects devices of this kind for collectives; result i is the end of rank
  /// i. By default `comm::make_local_group` does, which merges on the CPU: a
  /// kind whose memory the CPU cannot read and write needs its own.
  /// @param merging threads of the process that may help
  virtual std::vector<std::unique_ptr<comm::communicator>>
  make_group(std::span<device* const> ranks,
             const comm::local_group_options& merging) const;
  /// Returns `wanted` without the options that this kind does not support.
  /// Passes that make ops for which `kernels` has no kernel are turned off.
  virtual graph::lowering_options
  lowering(const graph::lowering_options& wanted,
           const kernel_table& kernels) const = 0;
  /// Runs the backend's own passes over a program, before a graph is made of it
  /// with the options `possible`. Devices of other kinds may run the result
  /// too, so passes only add what other kernels ignore. By default there are
  /// none.
  virtual std::shared_ptr<const graph::program>
  lowered(std::shared_ptr<const graph::program> p,
          const graph::lowering_options& possible) const {
    (void)possible;
    return p;
  }
  /// The layout of this name that the kernels use for tensors of a shape; null
  /// if there is none.
  virtual std::shared_ptr<const layout> find_layout(std::string_view name,
                                                    const shape& dims) const {
    (void)name;
    (void)dims;
    return nullptr;
  }
  /// Allocates the memory that the backend's libraries need with that many
  /// threads. Throws error(out_of_memory). Called before the first step,
  /// because the libraries cannot report a failure later.
  virtual void prepare(std::size_t threads) const { (void)threads; }
};

/// The backend for `kind`; null if this build does not include it. Whether the
/// machine has such devices shows only when one is made.
const backend* find_backend(device_kind kind);
/// The backend for `kind`. Throws error(not_found) if this build does not
/// include it.
const backend& backend_of(device_kind kind);

/// The CPU backend: oneDNN, OpenBLAS and Troupe's own loops.
const backend& cpu_backend();
/// The backend of simulated devices: CPU kernels whose launches complete
/// asynchronously (kernels/sim/sim_device.hpp).
const backend& sim_backend();
/// The backend of NVIDIA's GPUs (kernels/cuda). Its devices need the module
/// troupe_cuda, a driver and a GPU; all else works without.
const backend& cuda_backend();

/// Makes one device per id. Throws error(not_found) naming the device if this
/// build or this machine does not have it.
std::vector<std::shared_ptr<device>>
make_devices(std::span<const device_id> ids,
             const device_options& options = {});

/// The kernels of all kinds in `ids` that this build includes. Throws
/// error(unsupported_op) if the machine lacks the precision.
kernel_table kernels_for(std::span<const device_id> ids,
                         const kernel_options& options = {});

/// Calls `backend::prepare(threads)` for each kind in `ids`.
void prepare_backends(std::span<const device_id> ids, std::size_t threads);

/// What `backend::find_layout` of the first kind in `ids` that has one returns.
std::shared_ptr<const layout> find_layout(std::span<const device_id> ids,
                                          std::string_view name,
                                          const shape& dims);

/// True if all devices are of one kind and share their memory.
bool share_memory(std::span<const device_id> ids);

/// True if the collectives of these devices have a handle per device, because
/// values that the host cannot read are merged by work on the devices' streams.
/// Throws error(invalid_argument) if there is such a kind among several kinds.
bool merges_by_rank(std::span<const device_id> ids);

/// Connects devices for collectives: by their backend if all are of one kind,
/// otherwise by `comm::make_local_group`. See `backend::make_group`.
std::vector<std::unique_ptr<comm::communicator>>
make_group(std::span<device* const> ranks,
           const comm::local_group_options& merging = {});

/// Returns `wanted` without the options that some device does not support. A
/// kind that this build does not include supports only passes that make no new
/// op types. Its graphs can be inspected but not run.
graph::lowering_options lowering_for(std::span<const device_id> ids,
                                     graph::lowering_options wanted,
                                     const kernel_table& kernels);

/// Runs the passes of all backends in `ids` that this build includes; see
/// `backend::lowered`. `possible` is what `lowering_for` returns.
std::shared_ptr<const graph::program>
lowered_for(std::span<const device_id> ids,
            std::shared_ptr<const graph::program> p,
            const graph::lowering_options& possible);

} // namespace troupe
