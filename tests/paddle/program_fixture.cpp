// SPDX-License-Identifier: Apache-2.0
#include "paddle/program_fixture.hpp"

#include <support/files.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_file.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace troupe::test {

namespace {

/// The change of a tensor, and what that is measured against.
struct update {
  double error = 0;  ///< norm of (change - Paddle's change)
  double change = 0; ///< norm of Paddle's change
  double before = 0; ///< norm of the tensor
};

update compare(const tensor& before, const tensor& after,
               const tensor& expected, arena& memory) {
  const tensor b = cast(before, dtype::float64, memory);
  const tensor a = cast(after, dtype::float64, memory);
  const tensor e = cast(expected, dtype::float64, memory);
  update sums;
  for (std::int64_t i = 0; i < b.numel(); ++i) {
    const double start = b.data<double>()[i];
    const double wanted = e.data<double>()[i] - start;
    const double error = a.data<double>()[i] - start - wanted;
    sums.error += error * error;
    sums.change += wanted * wanted;
    sums.before += start * start;
  }
  return {std::sqrt(sums.error), std::sqrt(sums.change),
          std::sqrt(sums.before)};
}

} // namespace

run_mode mode_of(const std::string& name) {
  if (name == "executor")
    return {name, "cpu:1", "all_reduce"};
  const std::string devices = std::string{"cpu:"} + name.back();
  return {name, devices,
          name.starts_with("allreduce") ? "all_reduce" : "reduce"};
}

program_fixture::program_fixture(const std::string& name)
  : folder_(std::filesystem::path{TROUPE_TEST_DATA} / "paddle_programs" / name),
    expected_(nlohmann::json::parse(read_bytes(folder_ / "expected.json"))),
    main_(graph::read_program(folder_ / "main.pdmodel")) {}

double program_fixture::loss_limit(const std::string& curve,
                                   std::size_t step) const {
  const auto& by_curve =
    expected_.value("loss_sensitivity_by_curve", nlohmann::json::object());
  const auto& known = by_curve.contains(curve)
                        ? by_curve.at(curve)
                        : expected_.at("loss_sensitivity");
  double sensitivity = 0;
  for (std::size_t i = 0; i <= step; ++i)
    sensitivity = std::max<double>(sensitivity, known.at(i));
  return std::max(2e-5, 10 * sensitivity);
}

double program_fixture::update_limit(const std::string& name) const {
  const auto& known = expected_.at("update_sensitivity_by_tensor");
  return std::max(2e-3, 10 * known.value(name, 0.0));
}

bool program_fixture::is_noise(const std::string& name) const {
  const std::vector<std::string> noise = expected_.at("noise_only");
  return std::ranges::find(noise, name) != noise.end();
}

void program_fixture::check_losses(const run_mode& mode,
                                   const loss_curve& given) const {
  const std::string curve = expected_.at("match").at(mode.name);
  REQUIRE(given.losses.size() == steps());
  REQUIRE(given.device_losses.size() == steps());
  for (std::size_t i = 0; i < steps(); ++i) {
    CAPTURE(i);
    const double limit = loss_limit(curve, i);
    const double wanted = expected_.at("losses").at(curve).at(i);
    CHECK(std::abs(given.losses[i] - wanted) <= limit * std::abs(wanted));
    const std::vector<double> shards =
      expected_.at("losses_per_device").at(curve).at(i);
    REQUIRE(given.device_losses[i].size() == shards.size());
    for (std::size_t d = 0; d < shards.size(); ++d) {
      CAPTURE(d);
      CHECK(std::abs(given.device_losses[i][d] - shards[d])
            <= limit * std::abs(shards[d]));
    }
  }
}

void program_fixture::check_parameters(const scope& after) const {
  arena memory{make_host_memory_source()};
  scope before, wanted;
  load_parameters(main_, folder_ / "params0.pdiparams", before, memory);
  load_parameters(main_, folder_ / "params8.pdiparams", wanted, memory);
  for (const std::string& name : stored_names(main_)) {
    if (is_noise(name))
      continue;
    CAPTURE(name);
    REQUIRE(after.find(name) != nullptr);
    const update u =
      compare(before.find(name)->as_tensor(), after.find(name)->as_tensor(),
              wanted.find(name)->as_tensor(), memory);
    CHECK(u.error <= update_limit(name) * u.change + 1e-6 * u.before);
  }
}

} // namespace troupe::test
