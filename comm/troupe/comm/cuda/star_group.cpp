// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/cuda/star_group.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/local/local_group.hpp>
#include <troupe/comm/value_checks.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/cuda/row_sparse.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::comm {

namespace {

using cuda::cuda_stream;
using local::rank_part;

/// The merge of one call, as it is queued.
class queued_merge {
public:
  queued_merge(std::span<device* const> devices,
               std::span<const rank_part> ranks)
    : devices_(devices), ranks_(ranks), call_(ranks.front().call),
      lead_(call_.kind == collective_kind::all_reduce ? 0 : call_.root) {
    if (lead_ >= ranks_.size())
      refuse_call(call_.kind, "root " + std::to_string(call_.root) + " of "
                                + std::to_string(ranks_.size()) + " ranks");
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (!ranks_[r].on)
        refuse_rank(call_.kind, r, "made the call outside of a stream's work");
  }

  void run(completion& whole) {
    try {
      queue_all();
      stream_at(lead_).notify(whole);
    } catch (...) {
      // What is queued still uses the values.
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        stream_at(r).drain();
      throw;
    }
  }

private:
  cuda_stream& stream_at(std::size_t rank) const {
    return cuda::stream_of(ranks_[rank].on);
  }
  void order(std::size_t after, std::size_t before) {
    if (after != before)
      stream_at(after).order_after(stream_at(before),
                                   stream_at(before).position());
  }
  bool gets_result(std::size_t rank) const {
    return call_.kind != collective_kind::reduce || rank == lead_;
  }

  void queue_all() {
    std::vector<variable> results;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      order(lead_, r);
    {
      const cuda_stream::scope here{stream_at(lead_)};
      for (std::size_t i = 0; i < call_.values.size(); ++i)
        named(i, [&] { results.push_back(queue_result(i)); });
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (r == lead_ || !gets_result(r))
        continue;
      order(r, lead_);
      {
        const cuda_stream::scope here{stream_at(r)};
        for (std::size_t i = 0; i < results.size(); ++i)
          named(i, [&] { queue_copy(r, i, results[i]); });
      }
      order(lead_, r);
    }
  }

  template <class Act>
  void named(std::size_t value, Act act) const {
    try {
      act();
    } catch (const error& e) {
      throw e.with_context({.variable = std::string{call_.values[value].name}});
    }
  }

  const variable* input(std::size_t rank, std::size_t value) const {
    return ranks_[rank].call.values[value].in;
  }
  bool gives_rows(std::size_t rank, std::size_t value) const {
    const auto* const in = input(rank, value);
    return in && in->is_rows();
  }

  /// What a rank gives; a tensor without memory if it is idle.
  tensor given(std::size_t rank, std::size_t value) const {
    const auto* const in = input(rank, value);
    return in && in->is_tensor() ? in->as_tensor() : tensor{};
  }

  variable queue_result(std::size_t value) {
    variable result;
    if (any_gives_rows(value))
      result.set(queue_joined_rows(value));
    else
      result.set(call_.kind == collective_kind::broadcast ? root_value(value)
                                                          : queue_sum(value));
    if (auto* const out = ranks_[lead_].call.values[value].out)
      *out = result;
    return result;
  }

  // -- selected rows: those of all ranks, in rank order, as on CPUs

  bool any_gives_rows(std::size_t value) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (gives_rows(r, value))
        return true;
    return false;
  }

  selected_rows queue_joined_rows(std::size_t value) {
    if (call_.kind == collective_kind::broadcast)
      refuse_call(call_.kind, "selected rows are not sent to others");
    const auto terms = row_terms_of(value);
    std::int64_t entries = 0, at = 0;
    for (const auto* term : terms)
      entries += cuda::entries_of(*term);
    const auto& first = *terms.front();
    auto joined = cuda::make_rows(devices_[lead_]->memory(), entries,
                                  first.height, first.values.dims());
    for (const auto* term : terms) {
      cuda::queue_rows(stream_at(lead_), *term, joined, at);
      at += cuda::entries_of(*term);
    }
    return joined;
  }

