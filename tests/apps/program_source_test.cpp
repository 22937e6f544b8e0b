// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/program_source.hpp>

#include <troupe/actors/executor.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::apps;

TEST_SUITE("apps.program_source") {

namespace {

void add_parameter(graph::program& p, const std::string& name,
                   std::int64_t extent) {
  graph::var_desc v;
  v.name = name;
  v.dims = shape{extent};
  v.persistable = true;
  p.main().add_var(std::move(v));
}

void add_constant(graph::program& p, const std::string& name,
                  std::int64_t extent, float value) {
  add_parameter(p, name, extent);
  graph::op_desc op;
  op.type = "fill_constant";
  op.set_output("Out", {name});
  op.attributes.set("shape", std::vector<std::int64_t>{extent});
  op.attributes.set("value", value);
  p.main().ops.push_back(std::move(op));
}

/// A startup program that makes "a" and "b" and coalesces them into "all".
program_bundle coalescing_bundle() {
  program_bundle bundle;
  add_constant(bundle.startup, "a", 2, 1.0f);
  add_constant(bundle.startup, "b", 1, 2.0f);
  add_parameter(bundle.startup, "all", 3);
  graph::op_desc op;
  op.type = "coalesce_tensor";
  op.set_input("Input", {"a", "b"});
  op.set_output("Output", {"a", "b"});
  op.set_output("FusedOutput", {"all"});
  op.attributes.set("copy_data", true);
  op.attributes.set("use_align", false);
  bundle.startup.main().ops.push_back(std::move(op));
  return bundle;
}

std::vector<float> values(scope& parameters, const char* name) {
  const auto all = parameters.var(name).as_tensor().values<float>();
  return {all.begin(), all.end()};
}

} // namespace

TEST_CASE("what was coalesced at the start follows its parts when saved") {
  const program_bundle bundle = coalescing_bundle();
  scope parameters;
  run_startup(bundle.startup, parameters);
  CHECK(values(parameters, "all") == std::vector<float>{1, 1, 2});
  parameters.var("a").as_tensor().values<float>()[1] = 7;
  refresh_coalesced(bundle, parameters);
  CHECK(values(parameters, "all") == std::vector<float>{1, 7, 2});
  CHECK(values(parameters, "a") == std::vector<float>{1, 7});
}

TEST_CASE("a startup program that coalesces nothing changes nothing") {
  program_bundle bundle;
  add_constant(bundle.startup, "a", 2, 1.0f);
  scope parameters;
  run_startup(bundle.startup, parameters);
  parameters.var("a").as_tensor().values<float>()[0] = 7;
  refresh_coalesced(bundle, parameters);
  CHECK(values(parameters, "a") == std::vector<float>{7, 1});
}
} // TEST_SUITE("apps.program_source")
