// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/profile/profile_report.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/graph/merging/gathered_product.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

namespace troupe::apps {

namespace {

constexpr double ms_per_s = 1e3;

/// The work of the ops of a type in a step.
struct type_cost {
  graph::work work;
  double roof_ms = 0;
  double runs = 0; ///< number of runs if each device runs each op

  /// The average work of `count` runs. There are fewer than `runs` if updates
  /// run on only one device or ops are part of a fused op. Runs beyond that
  /// number are of ops in blocks, whose work is unknown.
  type_cost of(double count) const {
    const auto share = std::min(1.0, count / runs);
    return {part_of(work, share), roof_ms * share, count};
  }

  void add(const graph::work& more, double more_runs,
           const graph::roofline& roof) {
    work = work + more;
    roof_ms += roof.seconds(more) * ms_per_s;
    runs += more_runs;
  }

  static graph::work part_of(const graph::work& whole, double share) {
    return {whole.flops * share, whole.bytes * share};
  }
};

using costs_by_type = std::map<std::string, type_cost, std::less<>>;

/// Number of samples of a device: samples are distributed as evenly as
/// possible.
std::int64_t shard(std::int64_t batch, std::size_t device,
                   std::size_t devices) {
  const auto d = static_cast<std::int64_t>(device);
  const auto n = static_cast<std::int64_t>(devices);
  return batch / n + (d < batch % n ? 1 : 0);
}

/// The op type that makes or merges the gradient of the parameter in `slot` of
/// an op. Null if there is none.
const std::string* type_for_all(const profile_times::type_by_parameter& types,
                                const graph::op_desc& op,
                                std::string_view slot) {
  const auto& parameter = op.input(slot);
  const auto found =
    parameter.empty() ? types.end() : types.find(parameter.front());
  return found == types.end() ? nullptr : &found->second;
}

/// The bytes that an update reads in addition if it merges gradients: those of
/// the other devices.
graph::work of_other_gradients(const graph::block& b, const graph::op_desc& op,
                               std::size_t devices) {
  const auto elements = b.var(op.only_input("Param")).dims.numel();
  return {0, static_cast<double>(elements) * sizeof(float)
               * static_cast<double>(devices - 1)};
}

/// Adds up the work of the ops of one device.
class device_costs {
public:
  device_costs(const graph::program& program, std::size_t devices,
               const profile_times& times, const graph::roofline& roof)
    : block_(program.main()), devices_(devices), times_(times), roof_(roof) {}

  void add(const graph::op_desc& op, const graph::work& work,
           costs_by_type& costs) const {
    const auto* maker = op.type == "mul_grad" && !op.output("Y@GRAD").empty()
                          ? type_for_all(times_.gathered_by, op, "Y")
                          : nullptr;
    if (maker)
      return add_product(op, work, costs, *maker);
    const auto* update = type_for_all(times_.merged_by, op, "Param");
    if (!update)
      costs[op.type].add(work, 1, roof_);
    else if (type_for_all(times_.gathered_by, op, "Param"))
      costs[*update].add(of_one(work), 0, roof_);
    else
      costs[*update].add(work + of_other_gradients(block_, op, devices_), 1,
                         roof_);
  }

private:
  /// `op` computes up to two gradients. That of Y is gathered: an op of type
  /// `maker` computes it for all devices.
  void add_product(const graph::op_desc& op, const graph::work& work,
                   costs_by_type& costs, const std::string& maker) const {
    const auto makes_other = graph::without_gathered(op).has_value();
    const auto share = makes_other ? 0.5 : 1;
    costs[maker].add(type_cost::part_of(work, share), 1.0 / count(), roof_);
    if (makes_other)
      costs[op.type].add(type_cost::part_of(work, 1 - share), 1, roof_);
  }

  /// One device's share of work that is done once for all devices.
  graph::work of_one(const graph::work& work) const {
    return type_cost::part_of(work, 1.0 / count());
  }

  double count() const { return static_cast<double>(devices_); }

