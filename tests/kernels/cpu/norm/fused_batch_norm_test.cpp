// SPDX-License-Identifier: Apache-2.0
// The fused ops against the chains of ops that they stand for.
#include <kernels/cpu/op_chain.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.fused_batch_norm") {

namespace {

const slot_names norm_inputs{{"X", "x"},
                             {"Scale", "scale"},
                             {"Bias", "bias"},
                             {"Mean", "mean"},
                             {"Variance", "variance"}};
const slot_names norm_outputs{{"MeanOut", "mean"},
                              {"VarianceOut", "variance"},
                              {"SavedMean", "saved mean"},
                              {"SavedVariance", "saved variance"}};
const slot_names gradient_inputs{{"X", "x"},
                                 {"Scale", "scale"},
                                 {"Bias", "bias"},
                                 {"SavedMean", "saved mean"},
                                 {"SavedVariance", "saved variance"}};
const slot_names gradient_outputs{
  {"X@GRAD", "dx"}, {"Scale@GRAD", "dscale"}, {"Bias@GRAD", "dbias"}};

void run_chain(op_chain& ops, bool adds) {
  ops.run("batch_norm", norm_inputs, norm_outputs + std::pair{"Y", "normal"});
  if (adds)
    ops.run("elementwise_add", {{"X", "normal"}, {"Y", "z"}}, {{"Out", "sum"}});
  ops.run("relu", {{"X", adds ? "sum" : "normal"}}, {{"Out", "y"}});
  const char* gradient = adds ? "dsum" : "dnormal";
  ops.run("relu_grad", {{"Out", "y"}, {"Out@GRAD", "dout"}},
          {{"X@GRAD", gradient}});
  if (adds)
    ops.run("elementwise_add_grad",
            {{"X", "normal"}, {"Y", "z"}, {"Out@GRAD", "dsum"}},
            {{"X@GRAD", "dnormal"}, {"Y@GRAD", "dz"}});
  ops.run("batch_norm_grad", gradient_inputs + std::pair{"Y@GRAD", "dnormal"},
          gradient_outputs);
}

void run_fused(op_chain& ops, bool adds) {
  if (!adds) {
    ops.run("fused_batch_norm_act", norm_inputs,
            norm_outputs + std::pair{"Y", "y"});
    return ops.run("fused_batch_norm_act_grad",
                   gradient_inputs + std::pair{"Y@GRAD", "dout"},
                   gradient_outputs);
  }
  ops.run("fused_bn_add_activation", norm_inputs + std::pair{"Z", "z"},
          norm_outputs + std::pair{"Y", "y"});
  ops.run("fused_bn_add_activation_grad",
          gradient_inputs + std::pair{"Y@GRAD", "dout"} + std::pair{"Y", "y"},
          gradient_outputs + std::pair{"Z@GRAD", "dz"});
}

void check_same(const chain_case& c) {
  auto chained = with_inputs(c);
  auto fused = with_inputs(c);
  run_chain(chained, c.adds);
  run_fused(fused, c.adds);
  for (auto name : {"y", "mean", "variance", "saved mean", "saved variance",
                    "dx", "dscale", "dbias"}) {
    CAPTURE(name);
    CHECK(fused.elements(name) == chained.elements(name));
  }
  if (c.adds)
    CHECK(fused.elements("dz") == chained.elements("dz"));
}

/// Y from what was saved lies as Y does and has its bits.
void check_again(op_chain& ops) {
  run_fused(ops, false);
  ops.run("recompute_batch_norm_act", gradient_inputs, {{"Y", "again"}});
  CHECK(ops.elements("again") == ops.elements("y"));
  const auto &y = ops.at("y").as_tensor(), &again = ops.at("again").as_tensor();
  CHECK(again.dims() == y.dims());
  CHECK(again.is_plain() == y.is_plain());
  if (!y.is_plain())
    CHECK(again.format()->equals(*y.format()));
}

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values)
    value = static_cast<float>(bfloat16(value));
  return values;
}

attribute_map last() {
  attribute_map attributes;
  attributes.set("data_layout", std::string{"NHWC"});
  return attributes;
}

} // namespace

TEST_CASE("plain images give the bits of the chain") {
  for (const bool adds : {false, true}) {
    check_same({{3, 5, 7, 6}, adds});
    check_same({{4, 6}, adds});
    check_same({{2, 3, 4, 5}, adds, {}, last()});
  }
}

TEST_CASE("images in blocks give the bits of the chain") {
  for (const std::int64_t block : {8, 16})
    for (const bool adds : {false, true})
      for (const std::int64_t side : {1, 5, 17, 33}) // below and above a chunk
        check_same({{3, 32, side, side}, adds, {block, block, block}});
}

TEST_CASE("operands in different layouts give the bits of the chain") {
  for (const layouts& blocks :
       {layouts{16, 0, 16}, layouts{0, 16, 16}, layouts{16, 16, 0},
        layouts{16, 0, 0}, layouts{16, 8, 8}, layouts{0, 0, 8}})
    for (const bool adds : {false, true})
      check_same({{2, 16, 6, 5}, adds, blocks});
}

