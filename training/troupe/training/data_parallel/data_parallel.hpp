// SPDX-License-Identifier: Apache-2.0
#pragma once

// PyTorch's DataParallel for a network of Troupe: docs/data_parallel.md.

#include <troupe/actors/executor.hpp>
#include <troupe/training/data_parallel/functions.hpp>
#include <troupe/training/data_parallel/graph_module.hpp>
#include <troupe/training/data_parallel/leaves.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe {

namespace parallel {

/// An argument of a module that each replica gets whole. Its gradient is the
/// sum over the replicas.
struct whole {
  tensor value;
};

} // namespace parallel

/// An argument of a module: a tensor that is cut, one that is not, or a number,
/// which each replica gets as a tensor of one element.
struct module_argument {
  tensor value = {};
  bool is_whole = false;
  std::optional<double> number = std::nullopt;
};

/// How modules run on several devices.
struct data_parallel_options {
  std::size_t axis = 0; ///< of samples, in inputs and outputs
  /// Of dropout and other random ops. Replica i uses seed + i.
  std::uint64_t seed = 0;
  int threads = 0; ///< as in `executor_options`
  /// As in `executor_options`: runs the actors; null: one of its own.
  caf::actor_system* system = nullptr;
  /// As in `executor_options`.
  std::shared_ptr<const kernel_table> kernels = {};
};

/// Runs a module on several devices: cuts a batch, copies the module to each
/// device, runs the copies at the same time, an actor each, and joins what they
/// return. The gradients of all copies are added up, not averaged, into the
/// module. `torch.nn.DataParallel`.
///
/// A batch of b samples on n devices is cut by the rule of `torch.chunk`, which
/// is not that of an executor: into chunks of ceil(b / n) samples, the last one
/// smaller. Fewer than n replicas may run.
///
/// Each forward pass copies parameters and buffers from the module. Of the
/// buffers, those of replica 0 are kept: the statistics of a batch norm are
/// those of its chunk. If a pass fails, the module is unchanged.
///
/// Thread rule: one thread at a time, and not a handler of an actor in
/// `data_parallel_options::system`. A call during another one throws
/// error(invalid_argument). The module is used by nobody else meanwhile.
class data_parallel {
public:
  /// Throws error(not_found | invalid_argument) for devices as `device_group`
  /// does.
  /// @param output one of the devices, on which results lie; nothing: they are
  ///   in host memory
  data_parallel(std::shared_ptr<graph_module> what,
                const std::vector<device_id>& devices,
                std::optional<device_id> output = std::nullopt,
                data_parallel_options options = {});
  /// The same with devices that several modules, or other parts of a program,
  /// share.
  data_parallel(std::shared_ptr<graph_module> what, parallel::devices on,
                std::optional<device_id> output = std::nullopt,
                data_parallel_options options = {});
  ~data_parallel();
  data_parallel(const data_parallel&) = delete;
  data_parallel& operator=(const data_parallel&) = delete;

  /// A forward pass in training mode. Arguments may be nested (leaves.hpp):
  /// tensors, `parallel::whole` tensors and numbers in them are the module's
  /// inputs, in order. A single map from names to tensors gives inputs by name.
  ///
  /// The result has the module's outputs, in order, joined over the replicas.
  /// `backward` takes a gradient for each of them, or a tensor without memory,
  /// which stands for zero. It adds to the gradients of the module, and returns
  /// those of the inputs, in order; those that are not wanted have no memory.
  /// It uses the parameters as they were in the forward pass, and can be called
  /// again. Nobody may write to the arguments before. It is empty if there are
  /// no gradients.
  ///
  /// The `backward` of what it returns takes gradients of the inputs'
  /// gradients, in the same way. It returns the gradients of the outputs'
  /// gradients, in order, then those of the inputs, and adds to the gradients
  /// of the module. A parameter that has none then gets zero. Throws
  /// error(unsupported_op) for an op that has no second derivative, and for a
  /// third derivative.
  ///
  /// Throws
  /// - error(invalid_argument) for a wrong number of arguments or gradients;
  /// - error(not_found) for inputs by name that are missing or unknown, and for
  ///   parameters without a value;
  /// - error(dtype_mismatch | shape_mismatch), naming the variable, for
  ///   arguments or gradients that do not fit the module, and for arguments
  ///   that give different numbers of chunks;
  /// - the error of a replica as `run_replicas` does.
  template <class... Args>
  parallel::differentiable forward(const Args&... args) {
    return run_forward(arguments_of(args...));
  }
  /// A forward pass in evaluation mode (`graph::clone_for_test`): buffers do
  /// not change, nothing is kept, and there is no gradient. Throws as `forward`
  /// does.
  template <class... Args>
  std::vector<tensor> evaluate(const Args&... args) {
    return run_evaluation(arguments_of(args...));
  }

  /// Runs the ops of the optimizer that the module's network has, on device 0,
  /// with the module's gradients. Throws error(invalid_argument) if it has
  /// none, error(not_found) if there are no gradients, and the error of the
  /// step.
  void update();

  /// The module.
  const std::shared_ptr<graph_module>& of() const noexcept;
  /// Number of replicas that the last pass ran.
  std::size_t replicas() const noexcept;

private:
  struct impl;

  using arguments = std::vector<module_argument>;

  template <class... Args>
  arguments arguments_of(const Args&... args) const {
    if constexpr (sizeof...(Args) == 1
                  && (std::is_same_v<Args, feed_map> && ...)) {
      return by_name(args...);
    } else {
      arguments found;
      auto copies = std::tuple<Args...>(args...);
      parallel::for_each_leaf(copies, [&]<class Leaf>(Leaf& leaf) {
        if constexpr (std::is_same_v<Leaf, tensor>)
          found.push_back({.value = leaf});
        else if constexpr (std::is_same_v<Leaf, parallel::whole>)
          found.push_back({.value = leaf.value, .is_whole = true});
        else if constexpr (std::is_arithmetic_v<Leaf>)
          found.push_back({.number = static_cast<double>(leaf)});
        else
          static_assert(std::is_same_v<Leaf, tensor>,
                        "an argument of a module is a tensor, a whole tensor, "
                        "a number, or made of these");
      });
      return found;
    }
  }
  arguments by_name(const feed_map& named) const;
  parallel::differentiable run_forward(arguments args);
  std::vector<tensor> run_evaluation(arguments args);

  std::shared_ptr<impl> impl_; // results of passes share it
};

} // namespace troupe
