// SPDX-License-Identifier: Apache-2.0
// Attributes, values and slots that a file can hold and no program should.
#include <kernels/cpu/hand_run.hpp>
#include <support/caught.hpp>
#include <support/op_runner.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace troupe {

using test::caught;
using test::elements;
using test::hand_run;
using test::op_case;
using test::says;
using test::values_of;

TEST_SUITE("kernels.cpu.hostile_arguments") {

namespace {

using longs = std::vector<std::int64_t>;

constexpr auto least32 =
  static_cast<double>(std::numeric_limits<std::int32_t>::min());

op_case cut(const std::string& type, longs axes, longs starts, longs ends,
            longs steps) {
  op_case c;
  c.type = type;
  c.attributes = {{"axes", axes}, {"starts", starts}, {"ends", ends}};
  c.attributes.set(type == "strided_slice" ? "strides" : "steps", steps);
  c.inputs["Input"] = {values_of({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7})};
  if (type == "set_value")
    c.inputs["ValueTensor"] = {values_of({1}, {9})};
  return c;
}

std::vector<double> result(const op_case& c, const std::string& slot = "Out") {
  return run_op(cpu_kernels(), c).at(slot)[0].elements;
}

op_case integers(const std::string& type, double value, dtype of) {
  op_case c;
  c.type = type;
  c.inputs["X"] = {values_of({1}, {value}, of)};
  return c;
}

} // namespace

TEST_CASE("an axis that is cut twice is refused") {
  for (const char* type : {"slice", "strided_slice", "set_value"}) {
    CAPTURE(type);
    const auto e = caught([&] {
      run_op(cpu_kernels(),
             cut(type, {1, 0, -1}, {3, 0, 3}, {4, 2, 4}, {1, 1, 1}));
    });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(says(e, "axis 1 occurs twice"));
  }
}

TEST_CASE("the longest steps take one element") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  for (const auto step : {most, most / 2, least, least + 1}) {
    CAPTURE(step);
    const bool back = step < 0;
    CHECK(result(cut("strided_slice", {0, 1}, {0, back ? 3 : 1},
                     {2, back ? -5 : 4}, {1, step}))
          == (back ? std::vector<double>{3, 7} : std::vector<double>{1, 5}));
  }
}

TEST_CASE("the least integer stays in abs and becomes 0 in square") {
  CHECK(result(integers("abs", least32, dtype::int32))[0] == least32);
  CHECK(result(integers("square", least32, dtype::int32))[0] == 0);
}

TEST_CASE("counts of good and bad steps stop at the largest number") {
  constexpr auto most =
    static_cast<double>(std::numeric_limits<std::int32_t>::max());
  for (const bool found : {false, true}) {
    op_case c;
    c.type = "update_loss_scaling";
    c.inputs["X"] = {values_of({1}, {1})};
    c.inputs["FoundInfinite"] = {
      values_of({1}, {found ? 1.0 : 0.0}, dtype::boolean)};
    c.inputs["PrevLossScaling"] = {values_of({1}, {2})};
    c.inputs["InGoodSteps"] = {values_of({1}, {most}, dtype::int32)};
    c.inputs["InBadSteps"] = {values_of({1}, {most}, dtype::int32)};
    c.outputs = {
      {"Out", 1}, {"LossScaling", 1}, {"OutGoodSteps", 1}, {"OutBadSteps", 1}};
    CHECK(result(c, found ? "OutBadSteps" : "OutGoodSteps")[0] == most);
  }
}

