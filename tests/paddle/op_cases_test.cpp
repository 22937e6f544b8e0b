// SPDX-License-Identifier: Apache-2.0
// Every case that tests/paddle/make_cases.py kept: one op, with the gradient
// ops that Paddle appended, run here on the values that Paddle ran it on.

#include <troupe/actors/plain_executor.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

TEST_SUITE("paddle.op_cases") {

namespace {

namespace fs = std::filesystem;

constexpr double smallest_magnitude = 1e-6;

/// Part of an array's name behind "prefix:"; empty if it has another prefix.
std::string behind(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix + ":") ? name.substr(prefix.size() + 1) : "";
}

/// One archive.
class op_case {
public:
  explicit op_case(const fs::path& path)
    : arrays_(read_npz(path, memory_)), program_(read(path)) {}

  double tolerance() const {
    return arrays_.at("tolerance").values<double>()[0];
  }

  void run(scope& values) {
    set_inputs(values);
    plain_executor_options options;
    options.parameters = {std::shared_ptr<scope>{}, &values};
    plain_executor{program_, std::move(options)}.run({});
  }

  /// Calls `check(variable, expected)` for each value that is compared.
  template <class Check>
  void for_each_output(Check check) const {
    for (const auto& [name, expected] : arrays_)
      if (auto var = behind(name, "out"); !var.empty())
        check(var, expected);
  }

  /// Calls `check(variable, dims)` for each value known only by its shape.
  template <class Check>
  void for_each_shape(Check check) const {
    for (const auto& [name, dims] : arrays_)
      if (auto var = behind(name, "dims"); !var.empty())
        check(var, dims);
  }

  const tensor* find(const std::string& name) const {
    auto it = arrays_.find(name);
    return it == arrays_.end() ? nullptr : &it->second;
  }

  /// Levels of the value "prefix:var"; null without sequences.
  shared_lod levels_of(const std::string& prefixed, std::int64_t rows) const {
    lod levels;
    while (const auto* level =
             find("lod" + std::to_string(levels.size()) + ":" + prefixed)) {
      const auto offsets = level->values<std::int64_t>();
      levels.emplace_back(offsets.begin(), offsets.end());
    }
    return make_lod(std::move(levels), rows);
  }

private:
  graph::program read(const fs::path& path) const {
    const auto bytes = arrays_.at("program").values<std::uint8_t>();
    return graph::parse_program(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
      path.string());
  }

  void set_inputs(scope& values) {
    for (const auto& [name, value] : arrays_) {
      const auto var = behind(name, "in");
      if (var.empty())
        continue;
      if (const auto* numbers = find("rows:" + var)) {
        const auto rows = numbers->values<std::int64_t>();
        values.var(var).set(
          selected_rows{{rows.begin(), rows.end()},
                        arrays_.at("height:" + var).values<std::int64_t>()[0],
                        clone(value, memory_)});
      } else {
        auto dense = clone(value, memory_);
        dense.set_levels(levels_of(name, rows_of(dense)));
        values.var(var).set(std::move(dense));
      }
    }
  }

  static std::int64_t rows_of(const tensor& value) {
    return value.dims().rank() == 0 ? 1 : value.dims()[0];
  }

  arena memory_{make_host_memory_source()};
  named_tensors arrays_;
  graph::program program_;
};

/// Largest difference over the largest magnitude; infinite where only one of
/// both is a number.
double relative_error(const tensor& actual, const tensor& expected,
                      arena& memory) {
  const auto a = cast(actual, dtype::float64, memory);
  const auto e = cast(expected, dtype::float64, memory);
  double difference = 0;
  double magnitude = smallest_magnitude;
  for (std::int64_t i = 0; i < e.numel(); ++i) {
    const double x = a.data<double>()[i];
    const double y = e.data<double>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    if (!std::isfinite(x) || !std::isfinite(y))
      return HUGE_VAL;
    difference = std::max(difference, std::abs(x - y));
  }
  for (double y : e.values<double>())
    if (std::isfinite(y))
      magnitude = std::max(magnitude, std::abs(y));
  return difference / magnitude;
}

void check_levels(const op_case& c, const std::string& var,
                  const tensor& value) {
  const auto rows = value.dims().rank() == 0 ? 1 : value.dims()[0];
  const auto expected = c.levels_of("out:" + var, rows);
  CHECK((value.levels() != nullptr) == (expected != nullptr));
  if (value.levels() && expected)
    CHECK(*value.levels() == *expected);
}

void check_value(const op_case& c, const std::string& var,
                 const tensor& expected, const variable& actual,
                 arena& memory) {
  CAPTURE(var);
  const tensor* value = nullptr;
  if (const auto* rows = c.find("rows:" + var)) {
    REQUIRE(actual.is_rows());
    CHECK(
      std::ranges::equal(actual.as_rows().rows, rows->values<std::int64_t>()));
    CHECK(actual.as_rows().height
          == c.find("height:" + var)->values<std::int64_t>()[0]);
    value = &actual.as_rows().values;
  } else {
    REQUIRE(actual.is_tensor());
    value = &actual.as_tensor();
  }
  CHECK(to_string(value->dims()) == to_string(expected.dims()));
  CHECK(to_string(value->type()) == to_string(expected.type()));
  check_levels(c, var, *value);
  if (value->numel() == expected.numel())
    CHECK(relative_error(*value, expected, memory) <= c.tolerance());
}

void check_case(const fs::path& path) {
  arena memory{make_host_memory_source()};
  op_case c{path};
  scope values;
  c.run(values);
  c.for_each_output([&](const std::string& var, const tensor& expected) {
    check_value(c, var, expected, values.var(var), memory);
  });
  c.for_each_shape([&](const std::string& var, const tensor& dims) {
    CAPTURE(var);
    REQUIRE(values.var(var).is_tensor());
    CHECK(std::ranges::equal(values.var(var).as_tensor().dims(),
                             dims.values<std::int64_t>()));
  });
}

/// Checks all cases of a family; a case that throws fails alone.
void check_family(const std::string& family) {
  std::vector<fs::path> cases;
  for (auto& entry : fs::directory_iterator(fs::path{TROUPE_TEST_DATA}
                                            / "paddle_ops" / family))
    cases.push_back(entry.path());
  std::ranges::sort(cases);
  REQUIRE_FALSE(cases.empty());
  for (auto& path : cases) {
    INFO(path.stem().string());
    try {
      check_case(path);
    } catch (const error& e) {
      FAIL_CHECK(std::string{e.what()});
    }
  }
}

} // namespace

