// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/cost_table.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/readiness.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <utility>

namespace troupe::trace {

namespace {

/// Bytes that ops allocate, by op, in the steps that count.
std::vector<double> allocated_bytes(std::span<const process_trace> parts,
                                    std::size_t handles, const timeline& all) {
  std::vector<double> bytes(handles);
  for (const auto& part : parts)
    for (const auto& e : part.events)
      if (e.kind == event_kind::allocation && e.from < handles
          && all.find_op_step(e.step))
        bytes[e.from] += static_cast<double>(e.amount);
  return bytes;
}

/// What was measured of an op.
struct op_sample {
  handle_id op = no_handle;
  std::vector<double> ns; ///< of its runs
  double bytes = 0;       ///< of all of them
};

std::vector<op_sample> samples_of(std::span<const process_trace> parts,
                                  const timeline& all, const op_graph& graph) {
  std::vector<op_sample> found(graph.graph().handles.size());
  const auto bytes = allocated_bytes(parts, found.size(), all);
  for (handle_id op = 0; op < found.size(); ++op)
    found[op] = {op, {}, bytes[op]};
  for (const auto& r : all.runs())
    if (all.find_op_step(r.step))
      found[r.op].ns.push_back(static_cast<double>(own_time(all, graph, r)));
  std::erase_if(found, [](const op_sample& s) { return s.ns.empty(); });
  return found;
}

/// A row of ops with the same key.
op_cost row_of(cost_key key, std::span<const op_sample> ops) {
  op_cost row;
  row.key = std::move(key);
  row.ops = ops.size();
  std::vector<double> all;
  for (const auto& s : ops) {
    all.insert(all.end(), s.ns.begin(), s.ns.end());
    row.ns += quantile(s.ns, 0.5) / static_cast<double>(ops.size());
    row.bytes += s.bytes;
  }
  row.count = all.size();
  row.bytes /= static_cast<double>(row.count);
  row.runs = spread_of(std::move(all));
  return row;
}

/// True if an op takes another time than the others with its key: by the test
/// of `diff`.
bool differs(const op_sample& one, std::span<const op_sample> ops) {
  constexpr double most_p = 0.01;
  std::vector<double> others;
  for (const auto& s : ops)
    if (s.op != one.op)
      others.insert(others.end(), s.ns.begin(), s.ns.end());
  if (others.empty())
    return false;
  const auto a = spread_of(one.ns), b = spread_of(others);
  const bool is_apart =
    a.three_quarters < b.quarter || b.three_quarters < a.quarter;
  return is_apart && rank_test(one.ns, others) < most_p;
}

/// "cpu" for "cpu:1".
cost_key without_index(cost_key key) {
  key.device.resize(std::min(key.device.size(), key.device.find(':')));
  return key;
}

[[noreturn]] void refuse_key(const char* name, const std::string& why) {
  throw error(errc::bad_file, quoted_name(name) + " " + why);
}

/// Null if it is missing.
const nlohmann::json* find_key(const nlohmann::json& value, const char* name) {
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

std::string text_of(const nlohmann::json& value, const char* name) {
  const auto* text = find_key(value, name);
  if (!text)
    refuse_key(name, "is missing");
  if (!text->is_string())
    refuse_key(name, "is no text");
  return *text;
}

double number_of(const nlohmann::json& value, const char* name) {
  const auto* found = find_key(value, name);
  if (!found)
    return 0;
  if (!found->is_number())
    refuse_key(name, "is no number");
  const double number = *found;
  constexpr double most = 1e15; // nanoseconds: 11 days; bytes: more than any
  if (!std::isfinite(number) || number < 0 || number > most)
    refuse_key(name, "is out of range");
  return number;
}

std::size_t count_of(const nlohmann::json& value, const char* name) {
  return static_cast<std::size_t>(number_of(value, name));
}

op_cost cost_of(const nlohmann::json& value) {
  if (!value.is_object())
    throw error(errc::bad_file, "no object with keys");
  op_cost row;
  row.key = {text_of(value, "op_type"), text_of(value, "attributes"),
             text_of(value, "shapes"), text_of(value, "results"),
             text_of(value, "device")};
  if (value.contains("op"))
    row.op = text_of(value, "op");
  row.ops = value.contains("ops") ? count_of(value, "ops") : 1;
  row.count = count_of(value, "count");
  if (!value.contains("ns"))
    refuse_key("ns", "is missing");
  row.ns = number_of(value, "ns");
  row.runs = {number_of(value, "ns_quarter"), number_of(value, "ns_median"),
              number_of(value, "ns_three_quarters")};
  row.bytes = number_of(value, "bytes");
  return row;
}

} // namespace

cost_key cost_key_of(const graph_info& graph, handle_id op) {
  const auto& h = graph.handles[op];
  return {h.type, h.attributes, h.shape, h.results,
          h.device < graph.devices.size() ? graph.devices[h.device] : "?"};
}

cost_table::cost_table(std::vector<op_cost> rows) : rows_(std::move(rows)) {
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (!rows_[i].op.empty()) {
      of_op_.emplace(rows_[i].op, i);
    } else {
      of_all_.emplace(rows_[i].key, i);
      of_kind_.emplace(without_index(rows_[i].key), i);
    }
}

cost_table cost_table::measure(std::span<const process_trace> parts,
                               const timeline& all, const op_graph& graph) {
  std::map<cost_key, std::vector<op_sample>> found;
  for (auto& s : samples_of(parts, all, graph))
    found[cost_key_of(graph.graph(), s.op)].push_back(std::move(s));
  std::vector<op_cost> rows;
  for (auto& [key, ops] : found) {
    const auto apart = std::ranges::stable_partition(
      ops, [&, all = ops](const op_sample& s) { return !differs(s, all); });
    for (const auto& s : apart) {
      rows.push_back(row_of(key, {&s, 1}));
      rows.back().op = graph.graph().handles[s.op].name;
    }
    const std::span alike{ops.begin(), apart.begin()};
    rows.push_back(row_of(key, alike.empty() ? ops : alike));
    rows.back().ops = alike.size();
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, [](const op_cost& r) {
    return r.ns * static_cast<double>(r.count);
  });
  return cost_table{std::move(rows)};
}

cost_table cost_table::read(const std::filesystem::path& file) {
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  std::istringstream lines{read_whole_file(file, most_bytes)};
  std::vector<op_cost> rows;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto refuse = [&](const std::string& why) {
      throw error(errc::bad_file, file.string() + ", line "
                                    + std::to_string(number)
                                    + ": not a line of troupe trace costs "
                                      "--json: "
                                    + why);
    };
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    try {
      rows.push_back(cost_of(nlohmann::json::parse(line)));
    } catch (const nlohmann::json::parse_error& e) {
      refuse("no JSON at byte " + std::to_string(e.byte));
    } catch (const error& e) {
      refuse(e.message());
    }
  }
  if (rows.empty())
    throw error(errc::bad_file, file.string() + ": has no costs");
  return cost_table{std::move(rows)};
}

const op_cost* cost_table::find(const graph_info& graph, handle_id op) const {
  const auto key = cost_key_of(graph, op);
  // In another graph, an op with this name can do something else.
  if (const auto own = of_op_.find(graph.handles[op].name);
      own != of_op_.end() && rows_[own->second].key == key)
    return &rows_[own->second];
  if (const auto same = of_all_.find(key); same != of_all_.end())
    return &rows_[same->second];
  const auto alike = of_kind_.find(without_index(key));
  return alike == of_kind_.end() ? nullptr : &rows_[alike->second];
}

std::string to_json(const op_cost& row) {
  nlohmann::ordered_json made{{"op_type", row.key.type},
                              {"attributes", row.key.attributes},
                              {"shapes", row.key.shapes},
                              {"results", row.key.results},
                              {"device", row.key.device}};
  if (!row.op.empty())
    made["op"] = row.op;
  made["ops"] = row.ops;
  made["count"] = row.count;
  made["ns"] = row.ns;
  made["ns_quarter"] = row.runs.quarter;
  made["ns_median"] = row.runs.median;
  made["ns_three_quarters"] = row.runs.three_quarters;
  made["bytes"] = row.bytes;
  return made.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace troupe::trace
