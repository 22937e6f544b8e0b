// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/optimizer.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <utility>

namespace troupe::graph::optimizer {

namespace {

void check_option(bool condition, const std::string& name, float value,
                  const std::string& range) {
  if (!condition)
    throw error{errc::invalid_argument, "optimizer option " + name + " must be "
                                          + range + ", not "
                                          + std::to_string(value)};
}

void check_learning_rate(float value) {
  check_option(value >= 0, "learning_rate", value, ">= 0");
}

void check_share(const std::string& name, float value) {
  check_option(value >= 0 && value < 1, name, value, "in [0, 1)");
}

void check_epsilon(float value) {
  check_option(value > 0, "epsilon", value, "> 0");
}

void check_decay(const std::string& name, float value) {
  check_option(value >= 0, name, value, ">= 0");
}

/// Checks the options that all variants of Adam have.
template <class Options>
void check_adam(const Options& options) {
  check_learning_rate(options.learning_rate);
  check_share("beta1", options.beta1);
  check_share("beta2", options.beta2);
  check_epsilon(options.epsilon);
}

/// Shared by the update ops of one `minimize`.
struct update_writer {
  network& net;
  std::source_location at;
  std::string learning_rate;

  update_writer(const variable_ref& loss, float rate, std::source_location from)
    : net(loss.net()), at(from),
      learning_rate(net
                      .state(net.unique_name("learning_rate"), {1},
                             initializer::constant{rate}, from)
                      .name()) {}

  /// A state variable named after the parameter: "fc_0.w_0_velocity_0".
  std::string state(const std::string& parameter, std::string_view kind,
                    const shape& dims, float value = 0) {
    auto name = net.unique_name(parameter + "_" + std::string{kind});
    return net.state(std::move(name), dims, initializer::constant{value}, at)
      .name();
  }

  /// The update op of a parameter, without state and options so far.
  op_desc begin(std::string type, const parameter_gradient& p) const {
    op_desc op;
    op.type = std::move(type);
    op.set_input("Param", {p.parameter});
    op.set_input("Grad", {p.gradient});
    op.set_input("LearningRate", {learning_rate});
    op.set_output("ParamOut", {p.parameter});
    op.attributes.set("op_role", std::int32_t{role_optimize});
    op.attributes.set("op_role_var",
                      std::vector<std::string>{p.parameter, p.gradient});
    return op;
  }

  /// Adds a variable that the op updates in place.
  static void add_state(op_desc& op, const std::string& slot,
                        std::string name) {
    op.set_input(slot, {name});
    op.set_output(slot + "Out", {std::move(name)});
  }

  /// Adds a state variable of the parameter's shape, initially filled with
  /// `value`.
  void add_state_like(op_desc& op, const parameter_gradient& p,
                      const std::string& slot, std::string_view kind,
                      float value = 0) {
    const auto dims = net.main.main().var(p.parameter).dims;
    add_state(op, slot, state(p.parameter, kind, dims, value));
  }

