// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include "program_runner.hpp"

#include <troupe/graph/models.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/ssa_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using test::caught;
using test::says;

TEST_SUITE("graph.models") {

namespace {

std::vector<std::string> names_of(const std::vector<model_feed>& feeds) {
  std::vector<std::string> names;
  for (const auto& feed : feeds)
    names.push_back(feed.name);
  std::ranges::sort(names);
  return names;
}

std::int64_t parameter_count(const model& m) {
  std::int64_t count = 0;
  for (const auto& [name, var] : m.main.main().vars)
    count += var.is_parameter ? var.dims.numel() : 0;
  return count;
}

/// The types of a program's ops, without the op that begins the backward pass.
std::multiset<std::string> op_types(const program& p) {
  std::multiset<std::string> types;
  for (const auto& op : p.main().ops)
    if (op.role() != (role_backward | role_loss))
      types.insert(op.type);
  return types;
}

/// The types of the ops that a device computes.
std::multiset<std::string> op_types(const ssa_graph& g, std::size_t device) {
  std::multiset<std::string> types;
  for (const auto& op : g.ops)
    if (op.kind == op_kind::computation && op.device == device)
      types.insert(op.desc->type);
  return types;
}

std::size_t count_ops(const program& p, const std::string& type) {
  return static_cast<std::size_t>(
    std::ranges::count(p.main().ops, type, &op_desc::type));
}

} // namespace

TEST_CASE("every model has a loss, feeds, updates for all parameters and a "
          "test program") {
  for (const auto& [name, build] : models()) {
    CAPTURE(name);
    const auto m = build({});
    CHECK(m.name == name);
    CHECK(find_loss(m.main) == m.loss);
    CHECK(find_loss(m.test) == m.loss);
    CHECK(feed_names(m.main) == names_of(m.feeds));
    CHECK(feed_names(m.test) == names_of(m.feeds));
    build_options options;
    options.devices = {{device_kind::cpu, 0}, {device_kind::cpu, 1}};
    CHECK(feed_names(build_ssa_graph(m.main, options)) == names_of(m.feeds));
    CHECK(m.batch > 0);
    if (!m.accuracy.empty())
      CHECK(m.test.main().find_var(m.accuracy));
    std::size_t parameters = 0;
    for (const auto& [variable, desc] : m.main.main().vars)
      parameters += desc.is_parameter;
    const auto updates =
      std::ranges::count_if(m.main.main().ops, [](const op_desc& op) {
        return op.role() & role_optimize;
      });
    CHECK(static_cast<std::size_t>(updates) == parameters);
    for (const auto& op : m.main.main().ops)
      CHECK_FALSE(op.call_stack().empty());
  }
}

TEST_CASE("in a graph over two devices, each computes all ops of a model") {
  for (const auto& [name, build] : models()) {
    CAPTURE(name);
    build_options options;
    options.devices = {{device_kind::cpu, 0}, {device_kind::cpu, 1}};
    const auto p = build({}).main;
    const auto g = build_ssa_graph(p, options);
    for (std::size_t device : {0, 1})
      CHECK(op_types(g, device) == op_types(p));
  }
}

TEST_CASE("models have the parameters of their PyTorch twins") {
  auto count = [](const char* name) {
    return parameter_count(build_model(name));
  };
  CHECK(count("mlp") == 535'818);
  CHECK(count("lenet") == 431'080);
  CHECK(count("resnet18") == 11'173'962);
  CHECK(count("resnet50") == 25'557'032);
  CHECK(count("resnext50") == 25'028'904);
  CHECK(count("gpt") == 3'323'392);
  CHECK(count("word2vec") == 611'024);
  CHECK(count("widedeep") == 44'693'215);
}

TEST_CASE("residual nets do without batch normalisation") {
  const auto m = build_model("resnet8", {.batch_norm = false});
  CHECK(count_ops(m.main, "batch_norm") == 0);
  CHECK(count_ops(build_model("resnet8").main, "batch_norm") == 20);
}

TEST_CASE("digits drops activations only if asked to") {
  CHECK(count_ops(build_model("digits", {.dropout = 0}).main, "dropout") == 0);
  CHECK(count_ops(build_model("digits", {.dropout = 0.5f}).main, "dropout")
        > 0);
}

TEST_CASE("the optimizer can be replaced") {
  const auto m = build_model("mlp", {.minimize = [](const variable_ref& loss) {
                               optimizer::adam().minimize(loss);
                             }});
  CHECK(count_ops(m.main, "adam") == 6);
  CHECK(count_ops(m.main, "momentum") == 0);
}

TEST_CASE("the causal mask hides what comes later") {
  const auto m = build_model("gpt");
  testing::program_runner runner;
  runner.run(m.startup);
  const auto mask = runner.values("causal_mask");
  REQUIRE(mask.size() == 128 * 128);
  bool right = true;
  for (std::size_t i = 0; i < 128; ++i)
    for (std::size_t j = 0; j < 128; ++j)
      right = right && mask[i * 128 + j] == (j > i ? -1e9 : 0);
  CHECK(right);
}

TEST_CASE("an unknown model is refused with the known names") {
  auto e = caught([] { build_model("alexnet"); });
  CHECK(e.code() == errc::not_found);
  CHECK(says(e, "'alexnet'"));
  CHECK(says(e, "digits, gpt, lenet, mlp"));
}

} // TEST_SUITE("graph.models")
