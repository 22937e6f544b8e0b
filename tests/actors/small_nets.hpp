// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/program.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::test {

/// A net small enough for thousands of steps a second, with data that it can
/// learn.
struct small_net {
  std::string name;
  graph::program main;
  graph::program startup;
  graph::program evaluation;
  std::string loss;
  /// Feeds of `samples` samples; the same numbers for the same seed.
  std::function<feed_map(std::uint64_t seed, std::int64_t samples)> batch;

  /// A scope with initial parameters, the same for the same seed.
  std::shared_ptr<scope> parameters(std::uint64_t seed = 1) const;
};

small_net make_mlp();
small_net make_wide_mlp(); ///< layers as large as those of real nets
small_net make_lenet();    ///< two convolutions and pools, 12x12
small_net
make_resnet(bool batch_norm); ///< two residual blocks, 8x8, 16 channels
small_net make_word2vec();    ///< shared table, row-sparse gradients
small_net make_dropout_net();

/// The result of training.
struct training {
  std::vector<double> losses;
  std::shared_ptr<scope> parameters;
  std::size_t peak_bytes = 0; ///< on the first device
};

/// Runs one step per batch, with these numbers of samples, on new parameters.
/// As many steps are in flight as the options allow.
training train(const small_net& net, executor_options options,
               std::span<const std::int64_t> batches);

/// The elements of `name` after one step of `exe`, which may fetch it.
std::vector<float> fetch_once(executor& exe, const small_net& net,
                              const std::string& name);
/// The CPU kernels without that of one op type.
std::shared_ptr<const kernel_table> kernels_without(std::string_view op_type);

/// All persistable values of the first device, in the order of their names.
std::vector<float> values_of(const scope& parameters);
/// Number of persistable values of the first device that are not in plain
/// layout.
std::ptrdiff_t count_laid_out(const scope& parameters);
/// True if both hold the same names and bit-equal values.
bool bit_equal(const scope& a, const scope& b);
/// Largest |a - b| / max(|a|, |b|, floor) over all values.
double relative_difference(const std::vector<float>& a,
                           const std::vector<float>& b, double floor = 1e-3);

} // namespace troupe::test