TEST_CASE("a count of auc at the largest number wraps around") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  hand_run run("auc", {{"num_thresholds", std::int32_t{1}},
                       {"slide_steps", std::int32_t{0}}});
  run.input("Predict", {1, 2}, {0, 1});
  run.labels("Label", {1, 1}, {1});
  auto& positive = run.labels("StatPos", {1, 2}, {most, most});
  run.output("StatPosOut", positive);
  run.output("StatNegOut", run.labels("StatNeg", {1, 2}, {0, 0}));
  run.output("AUC");
  run.run();
  const auto counts = positive.as_tensor().values<std::int64_t>();
  CHECK(counts[0] == most);
  CHECK(counts[1] == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("what moves elements may write the variable that it reads") {
  const std::vector<float> four{0, 1, 2, 3};
  hand_run roll("roll", {{"shifts", longs{1}}, {"axis", longs{0}}});
  auto& x = roll.input("X", {4}, four);
  roll.output("Out", x);
  roll.run();
  CHECK(elements(x) == std::vector<float>{3, 0, 1, 2});

  hand_run flip("flip", {{"axis", longs{0}}});
  auto& y = flip.input("X", {4}, four);
  flip.output("Out", y);
  flip.run();
  CHECK(elements(y) == std::vector<float>{3, 2, 1, 0});
}

TEST_CASE("an input that an output has replaced is not read again") {
  hand_run run("meshgrid_grad");
  run.input("X", {2}, {0, 0});
  auto& second = run.input("X", {3}, {0, 0, 0});
  for (int i = 0; i < 2; ++i)
    run.input("outputs@GRAD", {2, 3}, {1, 2, 3, 4, 5, 6});
  run.output("X@GRAD", second);
  auto& gradient = run.output("X@GRAD");
  run.run();
  CHECK(elements(second) == std::vector<float>{6, 15});
  CHECK(elements(gradient) == std::vector<float>{5, 7, 9});
}

TEST_CASE("more groups than channels are refused") {
  op_case c;
  c.type = "conv2d";
  c.inputs["Input"] = {values_of({1, 3, 1, 1}, {0, 0, 0})};
  c.inputs["Filter"] = {values_of({1, 3, 1, 1}, {0, 0, 0})};
  c.attributes = {{"groups", std::numeric_limits<std::int64_t>::max()}};
  c.outputs = {{"Output", 1}};
  CHECK(says(caught([&] { run_op(cpu_kernels(), c); }),
             "do not go together with groups 9223372036854775807"));
}

TEST_CASE("sequences may be padded into the variable that they come from") {
  hand_run run("sequence_pad", {{"padded_length", std::int32_t{2}}});
  auto& x = run.input("X", {4, 1}, {1, 2, 3, 4});
  x.as_tensor().set_levels(make_lod({{0, 2, 4}}, 4));
  run.input("PadValue", {1}, {7});
  run.output("Out", x);
  run.run();
  CHECK(elements(x) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("a value may be set in the variable that it comes from") {
  hand_run run("set_value", {{"axes", longs{0}},
                             {"starts", longs{3}},
                             {"ends", longs{-5}},
                             {"steps", longs{-1}}});
  auto& x = run.input("Input", {4}, {0, 1, 2, 3});
  run.input("ValueTensor", x);
  run.output("Out", x);
  run.run();
  CHECK(elements(x) == std::vector<float>{3, 2, 1, 0});
}

TEST_CASE("sequence_concat without X is refused") {
  for (const char* type : {"sequence_concat", "sequence_concat_grad"}) {
    CAPTURE(type);
    hand_run run(type);
    run.output("Out");
    const auto e = caught([&] { run.run(); });
    CHECK(says(e, "argument X[0] is missing"));
  }
}

TEST_CASE("tensors are not coalesced with an alignment beyond memory") {
  hand_run run("coalesce_tensor",
               {{"align_size", std::numeric_limits<std::int64_t>::max()}});
  auto& x = run.input("Input", {1}, {1});
  run.output("Output", x);
  run.output("FusedOutput");
  CHECK(says(caught([&] { run.run(); }), "align_size 9223372036854775807"));
}

TEST_CASE("windows of a pooling are no larger than the limit") {
  for (const char* name : {"ksize", "strides", "paddings"}) {
    CAPTURE(name);
    op_case c;
    c.type = "pool2d";
    c.inputs["X"] = {values_of({1, 1, 2, 2}, {0, 1, 2, 3})};
    c.attributes = {{"ksize", longs{1, 1}}, {"adaptive", true}};
    if (std::string{name} != "ksize")
      c.attributes.set("adaptive", false);
    c.attributes.set(name, longs{1, std::int64_t{1} << 31});
    const auto e = caught([&] { run_op(cpu_kernels(), c); });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(says(e, "2^20"));
  }
}

constexpr auto most64 = std::numeric_limits<std::int64_t>::max();
constexpr auto least64 = std::numeric_limits<std::int64_t>::min();

op_case on_four(const std::string& type, attribute_map attributes,
                std::size_t outputs = 1) {
  op_case c;
  c.type = type;
  c.inputs["X"] = {values_of({4}, {0, 1, 2, 3})};
  c.attributes = std::move(attributes);
  c.outputs = {{"Out", outputs}};
  return c;
}

TEST_CASE("parts of a split are no larger than what is left") {
  for (const auto& sections : {longs{10, -6}, longs{most64, -most64 + 4},
                               longs{least64, 4}, longs{5, -1}}) {
    const auto e = caught([&] {
      run_op(cpu_kernels(), on_four("split", {{"sections", sections}}, 2));
    });
    CHECK(e.code() == errc::shape_mismatch);
    CHECK(says(e, "cannot be split"));
  }
}

TEST_CASE("repetitions beyond 2^63 are refused") {
  for (const auto& times : {longs{std::int64_t{1} << 62}, longs{most64}}) {
    const auto e = caught([&] {
      run_op(cpu_kernels(), on_four("tile", {{"repeat_times", times}}));
    });
    CHECK(says(e, "cannot be repeated"));
  }
}

TEST_CASE("an empty result takes no time, however large its other extents") {
  op_case c = on_four("pad", {{"paddings", longs{0, 0, 0, 1LL << 39}}});
  c.inputs["X"] = {values_of({0, 1}, {})};
  CHECK(result(c).empty());
  c.attributes.set("paddings", longs{0, 0, 0, 1LL << 50});
  CHECK(says(caught([&] { result(c); }), "an empty tensor"));
}

TEST_CASE("shapes, shifts and diagonals may be the largest numbers") {
  CHECK(
    says(caught([] {
           result(on_four("reshape2", {{"shape", longs{least64, least64}}}));
         }),
         "beyond 2^63"));
  for (const auto shift : {most64, least64})
    CHECK(result(on_four("roll", {{"shifts", longs{shift, shift}},
                                  {"axis", longs{0, 0}}}))
            .size()
          == 4);
  auto c = on_four("tril_triu", {{"diagonal", most64}, {"lower", true}});
  c.inputs["X"] = {values_of({2, 2}, {0, 1, 2, 3})};
  CHECK(result(c) == std::vector<double>{0, 1, 2, 3});
  c.attributes.set("diagonal", least64);
  CHECK(result(c) == std::vector<double>{0, 0, 0, 0});
}

// Each of these took a minute when every argument was looked for from the
// first one on.
TEST_CASE("an op may have 100,000 arguments") {
  constexpr std::size_t count = 100'000;
  op_case sum;
  sum.type = "sum";
  sum.inputs["X"].assign(count, values_of({1}, {1}));
  CHECK(result(sum)[0] == count);

  op_case split;
  split.type = "split";
  split.inputs["X"] = {values_of({count}, std::vector<double>(count, 2))};
  split.attributes = {{"num", static_cast<std::int32_t>(count)},
                      {"axis", std::int32_t{0}}};
  split.outputs = {{"Out", count}};
  CHECK(run_op(cpu_kernels(), split).at("Out").back().elements[0] == 2);
}
} // TEST_SUITE("kernels.cpu.hostile_arguments")

} // namespace troupe
