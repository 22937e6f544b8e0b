// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/models/builders.hpp>

#include <troupe/graph/layers.hpp>

#include <array>

namespace troupe::graph {

namespace {

// He et al., "Deep residual learning for image recognition", CVPR 2016; Xie et
// al., "Aggregated residual transformations", CVPR 2017 (groups).

/// A convolution with "same" padding, followed by a batch norm if the model has
/// batch norms.
struct convolution_layer {
  bool batch_norm;

  variable_ref operator()(const variable_ref& x, std::int64_t filters,
                          std::int32_t kernel, std::int32_t stride,
                          const std::string& act,
                          std::int32_t groups = 1) const {
    auto out = layers::conv2d(x, {.filters = filters,
                                  .kernel = kernel,
                                  .stride = stride,
                                  .padding = (kernel - 1) / 2,
                                  .groups = groups,
                                  .act = batch_norm ? "" : act,
                                  .with_bias = !batch_norm});
    return batch_norm ? layers::batch_norm(out, {.act = act}) : out;
  }
};

/// The input of a block. If its shape differs from that of the block's output,
/// a convolution converts it.
variable_ref shortcut(const convolution_layer& conv, const variable_ref& x,
                      std::int64_t filters, std::int32_t stride) {
  const bool same = x.dims()[1] == filters && stride == 1;
  return same ? x : conv(x, filters, 1, stride, "");
}

variable_ref basic_block(const convolution_layer& conv, const variable_ref& x,
                         std::int64_t filters, std::int32_t stride) {
  auto h = conv(x, filters, 3, stride, "relu");
  h = conv(h, filters, 3, 1, "");
  return layers::relu(layers::add(h, shortcut(conv, x, filters, stride)));
}

/// Width and groups of the bottleneck blocks of a net.
struct bottleneck {
  std::int64_t shrink; ///< output channels / inner channels
  std::int32_t groups;
};

variable_ref bottleneck_block(const convolution_layer& conv,
                              const variable_ref& x, std::int64_t filters,
                              std::int32_t stride, const bottleneck& b) {
  const auto inner = filters / b.shrink;
  auto h = conv(x, inner, 1, 1, "relu");
  h = conv(h, inner, 3, stride, "relu", b.groups);
  h = conv(h, filters, 1, 1, "");
  return layers::relu(layers::add(h, shortcut(conv, x, filters, stride)));
}

/// The form for CIFAR: a stem with stride 1 and four stages of two basic
/// blocks.
model cifar_resnet(const std::string& name, std::int64_t width,
                   const model_options& options) {
  network net;
  auto feeds = image_feeds({-1, 3, 32, 32}, 10);
  declare(net, feeds);
  const convolution_layer conv{options.batch_norm};
  auto h = conv(input(net, feeds[0]), width, 3, 1, "relu");
  for (auto stage : {1, 2, 4, 8}) {
    h = basic_block(conv, h, stage * width, stage == 1 ? 1 : 2);
    h = basic_block(conv, h, stage * width, 1);
  }
  auto logits = layers::fc(layers::adaptive_pool2d(h), 10);
  return finish(net, classifier(name, 32, logits, feeds), options,
                minimize_by_momentum);
}

model imagenet_resnet(const std::string& name, const bottleneck& b,
                      const model_options& options) {
  constexpr std::array blocks{3, 4, 6, 3};
  network net;
  auto feeds = image_feeds({-1, 3, 224, 224}, 1000);
  declare(net, feeds);
  const convolution_layer conv{options.batch_norm};
  auto h = conv(input(net, feeds[0]), 64, 7, 2, "relu");
  h = layers::pool2d(h, {.kernel = 3, .stride = 2, .padding = 1});
  std::int64_t filters = 256;
  for (auto count : blocks) {
    for (int i = 0; i < count; ++i)
      h =
        bottleneck_block(conv, h, filters, i == 0 && filters > 256 ? 2 : 1, b);
    filters *= 2;
  }
  auto logits = layers::fc(layers::adaptive_pool2d(h), 1000);
  return finish(net, classifier(name, 4, logits, feeds), options,
                minimize_by_momentum);
}

} // namespace

model build_resnet8(const model_options& options) {
  return cifar_resnet("resnet8", 4, options);
}

model build_resnet18(const model_options& options) {
  return cifar_resnet("resnet18", 64, options);
}

model build_resnet50(const model_options& options) {
  return imagenet_resnet("resnet50", {.shrink = 4, .groups = 1}, options);
}

model build_resnext50(const model_options& options) {
  return imagenet_resnet("resnext50", {.shrink = 2, .groups = 32}, options);
}

} // namespace troupe::graph
