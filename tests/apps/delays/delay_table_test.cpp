// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <troupe/apps/delays/delay_table.hpp>
#include <troupe/apps/usage_error.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.delay_table") {

TEST_CASE("a table of delays is text, or a file of costs") {
  const auto table = delay_table::read({"conv2d=100us, relu=1.5ms,*=20ns"});
  CHECK(table.of("conv2d").ns == 100'000);
  CHECK(table.of("relu").ns == 1'500'000);
  CHECK(table.of("mul").ns == 20);
  CHECK(delay_table::read({"relu=1s"}).of("mul").is_none());
  CHECK_FALSE(table.costs());
  const temporary_folder folder;
  const auto path = folder / "costs.jsonl";
  troupe::trace::op_cost row;
  row.key.type = "conv2d";
  row.ns = 3000;
  write_bytes(path, to_json(row) + "\n");
  const auto read = delay_table::read({"relu=1s", path.string()});
  REQUIRE(read.costs());
  CHECK(read.costs()->rows()[0].ns == 3000);
  CHECK(read.of("relu").ns == 1'000'000'000);
  CHECK(read.names_type("relu"));
  CHECK_FALSE(read.names_type("conv2d"));
  CHECK_THROWS_AS(delay_table::read({path.string(), path.string()}),
                  usage_error);
  // How much longer an op takes is no cost.
  CHECK_THROWS_AS(
    delay_table::read({path.string()}, delay_table::grammar::names),
    usage_error);
}

TEST_CASE("a table with names has factors, and entries of single ops") {
  const auto names = delay_table::grammar::names;
  const auto table =
    delay_table::read({"conv2d=x1.5,conv2d_3.tmp_0=x1.2,*=20ns"}, names);
  CHECK(table.of("conv2d", "conv2d_2.tmp_0").factor == 1.5);
  CHECK(table.of("conv2d", "conv2d_3.tmp_0").factor == 1.2);
  CHECK(table.of("conv2d", "conv2d_3.tmp_0").ns == 0);
  CHECK(table.of("mul", "mul_1").ns == 20);
  CHECK(table.of("mul", "mul_1").factor == 1);
  CHECK_NOTHROW(
    table.require_known({"conv2d"}, {{"conv2d_3.tmp_0", "conv2d"}}));
  CHECK_THROWS_AS(table.require_known({"conv2d"}, {}), usage_error);
  for (auto* text : {"relu=x", "relu=x0.9", "relu=1.2", "relu=xx2", "relu=x2ms",
                     "relu=x-2", "relu=xnan", "relu=x1e30", "=x2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(delay_table::read({text}, names), usage_error);
  }
  CHECK_THROWS_AS(delay_table::read({"relu=x2"}), usage_error);
}

TEST_CASE("bad delays are refused") {
  for (auto* text : {"conv2d=", "conv2d=3", "=3us", "relu=-1us", "relu=1h",
                     "relu=us", "relu=1e30s", "relu=nanus", "no_such_file"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(delay_table::read({text}), usage_error);
  }
  for (auto* file : {"no/such", "no_such.jsonl", "/dev/zero", "/tmp"}) {
    CAPTURE(file);
    CHECK_THROWS_AS(delay_table::read({file}), troupe::error);
  }
  for (const auto* text : {"mul=1us,*=2us,mul=3us", "mul=1us, mul=1us"})
    CHECK(fails_with(run_troupe({"bench", "schedule", "mlp", "--delay", text}),
                     2, {"--delay: 'mul' is there twice"}));
  CHECK(fails_with(run_troupe({"bench", "schedule", "mlp", "--delay", "x=y"}),
                   2, {"--delay", "x=y"}));
  CHECK(fails_with(run_troupe({"bench", "schedule", "mlp", "--delay",
                               "nosuch=10us", "--delay", "mul=1us,*=1us"}),
                   2, {"--delay: the program has no op of type 'nosuch'"}));
  CHECK(
    fails_with(run_troupe({"bench", "schedule", "mlp", "--delay", "mul=0us"}),
               2, {"--delay: no op of the program takes time"}));
  CHECK(fails_with(run_troupe({"bench", "schedule", "mlp", "--delay", "x=1us",
                               "--delay-kind", "wait"}),
                   2, {"--delay-kind"}));
}

} // TEST_SUITE("apps.delay_table")