  /// The rows of all ranks that have some.
  std::vector<const selected_rows*> row_terms_of(std::size_t value) const {
    std::vector<const selected_rows*> terms;
    std::size_t first = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto* const in = input(r, value);
      if (!in || !in->has_value())
        continue;
      if (!in->is_rows())
        refuse_rank(call_.kind, r, "gives a tensor where others give rows");
      if (terms.empty())
        first = r;
      terms.push_back(&in->as_rows());
      require_alike(call_.kind, row_form(r, *terms.back()),
                    row_form(first, *terms.front()));
    }
    return terms;
  }

  /// A row-sparse value as the tensor that it stands for.
  struct row_form {
    row_form(std::size_t of_rank, const selected_rows& rows)
      : rank(of_rank), type(rows.values.type()), dims(rows.values.dims()) {
      dims[0] = rows.height;
    }
    operator value_form() const { return {rank, type, dims}; }
    std::size_t rank;
    dtype type;
    shape dims;
  };

  void queue_row_copy(std::size_t rank, variable& out,
                      const selected_rows& result) {
    auto to =
      cuda::make_rows(devices_[rank]->memory(), cuda::entries_of(result),
                      result.height, result.values.dims());
    cuda::queue_rows(stream_at(rank), result, to);
    out.set(std::move(to));
  }

  // -- tensors

  tensor root_value(std::size_t value) const {
    auto found = given(lead_, value);
    if (!found)
      refuse_rank(call_.kind, lead_, "is the root and has no value");
    return found;
  }

  // Sums are made in rank order, as on CPUs. Every operand lies in the lead's
  // memory then.
  tensor queue_sum(std::size_t value) {
    const auto terms = terms_of(value);
    auto& on = stream_at(lead_);
    auto result = given(lead_, value);
    if (!result || result.is_shared())
      result = tensor::make(devices_[lead_]->memory(), terms.front().dims(),
                            terms.front().type());
    if (terms.size() == 1 && terms.front().raw() != result.raw())
      copy(on, result, terms.front());
    const auto* sum = terms.front().data<float>();
    for (std::size_t i = 1; i < terms.size(); ++i) {
      // The lead's own term may lie where the result is made, and come last.
      const auto overwrites =
        i + 1 < terms.size() && is_ahead(terms, i + 1, result);
      auto to = overwrites ? tensor::make(devices_[lead_]->memory(),
                                          result.dims(), result.type())
                           : result;
      on.run_for_each<cuda::add>(
        result.numel(),
        {sum, terms[i].data<float>(), to.data<float>(), result.numel()});
      sums_.push_back(to);
      sum = to.data<float>();
    }
    sums_.clear();
    return result;
  }

  /// True if a term from number `first` on lies in the memory of `result`.
  static bool is_ahead(const std::vector<tensor>& terms, std::size_t first,
                       const tensor& result) {
    return std::any_of(
      terms.begin() + static_cast<std::ptrdiff_t>(first), terms.end(),
      [&](const tensor& t) { return t.raw() == result.raw(); });
  }

  /// The values of all ranks that have one, in the lead's memory.
  std::vector<tensor> terms_of(std::size_t value) {
    std::vector<tensor> terms;
    std::size_t first = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto term = given(r, value);
      if (!term)
        continue;
      require_addable(call_.kind, {r, term.type(), term.dims()});
      if (term.type() != dtype::float32)
        refuse_rank(call_.kind, r, "gives a value that is not float32");
      if (terms.empty())
        first = r;
      else
        require_alike(call_.kind, {r, term.type(), term.dims()},
                      {first, terms.front().type(), terms.front().dims()});
      terms.push_back(r == lead_ ? term : brought_to_lead(term));
    }
    if (terms.empty())
      refuse_call(call_.kind, "no rank has a value");
    return terms;
  }

  tensor brought_to_lead(const tensor& value) {
    auto made =
      tensor::make(devices_[lead_]->memory(), value.dims(), value.type());
    copy(stream_at(lead_), made, value);
    return made;
  }

  void queue_copy(std::size_t rank, std::size_t value, const variable& from) {
    auto& v = ranks_[rank].call.values[value];
    if (!v.out)
      return;
    if (from.is_rows())
      return queue_row_copy(rank, *v.out, from.as_rows());
    const auto& result = from.as_tensor();
    auto to = given(rank, value);
    if (!to || to.is_shared() || to.dims() != result.dims()
        || to.type() != result.type()
        || call_.kind == collective_kind::broadcast)
      to = tensor::make(devices_[rank]->memory(), result.dims(), result.type());
    copy(stream_at(rank), to, result);
    v.out->set(to);
  }

  static void copy(cuda_stream& on, tensor& to, const tensor& from) {
    if (from.bytes() > 0)
      on.copy(to.raw(), from.raw(), from.bytes());
  }

  std::span<device* const> devices_;
  std::span<const rank_part> ranks_;
  const collective_call& call_;
  std::size_t lead_;
  std::vector<tensor> sums_; // of the value that is being added up
};

class star_merger final : public local::merger {
public:
  explicit star_merger(std::vector<device*> ranks) : ranks_(std::move(ranks)) {
    if (ranks_.empty())
      throw error(errc::invalid_argument, "a group without ranks");
  }
  std::size_t size() const noexcept override { return ranks_.size(); }
  stream* caller() const noexcept override { return cuda_stream::current(); }
  launch_status merge(std::span<const rank_part> ranks,
                      completion& whole) override {
    queued_merge{ranks_, ranks}.run(whole);
    return launch_status::pending;
  }

private:
  std::vector<device*> ranks_;
};

} // namespace

std::unique_ptr<local::merger>
make_star_merger(std::span<device* const> ranks) {
  return std::make_unique<star_merger>(
    std::vector<device*>(ranks.begin(), ranks.end()));
}

std::vector<std::unique_ptr<communicator>>
make_star_group(std::span<device* const> ranks) {
  return local::make_ends(make_star_merger(ranks));
}

} // namespace troupe::comm
