// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/scope.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::test {

/// Losses of a run: per step, and per step and device.
struct loss_curve {
  std::vector<double> losses = {};
  std::vector<std::vector<double>> device_losses = {};
};

/// How a fixture was run: the name of its curve, and the options of the
/// command that stand for it.
struct run_mode {
  std::string name;
  std::string devices;
  std::string strategy;
};

/// "executor", "allreduce2", "allreduce4", "reduce2", "reduce4".
run_mode mode_of(const std::string& name);

/// A folder of tests/data/paddle_programs: a program that real Paddle wrote,
/// with the losses and parameters that its executors gave.
///
/// expected.json says how far Paddle's own numbers move when the parameters
/// start off by one part in 10^7 (`loss_sensitivity`,
/// `update_sensitivity_by_tensor`); limits are ten times that, at least 2e-5
/// for losses and 2e-3 for updates. `loss_sensitivity_by_curve` stands for it
/// where one curve moves further than those that it was measured on: a sample
/// of resnet8_bn lies 2e-6 from the kink of a relu in step 0 on device 0 of 2,
/// on the other side of it than exact arithmetic.
class program_fixture {
public:
  explicit program_fixture(const std::string& name);

  std::string folder() const { return folder_.string(); }
  std::string file(const std::string& name) const { return folder_ / name; }
  std::size_t steps() const { return expected_.at("steps"); }
  double test_loss() const { return expected_.at("test_loss_after"); }
  const graph::program& main() const { return main_; }

  /// Every loss is within the limit of its step of the curve that `match`
  /// names for the mode.
  void check_losses(const run_mode& mode, const loss_curve& given) const;

  /// Each tensor has moved from params0 as Paddle's has in its executor.
  void check_parameters(const scope& after) const;

private:
  double loss_limit(const std::string& curve, std::size_t step) const;
  double update_limit(const std::string& name) const;
  bool is_noise(const std::string& name) const;

  std::filesystem::path folder_;
  nlohmann::json expected_;
  graph::program main_;
};

} // namespace troupe::test
