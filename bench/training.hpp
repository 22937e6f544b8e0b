// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/models.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

/// On what a model is trained.
struct training_options {
  std::string devices = "cpu"; ///< as `parse_devices` reads them
  int threads = 0;
  std::uint32_t steps_in_flight = 2;
  graph::merge_strategy strategy = graph::merge_strategy::all_reduce;
};

/// Batches of random values in the form that the model's feeds say: normal
/// reals, integers below their bound.
std::vector<feed_map> random_batches(const graph::model& net,
                                     std::int64_t batch, std::size_t count,
                                     arena& memory);

/// A model under training: an executor with parameters and an actor system of
/// its own.
class training {
public:
  training(const graph::model& net, const training_options& options);

  /// Trains `steps` steps, taking the batches in turn, and returns the
  /// milliseconds per step. Steps overlap as the options say; the loss of each
  /// is read. Throws error(not_finite) if one is not finite.
  double run(const std::vector<feed_map>& batches, std::size_t steps);

  double last_loss() const noexcept { return last_loss_; }

private:
  void read_loss(step_id step);

  std::uint32_t steps_in_flight_;
  std::unique_ptr<executor> executor_;
  double last_loss_ = 0;
};

/// What the figures were measured on.
struct machine {
  std::size_t cores = 0; ///< that the process may use
  std::string model;     ///< the processor's name
  bool avx512 = false;
  double load = 0; ///< runnable threads of all, mean of the last minute
};

machine this_machine();

/// The p-quantile of `values`, 0 <= p <= 1; `values` is not empty.
double quantile(std::vector<double> values, double p);

} // namespace troupe::bench
