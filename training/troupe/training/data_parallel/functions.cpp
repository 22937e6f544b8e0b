// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/functions.hpp>

#include <troupe/actors/steps/scatter.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

namespace troupe::parallel {

namespace {

/// Where a tensor lies: a device, or nothing for host memory.
std::optional<std::size_t> place_of(const device_group& on, const tensor& x) {
  for (std::size_t i = 0; i < on.size(); ++i)
    if (!on.at(i)->memory().is_host() && on.at(i)->memory().owns(x.memory()))
      return i;
  return std::nullopt;
}

/// The tensor in host memory.
tensor on_host(const device_group& on, const tensor& x) {
  const auto place = place_of(on, x);
  if (!place)
    return x;
  arena host{make_host_memory_source()}; // its blocks outlive it
  return on.at(*place)->to_host(x, host);
}

tensor brought_to(const device_group& on, tensor x,
                  std::optional<std::size_t> to) {
  if (!to)
    return on_host(on, x);
  if (on.at(*to)->reaches(x))
    return x;
  return on.at(*to)->to_device(on_host(on, x));
}

void require_plain(const tensor& x, const std::string& which) {
  if (!x || !x.is_plain())
    throw error(errc::invalid_argument, which + " has no plain value");
}

const devices& checked(const devices& on) {
  if (!on)
    throw error(errc::invalid_argument, "no devices");
  return on;
}

void require_device(const device_group& on, std::optional<std::size_t> to) {
  if (to && *to >= on.size())
    throw error(errc::invalid_argument, "device number " + std::to_string(*to)
                                          + " of " + std::to_string(on.size())
                                          + ", counted from 0");
}

tensor zeros(const shape& dims, dtype type) {
  arena host{make_host_memory_source()}; // its blocks outlive it
  auto made = tensor::make(host, dims, type);
  if (made.bytes() > 0)
    std::memset(made.raw(), 0, made.bytes());
  return made;
}

/// Copies `count` indices of an axis between two plain tensors that differ in
/// the extent of this axis only.
void copy_along(std::size_t axis, const tensor& from, std::int64_t from_first,
                tensor& to, std::int64_t to_first, std::int64_t count) {
  const auto inner =
    static_cast<std::size_t>(from.dims().numel(axis + 1, from.dims().rank())
                             * static_cast<std::int64_t>(size_of(from.type())));
  const auto outer = static_cast<std::size_t>(from.dims().numel(0, axis));
  const auto from_row = static_cast<std::size_t>(from.dims()[axis]) * inner;
  const auto to_row = static_cast<std::size_t>(to.dims()[axis]) * inner;
  const auto bytes = static_cast<std::size_t>(count) * inner;
  for (std::size_t o = 0; bytes > 0 && o < outer; ++o)
    std::memcpy(
      to.raw() + o * to_row + static_cast<std::size_t>(to_first) * inner,
      from.raw() + o * from_row + static_cast<std::size_t>(from_first) * inner,
      bytes);
}

tensor slice(const tensor& x, std::size_t axis, std::int64_t first,
             std::int64_t count) {
  if (axis == 0)
    return x.samples(first, count);
  auto dims = x.dims();
  dims[axis] = count;
  arena host{make_host_memory_source()}; // its blocks outlive it
  auto part = tensor::make(host, dims, x.type());
  copy_along(axis, x, first, part, 0, count);
  return part;
}

std::int64_t extent_of(const tensor& x, std::size_t axis) {
  require_plain(x, "the tensor to scatter");
  if (axis >= x.dims().rank())
    throw error(errc::shape_mismatch, "a tensor of shape " + to_string(x.dims())
                                        + " cannot be cut along axis "
                                        + std::to_string(axis));
  return axis == 0 ? x.num_samples() : x.dims()[axis];
}

/// The chunks on their devices. Extents may be zero.
std::vector<tensor> cut(const device_group& on, const tensor& x,
                        std::size_t axis,
                        const std::vector<std::int64_t>& extents) {
  const auto whole = on_host(on, x);
  std::vector<tensor> chunks;
  std::int64_t first = 0;
  for (auto count : extents) {
    chunks.push_back(
      brought_to(on, slice(whole, axis, first, count), chunks.size()));
    first += count;
  }
  return chunks;
}

void check_extents(const std::vector<std::int64_t>& extents, std::int64_t whole,
                   std::size_t most) {
  const bool all_positive =
    std::ranges::all_of(extents, [](auto e) { return e > 0; });
  const auto sum =
    std::accumulate(extents.begin(), extents.end(), std::int64_t{0});
  if (all_positive && sum == whole && extents.size() <= most)
    return;
  std::string list;
  for (auto e : extents)
    list += (list.empty() ? "" : ", ") + std::to_string(e);
  throw error(errc::invalid_argument,
              "chunks of extents " + list + " for an axis of extent "
                + std::to_string(whole) + " and " + std::to_string(most)
                + " devices: extents must be positive and add up to the axis, "
                  "at most one per device");
}

std::vector<std::int64_t> extents_of(const std::vector<tensor>& chunks,
                                     std::size_t axis) {
  std::vector<std::int64_t> extents;
  for (auto& c : chunks)
    extents.push_back(c.dims().rank() == 0 ? 1
                      : axis == 0          ? c.num_samples()
                                           : c.dims()[axis]);
  return extents;
}

/// Throws unless the chunks differ in the extent of the axis only.
void check_chunks(const std::vector<tensor>& chunks, std::size_t axis) {
  if (chunks.empty())
    throw error(errc::invalid_argument, "there is nothing to gather");
  for (std::size_t i = 0; i < chunks.size(); ++i)
    require_plain(chunks[i], "chunk " + std::to_string(i));
  const auto& first = chunks.front();
  if (first.dims().rank() > 0 && axis >= first.dims().rank())
    throw error(errc::shape_mismatch,
                "chunks of shape " + to_string(first.dims())
                  + " cannot be joined along axis " + std::to_string(axis));
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    const auto with = " and chunk " + std::to_string(i) + " ";
    auto dims = chunks[i].dims();
    if (dims.rank() > axis && first.dims().rank() > axis)
      dims[axis] = first.dims()[axis];
    if (!(dims == first.dims()))
      throw error(errc::shape_mismatch, "chunk 0 has shape "
                                          + to_string(first.dims()) + with
                                          + to_string(chunks[i].dims()));
    if (chunks[i].type() != first.type())
      throw error(errc::dtype_mismatch,
                  "chunk 0 has dtype " + std::string{to_string(first.type())}
                    + with + std::string{to_string(chunks[i].type())});
  }
}

tensor joined_along(std::size_t axis, const std::vector<tensor>& chunks) {
  arena host{make_host_memory_source()}; // its blocks outlive it
  if (axis == 0) {
    std::vector<const tensor*> parts;
    for (auto& c : chunks)
      parts.push_back(&c);
    return actors::joined(parts, host);
  }
  auto dims = chunks.front().dims();
  dims[axis] = 0;
  for (auto& c : chunks)
    dims[axis] += c.dims()[axis];
  auto whole = tensor::make(host, dims, chunks.front().type());
  std::int64_t first = 0;
  for (auto& c : chunks) {
    copy_along(axis, c, 0, whole, first, c.dims()[axis]);
    first += c.dims()[axis];
  }
  return whole;
}

/// What is known of a chunk after it is gone.
struct chunk_form {
  shape dims;
  dtype type;
};

std::vector<chunk_form> forms_of(const std::vector<tensor>& chunks) {
  std::vector<chunk_form> forms;
  for (auto& c : chunks)
    forms.push_back({c.dims(), c.type()});
  return forms;
}

void require_count(const std::vector<tensor>& given, std::size_t expected) {
  if (given.size() != expected)
    throw error(errc::invalid_argument,
                std::to_string(given.size()) + " gradients for "
                  + std::to_string(expected) + " outputs");
}

bool has_none(const std::vector<tensor>& gradients) {
  return std::ranges::none_of(gradients,
                              [](const tensor& t) { return bool(t); });
}

/// The chunks with zeros for those that are missing.
std::vector<tensor> completed(std::vector<tensor> chunks,
                              const std::vector<chunk_form>& forms) {
  for (std::size_t i = 0; i < chunks.size(); ++i)
    if (!chunks[i])
      chunks[i] = zeros(forms[i].dims, forms[i].type);
  return chunks;
}

/// The gradient of a scatter: a gather, in which missing chunks are zero. None
/// gives none. Its gradient is a scatter again.
differentiable gather_gradients(const devices& on,
                                const std::vector<tensor>& gradients,
                                std::size_t axis, std::optional<std::size_t> to,
                                const std::vector<chunk_form>& forms) {
  require_count(gradients, forms.size());
  auto joined = gather(on, completed(gradients, forms), axis, to);
  if (has_none(gradients))
    joined.outputs.front() = {};
  return joined;
}

differentiable scatter_by(const devices& on, const tensor& x, std::size_t axis,
                          const std::vector<std::int64_t>& extents) {
  auto chunks = cut(*on, x, axis, extents);
  const auto to = place_of(*on, x);
  return {chunks, [on, axis, to, forms = forms_of(chunks)](
                    const std::vector<tensor>& gradients) {
            return gather_gradients(on, gradients, axis, to, forms);
          }};
}

/// The gradient of `gather`: scalars are scalars again.
differentiable ungather(const devices& on, const tensor& gradient,
                        std::size_t axis, std::optional<std::size_t> to,
                        const std::vector<chunk_form>& forms,
                        const std::vector<std::int64_t>& extents) {
  differentiable result{
    std::vector<tensor>(forms.size()),
    [on, axis, to, forms](const std::vector<tensor>& again) {
      return gather_gradients(on, again, axis, to, forms);
    }};
  if (!gradient)
    return result;
  const auto whole =
    std::accumulate(extents.begin(), extents.end(), std::int64_t{0});
  const auto of_scalars = forms.front().dims.rank() == 0;
  if (extent_of(gradient, of_scalars ? 0 : axis) != whole)
    throw error(errc::shape_mismatch,
                "the gradient has shape " + to_string(gradient.dims())
                  + ", its axis " + std::to_string(axis)
                  + " should have extent " + std::to_string(whole));
  result.outputs = cut(*on, gradient, of_scalars ? 0 : axis, extents);
  if (of_scalars)
    for (auto& chunk : result.outputs)
      chunk = chunk.reshaped({});
  return result;
}

/// Values that nobody may write, as variables.
std::vector<variable> as_variables(const std::vector<tensor>& tensors) {
  std::vector<variable> made(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i])
      made[i].set(tensors[i].share());
  return made;
}

