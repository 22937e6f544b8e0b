// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

struct pool_options {
  std::string type = "max";
  ints ksize = {2, 2};
  ints strides = {1, 1};
  ints paddings = {0, 0};
  bool global = false;
  bool adaptive = false;
  bool exclusive = true;
  bool ceil_mode = false;
  std::string padding_algorithm = "EXPLICIT";
};

op_case pool(const shape& x, const pool_options& o) {
  return {.type = "pool2d",
          .inputs = {{"X", {distinct_values(x, 1)}}},
          .attributes = {{"pooling_type", o.type},
                         {"ksize", o.ksize},
                         {"strides", o.strides},
                         {"paddings", o.paddings},
                         {"global_pooling", o.global},
                         {"adaptive", o.adaptive},
                         {"exclusive", o.exclusive},
                         {"ceil_mode", o.ceil_mode},
                         {"padding_algorithm", o.padding_algorithm},
                         {"data_format", "NCHW"}},
          .gradient = gradient_slots{{"Out"}, {"X", "Out"}, {"X"}}};
}

/// Many equal elements: the gradient goes to the first largest of a window.
op_case ties() {
  auto c = pool({1, 2, 6, 6}, {.ksize = {3, 3}, .strides = {2, 2}});
  c.inputs["X"] = {random_indices({1, 2, 6, 6}, 7, 0, 2, dtype::float32)};
  return forward_only(std::move(c));
}

/// The same for windows of 2x2 side by side.
op_case tiles(const shape& x) {
  auto c = pool(x, {.strides = {2, 2}});
  c.inputs["X"] = {random_indices(x, 7, 0, 3, dtype::float32)};
  return forward_only(std::move(c));
}

void add(std::vector<op_case>& all, const std::string& type) {
  auto with = [&](const shape& x, pool_options o) {
    o.type = type;
    all.push_back(pool(x, o));
  };
  with({2, 3, 4, 6}, {.strides = {2, 2}});
  with({1, 1, 1, 1}, {.ksize = {1, 1}});
  with({1, 2, 5, 7}, {.ksize = {3, 2}, .strides = {2, 3}});
  with({1, 2, 5, 6}, {.ksize = {3, 3}, .paddings = {1, 1}});
  with({1, 2, 7, 5}, {.ksize = {3, 3}, .strides = {2, 2}, .paddings = {1, 1}});
  with({1, 2, 6, 6}, {.ksize = {3, 3}, .strides = {2, 2}, .ceil_mode = true});
  with({1, 2, 6, 7}, {.ksize = {3, 3},
                      .strides = {2, 2},
                      .paddings = {1, 1},
                      .ceil_mode = true});
  with({1, 2, 5, 6}, {.ksize = {3, 3}, .paddings = {1, 0, 2, 1}});
  with({1, 2, 5, 6},
       {.ksize = {3, 2}, .strides = {2, 2}, .padding_algorithm = "SAME"});
  with({1, 2, 5, 6},
       {.ksize = {3, 3}, .paddings = {1, 1}, .padding_algorithm = "VALID"});
  with({2, 3, 4, 5}, {.global = true});
  with({2, 3, 4, 5}, {.strides = {2, 2}, .paddings = {1, 1}, .global = true});
  with({1, 2, 5, 7}, {.ksize = {3, 2}, .adaptive = true});
  with({1, 2, 6, 4}, {.ksize = {1, 1}, .adaptive = true});
  with({1, 2, 6, 4}, {.ksize = {3, 2}, .adaptive = true});
  with({0, 2, 4, 4}, {.strides = {2, 2}});
}

void add_inclusive_averages(std::vector<op_case>& all) {
  auto with = [&](const shape& x, pool_options o) {
    o.type = "avg";
    o.exclusive = false;
    all.push_back(pool(x, o));
  };
  with({1, 2, 5, 6}, {.ksize = {3, 3}, .paddings = {1, 1}});
  with({1, 2, 7, 5}, {.ksize = {3, 3}, .strides = {2, 2}, .paddings = {1, 1}});
  with({1, 2, 6, 7}, {.ksize = {3, 3},
                      .strides = {2, 2},
                      .paddings = {1, 1},
                      .ceil_mode = true});
  with({1, 2, 6, 6}, {.ksize = {3, 3}, .strides = {2, 2}, .ceil_mode = true});
  with({1, 2, 5, 7}, {.ksize = {3, 2}, .adaptive = true});
}

} // namespace

std::vector<op_case> pool2d_cases() {
  std::vector<op_case> all;
  add(all, "max");
  add(all, "avg");
  add_inclusive_averages(all);
  all.push_back(ties());
  for (const std::int64_t width : {6, 8, 10, 16, 18, 34})
    all.push_back(tiles({2, 2, 6, width}));
  for (auto type : {"max", "avg"})
    all.push_back(forward_only(pool(
      {2, 17, 19, 17},
      {.type = type, .ksize = {3, 3}, .strides = {2, 2}, .paddings = {1, 1}})));
  return all;
}

} // namespace troupe::test
