// SPDX-License-Identifier: Apache-2.0

// What a call needs before values are sent, and small calls, which send none.
// exchange_steps.cpp merges dense values, exchange_rows.cpp selected rows,
// exchange_nearby.cpp is between the processes of a host.
#include <troupe/comm/engine/exchange.hpp>

#include <troupe/comm/local/reduce_kernels.hpp>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace troupe::comm {

namespace {

/// A block is no smaller: a small value has fewer owners.
constexpr std::size_t least_block_bytes = std::size_t{8} << 10;
/// Values of at most so many bytes, divided by half the number of hosts, go to
/// all hosts that want the sum.
constexpr std::size_t most_direct_bytes = std::size_t{2} << 20;
/// Blocks begin at multiples of this many elements.
constexpr std::size_t block_granularity = 64;

tensor fresh_like(const tensor* like, const letter_value& v, arena& memory) {
  if (!like)
    return tensor::make(memory, v.extents(), v.type);
  return {like->dims(), like->type(), memory.allocate(like->bytes()),
          like->format()};
}

} // namespace

exchange::exchange(engine& by, exchange_options options, arena& memory)
  : engine_(by), options_(std::move(options)),
    adds_by_host_(!options_.hosts.empty()), memory_(memory) {
  if (options_.nearby)
    signals_.emplace(*options_.nearby);
  const auto count = options_.ranks_of_process.size();
  for (std::size_t p = 0; !adds_by_host_ && p < count; ++p)
    options_.hosts.push_back({p}); // each process stands for itself
  host_of_.resize(count);
  place_of_.resize(count);
  for (std::size_t h = 0; h < options_.hosts.size(); ++h)
    for (std::size_t n = 0; n < options_.hosts[h].size(); ++n) {
      host_of_[options_.hosts[h][n]] = h;
      place_of_[options_.hosts[h][n]] = n;
    }
}

// -- who does what ------------------------------------------------------------

std::size_t exchange::process_of(std::size_t rank) const noexcept {
  std::size_t p = 0;
  while ((options_.ranks_of_process[p] & bit_of(rank)) == 0)
    ++p;
  return p;
}

bool exchange::has_taker(const letters_plan& plan, std::size_t i,
                         std::size_t process) const noexcept {
  return (plan.values()[i].takers & options_.ranks_of_process[process]) != 0;
}

bool exchange::has_taker_on(const letters_plan& plan, std::size_t i,
                            std::size_t host) const noexcept {
  return std::ranges::any_of(
    options_.hosts[host], [&](std::size_t p) { return has_taker(plan, i, p); });
}

/// True if the value needs no sum, and a rank of the host gives it.
bool exchange::has_it(const dense_job& job, std::size_t host) const noexcept {
  return job.is_passed_on && job.sources[0].host == host;
}

/// True if the host gets the sum from the owners of its blocks.
bool exchange::wants(const letters_plan& plan, const dense_job& job,
                     std::size_t host) const noexcept {
  return !has_it(job, host) && has_taker_on(plan, job.value, host);
}

/// The process that adds the values of a host in this range, and gets the sum
/// for it. On the owner's host, it is the owner.
std::size_t exchange::agent(const dense_job& job, std::size_t host,
                            const range& r) const noexcept {
  if (!job.is_direct && host_of_[r.owner] == host)
    return r.owner;
  const auto& all = options_.hosts[host];
  return all[(job.is_direct ? job.value : place_of_[r.owner]) % all.size()];
}

/// The process of a host that receives a rank's rows.
std::size_t exchange::agent_of_rows(std::size_t host,
                                    std::size_t rank) const noexcept {
  const auto& all = options_.hosts[host];
  return all[rank % all.size()];
}

/// True if the process adds the sums of hosts in this range.
bool exchange::adds(const letters_plan& plan, const dense_job& job,
                    std::size_t process, const range& r) const noexcept {
  if (!job.is_direct)
    return r.owner == process;
  const auto host = host_of_[process];
  return agent(job, host, r) == process && wants(plan, job, host);
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
                                  std::span<own_values> own) {
  const auto givers = plan.values()[i].givers;
  const tensor* like = nullptr;
  bool is_fixed = false;
  for (auto& o : own)
    if (!like && (givers & bit_of(o.rank)) != 0) {
      like = &(*o.given)[i];
      is_fixed = o.is_fixed;
    }
  const bool stays = like && std::has_single_bit(givers); // nothing is written
  if (like && (stays || (!is_fixed && !like->is_shared())))
    return *like;
  return fresh_like(like, plan.value(first_of(givers), i), memory_);
}

/// Where the value of a rank of this host lies.
const std::byte* exchange::value_of(const letters_plan& plan, std::size_t rank,
                                    std::size_t i,
                                    std::span<own_values> own) const {
  for (auto& o : own)
    if (o.rank == rank)
      return (*o.given)[i].raw();
  return near_values_[rank * plan.values().size() + i];
}

/// The summands of a value in the order in which they are added.
std::vector<exchange::source>
exchange::sources_of(const letters_plan& plan, std::size_t i,
                     std::span<own_values> own) const {
  std::vector<source> all;
  for_each_rank(plan.values()[i].givers, [&](std::size_t r) {
    const auto host = host_of_[process_of(r)];
    auto at =
      adds_by_host_ ? std::ranges::find(all, host, &source::host) : all.end();
    if (at == all.end())
      at = all.insert(at, {host, {}, process_of(r) == self()});
    else
      at->is_own = false;
    if (host == own_host())
      at->data.push_back(value_of(plan, r, i, own));
  });
  return all;
}

