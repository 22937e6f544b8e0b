// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/scatter.hpp>

#include <troupe/graph/whole_feeds.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace troupe {

namespace actors {

namespace {

void check_levels(const std::string& name, const tensor& fed,
                  const graph::var_desc& declared) {
  const auto wanted = static_cast<std::size_t>(declared.lod_level);
  if (declared.lod_level > 0
      && (!fed.levels() || fed.levels()->size() < wanted))
    throw error(errc::invalid_argument,
                "fed without offsets of sequences, declared with lod_level "
                  + std::to_string(declared.lod_level),
                {.variable = name});
  if (!fed.levels() || fed.dims().rank() == 0)
    return;
  try {
    check_lod(*fed.levels(), fed.dims()[0]);
  } catch (const error& e) {
    throw e.with_context({.variable = name});
  }
}

/// The concatenated levels of all parts; null unless all parts have levels.
shared_lod joined_levels(std::span<const tensor* const> parts) {
  lod levels;
  for (auto* p : parts) {
    if (!p->levels())
      return nullptr;
    levels =
      p == parts.front() ? *p->levels() : append_lod(levels, *p->levels());
  }
  return std::make_shared<const lod>(std::move(levels));
}

/// Successive samples of a batch.
struct sample_range {
  std::int64_t first, count;
};

/// The samples of this process, as few ranges as possible.
std::vector<sample_range> ranges_here(const std::vector<step_info>& shards,
                                      const placement& where) {
  std::vector<sample_range> ranges;
  for (std::size_t d = 0; d < shards.size(); ++d) {
    const auto& s = shards[d];
    if (!where.is_here(d) || s.shard_samples == 0)
      continue;
    if (!ranges.empty()
        && ranges.back().first + ranges.back().count == s.first_sample)
      ranges.back().count += s.shard_samples;
    else
      ranges.push_back({s.first_sample, s.shard_samples});
  }
  return ranges;
}

tensor samples_in(const tensor& whole,
                  const std::vector<sample_range>& ranges) {
  if (ranges.size() == 1)
    return whole.samples(ranges.front().first, ranges.front().count);
  std::vector<tensor> parts;
  for (auto [first, count] : ranges)
    parts.push_back(whole.samples(first, count));
  std::vector<const tensor*> in_order;
  for (auto& p : parts)
    in_order.push_back(&p);
  arena memory{make_host_memory_source()}; // its blocks outlive it
  return joined(in_order, memory);
}

/// NaN if no device has a loss.
double mean_over_samples(std::span<const double> losses,
                         std::span<const std::int64_t> samples) {
  double sum = 0, count = 0;
  for (std::size_t d = 0; d < losses.size(); ++d)
    if (samples[d] > 0) {
      sum += static_cast<double>(samples[d]) * losses[d];
      count += static_cast<double>(samples[d]);
    }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

void check_feed(const std::string& name, const tensor& fed,
                const graph::var_desc& declared) {
  if (!fed || !fed.is_plain())
    throw error(errc::invalid_argument, "a feed without a plain value",
                {.variable = name});
  if (fed.type() != declared.type)
    throw error(errc::dtype_mismatch,
                "fed " + std::string{to_string(fed.type())} + ", declared "
                  + std::string{to_string(declared.type)},
                {.variable = name});
  // Paddle's executor sets a learning rate declared [] to a tensor [1].
  if (declared.persistable && !declared.dims.has_unknown()
      && declared.dims.numel() == 1 && fed.numel() == 1)
    return;
  auto matches = fed.dims().rank() == declared.dims.rank();
  for (std::size_t i = 0; matches && i < declared.dims.rank(); ++i)
    matches = declared.dims[i] < 0 || fed.dims()[i] == declared.dims[i];
  if (!matches)
    throw error(errc::shape_mismatch,
                "fed " + to_string(fed.dims()) + ", declared "
                  + to_string(declared.dims),
                {.variable = name});
  check_levels(name, fed, declared);
}

tensor joined(std::span<const tensor* const> parts, arena& memory) {
  auto dims = parts.front()->dims();
  if (dims.rank() == 0)
    dims = {0};
  dims[0] = 0;
  for (auto* p : parts)
    dims[0] += p->dims().rank() == 0 ? 1 : p->dims()[0];
  auto whole = tensor::make(memory, dims, parts.front()->type());
  whole.set_levels(joined_levels(parts));
  auto* to = whole.raw();
  for (auto* p : parts) {
    std::memcpy(to, p->raw(), p->bytes());
    to += p->bytes();
  }
  return whole;
}

double mean_of(const tensor& loss) {
  double sum = 0;
  if (loss.type() == dtype::float64)
    for (auto v : loss.values<double>())
      sum += v;
  else if (loss.type() == dtype::float32)
    for (auto v : loss.values<float>())
      sum += static_cast<double>(v);
  else
    return std::numeric_limits<double>::quiet_NaN();
  return sum / static_cast<double>(loss.numel());
}

std::vector<step_info> split_batch(std::int64_t samples, std::size_t devices,
                                   step_id step, std::uint64_t seed) {
  std::vector<step_info> shards(devices);
  split_batch(samples, step, seed, {}, shards);
  return shards;
}

void split_batch(std::int64_t samples, step_id step, std::uint64_t seed,
                 const placement& where, std::vector<step_info>& shards) {
  std::int64_t here = 0; // devices in this process
  for (std::size_t d = 0; d < shards.size(); ++d)
    here += where.is_here(d);
  std::int64_t first = 0, position = 0;
  for (std::size_t d = 0; d < shards.size(); ++d) {
    auto& s = shards[d];
    s.step = step;
    s.seed = seed;
    s.first_sample = first;
    s.shard_samples = 0;
    s.batch_samples = samples;
    s.replica = static_cast<std::int64_t>(d);
    s.replicas = static_cast<std::int64_t>(shards.size());
    if (where.is_here(d))
      s.shard_samples = samples / here + (position++ < samples % here);
    first += s.shard_samples;
  }
}

bool feeds_persistable(const graph::block& declarations,
                       const std::string& name) {
  const auto* declared = declarations.find_var(name);
  return declared && declared->persistable
         && declared->kind == graph::var_kind::dense;
}

needed_feeds::needed_feeds(std::vector<std::string> needed,
                           const graph::block& declarations)
  : names(std::move(needed)), whole(graph::whole_feeds(names, declarations)) {}

bool needed_feeds::has(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool needed_feeds::is_whole(std::string_view name) const {
  return std::find(whole.begin(), whole.end(), name) != whole.end();
}

std::int64_t check_feeds(const feed_map& feeds, const needed_feeds& needed,
                         const graph::block& declarations, std::size_t devices,
                         bool may_be_empty) {
  for (auto& [name, value] : feeds)
    if (feeds_persistable(declarations, name))
      check_feed(name, value, declarations.var(name));
    else if (!needed.has(name))
      throw error(errc::not_found, "the program has no feed of that name",
                  {.variable = name});
  std::int64_t samples = needed.names.size() == needed.whole.size()
                           ? static_cast<std::int64_t>(devices)
                           : -1;
  const auto is_fed = [&](const std::string& name) {
    return !needed.is_whole(name) && feeds.contains(name);
  };
  const auto nothing_is_split =
    may_be_empty && std::ranges::none_of(needed.names, is_fed);
  for (auto& name : needed.names) {
    auto fed = feeds.find(name);
    if (nothing_is_split && !needed.is_whole(name)) {
      samples = 0;
      continue;
    }
    if (fed == feeds.end())
      throw error(errc::not_found, "nothing was fed", {.variable = name});
    check_feed(name, fed->second, declarations.var(name));
    if (needed.is_whole(name))
      continue;
    const auto fed_samples = fed->second.num_samples();
    if (samples >= 0 && fed_samples != samples)
      throw error(errc::shape_mismatch,
                  "fed " + std::to_string(fed_samples)
                    + " samples where other feeds have "
                    + std::to_string(samples),
                  {.variable = name});
    samples = fed_samples;
  }
  if (samples == 0 && !may_be_empty)
    throw error(errc::invalid_argument, "a batch without samples");
  return samples;
}

feed_map select_samples(const feed_map& batch, const needed_feeds& needed,
                        const graph::block& declarations,
                        const std::vector<step_info>& shards,
                        const placement& where) {
  const auto ranges = ranges_here(shards, where);
  feed_map here;
  for (auto& [name, value] : batch)
    if (feeds_persistable(declarations, name) || needed.is_whole(name))
      here.emplace(name, value);
    else if (!ranges.empty())
      here.emplace(name, samples_in(value, ranges));
  return here;
}

std::vector<std::int64_t> samples_of(const std::vector<step_info>& shards) {
  std::vector<std::int64_t> samples;
  for (auto& s : shards)
    samples.push_back(s.shard_samples);
  return samples;
}

step_result gather(const step_facts& facts, const std::string& loss,
                   const std::vector<fetched_value>& values,
                   const std::vector<std::string>& wanted) {
  step_result result;
  gather(facts, loss, values, wanted, result);
  return result;
}

void gather(const step_facts& facts, const std::string& loss,
            const std::vector<fetched_value>& values,
            const std::vector<std::string>& wanted, step_result& result) {
  const auto devices = facts.samples.size();
  result.step = facts.step;
  result.samples.assign(facts.samples.begin(), facts.samples.end());
  std::erase_if(result.fetched, [&](auto& entry) {
    return std::find(wanted.begin(), wanted.end(), entry.first) == wanted.end();
  });
  for (auto& name : wanted)
    result.fetched[name].assign(devices, tensor{});
  result.losses.assign(loss.empty() ? 0 : devices,
                       std::numeric_limits<double>::quiet_NaN());
  for (auto& v : values) {
    if (!v.value)
      continue;
    if (v.name == loss && facts.losses.empty())
      result.losses[v.device] = mean_of(v.value);
    if (auto entry = result.fetched.find(v.name); entry != result.fetched.end())
      entry->second[v.device] = v.value;
  }
  std::ranges::copy(facts.losses, result.losses.begin());
  result.loss = mean_over_samples(result.losses, facts.samples);
}

} // namespace actors

tensor step_result::merged(std::string_view name) const {
  auto entry = fetched.find(name);
  if (entry == fetched.end())
    throw error(errc::not_found, "the step did not fetch it",
                {.variable = std::string{name}});
  std::vector<const tensor*> parts;
  for (auto& t : entry->second)
    if (t)
      parts.push_back(&t);
  if (parts.empty())
    return {};
  if (parts.front()->dims().rank() == 0 && entry->second.size() == 1)
    return *parts.front();
  arena memory{make_host_memory_source()}; // its blocks outlive it
  return actors::joined(parts, memory);
}

} // namespace troupe
