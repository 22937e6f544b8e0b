// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/optimizer.hpp>

#include <troupe/base/error.hpp>

#include <functional>
#include <memory>
#include <span>
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

  update_writer(network& of, float rate, std::source_location from)
    : net(of), at(from),
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

} // namespace

struct update_ops {
  float learning_rate = 0;
  /// Makes the op that updates a parameter.
  std::function<op_desc(update_writer&, const parameter_gradient&)> make;
};

namespace {

void append_updates(network& net, std::span<const parameter_gradient> all,
                    const update_ops& ops, std::source_location at) {
  update_writer writer{net, ops.learning_rate, at};
  for (const auto& p : all)
    net.append(ops.make(writer, p), at);
}

/// Appends the backward pass and the updates.
std::vector<parameter_gradient> append_training(const variable_ref& loss,
                                                const update_ops& ops,
                                                std::source_location at) {
  auto& net = loss.net();
  auto gradients = append_backward(net.main, loss.name(), net.schemas());
  append_updates(net, gradients, ops, at);
  return gradients;
}

/// Declares the gradients of all trained parameters, in the order of names.
std::vector<parameter_gradient> declare_gradients(network& net) {
  std::vector<parameter_gradient> found;
  auto& block = net.main.main();
  for (const auto& [name, var] : block.vars)
    if (var.is_parameter && !var.stop_gradient)
      found.push_back({name, gradient_name(name)});
  for (const auto& p : found) {
    if (block.find_var(p.gradient))
      throw error{errc::invalid_argument,
                  "the program has gradients of '" + p.parameter + "' already",
                  {.variable = p.parameter}};
    auto gradient = block.var(p.parameter);
    gradient.name = p.gradient;
    gradient.persistable = gradient.is_parameter = false;
    gradient.need_check_feed = true;
    block.add_var(std::move(gradient));
  }
  return found;
}

/// Appends updates from gradients that are fed.
std::vector<parameter_gradient>
append_updates(network& net, const update_ops& ops, std::source_location at) {
  auto gradients = declare_gradients(net);
  append_updates(net, gradients, ops, at);
  return gradients;
}

op_desc update_op(const sgd_options&, update_writer& w,
                  const parameter_gradient& p) {
  return w.begin("sgd", p);
}

op_desc update_op(const momentum_options& options, update_writer& w,
                  const parameter_gradient& p) {
  auto op = w.begin("momentum", p);
  w.add_state_like(op, p, "Velocity", "velocity");
  op.attributes.set("mu", options.mu);
  op.attributes.set("use_nesterov", options.nesterov);
  op.attributes.set("regularization_method",
                    std::string{options.l2_decay > 0 ? "l2_decay" : ""});
  op.attributes.set("regularization_coeff", options.l2_decay);
  return op;
}

op_desc update_op(const adam_options& options, update_writer& w,
                  const parameter_gradient& p) {
  auto op = w.begin("adam", p);
  w.add_moments(op, p, options.beta1, options.beta2);
  op.attributes.set("epsilon", options.epsilon);
  op.attributes.set("lazy_mode", options.lazy);
  return op;
}

op_desc update_op(const adamw_options& options, update_writer& w,
                  const parameter_gradient& p) {
  auto op = w.begin("adamw", p);
  w.add_moments(op, p, options.beta1, options.beta2);
  op.attributes.set("epsilon", options.epsilon);
  op.attributes.set("coeff", options.weight_decay);
  op.attributes.set("with_decay", options.weight_decay > 0);
  op.attributes.set("lr_ratio", 1.0f);
  op.attributes.set("lazy_mode", options.lazy);
  return op;
}

op_desc update_op(const adagrad_options& options, update_writer& w,
                  const parameter_gradient& p) {
  auto op = w.begin("adagrad", p);
  w.add_state_like(op, p, "Moment", "moment", options.initial_moment);
  op.attributes.set("epsilon", options.epsilon);
  return op;
}

op_desc update_op(const rmsprop_options& options, update_writer& w,
                  const parameter_gradient& p) {
  auto op = w.begin("rmsprop", p);
  w.add_state_like(op, p, "Moment", "momentum");
  w.add_state_like(op, p, "MeanSquare", "mean_square");
  w.add_state_like(op, p, "MeanGrad", "mean_grad");
  op.attributes.set("decay", options.rho);
  op.attributes.set("epsilon", options.epsilon);
  op.attributes.set("momentum", options.momentum);
  op.attributes.set("centered", options.centered);
  return op;
}

op_desc update_op(const lamb_options& options, update_writer& w,
                  const parameter_gradient& p) {
  auto op = w.begin("lamb", p);
  w.add_moments(op, p, options.beta1, options.beta2);
  op.attributes.set("epsilon", options.epsilon);
  op.attributes.set("weight_decay", options.weight_decay);
  op.attributes.set("always_adapt", options.always_adapt);
  return op;
}

template <class Options>
std::shared_ptr<const update_ops> ops_of(const Options& options) {
  return std::make_shared<update_ops>(
    update_ops{options.learning_rate,
               [options](update_writer& w, const parameter_gradient& p) {
                 return update_op(options, w, p);
               }});
}

} // namespace

update_rule::update_rule(std::shared_ptr<const update_ops> ops)
  : ops_(std::move(ops)) {}

std::vector<parameter_gradient>
update_rule::minimize(const variable_ref& loss, std::source_location at) const {
  return append_training(loss, *ops_, at);
}

std::vector<parameter_gradient>
update_rule::apply_gradients(network& net, std::source_location at) const {
  return append_updates(net, *ops_, at);
}

sgd::sgd(const sgd_options& options) : update_rule(ops_of(options)) {
  check_learning_rate(options.learning_rate);
}

momentum::momentum(const momentum_options& options)
  : update_rule(ops_of(options)) {
  check_learning_rate(options.learning_rate);
  check_share("mu", options.mu);
  check_decay("l2_decay", options.l2_decay);
}

adam::adam(const adam_options& options) : update_rule(ops_of(options)) {
  check_adam(options);
}

adamw::adamw(const adamw_options& options) : update_rule(ops_of(options)) {
  check_adam(options);
  check_decay("weight_decay", options.weight_decay);
}

adagrad::adagrad(const adagrad_options& options)
  : update_rule(ops_of(options)) {
  check_learning_rate(options.learning_rate);
  check_epsilon(options.epsilon);
  check_decay("initial_moment", options.initial_moment);
}

rmsprop::rmsprop(const rmsprop_options& options)
  : update_rule(ops_of(options)) {
  check_learning_rate(options.learning_rate);
  check_share("rho", options.rho);
  check_epsilon(options.epsilon);
  check_share("momentum", options.momentum);
}

lamb::lamb(const lamb_options& options) : update_rule(ops_of(options)) {
  check_adam(options);
  check_decay("weight_decay", options.weight_decay);
}

} // namespace troupe::graph::optimizer
