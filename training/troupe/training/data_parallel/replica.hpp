// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/training/data_parallel/module_programs.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// What a replica has computed, and what its backward pass reads.
struct replica_pass {
  std::vector<tensor> outputs; ///< plain, in host memory
  std::vector<variable> kept;  ///< by `module_programs::kept`
};

struct replica_gradients {
  std::vector<tensor> inputs;       ///< by input; without memory: none
  std::vector<variable> parameters; ///< by `module_programs::gradients`
};

/// What the gradient of a backward pass has computed.
struct replica_second_gradients {
  /// By output and by input; without memory: none.
  std::vector<tensor> outputs, inputs;
  std::vector<variable> parameters; ///< by `second_programs::gradients`
};

/// A module's copy on one device: its values there, and the executors of its
/// programs, which are made when they are first needed.
///
/// Thread rule: one thread at a time.
class replica {
public:
  /// @param options devices, actor system, kernels and seed; the rest is set
  ///   here
  replica(std::shared_ptr<const module_programs> programs,
          executor_options options);

  /// Where parameters and buffers are put before a pass, and buffers are found
  /// after it.
  scope& values() noexcept { return *values_; }

  ///@{
  /// Throws the error of the step, or of a program that cannot run. Values of
  /// earlier passes stay as they are.
  /// @param inputs by input, on the device
  replica_pass forward(const std::vector<tensor>& inputs);
  std::vector<tensor> evaluate(const std::vector<tensor>& inputs);
  /// @param output_gradients by output, on the device; without memory: zero
  replica_gradients backward(const replica_pass& of,
                             const std::vector<tensor>& output_gradients);
  /// @param output_gradients what `backward` was given
  /// @param again by input, on the device: the gradient of what `backward` has
  ///   returned; without memory: zero
  replica_second_gradients
  second(const std::shared_ptr<const second_programs>& programs,
         const replica_pass& of, const std::vector<tensor>& inputs,
         const std::vector<tensor>& output_gradients,
         const std::vector<tensor>& again);
  ///@}
  /// On the device.
  tensor zeros_like(const tensor& value);

private:
  void run(std::optional<executor>& exe,
           const module_programs::program_ptr& program);
  void give(const std::vector<std::string>& names,
            const std::vector<tensor>& values);
  void give_gradients(const std::vector<std::string>& names,
                      const std::vector<tensor>& values,
                      const std::vector<tensor>& like);
  void restore(const replica_pass& of);
  std::vector<tensor> found(const std::vector<std::string>& names);
  std::vector<tensor> outputs();
  void forget();

  std::shared_ptr<const module_programs> programs_;
  executor_options options_;
  std::shared_ptr<scope> values_ = std::make_shared<scope>();
  arena host_{make_host_memory_source()};
  std::optional<executor> forward_, evaluation_, backward_, second_;
};

} // namespace troupe
