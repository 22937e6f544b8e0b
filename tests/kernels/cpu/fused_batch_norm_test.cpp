// SPDX-License-Identifier: Apache-2.0
// The fused ops against the chains of ops that they stand for.
#include "blocked_images.hpp"

#include <support/caught.hpp>

#include <troupe/kernels/device.hpp>
#include <troupe/kernels/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace troupe::test {

namespace {

using names =
  std::vector<std::pair<const char*, const char*>>; // slot, variable

/// Variables by name and the ops that run on them.
class op_chain {
public:
  explicit op_chain(attribute_map attributes = {})
    : attributes_(std::move(attributes)) {}

  void put(const std::string& name, const shape& dims) {
    auto value = tensor::make(device_->memory(), dims, dtype::float32);
    const philox random(1, static_cast<std::uint32_t>(variables_.size()), 0);
    std::uint64_t i = 0;
    for (float& element : value.values<float>())
      element = random.uniform(i++) - 0.5f;
    variables_[name].set(std::move(value));
  }

  void put_in_blocks(const std::string& name, const cpu::image_format& format) {
    auto& var = variables_[name];
    var.set(in_blocks(var.as_tensor(), format, device_->memory()));
  }

  void in_plain(const std::string& name) {
    auto& var = variables_[name];
    var.set(device_->to_host(var.as_tensor(), device_->memory()));
  }

  void run(const char* type, const names& inputs, const names& outputs) {
    const step_info step{};
    const auto in = bind(inputs), out = bind(outputs);
    kernel_context ctx(*device_, nullptr, attributes_, in, out, step);
    table_.make(type, device_kind::cpu, attributes_)->run(ctx);
  }

  variable& at(const std::string& name) { return variables_[name]; }

  std::vector<float> elements(const std::string& name) {
    const tensor plain =
      device_->to_host(variables_[name].as_tensor(), device_->memory());
    const auto all = plain.values<float>();
    return {all.begin(), all.end()};
  }

private:
  std::vector<op_argument> bind(const names& arguments) {
    std::vector<op_argument> bound;
    for (auto [slot, name] : arguments)
      bound.push_back({slot, name, &variables_[name]});
    return bound;
  }

  attribute_map attributes_;
  kernel_table table_ = cpu_kernels();
  std::unique_ptr<device> device_ = make_cpu_device(0);
  std::map<std::string, variable> variables_;
};

/// How the images lie: channels per block, 0: plain.
struct layouts {
  std::int64_t x = 0, z = 0, gradient = 0;
};

struct chain_case {
  shape dims;
  bool adds = false;
  layouts blocks = {};
  attribute_map attributes = {};
};

op_chain with_inputs(const chain_case& c) {
  op_chain ops(c.attributes);
  const bool last = c.attributes.get_string("data_layout", "NCHW") == "NHWC";
  const auto channels = c.dims[last ? c.dims.rank() - 1 : 1];
  for (auto name : {"x", "z", "dout"})
    ops.put(name, c.dims);
  for (auto name : {"scale", "bias", "mean", "variance"})
    ops.put(name, {channels});
  if (c.blocks.x > 0)
    ops.put_in_blocks("x", {c.blocks.x});
  if (c.blocks.z > 0)
    ops.put_in_blocks("z", {c.blocks.z});
  if (c.blocks.gradient > 0)
    ops.put_in_blocks("dout", {c.blocks.gradient});
  return ops;
}

const names norm_inputs{{"X", "x"},
                        {"Scale", "scale"},
                        {"Bias", "bias"},
                        {"Mean", "mean"},
                        {"Variance", "variance"}};
const names norm_outputs{{"MeanOut", "mean"},
                         {"VarianceOut", "variance"},
                         {"SavedMean", "saved mean"},
                         {"SavedVariance", "saved variance"}};
const names gradient_inputs{{"X", "x"},
                            {"Scale", "scale"},
                            {"Bias", "bias"},
                            {"SavedMean", "saved mean"},
                            {"SavedVariance", "saved variance"}};
const names gradient_outputs{
  {"X@GRAD", "dx"}, {"Scale@GRAD", "dscale"}, {"Bias@GRAD", "dbias"}};

names operator+(names all, std::pair<const char*, const char*> more) {
  all.push_back(more);
  return all;
}

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

TEST_SUITE("kernels.cpu.fused_batch_norm") {

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
}

TEST_CASE("another activation than relu is an error") {
  attribute_map attributes;
  attributes.set("act_type", std::string{"tanh"});
  op_chain ops(attributes);
  const auto failure = caught([&] { ops.run("fused_batch_norm_act", {}, {}); });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure, "tanh"));
}

} // TEST_SUITE("kernels.cpu.fused_batch_norm")

} // namespace troupe::test