std::vector<variable*> pointers_to(std::vector<variable>& variables) {
  std::vector<variable*> made;
  for (auto& v : variables)
    made.push_back(&v);
  return made;
}

/// Broadcasts the gradients that are there.
differentiable broadcast_present(const devices& on,
                                 const std::vector<tensor>& gradients,
                                 std::size_t copies) {
  std::vector<tensor> present;
  for (auto& g : gradients)
    if (g)
      present.push_back(g);
  differentiable result;
  if (!present.empty())
    result = broadcast(on, present, copies);
  auto next = result.outputs.begin();
  std::vector<tensor> outputs;
  for (std::size_t d = 0; d < copies; ++d)
    for (auto& g : gradients)
      outputs.push_back(g ? *next++ : tensor{});
  result.outputs = std::move(outputs);
  result.backward = [on, count =
                           gradients.size()](const std::vector<tensor>& again) {
    return reduce_add(on, again, count, 0);
  };
  return result;
}

/// The sums for which some device has a term. The others are missing, too.
std::vector<std::size_t> with_a_term(const std::vector<tensor>& values,
                                     std::size_t count) {
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < count; ++i)
    for (auto at = i; at < values.size(); at += count)
      if (values[at]) {
        present.push_back(i);
        break;
      }
  return present;
}

} // namespace

