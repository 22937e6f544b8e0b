// SPDX-License-Identifier: Apache-2.0
#include <kernels/cpu/hand_run.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::test;
using floats = std::vector<float>;

TEST_SUITE("kernels.cpu.row_gradient") {

namespace {

// An optimizer for a parameter [4, 1] of ones, its gradient rows 3, 1, 3.
struct sparse_step {
  explicit sparse_step(const char* type, attribute_map attributes = {})
    : op(type, std::move(attributes)) {
    op.input("LearningRate", {1}, {0.5f});
    op.rows("Grad", 4, {3, 1, 3}, 1, {1, 2, 4});
    p = &op.input("Param", {4, 1}, {1, 1, 1, 1});
    op.output("ParamOut", *p);
  }

  hand_run op;
  variable* p;
};

} // namespace

TEST_CASE("sgd adds duplicate rows up and leaves other rows alone") {
  sparse_step s("sgd");
  s.op.run();
  CHECK(elements(*s.p) == floats{1, 0, 1, -1.5f});
}

TEST_CASE("momentum on rows lets the velocity decay everywhere") {
  sparse_step s("momentum", {{"mu", 0.5f}});
  auto& v = s.op.input("Velocity", {4, 1}, {2, 2, 2, 2});
  s.op.output("VelocityOut", v);
  s.op.run();
  CHECK(elements(v) == floats{1, 3, 1, 6});
  CHECK(elements(*s.p) == floats{0.5f, -0.5f, 0.5f, -2});
}

TEST_CASE("lazy adam changes only the rows that occur") {
  for (const bool lazy : {false, true}) {
    sparse_step s("adam", {{"lazy_mode", lazy}});
    auto& m = s.op.input("Moment1", {4, 1}, {1, 1, 1, 1});
    auto& v = s.op.input("Moment2", {4, 1}, {1, 1, 1, 1});
    s.op.input("Beta1Pow", {1}, {0.9f});
    s.op.input("Beta2Pow", {1}, {0.999f});
    s.op.output("Moment1Out", m);
    s.op.output("Moment2Out", v);
    s.op.run();
    CHECK((elements(m)[0] == 1.0f) == lazy);
    CHECK((elements(*s.p)[2] == 1.0f) == lazy);
    CHECK(elements(m)[3] == doctest::Approx(0.9 + 0.1 * 5));
  }
}

TEST_CASE("a row outside the parameter is an error that names it") {
  hand_run op("sgd");
  op.input("LearningRate", {1}, {0.5f});
  op.rows("Grad", 4, {7}, 1, {1});
  auto& p = op.input("Param", {4, 1}, {1, 1, 1, 1});
  op.output("ParamOut", p);
  const error e = caught([&] { op.run(); });
  CHECK(e.code() == errc::out_of_range);
  CHECK(says(e, "row 7"));
  CHECK(elements(p) == floats{1, 1, 1, 1});
}
} // TEST_SUITE("kernels.cpu.row_gradient")
