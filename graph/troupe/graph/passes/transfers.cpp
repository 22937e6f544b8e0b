// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/transfers.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/graph_rewriter.hpp>
#include <troupe/graph/passes/rank_collectives.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace troupe::graph {

namespace {

/// Walks over the ops once. New temporaries follow the existing variables.
class place_splitter {
public:
  place_splitter(const ssa_graph& g, const std::vector<std::uint32_t>& places)
    : old_(g), rewriter_(g), new_id_(g.ops.size(), no_handle) {
    made().places = places;
  }

  ssa_graph split();

private:
  using var_index = graph_rewriter::var_index;
  static constexpr var_index none = UINT32_MAX;

  /// A version of a variable whose value another place needs.
  struct wanted_value {
    var_index var;
    std::uint32_t place;
  };
  /// The storage that copies of another storage's versions have in a place.
  struct copy_storage {
    std::uint32_t number;
    std::uint32_t device;
    std::string_view name;
  };

  void add_op(const op_handle& op);
  var_index written_by(const op_handle& writer, var_index var);
  var_index value_for(const op_handle& reader, var_index var,
                      bool is_of_this_step);
  var_index copy_on(std::uint32_t device, var_index var);
  const copy_storage& storage_of_copies(const var_handle& original,
                                        std::uint32_t device);
  void add_transfer(var_index from, var_index to, const op_handle& with);
  void send_in_each_step(var_index copy);
  void keep_orders(ssa_graph& g) const;

  ssa_graph& made() { return rewriter_.made(); }
  std::uint32_t place_of(var_index var) {
    return made().place_of(made().vars[var].device);
  }

