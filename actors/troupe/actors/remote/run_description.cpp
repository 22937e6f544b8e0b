// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/run_description.hpp>

#include <troupe/actors/placement.hpp>
#include <troupe/actors/remote/run_group.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/base/version.hpp>
#include <troupe/graph/program_text.hpp>
#include <troupe/graph/ssa/persistable_updates.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string_view>

namespace troupe::actors {

namespace {

constexpr char between = '\t'; // separates a line's name from its value

/// Stands for a value that this process does not need. It differs from no other
/// value.
constexpr std::string_view not_needed = "not needed in this process";

class lines {
public:
  void add(std::string_view name, std::string value) {
    std::ranges::replace(value, '\n', ' ');
    text_ += name;
    text_ += between;
    text_ += value;
    text_ += '\n';
  }
  void add(std::string_view name, std::uint64_t value) {
    add(name, std::to_string(value));
  }
  void add_flag(std::string_view name, bool value) {
    add(name, std::string{value ? "true" : "false"});
  }
  template <class Range, class Text>
  void add_list(std::string_view name, const Range& values, Text text) {
    std::string all;
    for (auto& v : values)
      all += (all.empty() ? "" : ", ") + text(v);
    add(name, all);
  }

  std::string take() { return std::move(text_); }

private:
  std::string text_;
};

std::string text_of(graph::gradient_scale scale) {
  switch (scale) {
  case graph::gradient_scale::coeff: return "coeff";
  case graph::gradient_scale::one: return "one";
  case graph::gradient_scale::custom: return "custom";
  }
  return "unknown";
}

void add_options(lines& out, const executor_options& o,
                 const std::string& loss) {
  out.add("number of processes", o.nodes->processes());
  out.add_list("devices", o.devices, [](device_id d) { return to_string(d); });
  out.add_list("process_of_device", o.nodes->process_of_device,
               [](std::size_t p) { return std::to_string(p); });
  out.add("engine", std::string{to_string(engine_of(*o.nodes))});
  // Before what follows from them: the application's words say more.
  for (auto& [name, value] : o.nodes->agreed)
    out.add(name, value);
  out.add_flag("deterministic", o.nodes->deterministic);
  out.add("strategy", std::string{to_string(o.strategy)});
  out.add("scale", text_of(o.scale));
  out.add("loss", loss);
  out.add_list("fetches", o.fetches, [](const std::string& f) { return f; });
  out.add("accumulate", o.accumulate);
  out.add("steps_in_flight", o.steps_in_flight);
  out.add("seed", o.seed);
  out.add("samples per step", o.lowering.batch);
  out.add_flag("dry_run", o.hooks.dry_run);
  out.add("fuse_all_reduce_bytes", o.lowering.fuse_all_reduce_bytes);
  out.add_flag("sync_batch_norm", o.lowering.sync_batch_norm);
}

void add_program(lines& out, const graph::program& p) {
  const auto text = to_text(p);
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out.add("line " + std::to_string(++number) + " of the program",
            text.substr(at, end - at));
    at = end + 1;
  }
}

void add_handles(lines& out, const graph::ssa_graph& g) {
  for (handle_id id = 0; id < g.size(); ++id)
    out.add("handle " + std::to_string(id), handle_name(g, id));
  fingerprint edges;
  for (auto& e : g.edges) {
    const std::uint64_t fields[] = {e.from, e.to, e.distance};
    edges.add(fields, sizeof fields);
  }
  out.add("edges",
          std::to_string(g.edges.size()) + " with digest " + edges.text());
}

/// The processes that read a variable, each with a device that does.
using readers = std::map<std::size_t, std::size_t>;

/// Variables that devices of several processes read before a step writes them.
/// Every process finds the same ones.
std::map<std::string_view, readers> shared_values(const graph::ssa_graph& g,
                                                  const node_options& nodes) {
  std::map<std::string_view, readers> shared;
  for (auto& o : g.ops)
    for (auto id : o.inputs)
      if (auto& v = g.var(id); v.persistable && v.version == 0)
        shared[v.name].emplace(nodes.process_of_device[v.device], v.device);
  const auto apart = graph::device_statistics(g);
  std::erase_if(shared, [&](auto& value) {
    return value.second.size() < 2 || apart.contains(value.first);
  });
  return shared;
}

std::string text_of(const tensor& value) {
  auto text =
    std::string{to_string(value.type())} + " " + to_string(value.dims());
  if (value.type() == dtype::float32 && value.dims().numel() == 1) {
    char figures[32];
    std::snprintf(figures, sizeof figures, "%.9g",
                  static_cast<double>(*value.data<float>()));
    return text + " " + figures;
  }
  fingerprint print;
  print.add(value.raw(), value.bytes());
  return text + " with digest " + print.text();
}

std::string text_of(const scope& values, std::string_view name) {
  const auto* value = values.find(name);
  if (!value || !value->is_tensor() || !value->as_tensor())
    return "no tensor";
  arena host{make_host_memory_source()};
  return text_of(values.to_host(value->as_tensor(), host));
}

/// Shortens a value for a one-line error. A long value is cut to the part
/// around position `from`.
std::string shortened(std::string_view value, std::size_t from) {
  constexpr std::size_t most = 160, before = 60;
  if (value.size() <= most)
    return std::string{value};
  const auto begin = from > before ? from - before : 0;
  return (begin > 0 ? "..." : "") + std::string{value.substr(begin, most)}
         + (begin + most < value.size() ? "..." : "");
}

struct line {
  std::string_view name, value;
};

line take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto whole = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  const auto tab = std::min(whole.find(between), whole.size());
  return {whole.substr(0, tab), whole.substr(std::min(tab + 1, whole.size()))};
}

