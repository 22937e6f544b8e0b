// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

/// An input of Param's shape, updated in place in slot <name>Out.
void update(shape_inference& s, const std::string& slot) {
  s.check(fits(s.dims(slot), s.dims("Param")), slot,
          "of the shape of Param " + to_string(s.dims("Param")));
  s.output(slot + "Out", s.dims(slot), s.type(slot));
}

void check_scalar(shape_inference& s, std::string_view slot) {
  s.check(product(s.dims(slot), 0, s.dims(slot).rank()) == 1, slot,
          "one element");
}

void infer_sgd(shape_inference& s) {
  check_scalar(s, "LearningRate");
  s.check(fits(s.dims("Grad"), s.dims("Param")), "Grad",
          "of the shape of Param " + to_string(s.dims("Param")));
  update(s, "Param");
}

void infer_momentum(shape_inference& s) {
  infer_sgd(s);
  update(s, "Velocity");
}

void infer_adam(shape_inference& s) {
  infer_sgd(s);
  update(s, "Moment1");
  update(s, "Moment2");
  for (auto slot : {"Beta1Pow", "Beta2Pow"}) {
    check_scalar(s, slot);
    s.output(std::string{slot} + "Out", s.dims(slot), s.type(slot));
  }
}

} // namespace

void add_optimizers(op_schema_table& table) {
  add(table, {{.type = "sgd",
               .inputs = {{"Param"}, {"LearningRate"}, {"Grad"}},
               .outputs = {{"ParamOut"}},
               .infer = infer_sgd},
              {.type = "momentum",
               .inputs = {{"Param"}, {"Grad"}, {"Velocity"}, {"LearningRate"}},
               .outputs = {{"ParamOut"}, {"VelocityOut"}},
               .infer = infer_momentum},
              {.type = "adam",
               .inputs = {{"Param"},
                          {"Grad"},
                          {"LearningRate"},
                          {"Moment1"},
                          {"Moment2"},
                          {"Beta1Pow"},
                          {"Beta2Pow"}},
               .outputs = {{"ParamOut"},
                           {"Moment1Out"},
                           {"Moment2Out"},
                           {"Beta1PowOut"},
                           {"Beta2PowOut"}},
               .infer = infer_adam}});
}

} // namespace troupe::graph::schemas
