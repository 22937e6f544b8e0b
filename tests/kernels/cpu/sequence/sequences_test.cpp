// SPDX-License-Identifier: Apache-2.0
// What ops over sequences refuse. What they compute: tests/paddle.
#include <kernels/cpu/hand_run.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace troupe {

using test::caught;
using test::hand_run;
using test::says;

TEST_SUITE("kernels.cpu.sequences") {

namespace {

void give_levels(variable& var, lod levels) {
  auto& value = var.as_tensor();
  value.set_levels(make_lod(std::move(levels), value.dims()[0]));
}

const std::vector<float> six{0, 1, 2, 3, 4, 5};

} // namespace

TEST_CASE("ops over sequences need some") {
  for (const char* op : {"sequence_pool", "sequence_softmax",
                         "sequence_reverse", "sequence_concat"}) {
    CAPTURE(op);
    hand_run run(op);
    run.input("X", {6, 1}, six);
    run.output("Out");
    const auto e = caught([&] { run.run(); });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(says(e, "X [6, 1] has no sequences"));
  }
}

TEST_CASE("an unknown pooltype is refused with those that there are") {
  CHECK(says(caught([] {
               hand_run{"sequence_pool", {{"pooltype", std::string{"MIN"}}}};
             }),
             "AVERAGE"));
}

TEST_CASE("a row of MaxIndex outside of X is refused") {
  hand_run run("sequence_pool_grad", {{"pooltype", std::string{"MAX"}}});
  give_levels(run.input("X", {6, 1}, six), {{0, 2, 6}});
  run.input("Out@GRAD", {2, 1}, {1, 1});
  run.labels("MaxIndex", {2, 1}, {0, 6});
  run.output("X@GRAD");
  CHECK(caught([&] { run.run(); }).code() == errc::out_of_range);
}

TEST_CASE("sequences of X and Y must be equally many") {
  hand_run run("sequence_expand");
  run.input("X", {2, 1}, {1, 2});
  give_levels(run.input("Y", {6, 1}, six), {{0, 1, 2, 6}});
  run.output("Out");
  CHECK(caught([&] { run.run(); }).code() == errc::shape_mismatch);
}

TEST_CASE("a level that Y has not is refused") {
  hand_run run("sequence_expand", {{"ref_level", 1}});
  run.input("X", {1, 1}, {1});
  give_levels(run.input("Y", {6, 1}, six), {{0, 6}});
  run.output("Out");
  CHECK(caught([&] { run.run(); }).code() == errc::out_of_range);
}

TEST_CASE("lengths beyond the padded one are refused") {
  hand_run unpad("sequence_unpad");
  unpad.input("X", {2, 3}, six);
  unpad.labels("Length", {2}, {3, 4});
  unpad.output("Out");
  CHECK(caught([&] { unpad.run(); }).code() == errc::out_of_range);
  hand_run pad("sequence_pad", {{"padded_length", 2}});
  give_levels(pad.input("X", {6, 1}, six), {{0, 1, 6}});
  pad.input("PadValue", {1}, {0});
  pad.output("Out");
  CHECK(caught([&] { pad.run(); }).code() == errc::invalid_argument);
}

TEST_CASE("offsets that do not cut the rows are refused by lod_reset") {
  hand_run run("lod_reset", {{"target_lod", std::vector{0, 2, 5}}});
  run.input("X", {6, 1}, six);
  run.output("Out");
  CHECK(says(caught([&] { run.run(); }), "end with 5 instead of 6"));
}

TEST_CASE("an output that is written in place forgets old sequences") {
  hand_run run("fill_constant",
               {{"shape", std::vector{6, 1}}, {"value", 2.0f}, {"dtype", 5}});
  variable out;
  out.set(tensor{});
  {
    hand_run first("assign");
    give_levels(first.input("X", {6, 1}, six), {{0, 6}});
    first.output("Out", out);
    first.run();
    CHECK(out.as_tensor().levels());
  }
  run.output("Out", out);
  run.run();
  CHECK_FALSE(out.as_tensor().levels());
}
} // TEST_SUITE("kernels.cpu.sequences")

} // namespace troupe
