// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "paddle/program_fixture.hpp"

#include <troupe/actors/executor.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// The arrays of step `step`, which are rows of arrays over all steps.
inline feed_map feeds_of(const named_tensors& arrays, std::int64_t step) {
  feed_map feeds;
  for (const auto& [name, all] : arrays) {
    const shape& dims = all.dims();
    feeds.emplace(name, all.rows(step, 1).reshaped(
                          shape(std::vector(dims.begin() + 1, dims.end()))));
  }
  return feeds;
}

/// The parameters in a file of the fixture.
inline std::shared_ptr<scope> parameters_of(const program_fixture& fixture,
                                            const std::string& file,
                                            arena& memory) {
  auto parameters = std::make_shared<scope>();
  load_parameters(fixture.main(), fixture.file(file), *parameters, memory);
  return parameters;
}

/// Runs the fixture's steps.
inline loss_curve train(executor& exe, const program_fixture& fixture,
                        arena& memory) {
  const auto arrays = read_npz(fixture.file("feeds.npz"), memory);
  loss_curve curve;
  for (std::size_t i = 0; i < fixture.steps(); ++i) {
    const auto result = exe.run(feeds_of(arrays, static_cast<std::int64_t>(i)));
    curve.losses.push_back(result.loss);
    curve.device_losses.push_back(result.losses);
  }
  return curve;
}

} // namespace troupe::test
