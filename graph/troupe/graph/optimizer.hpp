// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/gradients.hpp>
#include <troupe/graph/network.hpp>

#include <memory>
#include <source_location>
#include <vector>

/// Optimizers complete a network. `minimize` appends the gradient ops of the
/// loss and one update op per trained parameter (role Optimize, op_role_var
/// [parameter, gradient]). Updates are in place: ParamOut is Param. State
/// variables and the learning rate "learning_rate_0" are persistable, and the
/// startup program initializes them. Gradients can be dense or selected rows.
///
/// `minimize` returns the parameters and their gradients. It throws as
/// `append_backward` does. Constructors throw error(invalid_argument) for
/// options out of range. `sgd()` and `sgd({})` use the defaults.
namespace troupe::graph::optimizer {

/// The type of `{}` in place of an optimizer's options. Without it, `{}` would
/// be ambiguous: the compiler could also take it for an optimizer to copy.
enum class default_options {};

/// Makes the update ops. Private to the library.
struct update_ops;

/// What all optimizers are: a rule by which parameters are updated. They add
/// constructors only, so an `update_rule` can hold a copy of any of them.
class update_rule {
public:
  /// Completes the network of `loss`; the ops remember `at`. Once per network.
  std::vector<parameter_gradient>
  minimize(const variable_ref& loss,
           std::source_location at = std::source_location::current()) const;
  /// Appends updates of all trained parameters that `net` has now, but no
  /// backward pass: the gradient of w is the feed "w@GRAD". For gradients of a
  /// loss that is computed elsewhere, as by `data_parallel`. Returns parameters
  /// and gradients in the order of names. Throws error(invalid_argument) if the
  /// network has gradients already.
  std::vector<parameter_gradient> apply_gradients(
    network& net,
    std::source_location at = std::source_location::current()) const;

protected:
  /// Of an optimizer.
  explicit update_rule(std::shared_ptr<const update_ops> ops);

private:
  std::shared_ptr<const update_ops> ops_; // never changed: copies share them
};

/// Options of `sgd`.
struct sgd_options {
  float learning_rate = 0.01f; ///< >= 0
};

/// param -= learning_rate * grad.
class sgd : public update_rule {
public:
  /// With the default options.
  explicit sgd(default_options = {}) : sgd(sgd_options{}) {}
  /// Throws error(invalid_argument) for an option outside its range.
  explicit sgd(const sgd_options& options);
};

/// Options of `momentum`.
struct momentum_options {
  float learning_rate = 0.01f; ///< >= 0
  float mu = 0.9f; ///< fraction of the velocity that is kept, [0, 1)
  bool nesterov = false;
  float l2_decay = 0; ///< adds l2_decay * param to the gradient, >= 0
};

/// velocity = mu * velocity + grad; param -= learning_rate * velocity. With
/// Nesterov: param -= learning_rate * (grad + mu * velocity).
class momentum : public update_rule {
public:
  /// With the default options.
  explicit momentum(default_options = {}) : momentum(momentum_options{}) {}
  /// Throws error(invalid_argument) for an option outside its range.
  explicit momentum(const momentum_options& options);
};

/// Options of `adam`.
struct adam_options {
  float learning_rate = 0.001f; ///< >= 0
  float beta1 = 0.9f;           ///< [0, 1)
  float beta2 = 0.999f;         ///< [0, 1)
  float epsilon = 1e-8f;        ///< > 0
  /// True: a sparse gradient updates only the rows that it contains. False:
  /// missing rows count as zero gradient.
  bool lazy = false;
};

/// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.
class adam : public update_rule {
public:
  /// With the default options.
  explicit adam(default_options = {}) : adam(adam_options{}) {}
  /// Throws error(invalid_argument) for an option outside its range.
  explicit adam(const adam_options& options);
};

/// Options of `adamw`.
struct adamw_options {
  float learning_rate = 0.001f; ///< >= 0
  float beta1 = 0.9f;           ///< [0, 1)
  float beta2 = 0.999f;         ///< [0, 1)
  float epsilon = 1e-8f;        ///< > 0
  /// Fraction of the parameter that a step with learning rate 1 removes, >= 0.
  float weight_decay = 0.01f;
  bool lazy = false; ///< as in `adam_options`
};

/// Adam with param *= 1 - learning_rate * weight_decay before each step.
/// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.
class adamw : public update_rule {
public:
  /// With the default options.
  explicit adamw(default_options = {}) : adamw(adamw_options{}) {}
  /// Throws error(invalid_argument) for an option outside its range.
  explicit adamw(const adamw_options& options);
};

/// Options of `adagrad`.
struct adagrad_options {
  float learning_rate = 0.01f; ///< >= 0
  float epsilon = 1e-6f;       ///< > 0
  float initial_moment = 0.0f; ///< initial sum of squares, >= 0
};

/// moment += grad^2; param -= learning_rate * grad / (sqrt(moment) + epsilon).
/// Duchi, Hazan and Singer, "Adaptive subgradient methods", JMLR 2011.
class adagrad : public update_rule {
public:
  /// With the default options.
  explicit adagrad(default_options = {}) : adagrad(adagrad_options{}) {}
  /// Throws error(invalid_argument) for an option outside its range.
  explicit adagrad(const adagrad_options& options);
};

/// Options of `rmsprop`.
struct rmsprop_options {
  float learning_rate = 0.01f; ///< >= 0
  float rho = 0.95f;           ///< fraction of the mean that is kept, [0, 1)
  float epsilon = 1e-6f;       ///< > 0
  float momentum = 0.0f;       ///< fraction of the step that is kept, [0, 1)
  bool centered = false;       ///< divide by the standard deviation
};

/// Tieleman and Hinton, "Lecture 6.5: rmsprop", 2012; centered: Graves,
/// "Generating sequences with recurrent neural networks", 2013.
class rmsprop : public update_rule {
public:
  /// With the default options.
  explicit rmsprop(default_options = {}) : rmsprop(rmsprop_options{}) {}
  /// Throws error(invalid_argument) for an option outside its range.
  explicit rmsprop(const rmsprop_options& options);
};

/// Options of `lamb`.
struct lamb_options {
  float learning_rate = 0.001f; ///< >= 0
  float beta1 = 0.9f;           ///< [0, 1)
  float beta2 = 0.999f;         ///< [0, 1)
  float epsilon = 1e-6f;        ///< > 0
  float weight_decay = 0.01f;   ///< >= 0
  bool always_adapt = false;    ///< adapt to norms even without weight decay
};

/// You et al., "Large batch optimization for deep learning: training BERT in
/// 76 minutes", ICLR 2020.
class lamb : public update_rule {
public:
  /// With the default options.
  explicit lamb(default_options = {}) : lamb(lamb_options{}) {}
  /// Throws error(invalid_argument) for an option outside its range.
  explicit lamb(const lamb_options& options);
};

} // namespace troupe::graph::optimizer

namespace troupe {
namespace optimizer = graph::optimizer;
} // namespace troupe
