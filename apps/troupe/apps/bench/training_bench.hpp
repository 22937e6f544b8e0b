// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/common_options.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::apps {

/// What is measured.
struct training_bench_options {
  network_options network;
  std::int64_t batch = 0;      ///< 0: what the program was made for, else 32
  std::uint32_t in_flight = 1; ///< steps that overlap
  std::uint64_t seed = 0;      ///< of parameters and batches
};

/// Steps of a training, in the order in which they ended.
struct timed_steps {
  /// Of each step; where k overlap, a k-th of the time in which the last k
  /// ended.
  std::vector<double> ms;
  std::vector<double> losses;
};

/// A network under training on synthetic batches, ready to be timed. The same
/// seed gives the same parameters and batches.
class training_bench {
public:
  /// Throws usage_error and error as a training does.
  explicit training_bench(const training_bench_options& options);

  /// Writes parameters and batches, so that others can do the same work, as an
  /// .npz file with arrays "param/NAME" and "feed/NUMBER/NAME"; step i takes
  /// batch i modulo their count. Call it before the first step. Throws
  /// error(io_failure).
  void write_start(const std::filesystem::path& file) const;

  /// Trains on; each step's loss is read back before its time ends. Throws what
  /// a step failed with, error(not_finite) if a loss is not finite.
  /// @param ended told after each step how many have ended, its loss and its
  /// milliseconds; the time that it takes does not count
  timed_steps
  run(std::uint64_t steps,
      const std::function<void(std::uint64_t, double, double)>& ended = {});

  const program_bundle& bundle() const noexcept { return bundle_; }
  std::int64_t batch() const noexcept { return batch_; }
  std::size_t devices() const noexcept { return devices_; }
  graph::merge_strategy strategy() const noexcept { return strategy_; }
  /// Most bytes that tensors of the devices held at a time.
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
  std::uint64_t next_ = 0; // step
};

} // namespace troupe::apps
