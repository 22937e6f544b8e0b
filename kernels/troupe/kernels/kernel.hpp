// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/part_runner.hpp>
#include <troupe/kernels/variable.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// One argument of an op: variable `var` in slot `slot` ("X", "Filter"). The
/// arguments of a slot with several variables follow each other.
struct op_argument {
  std::string_view slot;
  std::string_view name; ///< the variable's name, for errors
  variable* var;         ///< null: the program names nothing here
};

/// What a kernel may know of the step that it runs in.
struct step_info {
  step_id step = 0;
  std::uint64_t seed = 0;         ///< the run's seed
  std::int64_t first_sample = 0;  ///< of this device's shard in the batch
  std::int64_t shard_samples = 0; ///< n_i, samples on this device
  std::int64_t batch_samples = 0; ///< n, samples on all devices
  std::int64_t device = 0;        ///< this device's number among them
  std::int64_t devices = 1;       ///< how many run the step
  /// Set once the step has failed or is cancelled; null if nobody can stop it.
  const std::atomic<bool>* stop = nullptr;

  /// Whether a kernel that runs for long, such as a loop over a block, must
  /// end: what it computes is no longer wanted. Relaxed, since the reason is
  /// told elsewhere.
  bool stopped() const noexcept {
    return stop && stop->load(std::memory_order_relaxed);
  }
};

/// Everything a kernel works on: arguments, attributes, device, step.
/// Thread rule: one kernel, one thread, and those that run its parts: they may
/// call what is const.
class kernel_context {
public:
  /// @param queue null outside of a stream. All that is given outlives it.
  kernel_context(device& on, stream* queue, const attribute_map& attributes,
                 std::span<const op_argument> inputs,
                 std::span<const op_argument> outputs, const step_info& step)
    : device_(on), stream_(queue), attributes_(attributes), inputs_(inputs),
      outputs_(outputs), step_(step) {}

  /// The device that the kernel runs on.
  device& on() const noexcept { return device_; }
  /// The stream that the kernel must queue its work on; null outside of one.
  stream* queue() const noexcept { return stream_; }
  /// The op's attributes.
  const attribute_map& attributes() const noexcept { return attributes_; }
  /// The step that the kernel runs in.
  const step_info& step() const noexcept { return step_; }

  ///@{
  /// All arguments, in the op's order.
  std::span<const op_argument> inputs() const noexcept { return inputs_; }
  std::span<const op_argument> outputs() const noexcept { return outputs_; }
  ///@}

  ///@{
  /// Whether a slot has an argument that is there.
  bool has_input(std::string_view slot) const noexcept;
  bool has_output(std::string_view slot) const noexcept;
  ///@}
  ///@{
  /// Whether argument `index` of a slot is there: programs name some of a list
  /// `@EMPTY@`.
  bool has_input(std::string_view slot, std::size_t index) const noexcept;
  bool has_output(std::string_view slot, std::size_t index) const noexcept;
  ///@}
  ///@{
  /// Arguments of a slot, absent ones among them included.
  std::size_t num_inputs(std::string_view slot) const noexcept;
  std::size_t num_outputs(std::string_view slot) const noexcept;
  ///@}

  /// Input tensor `index` of `slot`, in plain layout. By value: it stays what
  /// it was when the same variable is then written as an output. Throws
  /// error(kernel_failure), naming slot and variable, if it is missing, holds
  /// no value, or holds selected rows.
  tensor input(std::string_view slot, std::size_t index = 0) const;
  /// The input variable itself, for kernels that take tensors and rows.
  const variable& input_variable(std::string_view slot,
                                 std::size_t index = 0) const;

  /// Makes output `index` of `slot` a plain tensor of `dims` and `type` with
  /// memory of the device and returns it; contents are undefined. A tensor of
  /// the same size and dtype that the variable holds already is written in
  /// place unless other variables share its memory; so an update in place
  /// (ParamOut = Param) costs no memory. It has no levels.
  tensor output(std::string_view slot, const shape& dims, dtype type,
                std::size_t index = 0) const;
  /// The output variable itself, for kernels that make rows or share memory.
  variable& output_variable(std::string_view slot, std::size_t index = 0) const;