  const ssa_graph& old_;
  graph_rewriter rewriter_;
  std::vector<handle_id> new_id_; // by old op
  // By (version, place) and (storage, place).
  std::map<std::pair<var_index, std::uint32_t>, var_index> copies_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, copy_storage> storages_;
  std::map<var_index, transfer> transfers_to_; // by what is received
  // By old op: values to send after the op has written them.
  std::multimap<handle_id, wanted_value> sent_after_;
};

const place_splitter::copy_storage&
place_splitter::storage_of_copies(const var_handle& original,
                                  std::uint32_t device) {
  const std::pair key{original.storage, made().place_of(device)};
  auto known = storages_.find(key);
  if (known == storages_.end()) {
    const auto name =
      rewriter_.name(std::string{original.name} + "@"
                     + to_string(made().devices[original.device]));
    known =
      storages_.emplace(key, copy_storage{made().num_storages++, device, name})
        .first;
  }
  return known->second;
}

// The copy of a version has its number plus one, so that it is never version 0.
place_splitter::var_index place_splitter::copy_on(std::uint32_t device,
                                                  var_index var) {
  auto [copy, is_new] =
    copies_.try_emplace({var, made().place_of(device)}, none);
  if (!is_new)
    return copy->second;
  const auto& original = made().vars[var];
  const auto& storage = storage_of_copies(original, device);
  var_handle v;
  v.name = storage.name;
  v.device = storage.device;
  v.version = original.version + 1;
  v.storage = storage.number;
  made().vars.push_back(v);
  return copy->second = static_cast<var_index>(made().vars.size() - 1);
}

/// @param with the op that reads or writes the copy
void place_splitter::add_transfer(var_index from, var_index to,
                                  const op_handle& with) {
  const auto half = [&](op_kind kind, var_index var) {
    const auto& v = made().vars[var];
    const auto sends = kind == op_kind::send;
    op_desc desc;
    desc.type = to_string(kind);
    if (sends)
      desc.set_input("X", {std::string{v.name}});
    else
      desc.set_output("Out", {std::string{v.name}});
    op_handle op;
    op.kind = kind;
    op.desc = rewriter_.describe(std::move(desc));
    op.device = v.device;
    op.only_in_updates = with.only_in_updates;
    const std::span used{&var, 1};
    return rewriter_.add_op(op, used.first(sends ? 1 : 0),
                            used.first(sends ? 0 : 1));
  };
  const auto send = half(op_kind::send, from);
  const auto recv = half(op_kind::recv, to);
  made().transfers.push_back({send, recv});
  transfers_to_[to] = {send, recv};
}

/// A copy that only updates have read so far is read by an op of each step.
void place_splitter::send_in_each_step(var_index copy) {
  if (const auto found = transfers_to_.find(copy); found != transfers_to_.end())
    for (auto id : {found->second.send, found->second.recv})
      made().ops[id].only_in_updates = false;
}

// The variable that an op reads instead of `var`: a copy if `var` is in another
// place. The op that writes a value of an earlier step can come after its
// reader in program order. Such a value is sent after the op that writes it.
place_splitter::var_index place_splitter::value_for(const op_handle& reader,
                                                    var_index var,
                                                    bool is_of_this_step) {
  const auto place = made().place_of(reader.device);
  if (place_of(var) == place)
    return var;
  if (const auto known = copies_.find({var, place}); known != copies_.end()) {
    if (!reader.only_in_updates)
      send_in_each_step(known->second);
    return known->second;
  }
  const auto copy = copy_on(reader.device, var);
  const auto writer = old_.vars[var].generator;
  if (!is_of_this_step && writer != no_handle && new_id_[writer] == no_handle)
    sent_after_.insert({writer, {var, place}});
  else
    add_transfer(var, copy, reader);
  return copy;
}

place_splitter::var_index place_splitter::written_by(const op_handle& writer,
                                                     var_index var) {
  return place_of(var) == made().place_of(writer.device)
           ? var
           : copy_on(writer.device, var);
}

void place_splitter::add_op(const op_handle& op) {
  std::vector<var_index> inputs, outputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    inputs.push_back(value_for(op, rewriter_.index_of(op.inputs[i]),
                               old_.distance_of(op.id, i) == 0));
  for (auto id : op.outputs)
    outputs.push_back(written_by(op, rewriter_.index_of(id)));
  new_id_[op.id] = rewriter_.add_op(op, inputs, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const auto var = rewriter_.index_of(op.outputs[i]);
        var != outputs[i] && made().vars[var].generator == no_handle)
      add_transfer(outputs[i], var, op);
  for (auto [first, last] = sent_after_.equal_range(op.id); first != last;
       ++first) {
    const auto [var, place] = first->second;
    add_transfer(var, copies_.at({var, place}), op);
  }
}

void place_splitter::keep_orders(ssa_graph& g) const {
  for (auto& e : old_.edges) {
    if (e.kind != edge_kind::order)
      continue;
    const auto& from = g.op(new_id_[e.from]);
    const auto& to = g.op(new_id_[e.to]);
    if (g.place_of(from.device) != g.place_of(to.device))
      throw error{errc::graph_invalid,
                  "an order edge leads from " + handle_name(g, from.id) + " to "
                    + handle_name(g, to.id)
                    + ", which is in another place: nothing carries it there"};
    g.edges.push_back({from.id, to.id, e.kind, e.distance});
  }
}

ssa_graph place_splitter::split() {
  for (auto& o : old_.ops)
    add_op(o);
  auto g = rewriter_.finish();
  for (auto d : old_.delayed_inputs) {
    d.op = new_id_[d.op];
    g.delayed_inputs.push_back(d);
  }
  g.edges = derive_edges(g);
  keep_orders(g);
  merge_edges(g.edges);
  check_places(g);
  return g;
}

} // namespace

void check_places(const ssa_graph& g) {
  for (auto& o : g.ops)
    for (auto list : {o.inputs, o.outputs})
      for (auto id : list)
        if (const auto& v = g.var(id);
            g.place_of(v.device) != g.place_of(o.device))
          throw error{errc::graph_invalid,
                      handle_name(g, o.id)
                        + " uses a variable of another place, "
                        + handle_name(g, id)};
}

ssa_graph add_transfers(ssa_graph g,
                        const std::vector<std::uint32_t>& place_of_device) {
  if (place_of_device.size() != g.devices.size())
    throw error{errc::invalid_argument,
                "a place must be given for each of the "
                  + std::to_string(g.devices.size()) + " devices, not for "
                  + std::to_string(place_of_device.size())};
  if (!g.places.empty())
    throw error{errc::invalid_argument,
                "the graph is split over places already"};
  if (std::ranges::adjacent_find(place_of_device, std::ranges::not_equal_to{})
      == place_of_device.end())
    return g;
  if (!g.rank_collectives)
    g = make_rank_collectives(std::move(g));
  return place_splitter{g, place_of_device}.split();
}

} // namespace troupe::graph
