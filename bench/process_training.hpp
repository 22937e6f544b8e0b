// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training.hpp"

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::bench {

/// Trains a model in several processes of this host, one core each. This
/// process is the first; the others are its children.
class process_training {
public:
  /// Starts the children. This process must not have threads yet.
  /// @param options devices are divided evenly among the processes; each has
  ///   one thread
  process_training(const graph::model& net, const training_options& options,
                   std::size_t processes, std::int64_t batch);
  ~process_training(); ///< ends the children
  process_training(const process_training&) = delete;
  process_training& operator=(const process_training&) = delete;

  /// Connects the processes. This process may have threads now.
  void connect();
  /// As `training::run`, in all processes.
  double run(std::size_t steps);

private:
  struct child {
    pid_t id;
    int commands; ///< where to write numbers of steps
  };

  void serve(std::size_t process, int commands);
  std::unique_ptr<training> make(std::size_t process, std::uint16_t port);

  const graph::model& net_;
  training_options options_;
  std::size_t processes_;
  std::int64_t batch_;
  std::vector<child> children_;
  std::unique_ptr<training> own_;
  arena memory_;
  std::vector<feed_map> batches_;
};

} // namespace troupe::bench
