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

/// The concatenated levels of all parts; null unless all parts have levels.
shared_lod joined_levels(const std::vector<const tensor*>& parts) {
  lod levels;
  for (auto* p : parts) {
    if (!p->levels())
      return nullptr;
    levels =
      p == parts.front() ? *p->levels() : append_lod(levels, *p->levels());
  }
  return std::make_shared<const lod>(std::move(levels));
}

double mean_of(const tensor& value) {
  double sum = 0;
  if (value.type() == dtype::float64)
    for (auto v : value.values<double>())
      sum += v;
  else if (value.type() == dtype::float32)
    for (auto v : value.values<float>())
      sum += static_cast<double>(v);
  else
    return std::numeric_limits<double>::quiet_NaN();
  return sum / static_cast<double>(value.numel());
}

} // namespace

std::vector<step_info> split_batch(std::int64_t samples, std::size_t devices,
                                   step_id step, std::uint64_t seed) {
  std::vector<step_info> shards(devices);
  split_batch(samples, step, seed, shards);
  return shards;
}

void split_batch(std::int64_t samples, step_id step, std::uint64_t seed,
                 std::vector<step_info>& shards) {
  const auto n = static_cast<std::int64_t>(shards.size());
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    auto& s = shards[static_cast<std::size_t>(i)];
    s.step = step;
    s.seed = seed;
    s.first_sample = first;
    s.shard_samples = samples / n + (i < samples % n);
    s.batch_samples = samples;
    s.replica = i;
    s.replicas = n;
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
                         const graph::block& declarations,
                         std::size_t devices) {
  for (auto& [name, value] : feeds)
    if (feeds_persistable(declarations, name))
      check_feed(name, value, declarations.var(name));
    else if (!needed.has(name))
      throw error(errc::not_found, "the program has no feed of that name",
                  {.variable = name});
  std::int64_t samples = needed.names.size() == needed.whole.size()
                           ? static_cast<std::int64_t>(devices)
                           : -1;
  for (auto& name : needed.names) {
    auto fed = feeds.find(name);
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
  if (samples == 0)
    throw error(errc::invalid_argument, "a batch without samples");
  return samples;
}

step_result gather(step_id step, const std::string& loss,
                   const std::vector<step_info>& shards,
                   const std::vector<fetched_value>& values,
                   const std::vector<std::string>& wanted) {
  step_result result;
  gather(step, loss, shards, values, wanted, result);
  return result;
}

void gather(step_id step, const std::string& loss,
            const std::vector<step_info>& shards,
            const std::vector<fetched_value>& values,
            const std::vector<std::string>& wanted, step_result& result) {
  result.step = step;
  result.loss = 0;
  result.samples.clear();
  for (auto& s : shards)
    result.samples.push_back(s.shard_samples);
  std::erase_if(result.fetched, [&](auto& entry) {
    return std::find(wanted.begin(), wanted.end(), entry.first) == wanted.end();
  });
  for (auto& name : wanted)
    result.fetched[name].assign(shards.size(), tensor{});
  result.losses.assign(loss.empty() ? 0 : shards.size(),
                       std::numeric_limits<double>::quiet_NaN());
  for (auto& v : values) {
    if (!v.value)
      continue;
    if (v.name == loss)
      result.losses[v.device] = mean_of(v.value);
    if (auto entry = result.fetched.find(v.name); entry != result.fetched.end())
      entry->second[v.device] = v.value;
  }
  // The mean over devices whose loss is known. Losses of devices in other
  // processes are not known here.
  double samples = 0;
  for (auto& v : values)
    if (v.value && v.name == loss) {
      const auto n = static_cast<double>(shards[v.device].shard_samples);
      result.loss += n * result.losses[v.device];
      samples += n;
    }
  result.loss = samples > 0 ? result.loss / samples
                            : std::numeric_limits<double>::quiet_NaN();
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
  auto dims = parts.front()->dims();
  if (dims.rank() == 0) {
    if (entry->second.size() == 1)
      return *parts.front();
    dims = {0};
  }
  dims[0] = 0;
  for (auto* p : parts)
    dims[0] += p->dims().rank() == 0 ? 1 : p->dims()[0];
  arena memory{make_host_memory_source()}; // its blocks outlive it
  auto joined = tensor::make(memory, dims, parts.front()->type());
  joined.set_levels(actors::joined_levels(parts));
  auto* to = joined.raw();
  for (auto* p : parts) {
    std::memcpy(to, p->raw(), p->bytes());
    to += p->bytes();
  }
  return joined;
}

} // namespace troupe
