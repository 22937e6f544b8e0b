// SPDX-License-Identifier: Apache-2.0

// How dense values of any size are merged: in steps, several at a time.
#include <troupe/comm/engine/exchange.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

namespace troupe::comm {

namespace {

/// Number of steps under way. While one is added, the others are sent.
constexpr std::size_t depth = 4;
/// A piece has at least so many bytes: 64 elements of at most eight.
constexpr std::size_t smallest_piece = 64 * 8;

} // namespace

void exchange::run_jobs(const letters_plan& plan,
                        const std::vector<dense_job>& jobs) {
  std::vector<std::pair<const dense_job*, std::size_t>> all;
  for (auto& job : jobs)
    for (std::size_t n = 0;
         job.elements > 0 && n < (job.share + job.piece - 1) / job.piece; ++n)
      all.emplace_back(&job, n);
  steps_.resize(depth);
  const auto start = [&](std::size_t t) {
    auto& s = steps_[t % depth];
    std::tie(s.job, s.number) = all[t];
    begin(plan, s, t % depth);
  };
  const auto finish_first = [&] {
    finish(plan, coming_.front());
    coming_.pop_front();
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
    if (coming_.size() > depth)
      finish_first();
  }
  while (!coming_.empty())
    finish_first();
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

std::byte* exchange::scratch(std::size_t slot, std::size_t number) {
  const auto at = number * depth + slot;
  if (at >= scratch_.size())
    scratch_.resize(at + 1);
  if (!scratch_[at])
    scratch_[at] =
      memory_.allocate(std::max(options_.piece_bytes, smallest_piece));
  return scratch_[at].data();
}

/// The processes of other hosts that add the sum of this one in the range.
std::vector<std::size_t> exchange::receivers(const letters_plan& plan,
                                             const dense_job& job,
                                             const range& r) const {
  std::vector<std::size_t> all;
  for (std::size_t p = 0; p < processes(); ++p)
    if (host_of_[p] != own_host() && adds(plan, job, p, r))
      all.push_back(p);
  return all;
}

/// True if somebody needs what the agent of this host adds to the range.
bool exchange::is_needed(const letters_plan& plan, const dense_job& job,
                         const range& r) const {
  return adds(plan, job, agent(job, own_host(), r), r)
         || !receivers(plan, job, r).empty();
}

/// What this host adds to the range, in memory of this process. Values of
/// neighbours are added or copied to the result first.
const std::byte* exchange::part_of_host(const dense_job& job,
                                        const source& from,
                                        const range& r) const {
  const auto offset = r.first * size_of(job.type);
  if (from.is_own)
    return from.data[0] + offset;
  std::array<const std::byte*, max_ranks> data;
  for (std::size_t k = 0; k < from.data.size(); ++k)
    data[k] = from.data[k] + offset;
  add_up(job.type, {data.data(), from.data.size()}, job.result + offset,
         r.count);
  if (options_.nearby)
    options_.nearby->require_intact();
  return job.result + offset;
}

/// Sends what this host adds to those who add the sums of hosts, and receives
/// what other hosts add to the pieces of this process.
void exchange::begin(const letters_plan& plan, step& s, std::size_t slot) {
  const auto& job = *s.job;
  const auto element = size_of(job.type);
  for_each_range(s, [&](const range& r) {
    const auto bytes = r.count * element;
    const bool adds_here = adds(plan, job, self(), r);
    for (std::size_t k = 0; k < job.sources.size(); ++k) {
      const auto& from = job.sources[k];
      const auto sender = agent(job, from.host, r);
      if (from.host != own_host()) {
        auto* to = job.sources.size() == 1 ? job.result + r.first * element
                                           : scratch(slot, k);
        if (adds_here)
          s.in.push_back(receive(sender, raw_tag, {to, bytes}));
      } else if (sender == self()) {
        if (!is_needed(plan, job, r))
          continue;
        const auto to = receivers(plan, job, r);
        const auto* part = part_of_host(job, from, r);
        for (auto p : to)
          s.out.push_back(send(p, raw_tag, {part, bytes}));
      }
    }
  });
}

void exchange::add(const letters_plan& plan, step& s, std::size_t slot) {
  const auto& job = *s.job;
  if (job.sources.size() == 1)
    return; // the sum is there
  const auto element = size_of(job.type);
  for_each_range(s, [&](const range& r) {
    if (!adds(plan, job, self(), r))
      return;
    const auto offset = r.first * element;
    std::array<const std::byte*, max_ranks> from;
    std::size_t count = 0;
    for (std::size_t k = 0; k < job.sources.size(); ++k) {
      const auto& summand = job.sources[k];
      from[count++] = summand.host != own_host() ? scratch(slot, k)
                      : summand.is_own           ? summand.data[0] + offset
                                                 : job.result + offset;
    }
    add_up(job.type, {from.data(), count}, job.result + offset, r.count);
  });
}

/// Sends the sums that this process owns.
void exchange::hand_out(const letters_plan& plan, const step& s) {
  const auto& job = *s.job;
  if (job.is_direct)
    return;
  const auto element = size_of(job.type);
  for_each_range(s, [&](const range& r) {
    for (std::size_t h = 0; r.owner == self() && h < options_.hosts.size(); ++h)
      if (h != own_host() && wants(plan, job, h))
        results_.push_back(
          send(agent(job, h, r), sum_tag,
               {job.result + r.first * element, r.count * element}));
  });
}

/// Receives the sums that other hosts own.
void exchange::take_back(const letters_plan& plan, const step& s) {
  const auto& job = *s.job;
  auto& coming = coming_.emplace_back(coming_step{{&job, s.number, {}, {}}});
  const auto element = size_of(job.type);
  if (!job.is_direct && wants(plan, job, own_host()))
    for_each_range(s, [&](const range& r) {
      if (host_of_[r.owner] != own_host()
          && agent(job, own_host(), r) == self())
        coming.of.in.push_back(
          receive(r.owner, sum_tag,
                  {job.result + r.first * element, r.count * element}));
    });
  if (!options_.nearby) {
    std::ranges::move(coming.of.in, std::back_inserter(results_));
    coming_.pop_back();
    return;
  }
  await_neighbours(plan, coming);
}

} // namespace troupe::comm
