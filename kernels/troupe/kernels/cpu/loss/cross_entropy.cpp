// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/loss/class_labels.hpp>
#include <troupe/kernels/cpu/loss/row_softmax.hpp>
#include <troupe/kernels/cpu/reduce/lines.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <algorithm>

namespace troupe::cpu {

namespace {

// Loss = sum(label * (log(sum(exp(x))) - x)) with x = logits - largest logit.
// This takes no logarithm of a probability that has become zero.
template <class T>
T soft_loss(const T* x, const T* label, const softmax_total<T>& total,
            std::int64_t n) {
  T loss = 0;
  for (std::int64_t i = 0; i < n; ++i)
    loss += label[i] * (total.log_total - clip_logit(x[i] - total.largest));
  return loss;
}

template <class T>
T soft_loss_of_probabilities(const T* p, const T* label, std::int64_t n) {
  T loss = 0;
  for (std::int64_t i = 0; i < n; ++i)
    loss += label[i] == T(0) ? T(0) : label[i] * negative_log(p[i]);
  return loss;
}

struct scaled_loop {
  template <class T>
  TROUPE_INLINE static void run(T* out, const T* x, T factor, std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = x[i] * factor;
  }
};

struct scaled_difference_loop {
  template <class T>
  TROUPE_INLINE static void run(T* out, const T* x, const T* y, T factor,
                                std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = (x[i] - y[i]) * factor;
  }
};

class cross_entropy_base : public kernel {
public:
  explicit cross_entropy_base(const attribute_map& attributes)
    : labels_(attributes),
      use_softmax_(attributes.get_bool("use_softmax", true)) {}

protected:
  class_labels labels_;
  bool use_softmax_;
};

class cross_entropy_kernel final : public cross_entropy_base {
public:
  using cross_entropy_base::cross_entropy_base;
  void run(kernel_context& ctx) override {
    tensor logits = ctx.input("Logits");
    const tensor label = ctx.input("Label");
    const shape lines = labels_.line_dims("Logits", logits.dims());
    for_number_type<false>("Logits", logits.type(), [&]<class T>(T) {
      tensor softmax = softmax_output(ctx, logits);
      if (labels_.soft()) {
        labels_.require_soft(label, "Logits", logits.dims(), logits.type());
        tensor loss = ctx.output("Loss", lines, logits.type());
        soft<T>(ctx, logits, label, softmax, loss);
      } else {
        const auto classes = labels_.hard(label, "Logits", logits.dims());
        tensor loss = ctx.output("Loss", lines, logits.type());
        hard<T>(ctx, logits, classes, softmax, loss);
      }
    });
  }

private:
  // Softmax may overwrite Logits, which Loss still needs.
  static tensor softmax_output(kernel_context& ctx, tensor& logits) {
    auto& memory = ctx.on().memory();
    if (!ctx.has_output("Softmax"))
      return tensor::make(memory, logits.dims(), logits.type());
    tensor out = ctx.output("Softmax", logits.dims(), logits.type());
    if (out.raw() == logits.raw())
      logits = clone(logits, memory);
    return out;
  }

  axis_view view_of(const tensor& logits) const {
    return {logits.dims(), labels_.axis_of("Logits", logits.dims())};
  }

  // Writes each line (o, i) of Softmax, then calls `write_loss(o, i, number, x,
  // total)`. Each part gets its own `write_loss` from `begin_losses()`.
  template <class T, class Begin>
  void each_line(kernel_context& ctx, const tensor& logits, tensor& softmax,
                 Begin begin_losses) const {
    const axis_view v = view_of(logits);
    const T* from = logits.data<T>();
    T* to = softmax.data<T>();
    for_each_line_in_parts(ctx, v, [&] {
      return
        [&, in = line_buffer<T>(ctx, v), out = line_buffer<T>(ctx, v),
         write_loss = begin_losses()](auto o, auto i, auto number) mutable {
          const T* x = in.read(from, o, i);
          T* p = out.write(to, o, i);
          softmax_total<T> total;
          if (use_softmax_)
            total = row_softmax(p, x, v.extent);
          else
            std::copy_n(x, v.extent, p);
          write_loss(o, i, number, x, total);
          out.wrote(to, o, i);
        };
    });
  }

  template <class T>
  void hard(kernel_context& ctx, const tensor& logits, const index_values& y,
            tensor& softmax, tensor& loss) const {
    T* to = loss.data<T>();
    each_line<T>(ctx, logits, softmax, [&] {
      return [&](auto, auto, auto n, const T* x, const auto& total) {
        if (labels_.ignores(y[n]))
          to[n] = T(0);
        else if (use_softmax_)
          to[n] = total.log_total - clip_logit(x[y[n]] - total.largest);
        else
          to[n] = negative_log(x[y[n]]);
      };
    });
  }