bool differ(std::string_view a, std::string_view b) {
  return a != b && a != not_needed && b != not_needed;
}

std::string text_of(const line& first, const line& other, std::size_t process) {
  const auto in_other = " in process " + std::to_string(process);
  if (first.name != other.name)
    return (first.name.empty() ? "nothing" : shortened(first.name, 0))
           + " in process 0, "
           + (other.name.empty() ? "nothing" : shortened(other.name, 0))
           + in_other;
  const auto differ = static_cast<std::size_t>(
    std::ranges::mismatch(first.value, other.value).in1 - first.value.begin());
  return shortened(first.name, 0) + ": " + shortened(first.value, differ)
         + " in process 0, " + shortened(other.value, differ) + in_other;
}

} // namespace

std::string describe_run(const executor_options& options,
                         const std::string& loss, const graph::ssa_graph& graph,
                         scope& parameters) {
  const placement where{options.nodes->process_of_device,
                        options.nodes->process};
  lines out;
  out.add("version of Troupe", std::string{TROUPE_VERSION});
  out.add("byte order", std::string{std::endian::native == std::endian::little
                                      ? "little endian"
                                      : "big endian"});
  add_options(out, options, loss);
  if (graph.sources && graph.sources->described)
    add_program(out, *graph.sources->described);
  add_handles(out, graph);
  if (!options.hooks.dry_run && options.strategy != graph::merge_strategy::none)
    for (auto& [name, by] : shared_values(graph, *options.nodes)) {
      const auto here = by.find(options.nodes->process);
      out.add(
        "the value of " + std::string{name},
        here == by.end()
          ? std::string{not_needed}
          : text_of(parameters.replica(where.replica_of(here->second)), name));
    }
  return out.take();
}

std::string first_difference(const std::string& of_first,
                             const std::string& of_other, std::size_t process) {
  std::string_view first = of_first, other = of_other;
  while (!first.empty() || !other.empty()) {
    const auto here = take_line(first);
    const auto there = take_line(other);
    if (here.name != there.name || differ(here.value, there.value))
      return text_of(here, there, process);
  }
  return {};
}

} // namespace troupe::actors
