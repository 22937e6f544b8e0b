// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/exchange.hpp>

#include <troupe/comm/local/reduce_kernels.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

namespace troupe::comm {

namespace {

/// Transfers of one tag meet in order, so each purpose has its own.
enum tag : std::uint32_t { raw_tag = 1, sum_tag, rows_tag };

/// Number of steps under way. While one is added, the others are sent.
constexpr std::size_t depth = 4;
/// A block is no smaller: a small value has fewer owners.
constexpr std::size_t least_block_bytes = std::size_t{8} << 10;
/// Values of at most so many bytes, divided by half the number of processes, go
/// to all processes that want the sum.
constexpr std::size_t most_direct_bytes = std::size_t{2} << 20;
/// Blocks begin at multiples of this many elements.
constexpr std::size_t block_granularity = 64;
// A piece has at least so many elements, of at most eight bytes.
constexpr std::size_t smallest_piece = block_granularity * 8;
/// Selected rows are sent in parts of at most so many bytes.
constexpr std::size_t rows_part_bytes = std::size_t{16} << 20;

std::size_t divided(std::size_t value, std::size_t by) {
  return (value + by - 1) / by;
}

tensor fresh_like(const tensor* like, const letter_value& v, arena& memory) {
  if (!like)
    return tensor::make(memory, v.extents(), v.type);
  return {like->dims(), like->type(), memory.allocate(like->bytes()),
          like->format()};
}

/// Throws if another process wants to send more row numbers than this one can
/// have. Their memory is taken before they come.
void require_possible(const letter_value& v) {
  if (v.row_count > host_memory_limit() / sizeof(std::int64_t))
    throw error(errc::out_of_memory, "selected rows of another process have "
                                       + std::to_string(v.row_count)
                                       + " row numbers");
}

void add_up(dtype type, std::span<const std::byte* const> from, std::byte* to,
            std::size_t count) {
  if (from.size() > 1)
    local::add(type, from, {to}, 0, count);
  else if (from[0] != to)
    local::copy(from[0], {to}, 0, count * size_of(type));
}

} // namespace

exchange::exchange(engine& by, exchange_options options, arena& memory)
  : engine_(by), options_(std::move(options)), memory_(memory), steps_(depth) {}

std::size_t exchange::process_of(std::size_t rank) const noexcept {
  std::size_t p = 0;
  while ((options_.ranks_of_process[p] & bit_of(rank)) == 0)
    ++p;
  return p;
}

/// True if the process gets the sum from the owners of its blocks.
bool exchange::wants(const letters_plan& plan, const dense_job& job,
                     std::size_t process) const noexcept {
  const bool has_it =
    job.sources.size() == 1 && job.sources[0].process == process;
  return !has_it && has_taker(plan, job.value, process);
}

bool exchange::has_taker(const letters_plan& plan, std::size_t i,
                         std::size_t process) const noexcept {
  return (plan.values()[i].takers & options_.ranks_of_process[process]) != 0;
}

// -- preparation --------------------------------------------------------------

void exchange::make_plain(const letters_plan& plan, std::span<own_values> own) {
  if (!plan.needs_plain())
    return;
  for (auto& o : own)
    for (auto& value : *o.given)
      if (value && !value.is_plain())
        value = clone(value, memory_);
}

/// Memory for the result of a dense value: that of the first rank of this
/// process that gives a value, if it may be written to.
tensor exchange::memory_of_result(const letters_plan& plan, std::size_t i,
                                  std::span<own_values> own,
                                  std::size_t sources) {
  const auto givers = plan.values()[i].givers;
  const tensor* like = nullptr;
  bool is_fixed = false;
  for (auto& o : own)
    if (!like && (givers & bit_of(o.rank)) != 0) {
      like = &(*o.given)[i];
      is_fixed = o.is_fixed;
    }
  const bool stays = like && sources == 1; // nothing is written
  if (like && (stays || (!is_fixed && !like->is_shared())))
    return *like;
  return fresh_like(like, plan.value(first_of(givers), i), memory_);
}

/// The summands of a value in the order in which they are added.
std::vector<exchange::source> exchange::sources_of(const letters_plan& plan,
                                                   std::size_t i,
                                                   std::span<own_values> own,
                                                   bool letters_have_values) {
  std::vector<source> all;
  for_each_rank(plan.values()[i].givers, [&](std::size_t r) {
    const std::byte* data = letters_have_values ? plan.elements(r, i) : nullptr;
    for (auto& o : own)
      if (o.rank == r)
        data = (*o.given)[i].raw();
    all.push_back({process_of(r), data});
  });
  return all;
}

exchange::dense_job exchange::job_of(const letters_plan& plan, std::size_t i,
                                     std::span<own_values> own,
                                     bool letters_have_values,
                                     merged_value& result) {
  const auto& v = plan.value(first_of(plan.values()[i].givers), i);
  dense_job job{.value = i,
                .type = v.type,
                .elements = v.bytes / size_of(v.type),
                .is_direct = v.bytes * processes() <= 2 * most_direct_bytes,
                .share = 0,
                .piece = 0,
                .sources = sources_of(plan, i, own, letters_have_values),
                .result = nullptr};
  result.dense = memory_of_result(plan, i, own, job.sources.size());
  job.result = result.dense.raw();
  if (options_.sum_inside_first)
    add_inside(job);
  const auto element = size_of(job.type);
  const auto even =
    job.is_direct ? job.elements : divided(job.elements, processes());
  job.share =
    divided(std::max(even, least_block_bytes / element), block_granularity)
    * block_granularity;
  job.piece = std::clamp(options_.piece_bytes / element / block_granularity
                           * block_granularity,
                         block_granularity, job.share);
  return job;
}

/// Adds the values of each process whose values are here. One source per
/// process is left.
void exchange::add_inside(dense_job& job) {
  std::vector<source> sums;
  for (std::size_t k = 0; k < job.sources.size(); ++k) {
    const auto process = job.sources[k].process;
    if (std::ranges::find(sums, process, &source::process) != sums.end())
      continue;
    std::vector<const std::byte*> parts;
    for (auto& s : job.sources)
      if (s.process == process)
        parts.push_back(s.data);
    sums.push_back(job.sources[k]);
    if (parts.size() == 1 || !parts[0])
      continue;
    auto* to =
      process == self()
        ? job.result
        : inside_
            .emplace_back(memory_.allocate(job.elements * size_of(job.type)))
            .data();
    add_up(job.type, parts, to, job.elements);
    sums.back().data = to;
  }
  job.sources = std::move(sums);
}

// -- small calls --------------------------------------------------------------

void exchange::merge_letters(const letters_plan& plan,
                             std::span<own_values> own,
                             std::vector<merged_value>& results) {
  results.resize(plan.values().size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& v = plan.values()[i];
    if (!has_taker(plan, i, self()))
      continue;
    if (v.has_rows) {
      results[i].rows = local::merge_rows(plan.rows_of(i), memory_);
      continue;
    }
    inside_.clear();
    const auto job = job_of(plan, i, own, true, results[i]);
    std::vector<const std::byte*> from;
    for (auto& s : job.sources)
      from.push_back(s.data);
    add_up(job.type, from, job.result, job.elements);
  }
}

// -- large calls --------------------------------------------------------------

std::optional<error>
exchange::merge_values(const letters_plan& plan, std::span<own_values> own,
                       std::vector<merged_value>& results) {
  make_plain(plan, own);
  results.resize(plan.values().size());
  inside_.clear();
  std::vector<dense_job> jobs;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!plan.values()[i].has_rows)
      jobs.push_back(job_of(plan, i, own, false, results[i]));
  try {
    for (std::size_t i = 0; i < results.size(); ++i)
      if (plan.values()[i].has_rows)
        if (auto why = merge_rows(plan, i, own, results[i]))
          return why;
    run_jobs(plan, jobs);
    return std::nullopt;
  } catch (...) {
    keep_all(own, results);
    throw;
  }
}

