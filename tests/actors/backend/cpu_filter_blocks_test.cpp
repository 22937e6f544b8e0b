// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/backend/cpu_filter_blocks.hpp>
#include <troupe/actors/steps/executor_graph.hpp>
#include <troupe/graph/program_text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;
using namespace troupe::actors;

TEST_SUITE("actors.cpu_filter_blocks") {

namespace {

/// y = conv(x, w), loss = mean(y), and an update of w, with Paddle's slots.
struct convolved {
  explicit convolved(const std::string& optimizer = "momentum") {
    p.temporary("x");
    p.persistable("w", {16, 16, 3, 3}).persistable("v", {16, 16, 3, 3});
    p.op("conv2d", {}, {"y"})
      .op("mean", {"y"}, {"loss"}, role_forward | role_loss)
      .loss_gradient("loss")
      .op("mean_grad", {"loss@GRAD"}, {"y@GRAD"}, role_backward)
      .op("conv2d_grad", {}, {"w@GRAD"}, role_backward, {"w", "w@GRAD"})
      .op(optimizer, {}, {"w"}, role_optimize, {"w", "w@GRAD"});
    at("conv2d").inputs = {{"Input", {"x"}}, {"Filter", {"w"}}};
    at("conv2d").outputs = {{"Output", {"y"}}};
    at("conv2d_grad").inputs = {
      {"Input", {"x"}}, {"Filter", {"w"}}, {"Output@GRAD", {"y@GRAD"}}};
    at("conv2d_grad").outputs = {{"Filter@GRAD", {"w@GRAD"}}};
    at(optimizer).inputs = {
      {"Param", {"w"}}, {"Grad", {"w@GRAD"}}, {"Velocity", {"v"}}};
    at(optimizer).outputs = {{"ParamOut", {"w"}}, {"VelocityOut", {"v"}}};
  }

  op_desc& at(const std::string& type) {
    return *std::ranges::find(p.desc.main().ops, type, &op_desc::type);
  }

  small_program p;
};

/// True if the pass allows the gradient to be in blocks. Checks that the pass
/// changes nothing else.
bool in_blocks(const convolved& c) {
  auto after = keep_filters_in_blocks(c.p.desc);
  auto& gradient =
    *std::ranges::find(after.main().ops, "conv2d_grad", &op_desc::type);
  const std::string attribute{filter_in_blocks_attribute};
  const auto marked = gradient.attributes.get_bool(attribute, false);
  if (marked)
    gradient.attributes.erase(attribute);
  CHECK(to_text(after) == to_text(c.p.desc));
  return marked;
}

} // namespace

TEST_CASE("sgd, momentum, adam and adamw keep filters in blocked layout") {
  for (auto type : {"sgd", "momentum", "adam", "adamw"}) {
    CAPTURE(type);
    CHECK(in_blocks(convolved{type}));
  }
}

TEST_CASE("other optimizers keep filters in plain layout") {
  for (auto type : {"lamb", "rmsprop", "dgc_momentum"}) {
    CAPTURE(type);
    CHECK_FALSE(in_blocks(convolved{type}));
  }
}

TEST_CASE("a second convolution may read the filter unless it has groups") {
  convolved c;
  c.p.op("conv2d", {}, {"again"});
  auto& again = c.p.desc.main().ops.back();
  again.inputs = {{"Input", {"y"}}, {"Filter", {"w"}}};
  again.outputs = {{"Output", {"again"}}};
  CHECK(in_blocks(c));
  again.attributes.set("groups", std::int32_t{2});
  CHECK_FALSE(in_blocks(c));
}

TEST_CASE("a filter stays plain if another op reads it or its gradient") {
  for (auto name : {"w", "w@GRAD"}) {
    CAPTURE(name);
    convolved c;
    c.p.op("scale", {name}, {"scaled"});
    CHECK_FALSE(in_blocks(c));
  }
}

TEST_CASE(
  "a filter stays plain if it or its gradient is read in another slot") {
  for (auto name : {"w", "w@GRAD"}) {
    CAPTURE(name);
    convolved c;
    c.at("momentum").inputs.push_back({"MasterParam", {name}});
    CHECK_FALSE(in_blocks(c));
  }
  convolved image;
  image.at("conv2d").set_input("Input", {"w"});
  CHECK_FALSE(in_blocks(image));
}

TEST_CASE("a filter stays plain if another op writes it or its gradient") {
  for (auto name : {"w", "w@GRAD"}) {
    CAPTURE(name);
    convolved c;
    c.p.op("fill_constant", {}, {name});
    CHECK_FALSE(in_blocks(c));
  }
}

TEST_CASE("a filter stays plain if the update's ParamOut is another variable") {
  convolved c;
  c.at("momentum").set_output("ParamOut", {"other"});
  CHECK_FALSE(in_blocks(c));
  c.at("momentum").set_output("VelocityOut", {"w"});
  CHECK_FALSE(in_blocks(c));
}

TEST_CASE("grouped, temporary and float64 filters stay plain") {
  convolved grouped;
  grouped.at("conv2d_grad").attributes.set("groups", std::int32_t{4});
  CHECK_FALSE(in_blocks(grouped));
  convolved made;
  made.p.desc.main().vars.at("w").persistable = false;
  CHECK_FALSE(in_blocks(made));
  convolved doubled;
  doubled.p.desc.main().vars.at("w").type = dtype::float64;
  CHECK_FALSE(in_blocks(doubled));
}

TEST_CASE("a program with several blocks is not changed") {
  convolved c;
  c.p.desc.blocks.emplace_back();
  CHECK_FALSE(in_blocks(c));
}

TEST_CASE("programs with and without filter gradients are told apart") {
  CHECK(has_filter_gradients(convolved{}.p.desc));
  CHECK_FALSE(has_filter_gradients(linear_with_sgd().desc));
  convolved images;
  images.at("conv2d_grad").outputs = {{"Input@GRAD", {"x@GRAD"}}};
  CHECK_FALSE(has_filter_gradients(images.p.desc));
}

TEST_CASE("filter gradients may be blocked only if kernel_layouts is set") {
  for (bool yes : {true, false})
    for (const std::string devices : {"cpu", "sim:2"}) {
      executor_options options;
      options.devices = parse_devices(devices);
      options.lowering.kernel_layouts = yes;
      const auto g = build_graph(
        std::make_shared<const program>(convolved{}.p.desc), options, "loss");
      const auto& gradient = g.op(find_op(g, "conv2d_grad"));
      CHECK(
        gradient.desc->attributes.get_bool(filter_in_blocks_attribute, false)
        == yes);
    }
}

TEST_CASE("the program is not changed for devices without blocked layout") {
  const auto p = std::make_shared<const program>(convolved{}.p.desc);
  lowering_options options;
  options.kernel_layouts = true;
  CHECK(lowered_for(parse_devices("cuda:0"), p, options) == p);
  CHECK(lowered_for(parse_devices("cpu"), p, options) != p);
}

} // TEST_SUITE("actors.cpu_filter_blocks")
