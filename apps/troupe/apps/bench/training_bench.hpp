// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/common_options.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::apps {

/// Options of a measurement.
struct training_bench_options {
  network_options network;
  std::int64_t batch = 0;      ///< 0: the program's own, or 32 if it has none
  std::uint32_t in_flight = 1; ///< steps that overlap
  std::uint64_t seed = 0;      ///< for parameters and batches
};

/// Steps of a training, in the order in which they ended.
struct timed_steps {
  /// Time per step. If k steps overlap: the time in which the last k steps
  /// ended, divided by k.
  std::vector<double> ms;
  std::vector<double> losses;
};

/// Trains a network on synthetic batches, to measure its steps. The same seed
/// gives the same parameters and batches.
class training_bench {
public:
  /// Throws usage_error and error as a training does.
  explicit training_bench(const training_bench_options& options);

  /// Writes parameters and batches to an .npz file, so that other programs can
  /// do the same work. Arrays are named "param/NAME" and "feed/NUMBER/NAME".
  /// Step i uses batch i modulo their number. Call it before the first step.
  /// Throws error(io_failure).
  void write_start(const std::filesystem::path& file) const;

  /// Continues the training for `steps` steps. The time of a step includes
  /// reading back its loss. Throws the error of a failed step, and
  /// error(not_finite) if a loss is not finite.
  /// @param ended called after each step with the number of ended steps, its
  /// loss and its milliseconds; the time of the call does not count
  timed_steps
  run(std::uint64_t steps,
      const std::function<void(std::uint64_t, double, double)>& ended = {});

  const program_bundle& bundle() const noexcept { return bundle_; }
  std::int64_t batch() const noexcept { return batch_; }
  std::size_t devices() const noexcept { return devices_; }
  graph::merge_strategy strategy() const noexcept { return strategy_; }
  /// The sum over devices of the peak bytes of their tensors.
  std::size_t peak_bytes() const;

private:
  program_bundle bundle_;
  std::int64_t batch_;
  std::uint32_t in_flight_;
  std::size_t devices_;
  graph::merge_strategy strategy_;
  std::unique_ptr<arena> host_;
  std::vector<feed_map> batches_;
  std::shared_ptr<scope> parameters_;
  std::unique_ptr<executor> executor_;
  std::uint64_t next_ = 0; // number of the next step
};

} // namespace troupe::apps
