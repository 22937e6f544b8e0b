// SPDX-License-Identifier: Apache-2.0
// What Paddle's cases do not show: rows in any order, no rows, outputs apart
// from inputs, bad input.
#include <kernels/cpu/hand_run.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace troupe;
using namespace troupe::test;
using floats = std::vector<float>;

TEST_SUITE("kernels.cpu.optimizers") {

namespace {

using state_slots = std::vector<std::array<const char*, 2>>;

struct optimizer {
  const char* type;
  state_slots state;
};

const optimizer sparse_optimizers[] = {
  {"sgd", {}},
  {"momentum", {{"Velocity", "VelocityOut"}}},
  {"adagrad", {{"Moment", "MomentOut"}}},
  {"rmsprop", {{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}}},
  {"ftrl",
   {{"SquaredAccumulator", "SquaredAccumOut"},
    {"LinearAccumulator", "LinearAccumOut"}}},
  {"adam", {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}},
  {"adamw", {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}},
  {"lamb", {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}},
};

/// One step on a parameter [4, 1]; its state is halves.
struct sparse_step {
  sparse_step(const optimizer& o, std::vector<std::int64_t> rows,
              const floats& values, bool in_place = true)
    : op(o.type, {{"mu", 0.5f}, {"weight_decay", 0.1f}, {"l1", 0.1f}}) {
    op.input("LearningRate", {1}, {0.5f});
    op.input("Beta1Pow", {1}, {0.9f});
    op.input("Beta2Pow", {1}, {0.999f});
    op.rows("Grad", 4, std::move(rows), 1, values);
    add("Param", "ParamOut", 1.0f, in_place);
    for (auto [in, out] : o.state)
      add(in, out, 0.5f, in_place);
  }

  void add(const char* in, const char* out, float value, bool in_place) {
    auto& var = op.input(in, {4, 1}, {value, value, value, value});
    results.push_back(&(in_place ? op.output(out, var) : op.output(out)));
  }

  std::vector<floats> run() {
    op.run();
    std::vector<floats> all;
    for (auto* var : results)
      all.push_back(elements(*var));
    return all;
  }

  hand_run op;
  std::vector<variable*> results;
};

} // namespace

TEST_CASE("rows give the same step in whatever order they come") {
  for (const auto& o : sparse_optimizers) {
    CAPTURE(o.type);
    const auto sorted = sparse_step(o, {0, 1, 3}, {1, 2, 4}).run();
    CHECK(sparse_step(o, {3, 0, 1}, {4, 1, 2}).run() == sorted);
    CHECK(sparse_step(o, {3, 1, 0, 3}, {1, 2, 1, 3}).run() == sorted);
  }
}

TEST_CASE("a gradient without rows leaves parameter and state alone") {
  for (const auto& o : sparse_optimizers) {
    CAPTURE(o.type);
    for (const bool in_place : {true, false}) {
      const auto after = sparse_step(o, {}, {}, in_place).run();
      CHECK(after.front() == floats(4, 1.0f));
      for (std::size_t i = 1; i < after.size(); ++i)
        CHECK(after[i] == floats(4, 0.5f));
    }
  }
}

TEST_CASE("outputs apart from the inputs get the same values") {
  for (const auto& o : sparse_optimizers) {
    CAPTURE(o.type);
    CHECK(sparse_step(o, {3, 1}, {1, 2}, false).run()
          == sparse_step(o, {3, 1}, {1, 2}, true).run());
  }
}

TEST_CASE("a row outside the parameter is an error in every optimizer") {
  for (const auto& o : sparse_optimizers) {
    CAPTURE(o.type);
    sparse_step step(o, {4}, {1});
    CHECK(caught([&] { step.run(); }).code() == errc::out_of_range);
  }
}

TEST_CASE("state of another shape is an error that names it") {
  hand_run op("adagrad");
  op.input("LearningRate", {1}, {0.5f});
  op.input("Grad", {2}, {1, 1});
  op.input("Moment", {3}, {1, 1, 1});
  op.output("ParamOut", op.input("Param", {2}, {1, 1}));
  const error e = caught([&] { op.run(); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "Moment"));
}

TEST_CASE("lars needs a weight decay for each parameter") {
  hand_run op("lars_momentum",
              {{"lars_weight_decay", std::vector<float>{0.1f}}});
  op.input("Param", {1}, {1});
  op.input("Param", {1}, {1});
  const error e = caught([&] { op.run(); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "lars_weight_decay"));
}

TEST_CASE("rows without a value each cannot be merged") {
  hand_run op("merge_selected_rows");
  auto& x = op.rows("X", 4, {1, 2}, 1, {1, 2});
  x.as_rows().rows.push_back(3);
  op.output("Out");
  CHECK(caught([&] { op.run(); }).code() == errc::shape_mismatch);
}

TEST_CASE("merging no rows gives no rows") {
  hand_run op("merge_selected_rows");
  op.rows("X", 4, {}, 1, {});
  auto& out = op.output("Out");
  op.run();
  CHECK(out.as_rows().rows.empty());
  CHECK(out.as_rows().height == 4);
}
} // TEST_SUITE("kernels.cpu.optimizers")
