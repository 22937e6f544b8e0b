// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/rnn/rnn_direction.hpp>
#include <troupe/kernels/cpu/rnn/rnn_dropout.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// Input [steps, batch, input], PreState h (and c) [layers * directions, batch,
// hidden]. WeightList: w_ih and w_hh of each layer and direction, then b_ih and
// b_hh of each. Out [steps, batch, directions * hidden]. Reserve holds what the
// gradient needs: `rnn_saved` of each layer and direction, then the outputs of
// all layers but the last, as the next layer reads them.
class rnn_base : public kernel {
public:
  explicit rnn_base(const attribute_map& attributes)
    : cell_(find_rnn_cell(attributes.get_string("mode", "RNN_TANH"))),
      layers_(attributes.get_int("num_layers", 1)),
      is_test_(attributes.get_bool("is_test", false)), dropout_(attributes) {
    sizes_.hidden = attributes.get_int("hidden_size", 100);
    sizes_.directions = attributes.get_bool("is_bidirec", false) ? 2 : 1;
    constexpr auto most = std::int64_t{1} << 20;
    if (layers_ < 1 || sizes_.hidden < 1
        || std::max(layers_, sizes_.hidden) > most)
      throw error(errc::invalid_argument,
                  "num_layers and hidden_size of rnn must be positive and at "
                  "most 2^20");
  }

protected:
  /// Reads all inputs but Reserve and checks their shapes.
  void read(const kernel_context& ctx) {
    input_ = float_input(ctx, "Input");
    require_rank("Input", input_.dims(), 3);
    sizes_.steps = input_.dims()[0];
    sizes_.batch = input_.dims()[1];
    if (sizes_.steps < 1)
      throw_shape("Input", input_.dims(), "has no time steps");
    read_states(ctx);
    read_weights(ctx);
    read_lengths(ctx);
  }

  void clear() {
    dropout_.release();
    input_ = {};
    states_.clear();
    weights_.clear();
  }

  std::int64_t out_width() const { return sizes_.directions * sizes_.hidden; }
  std::int64_t input_width(std::int64_t layer) const {
    return layer == 0 ? input_.dims()[2] : out_width();
  }
  std::int64_t saved_elements() const {
    return rnn_saved::blocks(cell_) * sizes_.block();
  }
  std::int64_t reserve_elements() const {
    return layers_ * sizes_.directions * saved_elements()
           + (layers_ - 1) * sizes_.rows() * out_width();
  }
  std::int64_t state_elements() const { return sizes_.batch * sizes_.hidden; }
  std::int64_t gate_width() const { return cell_.gates * sizes_.hidden; }

  /// The output of a layer other than the last, in Reserve.
  float* layer_output(float* reserve, std::int64_t layer) const {
    return reserve + layers_ * sizes_.directions * saved_elements()
           + layer * sizes_.rows() * out_width();
  }

  std::size_t index_of(std::int64_t layer, std::int64_t direction) const {
    return static_cast<std::size_t>(layer * sizes_.directions + direction);
  }

  rnn_direction direction(float* reserve, std::int64_t layer,
                          std::int64_t number) const {
    const auto i = index_of(layer, number);
    const auto k = static_cast<std::int64_t>(i);
    rnn_direction d{.cell = cell_, .sizes = sizes_, .weights = {}, .saved = {}};
    d.reverse = number > 0;
    d.input = input_width(layer);
    d.weights = weights_of<const float>(weights_, i);
    d.x = layer == 0 ? input_.data<float>() : layer_output(reserve, layer - 1);
    d.h0 = states_[0].data<float>() + k * state_elements();
    if (cell_.has_cell_state)
      d.c0 = states_[1].data<float>() + k * state_elements();
    d.saved = rnn_saved::in(reserve + k * saved_elements(), cell_, sizes_);
    return d;
  }

  template <class Float, class Tensors>
  rnn_weights<Float> weights_of(Tensors& all, std::size_t i) const {
    const auto biases =
      static_cast<std::size_t>(2 * layers_ * sizes_.directions);
    const auto data = [&](std::size_t k) -> Float* {
      return all[k] ? all[k].template data<float>() : nullptr;
    };
    return {data(2 * i), data(2 * i + 1), data(biases + 2 * i),
            data(biases + 2 * i + 1)};
  }