std::vector<std::int64_t> chunk_extents(std::int64_t extent, std::size_t n) {
  const auto most = static_cast<std::int64_t>(n);
  if (extent == 0)
    return std::vector<std::int64_t>(n, 0);
  const auto each = (extent + most - 1) / most;
  std::vector<std::int64_t> extents;
  for (auto left = extent; left > 0; left -= each)
    extents.push_back(std::min(each, left));
  return extents;
}

differentiable scatter(const devices& on, const tensor& x,
                       const scatter_options& how) {
  checked(on);
  const auto whole = extent_of(x, how.axis);
  if (how.extents.empty())
    return scatter_by(on, x, how.axis, chunk_extents(whole, on->size()));
  check_extents(how.extents, whole, on->size());
  return scatter_by(on, x, how.axis, how.extents);
}

differentiable gather(const devices& on, const std::vector<tensor>& chunks,
                      std::size_t axis, std::optional<std::size_t> to) {
  require_device(*checked(on), to);
  check_chunks(chunks, axis);
  if (chunks.size() > on->size())
    throw error(errc::invalid_argument,
                std::to_string(chunks.size()) + " chunks of "
                  + std::to_string(on->size()) + " devices");
  std::vector<tensor> here;
  for (auto& c : chunks)
    here.push_back(on_host(*on, c));
  const auto of_scalars = chunks.front().dims().rank() == 0;
  auto whole = brought_to(*on, joined_along(of_scalars ? 0 : axis, here), to);
  return {
    {std::move(whole)},
    [on, axis, to, forms = forms_of(chunks),
     extents = extents_of(chunks, axis)](const std::vector<tensor>& gradients) {
      require_count(gradients, 1);
      return ungather(on, gradients.front(), axis, to, forms, extents);
    }};
}

