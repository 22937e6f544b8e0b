// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/local/local_collective.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::comm::local {

namespace {

// Below this size, moving a part to another thread costs more than it saves.
constexpr std::size_t min_part_bytes = std::size_t{128} << 10;
// Parts begin at multiples of this many elements, so that no two threads write
// the same cache line.
constexpr std::size_t part_granularity = 4096;

constexpr std::size_t none = std::size_t(-1);

using inputs_view = std::span<const tensor>;

[[noreturn]] void fail(errc code, collective_kind kind,
                       const std::string& what) {
  throw error(code, std::string(to_string(kind)) + ": " + what);
}

std::string describe(const shape& dims, dtype type) {
  return std::string(to_string(type)) + " " + to_string(dims);
}

std::string rank_name(const char* role, std::size_t rank) {
  return std::string(role) + " of rank " + std::to_string(rank);
}

bool reduces(collective_kind kind) {
  return kind == collective_kind::all_reduce || kind == collective_kind::reduce
         || kind == collective_kind::reduce_scatter;
}

bool slices(collective_kind kind) {
  return kind == collective_kind::all_gather
         || kind == collective_kind::reduce_scatter;
}

std::size_t first_with_memory(inputs_view values) {
  auto found = std::find_if(values.begin(), values.end(),
                            [](const tensor& value) { return bool(value); });
  return found == values.end()
           ? none
           : static_cast<std::size_t>(found - values.begin());
}

// Expected shapes and dtype of all ranks' inputs and outputs. They are taken
// from the first rank with an input or, if all are idle, from the first with an
// output.
class signature {
public:
  signature(collective_kind kind, std::size_t ranks, inputs_view inputs,
            inputs_view outputs)
    : kind_(kind), ranks_(static_cast<std::int64_t>(ranks)) {
    if (auto rank = first_with_memory(inputs); rank != none)
      take_from_input(inputs[rank], rank);
    else if (rank = first_with_memory(outputs); rank != none)
      take_from_output(outputs[rank], rank);
    else
      fail(errc::invalid_argument, kind, "no rank has an input or an output");
  }

  const shape& input_dims() const { return input_; }
  dtype type() const { return type_; }

  void check_input(const tensor& value, std::size_t rank) const {
    check(value, input_, "input", rank);
  }
  void check_output(const tensor& value, std::size_t rank) const {
    if (!value)
      fail(errc::invalid_argument, kind_,
           rank_name("output", rank) + " has no memory");
    check(value, output_, "output", rank);
  }

private:
  void take_from_input(const tensor& value, std::size_t rank) {
    set_reference("input", rank, value);
    input_ = output_ = value.dims();
    if (kind_ == collective_kind::all_gather)
      output_ = joined(value.dims());
    else if (kind_ == collective_kind::reduce_scatter)
      output_ = slice(value.dims());
  }

  void take_from_output(const tensor& value, std::size_t rank) {
    set_reference("output", rank, value);
    input_ = output_ = value.dims();
    if (kind_ == collective_kind::all_gather)
      input_ = slice(value.dims());
    else if (kind_ == collective_kind::reduce_scatter)
      input_ = joined(value.dims());
  }

  void set_reference(const char* role, std::size_t rank, const tensor& value) {
    reference_ = rank_name(role, rank);
    type_ = value.type();
    if (reduces(kind_) && !can_merge(type_))
      fail(errc::dtype_mismatch, kind_,
           reference_ + " is " + std::string(to_string(type_))
             + ", expected float32, float16, bfloat16 or int32");
    if (slices(kind_) && value.dims().rank() == 0)
      fail(errc::shape_mismatch, kind_,
           reference_ + " is a scalar, expected an axis to cut or join along");
  }

  shape joined(shape dims) const {
    dims[0] *= ranks_;
    return dims;
  }

  shape slice(shape dims) const {
    if (dims[0] % ranks_ != 0)
      fail(errc::shape_mismatch, kind_,
           reference_ + " is " + to_string(dims) + ", expected a multiple of "
             + std::to_string(ranks_) + " ranks along axis 0");
    dims[0] /= ranks_;
    return dims;
  }

  void check(const tensor& value, const shape& dims, const char* role,
             std::size_t rank) const {
    if (!value.is_plain())
      fail(errc::invalid_argument, kind_,
           rank_name(role, rank) + " is in the layout " + value.format()->name()
             + ", expected a plain tensor");
    if (value.type() == type_ && value.dims() == dims)
      return;
    auto code =
      value.type() == type_ ? errc::shape_mismatch : errc::dtype_mismatch;
    fail(code, kind_,
         rank_name(role, rank) + " is " + describe(value.dims(), value.type())
           + ", expected " + describe(dims, type_) + " to go with the "
           + reference_);
  }

