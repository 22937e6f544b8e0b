// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/initializer.hpp>
#include <troupe/graph/network.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

/// Layers append ops to the network of their input and return the result.
///
///     graph::network net;
///     auto image = net.data("image", {-1, 1, 28, 28});
///     auto h = layers::conv2d(image, {.filters = 20, .kernel = {5, 5}});
///
/// Each op records the source line of the layer call. Images are [batch,
/// channels, height, width]. In shapes, [...] is any shape, and the same one on
/// both sides of an arrow.
///
/// Shapes are checked at once. A layer throws error(shape_mismatch), naming op,
/// slot and shapes, if they do not match. It throws error(dtype_mismatch |
/// invalid_argument) for other bad input, such as variables of different
/// networks. After an error the network is incomplete and must not be used.
namespace troupe::graph::layers {

/// The source location of a layer call, which the op records.
using call = std::source_location;

/// Options of a layer's parameter. An empty name means a generated one, e.g.
/// "fc_0.w_0". The name of another layer's parameter means that both layers
/// share it. An empty `init` means the layer's default initializer.
struct parameter_options {
  std::string name = {};
  std::optional<initializer::any> init = std::nullopt;
  bool trainable = true;
};

/// Height and width.
struct extents {
  std::int32_t height = 1;
  std::int32_t width = 1;
  /// Equal height and width; implicit, so that a single number can be passed.
  extents(std::int32_t both) : height(both), width(both) {}
  /// Height and width.
  extents(std::int32_t h, std::int32_t w) : height(h), width(w) {}
};

// Layers with parameters (layers/parametric.cpp).

/// Options of `fc`.
struct fc_options {
  std::string act = {}; ///< name of an activation, or empty
  /// number of leading extents that are kept
  std::int32_t num_flatten_dims = 1;
  bool with_bias = true;
  parameter_options weight = {}; ///< [in, size]; default xavier uniform
  parameter_options bias = {};   ///< [size]; default 0
};

/// act(x * weight + bias): [batch, ...] -> [batch, size]. With
/// num_flatten_dims = 2 [batch, time, in] -> [batch, time, size].
variable_ref fc(const variable_ref& x, std::int64_t size,
                const fc_options& options = {}, call at = call::current());

/// Options of `conv2d`.
struct conv2d_options {
  std::int64_t filters = 0; ///< output channels; required
  extents kernel = 3;
  extents stride = 1;
  extents padding = 0;
  extents dilation = 1;
  /// equal to the input channels: depthwise convolution
  std::int32_t groups = 1;
  std::string act = {};
  bool with_bias = true;
  /// [filters, channels / groups, height, width]; default normal of variance
  /// 2 / fan_in.
  parameter_options weight = {};
  parameter_options bias = {}; ///< [filters]; default 0
};

/// [batch, channels, h, w] -> [batch, filters, h', w'].
variable_ref conv2d(const variable_ref& x, const conv2d_options& options,
                    call at = call::current());

/// Options of `batch_norm`.
struct batch_norm_options {
  std::string act = {};
  float momentum = 0.9f; ///< fraction of the running statistics that is kept
  float epsilon = 1e-5f;
  bool use_global_stats = false; ///< normalize with the running statistics
  parameter_options scale = {};  ///< [channels]; default 1
  parameter_options bias = {};   ///< [channels]; default 0
};

/// Normalizes each channel over a device's batch: [batch, channels] or
/// [batch, channels, h, w] -> the same.
/// Source: Ioffe and Szegedy, ICML 2015.
variable_ref batch_norm(const variable_ref& x,
                        const batch_norm_options& options = {},
                        call at = call::current());

/// Options of `layer_norm`.
struct layer_norm_options {
  std::int32_t begin_norm_axis = 1; ///< the first of the normalized axes
  float epsilon = 1e-5f;
  parameter_options scale = {}; ///< default 1
  parameter_options bias = {};  ///< default 0
};

/// Normalizes each sample: [batch, ...] -> [batch, ...]. The parameters have
/// the product of the normalized extents, [size].
/// Source: Ba, Kiros and Hinton, 2016.
variable_ref layer_norm(const variable_ref& x,
                        const layer_norm_options& options = {},
                        call at = call::current());

/// Options of `embedding`.
struct embedding_options {
  std::int64_t rows = 0; ///< rows and width are required
  std::int64_t width = 0;
  bool is_sparse = false;        ///< the gradient is selected rows
  std::int64_t padding_idx = -1; ///< id whose output is zeros; -1: none
  parameter_options weight = {}; ///< [rows, width]; default xavier uniform
};

/// Looks up rows of a table: int64 ids [...] -> float32 [..., width].
variable_ref embedding(const variable_ref& ids,
                       const embedding_options& options,
                       call at = call::current());

// Activations and other functions of one input (layers/functions.cpp).

/// max(x, 0), per element: [...] -> [...].
variable_ref relu(const variable_ref& x, call at = call::current());
/// 1 / (1 + exp(-x)), per element: [...] -> [...].
variable_ref sigmoid(const variable_ref& x, call at = call::current());
/// The hyperbolic tangent, per element: [...] -> [...].
variable_ref tanh(const variable_ref& x, call at = call::current());
/// x * x, per element: [...] -> [...].
variable_ref square(const variable_ref& x, call at = call::current());

/// Options of `gelu`.
struct gelu_options {
  bool approximate = false; ///< use the tanh approximation
};

/// x * Phi(x), where Phi is the normal distribution function, per element:
/// [...] -> [...].
/// Source: Hendrycks and Gimpel, 2016.
variable_ref gelu(const variable_ref& x, const gelu_options& options = {},
                  call at = call::current());

/// Options of `softmax`.
struct softmax_options {
  std::int32_t axis = -1;
};

/// exp(x) divided by its sum along `axis`: [...] -> [...]. Negative axes count
/// from the end.
variable_ref softmax(const variable_ref& x, const softmax_options& options = {},
                     call at = call::current());

/// Applies the activation of that name: [...] -> [...]. Returns x if the name
/// is empty. Throws error(invalid_argument) listing the accepted names.
variable_ref activation(const variable_ref& x, const std::string& name,
                        call at = call::current());

/// Options of `scale`.
struct scale_options {
  float scale = 1;
  float bias = 0;
};

/// scale * x + bias, per element: [...] -> [...].
variable_ref scale(const variable_ref& x, const scale_options& options,
                   call at = call::current());

/// Options of `dropout`.
struct dropout_options {
  float probability = 0.5f; ///< of dropping an element, in [0, 1]
  /// True: kept elements are scaled by 1 / (1 - p) in training. False: all
  /// elements are scaled by 1 - p in tests (Paddle's old default).
  bool upscale_in_train = true;
  /// 0: derived from the run's seed and the variable's name
  std::int32_t seed = 0;
};

/// Randomly sets elements to zero: [...] -> [...]. The same elements are
/// dropped for any number of devices. Source: Srivastava et al., JMLR 2014.
variable_ref dropout(const variable_ref& x, const dropout_options& options = {},
                     call at = call::current());

/// x converted to another dtype: [...] -> [...]. The gradient has the dtype of
/// x.
variable_ref cast(const variable_ref& x, dtype type, call at = call::current());
/// A copy of x: [...] -> [...].
variable_ref assign(const variable_ref& x, call at = call::current());

// Functions of several inputs (layers/functions.cpp).

/// x + y, per element: [...], [...] -> [...]. Extents of 1 broadcast; so do
/// leading extents that one of them lacks.
variable_ref add(const variable_ref& x, const variable_ref& y,
                 call at = call::current());
/// x - y, per element: [...], [...] -> [...]. Extents of 1 broadcast; so do
/// leading extents that one of them lacks.
variable_ref sub(const variable_ref& x, const variable_ref& y,
                 call at = call::current());
/// x * y, per element: [...], [...] -> [...]. Extents of 1 broadcast; so do
/// leading extents that one of them lacks.
variable_ref mul(const variable_ref& x, const variable_ref& y,
                 call at = call::current());

/// Sum of one or more variables of the same shape: [...], ... -> [...].
variable_ref sum(const std::vector<variable_ref>& x, call at = call::current());

/// Options of `matmul`.
struct matmul_options {
  bool transpose_x = false; ///< transposes the last two axes
  bool transpose_y = false;
};

/// Matrix product over the last two axes: [..., m, k], [..., k, n] ->
/// [..., m, n]; leading axes broadcast.
variable_ref matmul(const variable_ref& x, const variable_ref& y,
                    const matmul_options& options = {},
                    call at = call::current());

// Windows (layers/windows.cpp).

/// Options of `pool2d`.
struct pool2d_options {
  extents kernel = 2;
  extents stride = 2;
  extents padding = 0;
  bool average = false;  ///< else the maximum
  bool exclusive = true; ///< averages exclude the padding
  bool ceil_mode = false;
};

/// [batch, channels, h, w] -> [batch, channels, h', w'].
variable_ref pool2d(const variable_ref& x, const pool2d_options& options = {},
                    call at = call::current());

/// Options of `adaptive_pool2d`.
struct adaptive_pool2d_options {
  extents output = 1;
  bool average = true; ///< else the maximum
};

/// Pools to a given output size, independent of the input size:
/// [batch, channels, h, w] -> [batch, channels, output.height, output.width].
variable_ref adaptive_pool2d(const variable_ref& x,
                             const adaptive_pool2d_options& options = {},
                             call at = call::current());

// Shapes (layers/shapes.cpp).

/// Options of `concat`.
struct concat_options {
  std::int32_t axis = 0;
};

/// Concatenates variables along `axis`: [a, b], [c, b] -> [a + c, b] for axis
/// 0. All other extents must be equal. Negative axes count from the end.
variable_ref concat(const std::vector<variable_ref>& x,
                    const concat_options& options = {},
                    call at = call::current());

/// Options of `split`.
struct split_options {
  std::int32_t parts = 2; ///< of equal size
  std::int32_t axis = -1;
  /// extents of the parts; replaces `parts`
  std::vector<std::int32_t> sections = {};
};

/// Splits x along `axis` into `parts` equal parts or into `sections`:
/// [batch, 6] -> [batch, 3], [batch, 3]. Inverse of `concat`.
std::vector<variable_ref> split(const variable_ref& x,
                                const split_options& options = {},
                                call at = call::current());

/// Reshapes x: [...] -> `dims`. An extent of 0 is copied from x; one extent of
/// -1 is inferred.
variable_ref reshape(const variable_ref& x,
                     const std::vector<std::int32_t>& dims,
                     call at = call::current());

/// Axis i of the result is axis axes[i] of x: [a, b, c] -> [a, c, b] for axes
/// {0, 2, 1}.
variable_ref transpose(const variable_ref& x,
                       const std::vector<std::int32_t>& axes,
                       call at = call::current());

/// Options of `flatten`.
struct flatten_options {
  std::int32_t start_axis = 1;
  std::int32_t stop_axis = -1;
};

/// Merges axes start_axis to stop_axis (inclusive) into one:
/// [batch, a, b] -> [batch, a * b] by default.
variable_ref flatten(const variable_ref& x, const flatten_options& options = {},
                     call at = call::current());

/// Options of `slice`.
struct slice_options {
  std::vector<std::int32_t> axes;
  std::vector<std::int32_t> starts; ///< negative values count from the end
  std::vector<std::int32_t> ends;   ///< exclusive
};

/// Elements [starts[i], ends[i]) along axis axes[i], which gets the extent
/// ends[i] - starts[i]. Other axes and the rank do not change.
variable_ref slice(const variable_ref& x, const slice_options& options,
                   call at = call::current());

/// Options of `reduce_mean` and `reduce_sum`.
struct reduce_options {
  std::vector<std::int32_t> axes = {}; ///< empty: all axes, result has shape []
  bool keep_dims = false;
};

/// Mean along `axes`. The result lacks these axes; with `keep_dims` they have
/// extent 1.
variable_ref reduce_mean(const variable_ref& x,
                         const reduce_options& options = {},
                         call at = call::current());
/// Sum along `axes`. The result has the same shape as for `reduce_mean`.
variable_ref reduce_sum(const variable_ref& x,
                        const reduce_options& options = {},
                        call at = call::current());

// Losses and metrics (layers/losses.cpp).

/// Mean of all elements: [...] -> []. Turns a loss per sample into one that
/// `minimize` accepts.
variable_ref mean(const variable_ref& x, call at = call::current());

/// Options of `softmax_with_cross_entropy`.
struct softmax_with_cross_entropy_options {
  bool soft_label = false; ///< labels are distributions, shaped like the logits
  std::int32_t ignore_index = -100; ///< samples with this label have loss 0
};

/// Cross entropy between softmax(logits) [..., classes] and int64 labels [...,
/// 1], one value per row: [..., 1]. Labels outside [0, classes) fail the step
/// with error(out_of_range).
variable_ref softmax_with_cross_entropy(
  const variable_ref& logits, const variable_ref& label,
  const softmax_with_cross_entropy_options& options = {},
  call at = call::current());

/// Mean softmax cross entropy: logits [..., classes], int64 labels [..., 1] ->
/// [].
variable_ref cross_entropy(const variable_ref& logits,
                           const variable_ref& label,
                           call at = call::current());

/// Options of `accuracy`.
struct accuracy_options {
  /// a sample is correct if its label is among the k largest scores
  std::int32_t k = 1;
};

/// Fraction of samples whose label is among the k largest scores (logits or
/// probabilities): [batch, classes], int64 labels [batch, 1] -> [].
variable_ref accuracy(const variable_ref& scores, const variable_ref& label,
                      const accuracy_options& options = {},
                      call at = call::current());

// Ops without a layer of their own (layers/any_op.cpp).

/// A slot of an op, and its variables.
struct layer_slot {
  std::string name;
  std::vector<variable_ref> variables;
};

/// Any op of the network's schemas, such as an application's own
/// (own_ops/own_op.hpp), that has an input. Returns its outputs by slot: a new
/// variable for each output slot that takes one, with the shape that the schema
/// infers. Throws error(unsupported_op) for a type that the schemas lack, and
/// what the schema finds wrong.
///
///     auto y = layers::op("gaussian", {{"X", {x}}}).at("Out");
std::map<std::string, variable_ref> op(const std::string& type,
                                       const std::vector<layer_slot>& inputs,
                                       attribute_map attributes = {},
                                       call at = call::current());

} // namespace troupe::graph::layers

namespace troupe {
namespace layers = graph::layers;
} // namespace troupe