  shape weight_dims(std::size_t k) const {
    const auto count = static_cast<std::size_t>(layers_ * sizes_.directions);
    if (k >= 2 * count)
      return {gate_width()};
    const auto layer = static_cast<std::int64_t>(k / 2) / sizes_.directions;
    return {gate_width(), k % 2 == 0 ? input_width(layer) : sizes_.hidden};
  }

  const rnn_cell& cell_;
  std::int64_t layers_;
  bool is_test_;
  rnn_dropout dropout_;
  rnn_sizes sizes_;
  tensor input_;
  std::vector<tensor> states_;
  std::vector<tensor> weights_;

private:
  void read_states(const kernel_context& ctx) {
    const std::size_t count = cell_.has_cell_state ? 2 : 1;
    states_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      states_.push_back(float_input(ctx, "PreState", i));
      require_shape("PreState", states_.back().dims(),
                    {layers_ * sizes_.directions, sizes_.batch, sizes_.hidden});
    }
  }

  void read_weights(const kernel_context& ctx) {
    const auto count =
      static_cast<std::size_t>(4 * layers_ * sizes_.directions);
    if (ctx.num_inputs("WeightList") != count)
      throw error(errc::invalid_argument,
                  "rnn needs " + std::to_string(count)
                    + " variables in WeightList, not "
                    + std::to_string(ctx.num_inputs("WeightList")));
    weights_.clear();
    for (std::size_t k = 0; k < count; ++k) {
      weights_.push_back(float_input(ctx, "WeightList", k));
      require_shape("WeightList", weights_.back().dims(), weight_dims(k));
    }
  }

  void read_lengths(const kernel_context& ctx) {
    sizes_.lengths.clear();
    if (!ctx.has_input("SequenceLength"))
      return;
    const tensor lengths = ctx.input("SequenceLength");
    const index_values length(lengths, "SequenceLength");
    require_shape("SequenceLength", lengths.dims(), {sizes_.batch});
    for (std::int64_t i = 0; i < sizes_.batch; ++i) {
      if (length[i] < 0 || length[i] > sizes_.steps)
        throw error(errc::out_of_range,
                    "SequenceLength " + std::to_string(length[i]) + " of "
                      + std::to_string(sizes_.steps) + " steps");
      sizes_.lengths.push_back(length[i]);
    }
  }
};

class rnn_kernel final : public rnn_base {
public:
  using rnn_base::rnn_base;

  void run(kernel_context& ctx) override {
    read(ctx);
    if (dropout_.drops())
      dropout_.draw(ctx, sizes_);
    const shape dims{reserve_elements()};
    tensor reserve = ctx.has_output("Reserve") && !is_test_
                       ? float_output(ctx, "Reserve", dims)
                       : ctx.scratch(reserve_elements());
    tensor out =
      float_output(ctx, "Out", {sizes_.steps, sizes_.batch, out_width()});
    std::vector<tensor> last;
    for (std::size_t i = 0; i < ctx.num_outputs("State"); ++i)
      last.push_back(float_output(ctx, "State", states_[0].dims(), i));
    tensor scratch = ctx.scratch(sizes_.batch * gate_width());
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      run_layer(layer, reserve.data<float>(), out.data<float>(), last,
                scratch.data<float>());
    clear();
  }

private:
  void run_layer(std::int64_t layer, float* reserve, float* out,
                 std::vector<tensor>& last, float* scratch) {
    float* target = layer + 1 == layers_ ? out : layer_output(reserve, layer);
    for (std::int64_t k = 0; k < sizes_.directions; ++k) {
      const auto d = direction(reserve, layer, k);
      d.forward(target + k * sizes_.hidden, out_width(), scratch);
      const auto at =
        static_cast<std::int64_t>(index_of(layer, k)) * state_elements();
      if (!last.empty())
        copy(last[0].data<float>() + at, d.last_h(), state_elements());
      if (cell_.has_cell_state && last.size() > 1)
        copy(last[1].data<float>() + at, d.last_c(), state_elements());
    }
    if (dropout_.drops() && layer + 1 < layers_)
      dropout_.apply(target);
  }
};