  /// Name of the variable that is input `index` of `slot`, for errors.
  std::string_view input_name(std::string_view slot,
                              std::size_t index = 0) const {
    return argument(inputs_, slot, index).name;
  }

  /// Name of the variable that is output `index` of `slot`; random ops derive
  /// their philox stream from it.
  std::string_view output_name(std::string_view slot,
                               std::size_t index = 0) const {
    return argument(outputs_, slot, index).name;
  }

  /// Uninitialised float32 scratch memory, released with the tensor.
  tensor scratch(std::int64_t elements) const;

  /// How many threads may share this kernel's work, its own included: 1 unless
  /// the device owns several workers, or runs an update for all devices, whose
  /// workers then share it. The same in each step, so that work which is cut
  /// accordingly gives the same bits each time.
  std::size_t workers() const noexcept;
  /// Calls `part(i)` once for each i in [0, parts), on this thread and on idle
  /// workers that share the work; as `part_runner::run`.
  void in_parts(std::size_t parts, const part_function& part) const;

private:
  const op_argument& argument(std::span<const op_argument> all,
                              std::string_view slot, std::size_t index) const;

  device& device_;
  stream* stream_;
  const attribute_map& attributes_;
  std::span<const op_argument> inputs_;
  std::span<const op_argument> outputs_;
  const step_info& step_;
};

/// The code of one op of one graph on one device. An instance serves one op
/// handle, which never runs twice at the same time, so what can be decided
/// once (library primitives, scratch sizes) is kept in members and reused as
/// long as shapes stay.
class kernel {
public:
  virtual ~kernel() = default;
  /// Computes all outputs. Throws error on shapes it cannot take; outputs are
  /// then unspecified. Inputs with zero samples give empty or zero outputs.
  virtual void run(kernel_context& ctx) = 0;
};

/// Makes the kernel of one op; may read the attributes once and for all.
using kernel_factory = std::unique_ptr<kernel> (*)(const attribute_map&);
/// The same with something of the user's own at hand.
using kernel_maker =
  std::function<std::unique_ptr<kernel>(const attribute_map&)>;
/// A kernel that keeps nothing between steps.
using kernel_function = void (*)(kernel_context&);

/// op type x device kind -> kernel. A value: built by functions like
/// `kernels_for`, passed to executors, changed by users who add ops.
class kernel_table {
public:
  ///@{
  /// Adds or replaces an entry.
  void add(std::string op_type, device_kind kind, kernel_maker make);
  void add(std::string op_type, device_kind kind, kernel_function function);
  ///@}

  /// Adds or replaces all entries of another table.
  void add(const kernel_table& others);

  /// Whether there is a kernel of that type for devices of `kind`.
  bool has(std::string_view op_type, device_kind kind) const;
  /// The kernel hands sequences on as `lod_sharing.hpp` says. Throws
  /// error(unsupported_op) naming op type and device kind.
  std::unique_ptr<kernel> make(std::string_view op_type, device_kind kind,
                               const attribute_map& attributes) const;
  /// All op types with a kernel for `kind`, sorted.
  std::vector<std::string> op_types(device_kind kind) const;
  /// The same kernels, all for devices of `kind`.
  kernel_table for_kind(device_kind kind) const;

private:
  struct entry {
    kernel_maker make;
    kernel_function run = nullptr;
  };
  std::map<std::pair<std::string, device_kind>, entry, std::less<>> entries_;
};

/// Kernels for `device_kind::cpu`: oneDNN, OpenBLAS and own loops.
kernel_table cpu_kernels();

/// Kernels for `device_kind::cpu` in plain loops and double precision, for any
/// floating dtype (the outputs have the inputs' dtype): what tests measure the
/// others against.
kernel_table reference_kernels();

} // namespace troupe
