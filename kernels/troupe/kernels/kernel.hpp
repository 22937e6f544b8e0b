// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/op_arguments.hpp>
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

/// What a kernel can know about the current step. A *replica* computes one
/// shard of the batch. Each device is a replica so far.
///
/// In a run over several processes, `first_sample` and `batch_samples` are
/// known to forward ops whose schema has `uses_batch` or that have none, and to
/// ops that come after these or after the loss scale.
struct step_info {
  /// Number of the step; in a run that continues another one, counted from the
  /// first step of that.
  step_id step = 0;
  std::uint64_t seed = 0;         ///< the run's seed
  std::int64_t first_sample = 0;  ///< first sample of this replica's shard
  std::int64_t shard_samples = 0; ///< n_i, samples of this replica
  std::int64_t batch_samples = 0; ///< n, samples of all replicas
  std::int64_t replica = 0;       ///< this replica's number
  std::int64_t replicas = 1;      ///< number of replicas
  ///@{
  /// Whether the step is the first, and the last, of those whose gradients one
  /// update of the parameters adds up. Usually each step updates them.
  bool begins_update = true;
  bool ends_update = true;
  ///@}
  /// Becomes true when the step fails or is cancelled. Null: the step cannot be
  /// stopped.
  const std::atomic<bool>* stop = nullptr;

  /// True if the kernel's result is no longer needed. A long-running kernel,
  /// such as a loop over a block, must then return. The load is relaxed because
  /// no other data depends on it.
  bool stopped() const noexcept {
    return stop && stop->load(std::memory_order_relaxed);
  }
};

/// Everything a kernel works on: arguments, attributes, device, step. Thread
/// rule: the kernel's thread. Threads that run parts of the kernel may call
/// const functions.
class kernel_context {
public:
  /// @param queue null outside a stream. All arguments must outlive the
  /// context.
  kernel_context(device& on, stream* queue, const attribute_map& attributes,
                 const op_arguments& inputs, const op_arguments& outputs,
                 const step_info& step)
    : device_(on), stream_(queue), attributes_(attributes), inputs_(inputs),
      outputs_(outputs), step_(step) {}

  /// The device that the kernel runs on.
  device& on() const noexcept { return device_; }
  /// The stream on which the kernel must queue its work; null outside a stream.
  stream* queue() const noexcept { return stream_; }
  /// The op's attributes.
  const attribute_map& attributes() const noexcept { return attributes_; }
  /// The step that the kernel runs in.
  const step_info& step() const noexcept { return step_; }

  ///@{
  /// All arguments, in the op's order.
  const op_arguments& inputs() const noexcept { return inputs_; }
  const op_arguments& outputs() const noexcept { return outputs_; }
  ///@}

  ///@{
  /// True if a slot has an argument that is present.
  bool has_input(std::string_view slot) const noexcept;
  bool has_output(std::string_view slot) const noexcept;
  ///@}
  ///@{
  /// True if argument `index` of a slot is present. Programs mark absent
  /// arguments in a list by the name `@EMPTY@`.
  bool has_input(std::string_view slot, std::size_t index) const noexcept;
  bool has_output(std::string_view slot, std::size_t index) const noexcept;
  ///@}
  ///@{
  /// Number of arguments of a slot, including absent ones.
  std::size_t num_inputs(std::string_view slot) const noexcept;
  std::size_t num_outputs(std::string_view slot) const noexcept;
  ///@}

  /// Input tensor `index` of `slot`, in plain layout. Returned by value, so it
  /// does not change when the same variable is later written as an output.
  /// Throws error(kernel_failure), naming slot and variable, if the argument is
  /// missing, has no value, or holds selected rows.
  tensor input(std::string_view slot, std::size_t index = 0) const;
  /// The input variable itself, for kernels that accept both tensors and
  /// selected rows.
  const variable& input_variable(std::string_view slot,
                                 std::size_t index = 0) const;

  /// Makes output `index` of `slot` a plain tensor of `dims` and `type` in
  /// device memory and returns it. Its contents are undefined and it has no
  /// levels. If the variable already holds a tensor of the same size and dtype,
  /// its memory is reused, unless other variables share it. An in-place update
  /// (ParamOut = Param) therefore needs no extra memory.
  tensor output(std::string_view slot, const shape& dims, dtype type,
                std::size_t index = 0) const;
  /// The output variable itself, for kernels that output selected rows or share
  /// memory.
  variable& output_variable(std::string_view slot, std::size_t index = 0) const;