TEST_CASE("activations compute what Paddle computes") {
  check_family("activations");
}

TEST_CASE("ops between gradients and updates compute what Paddle computes") {
  check_family("gradient_ops");
}

TEST_CASE("optimizers compute what Paddle computes") {
  check_family("optimizers");
}

TEST_CASE("branches and loops compute what Paddle computes") {
  check_family("control_flow");
}

TEST_CASE("fills and random fills compute what Paddle computes") {
  check_family("filling");
}

TEST_CASE("metrics compute what Paddle computes") {
  check_family("metrics");
}

TEST_CASE("recurrent nets compute what Paddle computes") {
  check_family("recurrent");
}

TEST_CASE("ops over sequences compute what Paddle computes") {
  check_family("sequences");
}

TEST_CASE("embeddings compute what Paddle computes") {
  check_family("embedding");
}

TEST_CASE("concat, stack and their like compute what Paddle computes") {
  check_family("joining");
}

TEST_CASE("ranges compute what Paddle computes") {
  check_family("ranges");
}

TEST_CASE("convolutions and poolings compute what Paddle computes") {
  check_family("convolutions");
}

TEST_CASE("normalizations compute what Paddle computes") {
  check_family("normalizations");
}

TEST_CASE("dropout computes what Paddle computes") {
  check_family("dropout");
}

TEST_CASE("triangles compute what Paddle computes") {
  check_family("triangles");
}

TEST_CASE("reshapes, transposes and casts compute what Paddle computes") {
  check_family("movement");
}

TEST_CASE("slices, flips and rolls compute what Paddle computes") {
  check_family("slicing");
}

TEST_CASE("expansions and paddings compute what Paddle computes") {
  check_family("expanding");
}

TEST_CASE("ops on indices compute what Paddle computes") {
  check_family("indexing");
}

TEST_CASE("rankings compute what Paddle computes") {
  check_family("ranking");
}

TEST_CASE("elementwise ops and comparisons compute what Paddle computes") {
  check_family("elementwise");
}

TEST_CASE("reductions and norms compute what Paddle computes") {
  check_family("reductions");
}

TEST_CASE("scaling, clipping and sums compute what Paddle computes") {
  check_family("arithmetic");
}

TEST_CASE("products compute what Paddle computes") {
  check_family("products");
}

TEST_CASE("losses compute what Paddle computes") {
  check_family("losses");
}
} // TEST_SUITE("paddle.op_cases")

} // namespace troupe