class rnn_grad_kernel final : public rnn_base {
public:
  using rnn_base::rnn_base;

  void run(kernel_context& ctx) override {
    read(ctx);
    if (dropout_.drops())
      dropout_.read(ctx, sizes_);
    reserve_ = float_input(ctx, "Reserve");
    require_shape("Reserve", reserve_.dims(), {reserve_elements()});
    dout_ = optional_input(ctx, "Out@GRAD", 0,
                           {sizes_.steps, sizes_.batch, out_width()});
    dh_ = states_gradient(ctx, 0);
    dc_ = cell_.has_cell_state ? states_gradient(ctx, 1) : tensor{};
    make_weight_gradients(ctx);
    const auto rows = sizes_.rows();
    scratch_ = ctx.scratch(2 * rows * gate_width());
    tensor dinput;
    if (ctx.has_output("Input@GRAD"))
      dinput = zeros(float_output(ctx, "Input@GRAD", input_.dims()));
    tensor dlayer = dout_;
    for (std::int64_t layer = layers_ - 1; layer >= 0; --layer) {
      tensor dx = layer == 0 ? dinput : zeros(ctx.scratch(rows * out_width()));
      run_layer(layer, dlayer, dx);
      if (dropout_.drops() && layer > 0)
        dropout_.apply(dx.data<float>());
      dlayer = dx;
    }
    release();
  }

private:
  static tensor zeros(tensor value) {
    fill(value.data<float>(), value.numel(), 0.0f);
    return value;
  }

  static tensor optional_input(const kernel_context& ctx, std::string_view slot,
                               std::size_t index, const shape& dims) {
    if (!ctx.has_input(slot, index)
        || !ctx.input_variable(slot, index).has_value())
      return {};
    const tensor value = float_input(ctx, slot, index);
    require_shape(slot, value.dims(), dims);
    return value;
  }

  /// The gradient of the last states. It uses the memory of the first states'
  /// gradient.
  tensor states_gradient(const kernel_context& ctx, std::size_t index) {
    const shape& dims = states_[0].dims();
    const tensor from = optional_input(ctx, "State@GRAD", index, dims);
    tensor to = ctx.has_output("PreState@GRAD", index)
                  ? float_output(ctx, "PreState@GRAD", dims, index)
                  : ctx.scratch(dims.numel());
    if (from)
      copy(to.data<float>(), from.data<float>(), from.numel());
    return from ? to : zeros(to);
  }

  void make_weight_gradients(const kernel_context& ctx) {
    dweights_.assign(weights_.size(), tensor{});
    for (std::size_t k = 0; k < weights_.size(); ++k)
      if (ctx.has_output("WeightList@GRAD", k))
        dweights_[k] =
          zeros(float_output(ctx, "WeightList@GRAD", weights_[k].dims(), k));
  }

  void run_layer(std::int64_t layer, const tensor& dout, tensor& dx) {
    for (std::int64_t k = 0; k < sizes_.directions; ++k) {
      const auto i = index_of(layer, k);
      const auto at = static_cast<std::int64_t>(i) * state_elements();
      direction(reserve_.data<float>(), layer, k)
        .backward(dout ? dout.data<float>() + k * sizes_.hidden : nullptr,
                  out_width(), dx ? dx.data<float>() : nullptr,
                  dh_.data<float>() + at,
                  dc_ ? dc_.data<float>() + at : nullptr,
                  weights_of<float>(dweights_, i), scratch_.data<float>());
    }
  }

  void release() {
    clear();
    dweights_.clear();
    reserve_ = dout_ = dh_ = dc_ = scratch_ = {};
  }

  tensor reserve_, dout_, dh_, dc_, scratch_;
  std::vector<tensor> dweights_;
};

} // namespace

std::unique_ptr<kernel> make_rnn(const attribute_map& attributes) {
  return std::make_unique<rnn_kernel>(attributes);
}

std::unique_ptr<kernel> make_rnn_grad(const attribute_map& attributes) {
  return std::make_unique<rnn_grad_kernel>(attributes);
}

} // namespace troupe::cpu