  collective_kind kind_;
  std::int64_t ranks_;
  std::string reference_;
  shape input_, output_;
  dtype type_ = dtype::float32;
};

void check_counts(const collective_options& options, std::size_t ranks,
                  std::size_t inputs, std::size_t outputs) {
  if (inputs != ranks || outputs != ranks)
    fail(errc::invalid_argument, options.kind,
         std::to_string(inputs) + " inputs and " + std::to_string(outputs)
           + " outputs for " + std::to_string(ranks) + " ranks");
}

// If elements change position, no output may overwrite an input or another
// output.
void check_overlap(collective_kind kind, inputs_view inputs,
                   inputs_view outputs) {
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    for (std::size_t q = 0; q < inputs.size(); ++q)
      if (inputs[q] && inputs[q].raw() == outputs[r].raw())
        fail(errc::invalid_argument, kind,
             rank_name("output", r) + " has the memory of the "
               + rank_name("input", q));
    for (std::size_t q = 0; q < r; ++q)
      if (outputs[q].raw() == outputs[r].raw())
        fail(errc::invalid_argument, kind,
             rank_name("output", r) + " has the memory of the "
               + rank_name("output", q));
  }
}

void check_sources(const collective_options& options, inputs_view inputs) {
  if (options.kind == collective_kind::broadcast && !inputs[options.root])
    fail(errc::invalid_argument, options.kind,
         rank_name("input", options.root) + ", the root, has no memory");
  if (reduces(options.kind) && options.op == reduce_op::max
      && first_with_memory(inputs) == none)
    fail(errc::invalid_argument, options.kind,
         "no rank has an input, and max of nothing is undefined");
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace

local_collective::local_collective(std::size_t ranks,
                                   const collective_options& options)
  : ranks_(ranks), options_(options), cache_bytes_(last_level_cache_bytes()) {
  if (ranks == 0)
    fail(errc::invalid_argument, options.kind, "a group without ranks");
  if (options.root >= ranks)
    fail(errc::invalid_argument, options.kind,
         "root " + std::to_string(options.root) + " of " + std::to_string(ranks)
           + " ranks");
  options_.max_parts = std::max<std::size_t>(options.max_parts, 1);
}

void local_collective::bind(std::span<const tensor> inputs,
                            std::span<tensor> outputs) {
  forget();
  check_counts(options_, ranks_, inputs.size(), outputs.size());
  check_sources(options_, inputs);
  signature expected{options_.kind, ranks_, inputs, outputs};
  for (std::size_t r = 0; r < ranks_; ++r)
    if (inputs[r])
      expected.check_input(inputs[r], r);
  choose_writers(outputs);
  for (auto r : writers_)
    expected.check_output(outputs[r], r);
  if (slices(options_.kind) && ranks_ > 1)
    check_overlap(options_.kind, inputs, outputs);

  auto mean = reduces(options_.kind) && options_.op == reduce_op::mean;
  rule_ = {.type = expected.type(),
           .max = options_.op == reduce_op::max,
           .divisor = mean ? static_cast<std::int32_t>(ranks_) : 1};
  segment_elements_ = static_cast<std::size_t>(expected.input_dims().numel());
  if (options_.kind == collective_kind::reduce_scatter)
    segment_elements_ /= ranks_;
  outputs_ = outputs;
  if (shares())
    shared_result_ =
      writers_.empty() ? inputs[options_.root] : outputs[writers_.front()];
  add_segments(inputs, outputs);
  choose_stores();
  cut_parts();
}

void local_collective::run_part(std::size_t part) noexcept {
  auto first = part * part_elements_;
  auto last =
    std::min(first + part_elements_, segments_.size() * segment_elements_);
  while (first < last) {
    auto index = first / segment_elements_;
    auto offset = first % segment_elements_;
    auto count = std::min(segment_elements_ - offset, last - first);
    run_segment(segments_[index], offset, count);
    first += count;
  }
}

void local_collective::finish() {
  if (shares())
    for (auto& output : outputs_)
      output = shared_result_.share();
  forget();
}

bool local_collective::shares() const noexcept {
  return options_.share_results && ranks_ > 1
         && (options_.kind == collective_kind::all_reduce
             || options_.kind == collective_kind::broadcast);
}

void local_collective::choose_writers(std::span<const tensor> outputs) {
  if (shares()) {
    auto rank = first_with_memory(outputs);
    if (options_.kind == collective_kind::all_reduce)
      writers_.push_back(rank == none ? 0 : rank);
  } else if (options_.kind == collective_kind::reduce) {
    writers_.push_back(options_.root);
  } else {
    for (std::size_t r = 0; r < ranks_; ++r)
      writers_.push_back(r);
  }
}

void local_collective::add_segments(std::span<const tensor> inputs,
                                    std::span<const tensor> outputs) {
  auto count = slices(options_.kind) ? ranks_ : 1;
  for (std::size_t i = 0; i < count; ++i)
    add_segment(inputs, outputs, i);
}

void local_collective::add_segment(std::span<const tensor> inputs,
                                   std::span<const tensor> outputs,
                                   std::size_t index) {
  segment s{sources_.size(), 0, destinations_.size(), 0};
  add_sources(inputs, index);
  add_destinations(outputs, index);
  s.sources = sources_.size() - s.first_source;
  drop_copies_onto_themselves(s);
  s.destinations = destinations_.size() - s.first_destination;
  if (s.destinations != 0)
    segments_.push_back(s);
}

void local_collective::add_sources(std::span<const tensor> inputs,
                                   std::size_t index) {
  auto slice = segment_elements_ * size_of(rule_.type);
  auto add = [&](std::size_t rank, std::size_t offset) {
    if (inputs[rank])
      sources_.push_back(inputs[rank].raw() + offset);
  };
  if (options_.kind == collective_kind::broadcast)
    add(options_.root, 0);
  else if (options_.kind == collective_kind::all_gather)
    add(index, 0);
  else
    for (std::size_t r = 0; r < ranks_; ++r)
      add(r, index * slice);
}

void local_collective::add_destinations(std::span<const tensor> outputs,
                                        std::size_t index) {
  auto slice = segment_elements_ * size_of(rule_.type);
  auto scatter = options_.kind == collective_kind::reduce_scatter;
  for (auto r : writers_) {
    if (scatter && r != index)
      continue;
    auto data = const_cast<std::byte*>(outputs[r].raw());
    destinations_.push_back({data + (scatter ? 0 : index * slice)});
  }
}

void local_collective::drop_copies_onto_themselves(segment& s) {
  if (s.sources != 1 || rule_.divisor != 1)
    return;
  auto* source = sources_[s.first_source];
  auto first =
    destinations_.begin() + static_cast<std::ptrdiff_t>(s.first_destination);
  destinations_.erase(
    std::remove_if(first, destinations_.end(),
                   [&](auto& to) { return to.data == source; }),
    destinations_.end());
}

// Non-temporal stores avoid reading lines that are then overwritten. They pay
// off only if a destination is not also a source and would not stay in the
// cache.
void local_collective::choose_stores() {
  auto bytes = segment_elements_ * size_of(rule_.type);
  auto total = bytes * (sources_.size() + destinations_.size());
  for (auto& to : destinations_)
    to.stream =
      total > cache_bytes_
      && std::find(sources_.begin(), sources_.end(), to.data) == sources_.end();
}

void local_collective::cut_parts() {
  auto elements = segments_.size() * segment_elements_;
  auto wanted = std::clamp<std::size_t>(
    elements * size_of(rule_.type) / min_part_bytes, 1, options_.max_parts);
  part_elements_ = round_up((elements + wanted - 1) / wanted, part_granularity);
  parts_ =
    elements == 0 ? 1 : round_up(elements, part_elements_) / part_elements_;
}

void local_collective::run_segment(const segment& s, std::size_t first,
                                   std::size_t count) const noexcept {
  auto sources = std::span(sources_).subspan(s.first_source, s.sources);
  auto destinations =
    std::span(destinations_).subspan(s.first_destination, s.destinations);
  auto element = size_of(rule_.type);
  if (s.sources == 1 && rule_.divisor == 1)
    copy(sources[0], destinations, first * element, count * element);
  else
    merge(rule_, sources, destinations, first, count);
}

void local_collective::forget() noexcept {
  outputs_ = {};
  shared_result_ = {};
  writers_.clear();
  segments_.clear();
  sources_.clear();
  destinations_.clear();
  parts_ = 0;
}

} // namespace troupe::comm::local
