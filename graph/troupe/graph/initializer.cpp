// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/initializer.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/dtype_number.hpp>

#include <cmath>
#include <utility>
#include <vector>

namespace troupe::graph::initializer {

namespace {

struct fans {
  double in, out;
};

fans fans_of(const std::string& name, const shape& dims) {
  if (dims.rank() < 2)
    throw error{errc::invalid_argument,
                "'" + name + "' of shape " + to_string(dims)
                  + " has no fan-in: xavier and msra need two extents"};
  if (dims.rank() == 2)
    return {static_cast<double>(dims[0]), static_cast<double>(dims[1])};
  const auto window = static_cast<double>(dims.numel(2, dims.rank()));
  return {static_cast<double>(dims[1]) * window,
          static_cast<double>(dims[0]) * window};
}

/// Makes the op that initialises a variable. Expresses xavier and msra as
/// uniform or normal distributions.
struct op_maker {
  const std::string& name;
  const shape& dims;
  dtype type;

  op_desc make(std::string op_type, attribute_map attributes) const {
    op_desc op;
    op.type = std::move(op_type);
    op.attributes = std::move(attributes);
    op.attributes.set("shape",
                      std::vector<std::int64_t>(dims.begin(), dims.end()));
    op.attributes.set("dtype", dtype_number(type));
    op.set_output("Out", {name});
    return op;
  }

  op_desc operator()(const constant& c) const {
    return make("fill_constant", {{"value", c.value}});
  }
  op_desc operator()(const uniform& u) const {
    return make("uniform_random",
                {{"min", u.low}, {"max", u.high}, {"seed", u.seed}});
  }
  op_desc operator()(const normal& n) const {
    return make("gaussian_random",
                {{"mean", n.mean}, {"std", n.stddev}, {"seed", n.seed}});
  }
  op_desc operator()(const truncated_normal& n) const {
    return make("truncated_gaussian_random",
                {{"mean", n.mean}, {"std", n.stddev}, {"seed", n.seed}});
  }

  /// A distribution of mean 0 with the given variance.
  op_desc spread(double variance, bool as_uniform, std::int32_t seed) const {
    const auto limit = static_cast<float>(std::sqrt(3 * variance));
    if (as_uniform)
      return (*this)(uniform{-limit, limit, seed});
    return (*this)(normal{0, static_cast<float>(std::sqrt(variance)), seed});
  }
  op_desc operator()(const xavier& x) const {
    const auto fan = fans_of(name, dims);
    return spread(2 / (fan.in + fan.out), x.as_uniform, x.seed);
  }
  op_desc operator()(const msra& m) const {
    const double slope = m.negative_slope;
    return spread(2 / ((1 + slope * slope) * fans_of(name, dims).in),
                  m.as_uniform, m.seed);
  }
};

} // namespace

op_desc make_op(const any& how, const std::string& name, const shape& dims,
                dtype type) {
  if (dims.has_unknown())
    throw error{errc::invalid_argument, "the shape " + to_string(dims) + " of '"
                                          + name
                                          + "' must be known to initialise it"};
  return std::visit(op_maker{name, dims, type}, how);
}

} // namespace troupe::graph::initializer
