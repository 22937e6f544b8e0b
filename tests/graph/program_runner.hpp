// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/network.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::graph::testing {

/// Runs programs op by op through the reference kernels in float64.
class program_runner {
public:
  program_runner();

  /// Runs the main block of `p`, its float32 constants as float64.
  void run(const program& p);
  void set(const std::string& name, const shape& dims,
           const std::vector<double>& values);
  void set_ids(const std::string& name, const shape& dims,
               const std::vector<std::int64_t>& values);
  /// The values of a float64 variable.
  std::vector<double> values(const std::string& name);
  double scalar(const std::string& name) { return values(name).at(0); }
  const variable& var(const std::string& name) { return vars_[name]; }

private:
  void run_op(op_desc op);

  std::unique_ptr<device> device_;
  kernel_table kernels_;
  std::map<std::string, variable> vars_;
};

/// Largest difference between the gradients that the program computes and
/// finite differences of the loss, over the elements of all parameters. `net`
/// must have gradients of `loss`; feeds are set in `runner` already.
double gradient_error(program_runner& runner, const network& net,
                      const std::string& loss);

} // namespace troupe::graph::testing
