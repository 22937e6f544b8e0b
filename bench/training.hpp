// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/models.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::bench {

/// How a model is trained.
struct training_options {
  std::string devices = "cpu"; ///< as `parse_devices` reads them
  int threads = 0;
  std::uint32_t steps_in_flight = 2;
  graph::merge_strategy strategy = graph::merge_strategy::all_reduce;
  /// This process's part in a run over several processes, if it has one.
  std::optional<node_options> nodes = {};
};

/// Random batches for the model's feeds: normally distributed numbers, and
/// integers below their limit.
std::vector<feed_map> random_batches(const graph::model& net,
                                     std::int64_t batch, std::size_t count,
                                     arena& memory);

/// Trains a model on an executor with its own parameters and actor system.
class training {
public:
  training(const graph::model& net, const training_options& options);

  /// Trains `steps` steps, using the batches in turn, and returns the
  /// milliseconds per step. Up to `steps_in_flight` steps overlap; the loss of
  /// each is read. Throws error(not_finite) if a loss is not finite.
  double run(const std::vector<feed_map>& batches, std::size_t steps);

  double last_loss() const noexcept { return last_loss_; }

private:
  void read_loss(step_id step);

  std::uint32_t steps_in_flight_;
  std::unique_ptr<executor> executor_;
  double last_loss_ = 0;
};

/// The machine on which the figures were measured.
struct machine {
  std::size_t cores = 0; ///< number of cores that the process may use
  std::string model;     ///< the processor's name
  bool avx512 = false;
  double load = 0; ///< load average of the last minute
};

machine this_machine();

/// The p-quantile of `values`, 0 <= p <= 1; `values` is not empty.
double quantile(std::vector<double> values, double p);

} // namespace troupe::bench