exchange::dense_job exchange::job_of(const letters_plan& plan, std::size_t i,
                                     std::span<own_values> own,
                                     std::byte* result) const {
  const auto givers = plan.values()[i].givers;
  const auto& v = plan.value(first_of(givers), i);
  dense_job job{.value = i,
                .type = v.type,
                .elements = v.bytes / size_of(v.type),
                .is_direct =
                  v.bytes * options_.hosts.size() <= 2 * most_direct_bytes,
                .is_passed_on = std::has_single_bit(givers),
                .share = 0,
                .piece = 0,
                .sources = sources_of(plan, i, own),
                .result = result};
  const auto element = size_of(job.type);
  const auto even = job.is_direct
                      ? job.elements
                      : (job.elements + processes() - 1) / processes();
  const auto least = std::max(even, least_block_bytes / element);
  job.share =
    (least + block_granularity - 1) / block_granularity * block_granularity;
  job.piece = std::clamp(options_.piece_bytes / element / block_granularity
                           * block_granularity,
                         block_granularity, job.share);
  return job;
}

// -- calls --------------------------------------------------------------------

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
    results[i].dense = memory_of_result(plan, i, own);
    std::vector<const std::byte*> from;
    for_each_rank(v.givers, [&](std::size_t r) {
      const auto here = std::ranges::find(own, r, &own_values::rank);
      from.push_back(here != own.end() ? (*here->given)[i].raw()
                                       : plan.elements(r, i));
    });
    const auto& said = plan.value(first_of(v.givers), i);
    add_up(said.type, from, results[i].dense.raw(),
           said.bytes / size_of(said.type));
  }
}

std::optional<error>
exchange::merge_values(const letters_plan& plan, std::span<own_values> own,
                       std::vector<merged_value>& results) {
  make_plain(plan, own);
  results.resize(plan.values().size());
  try {
    if (options_.nearby)
      make_readable(own);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!plan.values()[i].has_rows)
        results[i].dense = memory_of_result(plan, i, own);
    if (options_.nearby)
      tell_places(plan, own, results);
    std::vector<dense_job> jobs;
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!plan.values()[i].has_rows)
        jobs.push_back(job_of(plan, i, own, results[i].dense.raw()));
    std::optional<error> why;
    for (std::size_t i = 0; i < results.size() && !why; ++i)
      if (plan.values()[i].has_rows)
        why = merge_rows(plan, i, own, results[i]);
    if (!why)
      run_jobs(plan, jobs);
    if (options_.nearby)
      wait_for_neighbours();
    rows_.clear();
    return why;
  } catch (...) {
    keep_all(own, results);
    throw;
  }
}

/// Adds values, or copies a single one.
void exchange::add_up(dtype type, std::span<const std::byte* const> from,
                      std::byte* to, std::size_t count) {
  if (from.size() > 1)
    local::add(type, from, {to}, 0, count);
  else if (from[0] != to)
    local::copy(from[0], {to}, 0, count * size_of(type));
}

/// Keeps what transfers that have not ended can still use.
void exchange::keep_all(std::span<own_values> own,
                        const std::vector<merged_value>& results) {
  for (auto& s : steps_) {
    keep(s.in);
    keep(s.out);
  }
  keep(results_);
  if (kept_.empty() && coming_.empty())
    return;
  for (auto& o : own) {
    kept_values_.insert(kept_values_.end(), o.given->begin(), o.given->end());
    std::ranges::move(*o.rows, std::back_inserter(kept_numbers_));
  }
  for (auto& r : results)
    kept_values_.push_back(r.dense);
}

std::unique_ptr<transfer> exchange::send(std::size_t to, std::uint32_t tag,
                                         std::span<const std::byte> bytes) {
  auto t = engine_.send(to, tag, bytes);
  t->partner = to;
  t->bytes = bytes.size();
  return t;
}

std::unique_ptr<transfer> exchange::receive(std::size_t from, std::uint32_t tag,
                                            std::span<std::byte> bytes) {
  auto t = engine_.receive(from, tag, bytes);
  t->partner = from;
  t->bytes = bytes.size();
  t->is_receive = true;
  return t;
}

void exchange::note_wait(std::size_t peer, bool is_receive) noexcept {
  awaits_.store(2 * peer + 1 + (is_receive ? 1 : 0), std::memory_order_relaxed);
}

void exchange::wait_all(transfers& of) {
  for (auto& t : of) {
    note_wait(t->partner, t->is_receive);
    engine_.wait(*t);
    moved_.fetch_add(t->bytes, std::memory_order_relaxed);
  }
  note_wait();
  of.clear();
}

void exchange::stop() noexcept {
  engine_.stop();
  if (signals_)
    signals_->stop();
}

std::optional<exchange::awaited_transfer> exchange::awaits() const noexcept {
  const auto word = awaits_.load(std::memory_order_relaxed);
  if (word == 0)
    return std::nullopt;
  return awaited_transfer{static_cast<std::size_t>((word - 1) / 2),
                          (word - 1) % 2 == 1};
}

void exchange::keep(transfers& of) {
  std::ranges::move(of, std::back_inserter(kept_));
  of.clear();
}

} // namespace troupe::comm
