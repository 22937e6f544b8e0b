// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/feed_info.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/whole_feeds.hpp>

#include <algorithm>
#include <array>
#include <set>

namespace troupe {

namespace {

using graph::op_desc;

/// Ops whose output is a rearrangement of their input.
constexpr std::array<std::string_view, 12> rearranging = {
  "reshape",
  "reshape2",
  "squeeze2",
  "unsqueeze2",
  "flatten_contiguous_range",
  "cast",
  "assign",
  "slice",
  "split",
  "concat",
  "transpose",
  "transpose2"};

/// The name of a feed and of all variables that only rearrange it.
std::set<std::string, std::less<>> names_of(const graph::block& b,
                                            const std::string& feed) {
  std::set<std::string, std::less<>> names{feed};
  for (const op_desc& op : b.ops) {
    if (std::ranges::find(rearranging, op.type) == rearranging.end())
      continue;
    const auto inputs = op.input_names();
    if (std::ranges::any_of(inputs, [&](auto& n) { return names.contains(n); }))
      for (auto& output : op.output_names())
        names.insert(output);
  }
  return names;
}

std::optional<std::int64_t> extent(const graph::block& b, const op_desc& op,
                                   std::string_view slot, int axis) {
  const auto& arguments = op.input(slot);
  const auto* var = arguments.empty() ? nullptr : b.find_var(arguments[0]);
  if (!var || var->dims.rank() == 0 || var->dims.dim(axis) < 0)
    return std::nullopt;
  return var->dims.dim(axis);
}

/// A rule: `slot` of an op of this `type` holds indices into `axis` of the
/// input `counted`. With `may_ignore` they are labels that can be ignored.
struct index_rule {
  std::string_view type, slot, counted;
  int axis;
  bool may_ignore;
};

constexpr std::array<index_rule, 5> index_rules = {{
  {"softmax_with_cross_entropy", "Label", "Logits", -1, true},
  {"cross_entropy", "Label", "X", -1, true},
  {"cross_entropy2", "Label", "X", -1, true},
  {"lookup_table", "Ids", "W", 0, false},
  {"lookup_table_v2", "Ids", "W", 0, false},
}};

/// The whole numbers that a feed can hold: [0, below) and `ignored`.
struct index_range {
  std::optional<std::int64_t> below, ignored;
};

index_range find_range(const graph::program& p, const std::string& feed) {
  const auto names = names_of(p.main(), feed);
  for (const op_desc& op : p.main().ops)
    for (const index_rule& rule : index_rules) {
      if (op.type != rule.type || op.attributes.get_bool("soft_label", false))
        continue;
      const auto& arguments = op.input(rule.slot);
      if (!arguments.empty() && names.contains(arguments[0]))
        return {extent(p.main(), op, rule.counted, rule.axis),
                rule.may_ignore ? std::optional(ignored_label(op))
                                : std::nullopt};
    }
  return {};
}

} // namespace

std::vector<feed_info> describe_feeds(const graph::program& p) {
  std::vector<feed_info> feeds;
  const auto names = graph::feed_names(p);
  const auto whole = graph::whole_feeds(names, p.main());
  for (const std::string& name : names) {
    const auto& var = p.main().var(name);
    const auto [below, ignored] = find_range(p, name);
    const bool is_whole = std::ranges::find(whole, name) != whole.end();
    feeds.push_back(
      {name, var.type, var.dims, below, false, ignored, is_whole});
  }
  return feeds;
}

std::int64_t ignored_label(const graph::op_desc& loss) {
  return loss.attributes.get_int("ignore_index", -100);
}

std::vector<feed_info> describe_persistable(const graph::program& p) {
  std::vector<feed_info> feeds;
  for (const auto& [name, var] : p.main().vars)
    if (var.persistable && var.kind == graph::var_kind::dense)
      feeds.push_back({name, var.type, var.dims, std::nullopt, true});
  return feeds;
}

const feed_info* find_feed(std::span<const feed_info> feeds,
                           std::string_view name) {
  const auto found = std::ranges::find(feeds, name, &feed_info::name);
  return found == feeds.end() ? nullptr : &*found;
}

std::int64_t sample_elements(const feed_info& feed) {
  const std::size_t first = feed.has_samples() ? 1 : 0;
  const auto dims = feed.dims.dims();
  if (dims.size() < first
      || std::ranges::any_of(dims.subspan(first), [](auto d) { return d < 0; }))
    throw error(errc::shape_mismatch,
                "feed " + to_string(feed)
                  + " leaves more than the number of samples open",
                {.variable = feed.name});
  return feed.dims.numel(first, feed.dims.rank());
}

std::string to_string(const feed_info& feed) {
  return feed.name + " " + std::string(troupe::to_string(feed.type)) + " "
         + troupe::to_string(feed.dims);
}

} // namespace troupe