  template <class T>
  void soft(kernel_context& ctx, const tensor& logits, const tensor& label,
            tensor& softmax, tensor& loss) const {
    const axis_view v = view_of(logits);
    T* to = loss.data<T>();
    each_line<T>(ctx, logits, softmax, [&] {
      return [&, label_line = line_buffer<T>(ctx, v)](
               auto o, auto i, auto n, const T* x, const auto& total) mutable {
        const T* y = label_line.read(label.data<T>(), o, i);
        to[n] = use_softmax_ ? soft_loss(x, y, total, v.extent)
                             : soft_loss_of_probabilities(x, y, v.extent);
      };
    });
  }
};

// dLogits = dLoss * (softmax - label). For inputs that are probabilities, it is
// -dLoss * label / softmax.
class cross_entropy_grad_kernel final : public cross_entropy_base {
public:
  using cross_entropy_base::cross_entropy_base;
  void run(kernel_context& ctx) override {
    const tensor softmax = ctx.input("Softmax");
    const tensor label = ctx.input("Label");
    tensor dloss = ctx.input("Loss@GRAD");
    const axis_view v{softmax.dims(),
                      labels_.axis_of("Softmax", softmax.dims())};
    require_type("Loss@GRAD", dloss.type(), softmax.type());
    if (dloss.numel() != v.outer * v.inner)
      throw_shapes("Loss@GRAD", dloss.dims(), "Softmax", softmax.dims(),
                   "expected one gradient per row");
    for_number_type<false>("Softmax", softmax.type(), [&]<class T>(T) {
      if (labels_.soft())
        soft<T>(ctx, v, softmax, label, dloss);
      else
        hard<T>(ctx, v, softmax, label, dloss);
    });
  }

private:
  template <class T>
  void hard(kernel_context& ctx, const axis_view& v, const tensor& softmax,
            const tensor& label, const tensor& dloss) const {
    const auto y = labels_.hard(label, "Softmax", softmax.dims());
    tensor dx = ctx.output("Logits@GRAD", softmax.dims(), softmax.type());
    for_each_line_in_parts(ctx, v, [&] {
      return [&, in = line_buffer<T>(ctx, v),
              out = line_buffer<T>(ctx, v)](auto o, auto i, auto n) mutable {
        const T* p = in.read(softmax.data<T>(), o, i);
        T* row = out.write(dx.data<T>(), o, i);
        const T scale = dloss.data<T>()[n]; // dLogits may overwrite it
        hard_line(row, p, y[n], scale, v.extent);
        out.wrote(dx.data<T>(), o, i);
      };
    });
  }

  template <class T>
  void hard_line(T* dx, const T* p, std::int64_t label, T scale,
                 std::int64_t n) const {
    if (labels_.ignores(label)) {
      std::fill_n(dx, n, T(0));
    } else if (use_softmax_) {
      run_simd<scaled_loop>(dx, p, scale, n);
      dx[label] -= scale;
    } else {
      const T probability = p[label];
      std::fill_n(dx, n, T(0));
      dx[label] = -scale / probability;
    }
  }

  template <class T>
  void soft(kernel_context& ctx, const axis_view& v, const tensor& softmax,
            const tensor& label, const tensor& dloss) const {
    labels_.require_soft(label, "Softmax", softmax.dims(), softmax.type());
    tensor dx = ctx.output("Logits@GRAD", softmax.dims(), softmax.type());
    for_each_line_in_parts(ctx, v, [&] {
      return
        [&, in = line_buffer<T>(ctx, v), label_line = line_buffer<T>(ctx, v),
         out = line_buffer<T>(ctx, v)](auto o, auto i, auto n) mutable {
          const T* p = in.read(softmax.data<T>(), o, i);
          const T* y = label_line.read(label.data<T>(), o, i);
          T* row = out.write(dx.data<T>(), o, i);
          const T scale = dloss.data<T>()[n];
          if (use_softmax_)
            run_simd<scaled_difference_loop>(row, p, y, scale, v.extent);
          else
            for (std::int64_t e = 0; e < v.extent; ++e)
              row[e] = -scale * y[e] / p[e];
          out.wrote(dx.data<T>(), o, i);
        };
    });
  }
};

} // namespace

std::unique_ptr<kernel> make_cross_entropy(const attribute_map& attributes) {
  return std::make_unique<cross_entropy_kernel>(attributes);
}

std::unique_ptr<kernel>
make_cross_entropy_grad(const attribute_map& attributes) {
  return std::make_unique<cross_entropy_grad_kernel>(attributes);
}

} // namespace troupe::cpu