/// Keeps what transfers that have not ended can still use.
void exchange::keep_all(std::span<own_values> own,
                        const std::vector<merged_value>& results) {
  for (auto& s : steps_) {
    keep(s.in);
    keep(s.out);
  }
  keep(results_);
  if (kept_.empty())
    return;
  for (auto& o : own)
    kept_values_.insert(kept_values_.end(), o.given->begin(), o.given->end());
  for (auto& r : results)
    kept_values_.push_back(r.dense);
}

void exchange::run_jobs(const letters_plan& plan,
                        const std::vector<dense_job>& jobs) {
  std::vector<std::pair<const dense_job*, std::size_t>> all;
  for (auto& job : jobs)
    for (std::size_t n = 0;
         job.elements > 0 && n < divided(job.share, job.piece); ++n)
      all.emplace_back(&job, n);
  const auto start = [&](std::size_t t) {
    auto& s = steps_[t % depth];
    std::tie(s.job, s.number) = all[t];
    begin(plan, s, t % depth);
  };
  for (std::size_t t = 0; t < std::min(depth, all.size()); ++t)
    start(t);
  for (std::size_t t = 0; t < all.size(); ++t) {
    auto& s = steps_[t % depth];
    if (s.job->is_direct)
      wait_all(s.out); // the sum is written where the values lie
    wait_all(s.in);
    add(plan, s, t % depth);
    hand_out(plan, s);
    wait_all(s.out); // sums are received there, too
    take_back(plan, s);
    if (t + depth < all.size())
      start(t + depth);
  }
  wait_all(results_);
}