differentiable broadcast(const devices& on, const std::vector<tensor>& values,
                         std::size_t copies) {
  const auto n = copies == 0 ? checked(on)->size() : copies;
  if (n > checked(on)->size())
    throw error(errc::invalid_argument, std::to_string(n) + " copies for "
                                          + std::to_string(on->size())
                                          + " devices");
  std::vector<variable> given;
  for (auto& v : values) {
    require_plain(v, "a tensor to broadcast");
    given.emplace_back().set(brought_to(*on, v, 0).share());
  }
  std::vector<std::vector<variable>> made(n);
  std::vector<std::vector<variable*>> slots;
  for (auto& of_device : made) {
    of_device.resize(values.size());
    slots.push_back(pointers_to(of_device));
  }
  on->broadcast(pointers_to(given), slots);
  differentiable result;
  for (auto& of_device : made)
    for (auto& v : of_device)
      result.outputs.push_back(v.as_tensor());
  const auto count = values.size();
  result.backward = [on, count](const std::vector<tensor>& gradients) {
    return reduce_add(on, gradients, count, 0);
  };
  return result;
}

differentiable reduce_add(const devices& on, const std::vector<tensor>& values,
                          std::size_t count, std::size_t to) {
  const auto n = count == 0 ? 0 : values.size() / count;
  if (n == 0 || n * count != values.size() || n > checked(on)->size()
      || to >= n)
    throw error(errc::invalid_argument,
                std::to_string(values.size()) + " tensors cannot be "
                  + std::to_string(count) + " for each of at most "
                  + std::to_string(on->size())
                  + " devices, with the sums on device number "
                  + std::to_string(to));
  const auto present = with_a_term(values, count);
  std::vector<std::vector<variable>> by_device;
  for (std::size_t d = 0; d < n; ++d) {
    std::vector<tensor> terms;
    for (auto i : present) {
      const auto& term = values[d * count + i];
      terms.push_back(term ? brought_to(*on, term, d) : term);
    }
    by_device.push_back(as_variables(terms));
  }
  differentiable result{std::vector<tensor>(count)};
  auto sums =
    present.empty() ? std::vector<variable>{} : on->reduce_add(by_device, to);
  for (std::size_t i = 0; i < present.size(); ++i)
    result.outputs[present[i]] = sums[i].as_tensor();
  result.backward = [on, n, count](const std::vector<tensor>& gradients) {
    require_count(gradients, count);
    return broadcast_present(on, gradients, n);
  };
  return result;
}

std::vector<differentiable>
scatter_together(const devices& on, const std::vector<tensor>& values,
                 std::size_t axis, std::span<const std::string> names) {
  const auto described = [&](std::size_t i, const differentiable& cut) {
    return (i < names.size() ? names[i] : "tensor " + std::to_string(i))
           + " of shape " + to_string(values[i].dims()) + " gives "
           + std::to_string(cut.outputs.size());
  };
  std::vector<differentiable> scattered;
  for (std::size_t i = 0; i < values.size(); ++i) {
    scattered.push_back(scatter(on, values[i], {axis}));
    const auto& first = scattered.front();
    if (scattered[i].outputs.size() != first.outputs.size())
      throw error(errc::shape_mismatch, described(0, first) + " chunks, "
                                          + described(i, scattered[i]));
  }
  return scattered;
}

} // namespace troupe::parallel
