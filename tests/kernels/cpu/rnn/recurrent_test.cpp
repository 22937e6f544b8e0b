// SPDX-License-Identifier: Apache-2.0
// What recurrent nets and tensor arrays refuse. What they compute:
// tests/paddle.
#include <kernels/cpu/hand_run.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace troupe {

using test::caught;
using test::hand_run;
using test::says;

TEST_SUITE("kernels.cpu.recurrent") {

namespace {

std::vector<float> ramp(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = 0.1f * static_cast<float>(i);
  return values;
}

attribute_map simple(std::int32_t hidden) {
  return {{"mode", std::string{"RNN_TANH"}}, {"hidden_size", hidden}};
}

/// Two steps, one sample, width 3, two hidden units; `last` replaces b_hh.
void give_inputs(hand_run& run, std::int64_t last = 2) {
  run.input("Input", {2, 1, 3}, ramp(6));
  run.input("PreState", {1, 1, 2}, ramp(2));
  run.input("WeightList", {2, 3}, ramp(6));
  run.input("WeightList", {2, 2}, ramp(4));
  run.input("WeightList", {2}, ramp(2));
  run.input("WeightList", {last}, ramp(static_cast<std::size_t>(last)));
}

} // namespace

TEST_CASE("weights of another shape are refused") {
  hand_run run("rnn", simple(2));
  give_inputs(run, 3);
  run.output("Out");
  const auto e = caught([&] { run.run(); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "WeightList [3]"));
}

TEST_CASE("too few weights are refused with their number") {
  auto attributes = simple(2);
  attributes.set("num_layers", 2);
  hand_run run("rnn", attributes);
  run.input("Input", {2, 1, 3}, ramp(6));
  run.input("PreState", {2, 1, 2}, ramp(4));
  run.input("WeightList", {2, 3}, ramp(6));
  run.output("Out");
  CHECK(says(caught([&] { run.run(); }), "8 variables in WeightList, not 1"));
}

TEST_CASE("a length beyond the steps is refused") {
  hand_run run("rnn", simple(2));
  give_inputs(run);
  run.labels("SequenceLength", {1}, {3});
  run.output("Out");
  CHECK(caught([&] { run.run(); }).code() == errc::out_of_range);
}

TEST_CASE("an unknown mode and a dropout_prob above 1 are refused") {
  CHECK(says(caught([] {
               hand_run{"rnn", {{"mode", std::string{"CNN"}}}};
             }),
             "no mode CNN"));
  CHECK(caught([] {
          hand_run{"rnn",
                   {{"mode", std::string{"LSTM"}},
                    {"num_layers", 2},
                    {"dropout_prob", 1.5f}}};
        }).code()
        == errc::invalid_argument);
}

TEST_CASE("a Reserve that another forward pass left is refused") {
  hand_run run("rnn_grad", simple(2));
  give_inputs(run);
  run.input("Reserve", {5}, ramp(5));
  run.input("Out@GRAD", {2, 1, 2}, ramp(4));
  run.output("Input@GRAD");
  CHECK(says(caught([&] { run.run(); }), "Reserve [5]"));
}

TEST_CASE("recurrent ops over sequences need some") {
  for (const char* op : {"lstm", "gru"}) {
    hand_run run(op);
    run.input("Input", {2, 12}, ramp(24));
    run.input("Weight", {3, 12}, ramp(36));
    run.output("Hidden");
    CHECK(says(caught([&] { run.run(); }), "has no sequences"));
  }
}

TEST_CASE("an entry of a tensor array that is not there is refused") {
  variable array;
  array.set(tensor_array(2));
  hand_run run("read_from_array");
  run.input("X", array);
  run.labels("I", {1}, {2});
  run.output("Out");
  CHECK(says(caught([&] { run.run(); }), "entry 2 of a tensor array of 2"));
}

TEST_CASE("an index of a tensor array must be sane") {
  for (std::int64_t index : {std::int64_t{-1}, std::int64_t{1} << 40}) {
    hand_run run("write_to_array");
    run.input("X", {1}, {1});
    run.labels("I", {1}, {index});
    run.output("Out");
    CHECK(caught([&] { run.run(); }).code() == errc::out_of_range);
  }
}

TEST_CASE("an array keeps what was written when the variable changes") {
  variable x, array;
  hand_run write("write_to_array");
  write.input("X", {2}, {1, 2});
  write.labels("I", {1}, {0});
  write.output("Out", array);
  write.run();
  hand_run scale("scale", {{"scale", 3.0f}});
  x.set(array.as_array()[0]);
  scale.input("X", x);
  scale.output("Out", x);
  scale.run();
  CHECK(array.as_array()[0].values<float>()[1] == 2);
  CHECK(x.as_tensor().values<float>()[1] == 6);
}

TEST_CASE("a branch that is not there is refused") {
  hand_run run("select_input");
  run.input("X", {1}, {1});
  run.labels("Mask", {1}, {1});
  run.output("Out");
  CHECK(caught([&] { run.run(); }).code() == errc::out_of_range);
}
} // TEST_SUITE("kernels.cpu.recurrent")

} // namespace troupe
