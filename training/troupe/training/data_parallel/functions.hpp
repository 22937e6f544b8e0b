// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/data_parallel/device_group.hpp>
#include <troupe/training/data_parallel/leaves.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The functions that data parallelism is made of, as in torch.nn.parallel:
/// scatter and gather of tensors and nested inputs, broadcast, sums over
/// devices, and one actor per replica. `troupe::data_parallel` puts them
/// together.
namespace troupe::parallel {

/// What a differentiable function returns: outputs, and its gradient there.
///
/// A function of one's own keeps what its gradient needs in the captures of
/// `backward`:
///
///     differentiable square(const std::vector<tensor>& x) {
///       return {{times(x[0], x[0])}, [x](const std::vector<tensor>& dy) {
///         return differentiable{{times(twice(x[0]), dy[0])}};
///       }};
///     }
struct differentiable {
  std::vector<tensor> outputs;
  /// From the gradients of the outputs to those of the inputs. It can be called
  /// several times, and what it returns can be differentiated in turn. Empty:
  /// the function has no gradient. A tensor without memory stands for a
  /// gradient that nobody needs.
  std::function<differentiable(const std::vector<tensor>& output_gradients)>
    backward = {};
};

/// The devices that the functions below work on. Null: they throw
/// error(invalid_argument).
using devices = std::shared_ptr<device_group>;

/// The extents that `torch.chunk` gives the chunks of an axis: ceil(extent / n)
/// each, the last one less. There may be fewer chunks than n. An axis without
/// elements gives n chunks without elements. n is at least 1.
std::vector<std::int64_t> chunk_extents(std::int64_t extent, std::size_t n);

/// How a tensor is cut.
struct scatter_options {
  std::size_t axis = 0;
  /// Extent of each chunk. Empty: `chunk_extents`.
  std::vector<std::int64_t> extents = {};
};

/// Cuts a tensor along an axis, and gives device i chunk i. Along axis 0, a
/// tensor with levels is cut between its outermost sequences, and device i can
/// get a view of the tensor's memory. The gradient is a `gather` to where the
/// tensor lies.
///
/// Throws error(shape_mismatch) if the tensor has no such axis, and
/// error(invalid_argument) if it has no plain value, or if extents are given
/// that are not positive, do not add up to the axis, or are more than the
/// devices.
differentiable scatter(const devices& on, const tensor& x,
                       const scatter_options& how = {});

/// Joins the chunks of the devices along an axis, in order. Scalars become a
/// vector. Fewer chunks than devices can be given. The gradient is a `scatter`
/// with the chunks' extents.
///
/// Throws error(shape_mismatch | dtype_mismatch), naming two chunks, if they
/// differ in more than the extent of the axis, and error(invalid_argument) if
/// there is no chunk or one has no plain value, or no device `to`.
/// @param to where the result lies; nothing: in host memory
differentiable gather(const devices& on, const std::vector<tensor>& chunks,
                      std::size_t axis = 0,
                      std::optional<std::size_t> to = std::nullopt);

/// Gives each device a copy of the tensors, which lie on device 0, by one
/// collective call. The outputs are those of device 0, then those of device 1,
/// and so on. Devices that reach each other's memory share it until one of them
/// writes. The gradient is `reduce_add`.
/// @param copies number of devices that get a copy; 0: all
differentiable broadcast(const devices& on, const std::vector<tensor>& values,
                         std::size_t copies = 0);

/// Adds up the devices' tensors in the order of devices: the inputs are those
/// of device 0, then those of device 1, and so on. The result lies on device
/// `to`. The gradient is `broadcast`. Throws error(invalid_argument) unless
/// each device has `count` of them, and as `device_group::reduce_add` does.
/// @param count number of tensors per device, at least 1
differentiable reduce_add(const devices& on, const std::vector<tensor>& values,
                          std::size_t count, std::size_t to = 0);

/// Cuts all tensors of a nested value, and copies all else. There is a result
/// per chunk: as many as devices, or fewer. A value without tensors gives one.
///
/// Throws as the other `scatter` does, and error(shape_mismatch), naming both
/// shapes, if two tensors give different numbers of chunks. (PyTorch drops
/// chunks then.)
template <class T>
std::vector<T> scatter_nested(const devices& on, const T& value,
                              std::size_t axis = 0);

/// Joins the tensors of nested values of the same structure. All else is that
/// of the first. Throws as the other `gather` does, and error(invalid_argument)
/// if the structures differ.
template <class T>
T gather_nested(const devices& on, const std::vector<T>& parts,
                std::size_t axis = 0,
                std::optional<std::size_t> to = std::nullopt);

/// Cuts several tensors into the same number of chunks: a result per tensor.
/// Throws as `scatter_nested` does.
/// @param names of the tensors, for errors; may be empty
std::vector<differentiable>
scatter_together(const devices& on, const std::vector<tensor>& values,
                 std::size_t axis = 0, std::span<const std::string> names = {});

template <class T>
std::vector<T> scatter_nested(const devices& on, const T& value,
                              std::size_t axis) {
  const auto scattered = scatter_together(on, tensors_in(value), axis);
  const auto count = scattered.empty() ? 1 : scattered.front().outputs.size();
  std::vector<T> parts;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<tensor> chunks;
    for (auto& one : scattered)
      chunks.push_back(one.outputs[i]);
    parts.push_back(with_tensors(value, chunks));
  }
  return parts;
}

template <class T>
T gather_nested(const devices& on, const std::vector<T>& parts,
                std::size_t axis, std::optional<std::size_t> to) {
  std::vector<std::vector<tensor>> tensors;
  for (auto& part : parts) {
    if (!same_structure(part, parts.front()))
      throw error(errc::invalid_argument,
                  "values of different structure cannot be gathered: part 0 "
                  "and part "
                    + std::to_string(tensors.size()));
    tensors.push_back(tensors_in(part));
  }
  if (parts.empty())
    throw error(errc::invalid_argument, "there is nothing to gather");
  std::vector<tensor> joined;
  for (std::size_t i = 0; i < tensors.front().size(); ++i) {
    std::vector<tensor> chunks;
    for (auto& of_part : tensors)
      chunks.push_back(of_part[i]);
    joined.push_back(gather(on, chunks, axis, to).outputs.front());
  }
  return with_tensors(parts.front(), joined);
}

} // namespace troupe::parallel