exchange::range exchange::range_of(const dense_job& job, std::size_t block,
                                   std::size_t number) const noexcept {
  const auto first = block * job.share + number * job.piece;
  const auto end =
    std::min({(block + 1) * job.share, first + job.piece, job.elements});
  return {(block + job.value) % processes(), first,
          end > first ? end - first : 0};
}

/// Calls `use(range)` for each piece of the step that has elements.
template <class Use>
void exchange::for_each_range(const step& s, Use use) const {
  for (std::size_t block = 0; block < processes(); ++block)
    if (const auto r = range_of(*s.job, block, s.number); r.count > 0)
      use(r);
}

std::byte* exchange::scratch(std::size_t slot, std::size_t number) {
  const auto at = number * depth + slot;
  if (at >= scratch_.size())
    scratch_.resize(at + 1);
  if (!scratch_[at])
    scratch_[at] =
      memory_.allocate(std::max(options_.piece_bytes, smallest_piece));
  return scratch_[at].data();
}

/// True if the process adds this piece.
bool exchange::adds(const letters_plan& plan, const dense_job& job,
                    std::size_t process, const range& r) const noexcept {
  return job.is_direct ? wants(plan, job, process) : r.owner == process;
}

/// Sends the pieces of this process's values to those who add them, and
/// receives those of others that this process adds.
void exchange::begin(const letters_plan& plan, step& s, std::size_t slot) {
  const auto& job = *s.job;
  const auto element = size_of(job.type);
  for_each_range(s, [&](const range& r) {
    for (std::size_t k = 0; k < job.sources.size(); ++k) {
      const auto& from = job.sources[k];
      if (from.process != self() && adds(plan, job, self(), r)) {
        auto* to = job.sources.size() == 1 ? job.result + r.first * element
                                           : scratch(slot, k);
        s.in.push_back(
          engine_.receive(from.process, raw_tag, {to, r.count * element}));
      }
      for (std::size_t p = 0; from.process == self() && p < processes(); ++p)
        if (p != self() && adds(plan, job, p, r))
          s.out.push_back(engine_.send(
            p, raw_tag, {from.data + r.first * element, r.count * element}));
    }
  });
}

void exchange::add(const letters_plan& plan, step& s, std::size_t slot) {
  const auto& job = *s.job;
  if (job.sources.size() == 1)
    return; // the value is there
  const auto element = size_of(job.type);
  for_each_range(s, [&](const range& r) {
    if (!adds(plan, job, self(), r))
      return;
    std::array<const std::byte*, max_ranks> from;
    std::size_t count = 0;
    for (std::size_t k = 0; k < job.sources.size(); ++k)
      from[count++] = job.sources[k].process == self()
                        ? job.sources[k].data + r.first * element
                        : scratch(slot, k);
    add_up(job.type, {from.data(), count}, job.result + r.first * element,
           r.count);
  });
}

/// Sends the sums that this process owns.
void exchange::hand_out(const letters_plan& plan, const step& s) {
  const auto& job = *s.job;
  if (job.is_direct)
    return;
  const auto element = size_of(job.type);
  for_each_range(s, [&](const range& r) {
    for (std::size_t p = 0; r.owner == self() && p < processes(); ++p)
      if (p != self() && wants(plan, job, p))
        results_.push_back(engine_.send(
          p, sum_tag, {job.result + r.first * element, r.count * element}));
  });
}