  const graph::block& block_;
  std::size_t devices_;
  const profile_times& times_;
  const graph::roofline& roof_;
};

costs_by_type count_costs(const graph::program& program, std::int64_t batch,
                          std::size_t devices, const profile_times& times,
                          const graph::roofline& roof) {
  costs_by_type costs;
  const device_costs counted(program, devices, times, roof);
  const auto& ops = program.main().ops;
  for (std::size_t d = 0; d < devices; ++d) {
    const auto cost = graph::count_cost(program, shard(batch, d, devices));
    for (std::size_t i = 0; i < ops.size(); ++i)
      counted.add(ops[i], cost.ops[i], costs);
  }
  return costs;
}

std::string number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string number_or_dash(const char* format, double value) {
  return value > 0 ? number(format, value) : "-";
}

struct column {
  const char* title;
  std::string (*text)(const profile_row&, const profile_report&);
};

double all_self_ms(const profile_report& r) {
  return std::accumulate(
    r.rows.begin(), r.rows.end(), 0.0,
    [](double sum, const profile_row& row) { return sum + row.self_ms; });
}

constexpr std::array<column, 8> columns = {{
  {"per step", [](const profile_row& r,
                  const profile_report&) { return number("%.5g", r.count); }},
  {"total ms",
   [](const profile_row& r, const profile_report&) {
     return number("%.4f", r.total_ms);
   }},
  {"self ms", [](const profile_row& r,
                 const profile_report&) { return number("%.4f", r.self_ms); }},
  {"share",
   [](const profile_row& r, const profile_report& all) {
     return number("%.1f%%", 100 * r.self_ms / all_self_ms(all));
   }},
  {"GFLOP/s",
   [](const profile_row& r, const profile_report&) {
     return number_or_dash("%.1f", r.gflop_per_s());
   }},
  {"GB/s",
   [](const profile_row& r, const profile_report&) {
     return number_or_dash("%.1f", r.gbyte_per_s());
   }},
  {"of roof",
   [](const profile_row& r, const profile_report&) {
     const auto share = number_or_dash("%.0f", 100 * r.share_of_roof());
     return share == "-" ? share : share + "%";
   }},
  {"layout MB",
   [](const profile_row& r, const profile_report&) {
     return number_or_dash("%.2f", r.layout_bytes * 1e-6);
   }},
}};

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

constexpr std::size_t column_width = 10;

} // namespace

profile_report make_profile_report(const profile_times& times,
                                   const graph::program& program,
                                   std::int64_t batch, std::size_t devices,
                                   const graph::roofline& roof) {
  profile_report report;
  report.steps = times.steps;
  const auto workers = static_cast<double>(times.busy_ns.size());
  report.roof = {roof.flops_per_s / workers, roof.bytes_per_s / workers};
  const auto wall_ns = static_cast<double>(times.wall_ns);
  for (const auto busy_ns : times.busy_ns)
    report.idle.push_back(
      wall_ns > 0 ? std::max(0.0, 1 - static_cast<double>(busy_ns) / wall_ns)
                  : 1);
  if (times.steps == 0)
    return report;
  const auto steps = static_cast<double>(times.steps);
  report.step_ms = wall_ns / ns_per_ms / steps;
  const auto costs = count_costs(program, batch, devices, times, report.roof);
  for (const auto& [type, time] : times.ops) {
    profile_row row;
    row.type = type;
    row.count = static_cast<double>(time.count) / steps;
    row.total_ms = static_cast<double>(time.total_ns) / ns_per_ms / steps;
    row.self_ms = static_cast<double>(time.self_ns) / ns_per_ms / steps;
    row.layout_bytes = static_cast<double>(time.layout_bytes) / steps;
    if (const auto found = costs.find(type); found != costs.end()) {
      const auto cost = found->second.of(row.count);
      row.work = cost.work;
      row.roof_ms = cost.roof_ms;
    }
    report.rows.push_back(std::move(row));
  }
  std::ranges::sort(report.rows, std::ranges::greater{}, &profile_row::self_ms);
  return report;
}

std::string to_text(const profile_report& report) {
  std::size_t names = 4;
  for (const auto& row : report.rows)
    names = std::max(names, row.type.size());
  std::string text = number("%.4f ms per step over ", report.step_ms)
                     + std::to_string(report.steps) + " steps\n";
  const auto name = [&](const std::string& n) {
    return n + std::string(names - n.size(), ' ');
  };
  text += name("op");
  for (const auto& c : columns)
    text += padded(c.title, column_width);
  text += "\n";
  for (const auto& row : report.rows) {
    text += name(row.type);
    for (const auto& c : columns)
      text += padded(c.text(row, report), column_width);
    text += "\n";
  }
  for (std::size_t w = 0; w < report.idle.size(); ++w)
    text += "worker " + std::to_string(w) + " idle "
            + number("%.1f%%\n", 100 * report.idle[w]);
  text += "roof of a worker: "
          + number("%.1f GFLOP/s, ", report.roof.flops_per_s * 1e-9)
          + number("%.1f GB/s\n", report.roof.bytes_per_s * 1e-9);
  return text;
}

std::string to_json(const profile_report& report) {
  auto ops = nlohmann::ordered_json::object();
  for (const auto& row : report.rows)
    ops[row.type] = {{"count", row.count},
                     {"total_ms", row.total_ms},
                     {"self_ms", row.self_ms},
                     {"flops", row.work.flops},
                     {"bytes", row.work.bytes},
                     {"roof_ms", row.roof_ms},
                     {"layout_bytes", row.layout_bytes}};
  const nlohmann::ordered_json all{
    {"steps", report.steps},
    {"step_ms", report.step_ms},
    {"ops", ops},
    {"idle", report.idle},
    {"worker_flops_per_s", report.roof.flops_per_s},
    {"worker_bytes_per_s", report.roof.bytes_per_s}};
  return nlohmann::ordered_json{{"profile", all}}.dump();
}

} // namespace troupe::apps