  /// Name of the variable that is input `index` of `slot`, for errors.
  std::string_view input_name(std::string_view slot,
                              std::size_t index = 0) const;

  /// Name of the variable that is output `index` of `slot`. Random ops derive
  /// their philox stream from it.
  std::string_view output_name(std::string_view slot,
                               std::size_t index = 0) const;

  /// Uninitialised float32 scratch memory, released with the tensor.
  tensor scratch(std::int64_t elements) const;

  /// Number of threads that can share this kernel's work, including its own. It
  /// is 1 unless the device owns several workers, or runs an update for all
  /// devices with the help of their workers. It is the same in every step, so
  /// work that is divided by it gives bit-identical results.
  std::size_t workers() const noexcept;
  /// Calls `part(i)` once for each i in [0, parts), on this thread and on idle
  /// workers. See `part_runner::run`.
  void in_parts(std::size_t parts, const part_function& part) const;

private:
  device& device_;
  stream* stream_;
  const attribute_map& attributes_;
  op_arguments inputs_;
  op_arguments outputs_;
  const step_info& step_;
};

/// The code of one op of one graph on one device. An instance serves one op
/// handle, and a handle never runs concurrently with itself. Kernels can
/// therefore keep library primitives and scratch sizes in members and reuse
/// them while shapes stay the same.
class kernel {
public:
  virtual ~kernel() = default;
  /// Computes all outputs. Throws `error` for unsupported shapes; outputs are
  /// then unspecified. Inputs with zero samples give empty or zero outputs.
  virtual void run(kernel_context& ctx) = 0;
};

/// Makes the kernel of one op. It can read the attributes once, here.
using kernel_factory = std::unique_ptr<kernel> (*)(const attribute_map&);
/// A factory that can capture the user's own state.
using kernel_maker =
  std::function<std::unique_ptr<kernel>(const attribute_map&)>;
/// A kernel without state.
using kernel_function = void (*)(kernel_context&);

/// Maps op type and device kind to a kernel. A value type: functions like
/// `kernels_for` build it, users can add ops to it, and executors take it.
class kernel_table {
public:
  ///@{
  /// Adds or replaces an entry.
  void add(std::string op_type, device_kind kind, kernel_maker make);
  void add(std::string op_type, device_kind kind, kernel_function function);
  ///@}

  /// Adds or replaces all entries of another table, and its dtype rules.
  void add(const kernel_table& others);

  /// Says whether a kernel takes values of a dtype in a slot of an op. Kernels
  /// check their arguments themselves; with a rule, a program is refused before
  /// its first step. True for ops that the rule does not know.
  using dtype_rule = bool (*)(std::string_view op_type, std::string_view slot,
                              dtype type);
  /// The rule for all kernels of a kind; without one, all dtypes are taken.
  void set_dtype_rule(device_kind kind, dtype_rule rule);
  /// What the rule of a kind says of a slot; true without a rule.
  bool takes(std::string_view op_type, device_kind kind, std::string_view slot,
             dtype type) const;

  /// True if there is a kernel of that type for devices of `kind`.
  bool has(std::string_view op_type, device_kind kind) const;
  /// Makes a kernel. Run it by `run_kernel` (lod_sharing.hpp), which passes the
  /// levels of sequences on from inputs to outputs. Throws
  /// error(unsupported_op) naming op type and device kind.
  std::unique_ptr<kernel> make(std::string_view op_type, device_kind kind,
                               const attribute_map& attributes) const;
  /// All op types with a kernel for `kind`, sorted.
  std::vector<std::string> op_types(device_kind kind) const;
  /// A copy of the table with all kernels registered for `kind`.
  kernel_table for_kind(device_kind kind) const;

private:
  struct entry {
    kernel_maker make;
    kernel_function run = nullptr;
  };
  std::map<std::pair<std::string, device_kind>, entry, std::less<>> entries_;
  std::map<device_kind, dtype_rule> rules_;
};

/// Kernels for `device_kind::cpu`: oneDNN, OpenBLAS and Troupe's own loops.
kernel_table cpu_kernels();

/// Reference kernels for `device_kind::cpu`: plain loops in double precision,
/// for any floating dtype. Outputs have the dtype of the inputs. Tests compare
/// the other kernels against them.
kernel_table reference_kernels();

} // namespace troupe