  /// Adds Adam's two moments and the powers of its betas.
  void add_moments(op_desc& op, const parameter_gradient& p, float beta1,
                   float beta2) {
    add_state_like(op, p, "Moment1", "moment1");
    add_state_like(op, p, "Moment2", "moment2");
    add_state(op, "Beta1Pow", state(p.parameter, "beta1_pow_acc", {1}, beta1));
    add_state(op, "Beta2Pow", state(p.parameter, "beta2_pow_acc", {1}, beta2));
    op.attributes.set("beta1", beta1);
    op.attributes.set("beta2", beta2);
  }
};

/// Appends the backward pass, then for each parameter the op that
/// `make_update(writer, parameter)` returns.
template <class MakeUpdate>
std::vector<parameter_gradient>
append_updates(const variable_ref& loss, float learning_rate,
               std::source_location at, MakeUpdate make_update) {
  auto& net = loss.net();
  auto gradients = append_backward(net.main, loss.name(), net.schemas());
  update_writer writer{loss, learning_rate, at};
  for (const auto& p : gradients)
    net.append(make_update(writer, p), at);
  return gradients;
}

} // namespace

sgd::sgd(const sgd_options& options) : options_(options) {
  check_learning_rate(options.learning_rate);
}

std::vector<parameter_gradient> sgd::minimize(const variable_ref& loss,
                                              std::source_location at) const {
  auto update = [](update_writer& w, const parameter_gradient& p) {
    return w.begin("sgd", p);
  };
  return append_updates(loss, options_.learning_rate, at, update);
}

momentum::momentum(const momentum_options& options) : options_(options) {
  check_learning_rate(options.learning_rate);
  check_share("mu", options.mu);
  check_decay("l2_decay", options.l2_decay);
}

std::vector<parameter_gradient>
momentum::minimize(const variable_ref& loss, std::source_location at) const {
  auto update = [this](update_writer& w, const parameter_gradient& p) {
    auto op = w.begin("momentum", p);
    w.add_state_like(op, p, "Velocity", "velocity");
    op.attributes.set("mu", options_.mu);
    op.attributes.set("use_nesterov", options_.nesterov);
    op.attributes.set("regularization_method",
                      std::string{options_.l2_decay > 0 ? "l2_decay" : ""});
    op.attributes.set("regularization_coeff", options_.l2_decay);
    return op;
  };
  return append_updates(loss, options_.learning_rate, at, update);
}

adam::adam(const adam_options& options) : options_(options) {
  check_adam(options);
}

std::vector<parameter_gradient> adam::minimize(const variable_ref& loss,
                                               std::source_location at) const {
  auto update = [this](update_writer& w, const parameter_gradient& p) {
    auto op = w.begin("adam", p);
    w.add_moments(op, p, options_.beta1, options_.beta2);
    op.attributes.set("epsilon", options_.epsilon);
    op.attributes.set("lazy_mode", options_.lazy);
    return op;
  };
  return append_updates(loss, options_.learning_rate, at, update);
}

adamw::adamw(const adamw_options& options) : options_(options) {
  check_adam(options);
  check_decay("weight_decay", options.weight_decay);
}

std::vector<parameter_gradient> adamw::minimize(const variable_ref& loss,
                                                std::source_location at) const {
  auto update = [this](update_writer& w, const parameter_gradient& p) {
    auto op = w.begin("adamw", p);
    w.add_moments(op, p, options_.beta1, options_.beta2);
    op.attributes.set("epsilon", options_.epsilon);
    op.attributes.set("coeff", options_.weight_decay);
    op.attributes.set("with_decay", options_.weight_decay > 0);
    op.attributes.set("lr_ratio", 1.0f);
    op.attributes.set("lazy_mode", options_.lazy);
    return op;
  };
  return append_updates(loss, options_.learning_rate, at, update);
}

adagrad::adagrad(const adagrad_options& options) : options_(options) {
  check_learning_rate(options.learning_rate);
  check_epsilon(options.epsilon);
  check_decay("initial_moment", options.initial_moment);
}

std::vector<parameter_gradient>
adagrad::minimize(const variable_ref& loss, std::source_location at) const {
  auto update = [this](update_writer& w, const parameter_gradient& p) {
    auto op = w.begin("adagrad", p);
    w.add_state_like(op, p, "Moment", "moment", options_.initial_moment);
    op.attributes.set("epsilon", options_.epsilon);
    return op;
  };
  return append_updates(loss, options_.learning_rate, at, update);
}

rmsprop::rmsprop(const rmsprop_options& options) : options_(options) {
  check_learning_rate(options.learning_rate);
  check_share("rho", options.rho);
  check_epsilon(options.epsilon);
  check_share("momentum", options.momentum);
}

std::vector<parameter_gradient>
rmsprop::minimize(const variable_ref& loss, std::source_location at) const {
  auto update = [this](update_writer& w, const parameter_gradient& p) {
    auto op = w.begin("rmsprop", p);
    w.add_state_like(op, p, "Moment", "momentum");
    w.add_state_like(op, p, "MeanSquare", "mean_square");
    w.add_state_like(op, p, "MeanGrad", "mean_grad");
    op.attributes.set("decay", options_.rho);
    op.attributes.set("epsilon", options_.epsilon);
    op.attributes.set("momentum", options_.momentum);
    op.attributes.set("centered", options_.centered);
    return op;
  };
  return append_updates(loss, options_.learning_rate, at, update);
}

lamb::lamb(const lamb_options& options) : options_(options) {
  check_adam(options);
  check_decay("weight_decay", options.weight_decay);
}

std::vector<parameter_gradient> lamb::minimize(const variable_ref& loss,
                                               std::source_location at) const {
  auto update = [this](update_writer& w, const parameter_gradient& p) {
    auto op = w.begin("lamb", p);
    w.add_moments(op, p, options_.beta1, options_.beta2);
    op.attributes.set("epsilon", options_.epsilon);
    op.attributes.set("weight_decay", options_.weight_decay);
    op.attributes.set("always_adapt", options_.always_adapt);
    return op;
  };
  return append_updates(loss, options_.learning_rate, at, update);
}

} // namespace troupe::graph::optimizer
