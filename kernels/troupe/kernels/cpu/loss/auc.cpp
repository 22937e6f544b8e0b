// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/elementwise_ops.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <cmath>
#include <cstring>
#include <string>

namespace troupe::cpu {

namespace {

using count = std::int64_t;

// Histograms of the probabilities of positive and negative samples, in StatPos
// and StatNeg. Each slot holds the histograms of the last `window` batches and
// then their sum; with a window, the number of batches follows.
struct histograms {
  count* positive;
  count* negative;
  std::int64_t buckets; // of each
  std::int64_t window;

  histograms at(std::int64_t index) const {
    return {positive + index * buckets, negative + index * buckets, buckets, 0};
  }
  histograms sum() const { return at(window); }
  count& batches(count* all) const { return all[(window + 1) * buckets]; }
};

// Counts from a file may be any numbers, so all arithmetic wraps around.
template <class Op>
void combine(const histograms& to, const histograms& from) {
  for (std::int64_t i = 0; i < to.buckets; ++i) {
    to.positive[i] = Op::apply(to.positive[i], from.positive[i]);
    to.negative[i] = Op::apply(to.negative[i], from.negative[i]);
  }
}

void count_one(count& to) {
  to = elementwise::add::apply(to, count{1});
}

void clear(const histograms& h) {
  std::fill_n(h.positive, h.buckets, count{0});
  std::fill_n(h.negative, h.buckets, count{0});
}

// The last column is the probability of label 1.
void count_samples(const histograms& h, const tensor& predict,
                   const tensor& label) {
  const std::int64_t samples = predict.dims()[0];
  const std::int64_t width = predict.dims()[1];
  const index_values labels(label, "Label");
  const auto thresholds = static_cast<float>(h.buckets - 1);
  for (std::int64_t i = 0; i < samples; ++i) {
    const float p = predict.data<float>()[i * width + width - 1];
    if (!(p >= 0.0f && p <= 1.0f))
      throw error(errc::out_of_range, "Predict of sample " + std::to_string(i)
                                        + " is " + std::to_string(p)
                                        + ", expected a probability");
    const auto bucket = static_cast<std::int64_t>(p * thresholds);
    if (labels[i] > 0)
      count_one(h.positive[bucket]);
    else if (labels[i] == 0)
      count_one(h.negative[bucket]);
  }
}

// The histogram of this batch replaces the oldest one.
void slide(const histograms& h, const tensor& predict, const tensor& label,
           bool counts) {
  const count batches = h.batches(h.positive);
  if (batches < 0)
    throw error(errc::invalid_argument, "StatPos has a negative count");
  const auto current = h.at(batches % h.window);
  combine<elementwise::subtract>(h.sum(), current);
  clear(current);
  count_samples(current, predict, label);
  if (counts)
    combine<elementwise::add>(h.sum(), current);
}

// The area under the curve of true positives over false positives, by
// trapezoids.
double area(const histograms& h) {
  double positives = 0.0;
  double negatives = 0.0;
  double total = 0.0;
  for (std::int64_t i = h.buckets; i-- > 0;) {
    const double before = positives;
    const auto more = static_cast<double>(h.negative[i]);
    positives += static_cast<double>(h.positive[i]);
    negatives += more;
    total += std::abs(more) * (positives + before) / 2.0;
  }
  const bool both = positives > 0.0 && negatives > 0.0;
  return both ? total / positives / negatives : total;
}

// The statistics of earlier batches, to which this batch is added.
count* statistics(kernel_context& ctx, std::string_view from,
                  std::string_view to, const shape& dims) {
  const tensor in = ctx.input(from);
  require_type(from, in.type(), dtype::int64);
  if (in.numel() != dims.numel())
    require_shape(from, in.dims(), dims);
  tensor out = ctx.output(to, dims, dtype::int64);
  if (out.raw() != in.raw())
    std::memcpy(out.raw(), in.raw(), in.bytes());
  return out.data<count>();
}

histograms read_histograms(kernel_context& ctx) {
  const auto& attributes = ctx.attributes();
  const std::int64_t thresholds = attributes.get_int("num_thresholds", 4095);
  const std::int64_t window = attributes.get_int("slide_steps", 1);
  if (thresholds < 1 || thresholds > 1 << 24 || window < 0 || window > 1 << 20)
    throw error(errc::invalid_argument,
                "auc takes num_thresholds from 1 to 2^24 and slide_steps from "
                "0 to 2^20");
  const std::int64_t buckets = thresholds + 1;
  const shape dims =
    window > 0 ? shape{(1 + window) * buckets + 1} : shape{1, buckets};
  return {statistics(ctx, "StatPos", "StatPosOut", dims),
          statistics(ctx, "StatNeg", "StatNegOut", dims), buckets, window};
}

bool is_counted(const kernel_context& ctx) {
  return !ctx.has_input("InsTagWeight")
         || scalar_input(ctx, "InsTagWeight") != 0.0f;
}

} // namespace

// Attribute curve is ignored: Paddle's kernel computes ROC for PR, too.
void run_auc(kernel_context& ctx) {
  const tensor predict = float_input(ctx, "Predict");
  const tensor label = ctx.input("Label");
  require_rank("Predict", predict.dims(), 2);
  if (predict.dims()[1] < 1 || label.numel() != predict.dims()[0])
    throw_shapes("Label", label.dims(), "Predict", predict.dims(),
                 "expected one label per sample");
  const histograms h = read_histograms(ctx);
  if (h.window > 0) {
    slide(h, predict, label, is_counted(ctx));
    count_one(h.batches(h.positive));
    count_one(h.batches(h.negative));
  } else if (is_counted(ctx)) {
    count_samples(h, predict, label);
  }
  ctx.output("AUC", {}, dtype::float64).data<double>()[0] = area(h.sum());
}

} // namespace troupe::cpu
