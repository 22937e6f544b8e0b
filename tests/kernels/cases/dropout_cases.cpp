// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case dropout(const shape& x, float probability, const std::string& how,
                step_info step = {.seed = 7}, int seed = 0) {
  return {.type = "dropout",
          .inputs = {{"X", {random_values(x, 1)}}},
          .attributes = {{"dropout_prob", probability},
                         {"dropout_implementation", how},
                         {"is_test", false},
                         {"seed", seed}},
          .outputs = {{"Out", 1}, {"Mask", 1}},
          .step = step,
          .gradient = gradient_slots{{"Out"}, {"Mask"}, {"X"}}};
}

op_case in_test(op_case c) {
  c.attributes.set("is_test", true);
  c.outputs = {{"Out", 1}};
  c.gradient.reset();
  return c;
}

} // namespace

std::vector<op_case> dropout_cases() {
  std::vector<op_case> all;
  for (auto how : {"upscale_in_train", "downgrade_in_infer"}) {
    for (float probability : {0.0f, 0.3f, 0.5f, 1.0f})
      all.push_back(dropout({5, 7}, probability, how));
    all.push_back(dropout({1}, 0.5f, how));
    all.push_back(dropout({0, 3}, 0.5f, how));
    all.push_back(dropout({2, 3, 5}, 0.4f, how,
                          {.step = 3, .seed = 9, .first_sample = 11}));
    all.push_back(dropout({4, 5}, 0.4f, how, {.step = 1, .seed = 9}, 5));
    all.push_back(in_test(dropout({3, 5}, 0.3f, how)));
    all.push_back(forward_only(dropout({13, 129}, 0.1f, how,
                                       {.step = 1'000'000,
                                        .seed = ~std::uint64_t{0},
                                        .first_sample = 1'000'003})));
  }
  return all;
}

} // namespace troupe::test