TEST_CASE("rounded images give what the same values in float32 do, rounded") {
  for (const bool adds : {false, true})
    for (const std::int64_t side : {1, 5, 33}) {
      CAPTURE(adds);
      CAPTURE(side);
      const auto run = [&](precision numbers) {
        auto ops = with_inputs({{3, 32, side, side}, adds});
        for (auto name : {"x", "z", "dout"}) {
          ops.put_in_blocks(name, {16, precision::bfloat16});
          ops.in_plain(name);
          ops.put_in_blocks(name, {16, numbers});
        }
        run_fused(ops, adds);
        return ops;
      };
      auto wide = run(precision::float32);
      auto narrow = run(precision::bfloat16);
      for (auto name : {"mean", "variance", "saved mean", "dscale", "dbias"}) {
        CAPTURE(name);
        CHECK(narrow.elements(name) == wide.elements(name));
      }
      for (auto name : {"y", "dx"}) {
        CAPTURE(name);
        CHECK(narrow.elements(name) == rounded(wide.elements(name)));
        CHECK(cpu::format_of(narrow.at(name).as_tensor()).rounded());
      }
    }
}

TEST_CASE("one element per channel is passed through") {
  for (const bool adds : {false, true}) {
    check_same({{1, 5}, adds});
    check_same({{1, 16, 1, 1}, adds, {16, 16, 16}});
  }
}

TEST_CASE("what was written is written again from what was saved") {
  for (const chain_case& c : {chain_case{{3, 5, 7, 6}},
                              {{4, 6}},
                              {{2, 3, 4, 5}, false, {}, last()},
                              {{3, 32, 17, 17}, false, {16, 0, 0}},
                              {{3, 32, 5, 5}, false, {8, 0, 8}},
                              {{1, 5}},
                              {{1, 16, 1, 1}, false, {16, 0, 16}}}) {
    CAPTURE(c.dims.numel());
    auto ops = with_inputs(c);
    check_again(ops);
  }
  auto narrow = with_inputs({{3, 32, 17, 17}});
  narrow.put_in_blocks("x", {16, precision::bfloat16});
  check_again(narrow);
}

TEST_CASE("a variance beyond all numbers is no sign of a single element") {
  auto ops = with_inputs({{2, 1, 1, 1}});
  ops.at("x").as_tensor().data<float>()[0] = 1e20f;
  ops.at("x").as_tensor().data<float>()[1] = -1e20f;
  check_again(ops);
  CHECK(ops.elements("saved variance") == std::vector<float>{0.0f});
}

TEST_CASE("blocks stay blocks") {
  for (const bool adds : {false, true}) {
    auto ops = with_inputs({{2, 16, 6, 5}, adds, {16, 16, 16}});
    run_fused(ops, adds);
    CHECK_FALSE(ops.at("y").as_tensor().is_plain());
    CHECK_FALSE(ops.at("dx").as_tensor().is_plain());
  }
}

TEST_CASE("NaN stays NaN") {
  for (const std::int64_t block : {0, 16}) {
    auto ops = with_inputs({{2, 16, 3, 3}, false});
    ops.at("x").as_tensor().data<float>()[0] =
      std::numeric_limits<float>::quiet_NaN();
    if (block > 0)
      ops.put_in_blocks("x", {block});
    run_fused(ops, false);
    CHECK(std::isnan(ops.elements("y")[0]));
  }
}

TEST_CASE("a summand of another shape is an error") {
  auto ops = with_inputs({{2, 16, 3, 3}, true});
  ops.put("z", {2, 16, 3, 4});
  CHECK(caught([&] { run_fused(ops, true); }).code() == errc::shape_mismatch);
}

TEST_CASE("images of another dtype are an error") {
  arena memory{make_host_memory_source()};
  for (auto name : {"x", "z", "dout"}) {
    auto ops = with_inputs({{2, 3, 3, 3}, true});
    ops.at(name).set(tensor::make(memory, {2, 3, 3, 3}, dtype::float64));
    CHECK(caught([&] { run_fused(ops, true); }).code() == errc::dtype_mismatch);
  }
  auto ops = with_inputs({{2, 3, 3, 3}, false});
  ops.at("dout").set(tensor::make(memory, {2, 3, 3, 3}, dtype::float64));
  CHECK(caught([&] { run_fused(ops, false); }).code() == errc::dtype_mismatch);
  ops.at("x").set(tensor::make(memory, {2, 3, 3, 3}, dtype::float64));
  CHECK(
    caught([&] {
      ops.run("recompute_batch_norm_act", gradient_inputs, {{"Y", "again"}});
    }).code()
    == errc::dtype_mismatch);
}

TEST_CASE("another activation than relu is an error") {
  attribute_map attributes;
  attributes.set("act_type", std::string{"tanh"});
  op_chain ops(attributes);
  for (auto type : {"fused_batch_norm_act", "recompute_batch_norm_act"}) {
    const auto failure = caught([&] { ops.run(type, {}, {}); });
    CHECK(failure.code() == errc::invalid_argument);
    CHECK(says(failure, "tanh"));
  }
}

} // TEST_SUITE("kernels.cpu.fused_batch_norm")

} // namespace troupe::test