/// Receives the sums that other processes own.
void exchange::take_back(const letters_plan& plan, const step& s) {
  const auto& job = *s.job;
  if (job.is_direct || !wants(plan, job, self()))
    return;
  const auto element = size_of(job.type);
  for_each_range(s, [&](const range& r) {
    if (r.owner != self())
      results_.push_back(engine_.receive(
        r.owner, sum_tag, {job.result + r.first * element, r.count * element}));
  });
}

void exchange::wait_all(transfers& of) {
  for (auto& t : of)
    engine_.wait(*t);
  of.clear();
}

void exchange::keep(transfers& of) {
  std::ranges::move(of, std::back_inserter(kept_));
  of.clear();
}

// -- selected rows ------------------------------------------------------------

/// Every process gets all row numbers, to check them; values go to those that
/// want the result.
std::optional<error> exchange::merge_rows(const letters_plan& plan,
                                          std::size_t i,
                                          std::span<own_values> own,
                                          merged_value& result) {
  const auto givers = plan.values()[i].givers;
  const bool takes = has_taker(plan, i, self());
  rows_of_ranks all(plan.size());
  for_each_rank(givers, [&](std::size_t r) {
    const auto& said = plan.value(r, i);
    for (auto& o : own)
      if (o.rank == r)
        all[r] = {(*o.rows)[i], (*o.given)[i]};
    if (process_of(r) == self())
      return;
    require_possible(said);
    all[r].rows.resize(said.row_count);
    if (takes && said.axes > 0)
      all[r].values = tensor::make(memory_, said.extents(), said.type);
  });
  try {
    send_rows(plan, i, all);
  } catch (...) {
    for (auto& r : all) {
      kept_values_.push_back(std::move(r.values));
      kept_rows_.push_back(std::move(r.rows));
    }
    throw;
  }
  std::vector<std::optional<local::rows_view>> views(plan.size());
  for_each_rank(givers, [&](std::size_t r) {
    const auto& said = plan.value(r, i);
    const auto& here = all[r];
    // Row numbers are checked also where nobody needs the values.
    const auto* data = said.axes == 0 ? nullptr
                       : here.values
                         ? here.values.raw()
                         : reinterpret_cast<const std::byte*>(here.rows.data());
    views[r] =
      local::rows_view{here.rows, said.height, data, said.extents(), said.type};
  });
  try {
    local::check_rows(views);
  } catch (const error& e) {
    return e.with_context({.variable = std::string{plan.name(i)}});
  }
  if (takes)
    result.rows = local::merge_rows(views, memory_);
  return std::nullopt;
}

void exchange::send_rows(const letters_plan& plan, std::size_t i,
                         rows_of_ranks& all) {
  for_each_rank(plan.values()[i].givers, [&](std::size_t r) {
    const auto bytes_of_rows = std::as_writable_bytes(std::span{all[r].rows});
    const std::span bytes_of_values{all[r].values.raw(), all[r].values.bytes()};
    if (process_of(r) != self()) {
      receive_parts(process_of(r), bytes_of_rows);
      receive_parts(process_of(r), bytes_of_values);
      return;
    }
    for (std::size_t p = 0; p < processes(); ++p) {
      if (p == self())
        continue;
      send_parts(p, bytes_of_rows);
      if (has_taker(plan, i, p))
        send_parts(p, bytes_of_values);
    }
  });
  wait_all(results_);
}

void exchange::send_parts(std::size_t to, std::span<const std::byte> bytes) {
  for (; !bytes.empty();
       bytes = bytes.subspan(std::min(bytes.size(), rows_part_bytes)))
    results_.push_back(engine_.send(
      to, rows_tag, bytes.first(std::min(bytes.size(), rows_part_bytes))));
}

void exchange::receive_parts(std::size_t from, std::span<std::byte> bytes) {
  for (; !bytes.empty();
       bytes = bytes.subspan(std::min(bytes.size(), rows_part_bytes)))
    results_.push_back(engine_.receive(
      from, rows_tag, bytes.first(std::min(bytes.size(), rows_part_bytes))));
}

} // namespace troupe::comm
