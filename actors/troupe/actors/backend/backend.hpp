// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/lowering_options.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// Everything that is particular to one kind of device: its devices and their
/// streams, its kernels, which memory they share, and which passes pay there.
/// The executor asks the backends of a program's devices; it names no kind.
///
/// Backends have no state: they live as long as the process, and all calls are
/// allowed from any thread.
class backend {
public:
  virtual ~backend() = default;

  /// The kind of device that it is for.
  virtual device_kind kind() const noexcept = 0;
  /// Throws error(not_found) if the machine has no such device.
  virtual std::unique_ptr<device> make_device(int index) const = 0;
  /// Kernels for this kind, which multiply in numbers of type `factors`. Throws
  /// error(unsupported_op) if the machine cannot do that.
  virtual kernel_table kernels(precision factors) const = 0;
  /// Whether ops of each of its devices may use the memory of the others as it
  /// is, without a copy. Kernels of several may then read a variable at the
  /// same time, just as those of one do.
  virtual bool shares_memory() const noexcept = 0;
  /// What of `wanted` can be done on several of its devices, or one, with
  /// `kernels`: passes that make ops without a kernel are left out.
  virtual graph::lowering_options
  lowering(const graph::lowering_options& wanted,
           const kernel_table& kernels) const = 0;
  /// Takes the memory that its libraries will need with so many threads, or
  /// throws error(out_of_memory): once steps run it is too late to say so.
  virtual void prepare(std::size_t threads) const { (void)threads; }
};

/// Null for a kind that this build has not.
const backend* find_backend(device_kind kind);
/// Throws error(not_found) for a kind that this build has not.
const backend& backend_of(device_kind kind);

/// oneDNN, OpenBLAS and own loops on the machine's cores.
const backend& cpu_backend();
/// Simulated devices: the CPU's kernels, launches that end later
/// (kernels/sim/sim_device.hpp).
const backend& sim_backend();

/// A device per id. Throws error(not_found) for a kind that this build or
/// machine has not, naming it.
std::vector<std::unique_ptr<device>>
make_devices(std::span<const device_id> ids);

/// The kernels of all kinds that occur in `ids` and that this build has. Throws
/// error(unsupported_op) if a machine cannot multiply in `factors`.
kernel_table kernels_for(std::span<const device_id> ids,
                         precision factors = precision::float32);

/// Has all backends of `ids` take what they need for so many threads; see
/// `backend::prepare`.
void prepare_backends(std::span<const device_id> ids, std::size_t threads);

/// Whether all devices share their memory.
bool share_memory(std::span<const device_id> ids);

/// What of `wanted` all devices can do. A kind that this build has not can do
/// the passes that make no ops of their own: such graphs can be looked at.
graph::lowering_options lowering_for(std::span<const device_id> ids,
                                     graph::lowering_options wanted,
                                     const kernel_table& kernels);

} // namespace troupe
