// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/program_file.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/graph/dtype_number.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <framework.pb.h>
#include <google/protobuf/arena.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

namespace pb = troupe::paddle::proto;

// The functions here move everything that graph::program has a member for out
// of a message. The rest of the message becomes the struct's `extra`. Booleans
// and numbers that are present but equal their default stay in the message, so
// that they are written back as present.

[[noreturn]] void bad(const std::string& where, const std::string& why) {
  throw error(errc::bad_file, where + ": " + why);
}

/// The place of an error in a file. The text is only made if there is an error.
struct location {
  const std::string& file;
  int block;
  const std::string* variable = nullptr;
  int op = -1;
  const std::string* op_type = nullptr;

  std::string text() const {
    auto place = file + ": block " + std::to_string(block);
    if (variable != nullptr)
      place += ", variable " + quoted_name(*variable);
    if (op >= 0)
      place += ", op " + std::to_string(op);
    if (op_type != nullptr)
      place += " (" + quoted_name(*op_type) + ")";
    return place;
  }
};

[[noreturn]] void bad(const location& where, const std::string& why) {
  bad(where.text(), why);
}

template <class Message>
unknown_fields serialized(const Message& rest) {
  return rest.SerializePartialAsString();
}

/// Bytes of a tensor; unknown extents count as 1. Empty if the number does not
/// fit int64.
std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& dims,
                                     dtype type) {
  auto bytes = static_cast<std::int64_t>(size_of(type));
  for (auto extent : dims)
    if (extent > 1 && __builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  return bytes;
}

void take_dims(pb::VarType::TensorDesc& tensor, var_desc& desc,
               const location& where) {
  std::vector<std::int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  for (auto& extent : dims)
    extent = std::max<std::int64_t>(extent, -1);
  if (dims.size() > shape::max_rank)
    bad(where, "has " + std::to_string(dims.size())
                 + " axes, at most 8 are supported");
  if (!bytes_of(dims, desc.type))
    bad(where, "shape " + to_string(shape(dims)) + " is too large");
  desc.dims = shape(dims);
  tensor.clear_dims();
}

void take_tensor(pb::VarType::TensorDesc& tensor, var_desc& desc,
                 const location& where) {
  if (auto type = find_dtype(tensor.data_type());
      type && tensor.has_data_type()) {
    desc.type = *type;
    tensor.clear_data_type();
  }
  take_dims(tensor, desc, where);
}

void take_lod_tensor(pb::VarType::LoDTensorDesc& lod_tensor, var_desc& desc,
                     const location& where) {
  desc.lod_level = lod_tensor.lod_level();
  if (desc.lod_level != 0)
    lod_tensor.clear_lod_level();
  take_tensor(*lod_tensor.mutable_tensor(), desc, where);
  if (lod_tensor.tensor().ByteSizeLong() == 0)
    lod_tensor.clear_tensor();
}

void take_type(pb::VarType& type, var_desc& desc, const location& where) {
  if (!type.has_type())
    bad(where, "has no type");
  desc.kind = static_cast<var_kind>(type.type());
  type.clear_type();
  if (desc.kind == var_kind::dense && type.has_lod_tensor()) {
    take_lod_tensor(*type.mutable_lod_tensor(), desc, where);
    if (type.lod_tensor().ByteSizeLong() == 0)
      type.clear_lod_tensor();
  } else if (desc.kind == var_kind::tensor_array && type.has_tensor_array()) {
    take_lod_tensor(*type.mutable_tensor_array(), desc, where);
    if (type.tensor_array().ByteSizeLong() == 0)
      type.clear_tensor_array();
  } else if (desc.kind == var_kind::selected_rows && type.has_selected_rows()) {
    take_tensor(*type.mutable_selected_rows(), desc, where);
    if (type.selected_rows().ByteSizeLong() == 0)
      type.clear_selected_rows();
  }
}

void take_flags(pb::VarDesc& var, var_desc& desc) {
  if ((desc.persistable = var.persistable()))
    var.clear_persistable();
  if ((desc.need_check_feed = var.need_check_feed()))
    var.clear_need_check_feed();
  if ((desc.is_parameter = var.is_parameter()))
    var.clear_is_parameter();
  if ((desc.stop_gradient = var.stop_gradient()))
    var.clear_stop_gradient();
}

var_desc take_var(pb::VarDesc& var, location where) {
  var_desc desc;
  desc.name = std::move(*var.mutable_name());
  var.clear_name();
  if (desc.name.empty())
    bad(where, "a variable has no name");
  where.variable = &desc.name;
  take_type(*var.mutable_type(), desc, where);
  if (var.type().ByteSizeLong() == 0)
    var.clear_type();
  take_flags(var, desc);
  desc.extra = serialized(var);
  return desc;
}

/// Far more slots than any op of Paddle has. A limit is needed because looking
/// up a slot walks over all of them.
constexpr std::size_t max_slots = 256;

using slot_list = google::protobuf::RepeatedPtrField<pb::OpDesc::Var>;

/// Moves strings out of a message.
std::vector<std::string>
take_strings(google::protobuf::RepeatedPtrField<std::string>& list) {
  return {std::make_move_iterator(list.begin()),
          std::make_move_iterator(list.end())};
}

void check_slot_names(const std::vector<op_slot>& slots,
                      const location& where) {
  std::vector<std::string_view> names;
  names.reserve(slots.size());
  for (const auto& slot : slots)
    names.push_back(slot.name);
  std::ranges::sort(names);
  if (names.size() > max_slots)
    bad(where, "has " + std::to_string(names.size()) + " slots, at most "
                 + std::to_string(max_slots) + " are supported");
  if (auto twice = std::ranges::adjacent_find(names); twice != names.end())
    bad(where, "slot " + quoted_name(*twice) + " occurs twice");
}

std::vector<op_slot> take_slots(slot_list& list, const location& where) {
  std::vector<op_slot> slots;
  slots.reserve(static_cast<std::size_t>(list.size()));
  for (auto& from : list)
    slots.push_back({std::move(*from.mutable_parameter()),
                     take_strings(*from.mutable_arguments())});
  check_slot_names(slots, where);
  list.Clear();
  return slots;
}

template <class T, class List>
std::vector<T> list_of(const List& list) {
  return {list.begin(), list.end()};
}

std::vector<block_ref> blocks_of(const pb::OpDesc::Attr& attr) {
  std::vector<block_ref> blocks;
  for (auto index : attr.blocks_idx())
    blocks.push_back({index});
  return blocks;
}

/// The values of a list of scalars if all have the same type; otherwise empty.
std::optional<attribute> numbers_of(const pb::OpDesc::Attr& attr) {
  const auto& scalars = attr.scalars();
  const auto all = [&](pb::ScalarType type) {
    return std::ranges::all_of(
      scalars, [type](const pb::Scalar& s) { return s.type() == type; });
  };
  const auto list = [&](auto number) {
    std::vector<decltype(number(pb::Scalar{}))> numbers;
    for (const auto& scalar : scalars)
      numbers.push_back(number(scalar));
    return attribute{std::move(numbers)};
  };
  if (all(pb::SCALAR_FLOAT64))
    return list([](const pb::Scalar& s) { return s.r(); });
  if (all(pb::SCALAR_LONG))
    return list([](const pb::Scalar& s) { return std::int64_t{s.i()}; });
  if (all(pb::SCALAR_BOOLEAN))
    return list([](const pb::Scalar& s) { return s.b(); });
  return std::nullopt;
}

/// Empty for a type that troupe::attribute has no alternative for.
std::optional<attribute> take_value(pb::OpDesc::Attr& attr) {
  switch (attr.type()) {
  case pb::INT: return attr.i();
  case pb::FLOAT: return attr.f();
  case pb::STRING: return std::move(*attr.mutable_s());
  case pb::INTS: return list_of<std::int32_t>(attr.ints());
  case pb::FLOATS: return list_of<float>(attr.floats());
  case pb::STRINGS: return take_strings(*attr.mutable_strings());
  case pb::BOOLEAN: return attr.b();
  case pb::BOOLEANS: return list_of<bool>(attr.bools());
  case pb::BLOCK: return block_ref{attr.block_idx()};
  case pb::LONG: return attr.l();
  case pb::BLOCKS: return blocks_of(attr);
  case pb::LONGS: return list_of<std::int64_t>(attr.longs());
  case pb::FLOAT64: return attr.float64();
  case pb::FLOAT64S: return list_of<double>(attr.float64s());
  case pb::SCALARS: return numbers_of(attr);
  default: return std::nullopt;
  }
}

/// Checks that an attribute refers only to existing blocks.
void check_blocks(const pb::OpDesc::Attr& attr, int num_blocks,
                  const location& where) {
  auto outside = [&](int index) { return index < 0 || index >= num_blocks; };
  const auto& list = attr.blocks_idx();
  if ((attr.type() == pb::BLOCK && outside(attr.block_idx()))
      || (attr.type() == pb::BLOCKS
          && std::any_of(list.begin(), list.end(), outside)))
    bad(where, "attribute " + quoted_name(attr.name())
                 + " refers to a block that is not there");
}

attribute_map take_attributes(pb::OpDesc& op, int num_blocks,
                              const location& where) {
  std::vector<attribute_map::entry> entries;
  entries.reserve(static_cast<std::size_t>(op.attrs_size()));
  auto& attrs = *op.mutable_attrs();
  int unknown = 0; // unknown attributes stay, at the front
  for (int i = 0; i < attrs.size(); ++i) {
    auto& attr = *attrs.Mutable(i);
    if (attr.name().empty() || !attr.has_type())
      bad(where, "an attribute has no name or type");
    check_blocks(attr, num_blocks, where);
    auto value = take_value(attr);
    if (value)
      entries.emplace_back(attr.name(), std::move(*value));
    if (value && attr.type() == pb::SCALARS)
      attr.clear_scalars(); // the rest records that they were scalars
    if (!value || attr.type() == pb::SCALARS)
      attrs.SwapElements(unknown++, i);
  }
  attrs.DeleteSubrange(unknown, attrs.size() - unknown);
  return attribute_map(std::move(entries));
}

op_desc take_op(pb::OpDesc& op, int num_blocks, location where) {
  op_desc desc;
  desc.type = std::move(*op.mutable_type());
  op.clear_type();
  if (desc.type.empty())
    bad(where, "has no type");
  where.op_type = &desc.type;
  desc.inputs = take_slots(*op.mutable_inputs(), where);
  desc.outputs = take_slots(*op.mutable_outputs(), where);
  desc.attributes = take_attributes(op, num_blocks, where);
  desc.extra = serialized(op);
  return desc;
}

/// As in Paddle, a parent has a smaller index than its children, so there are
/// no cycles.
void check_indices(const pb::BlockDesc& from, int index, int num_blocks,
                   const location& where) {
  if (from.idx() != index)
    bad(where, "has index " + std::to_string(from.idx()));
  if (!from.has_parent_idx() || from.parent_idx() < -1
      || from.parent_idx() >= index)
    bad(where, "parent " + std::to_string(from.parent_idx())
                 + " is not a block before it");
  if (from.forward_block_idx() < -1 || from.forward_block_idx() >= num_blocks)
    bad(where, "forward block " + std::to_string(from.forward_block_idx())
                 + " is not there");
}

block take_block(pb::BlockDesc& from, int index, int num_blocks,
                 const std::string& name) {
  const location where{.file = name, .block = index};
  check_indices(from, index, num_blocks, where);
  block result;
  result.index = index;
  result.parent = from.parent_idx();
  for (auto& var : *from.mutable_vars()) {
    auto desc = take_var(var, where);
    const auto before = result.vars.size();
    // Paddle writes variables sorted by name, so the hint is usually right.
    const auto at =
      result.vars.emplace_hint(result.vars.end(), desc.name, var_desc{});
    if (result.vars.size() == before)
      bad(where, "variable " + quoted_name(desc.name) + " occurs twice");
    at->second = std::move(desc);
  }
  result.ops.reserve(static_cast<std::size_t>(from.ops_size()));
  for (int i = 0; i < from.ops_size(); ++i)
    result.ops.push_back(take_op(*from.mutable_ops(i), num_blocks,
                                 {.file = name, .block = index, .op = i}));
  if (from.forward_block_idx() != -1) {
    result.forward_block = from.forward_block_idx();
    from.clear_forward_block_idx();
  }
  from.clear_idx();
  from.clear_parent_idx();
  from.clear_vars();
  from.clear_ops();
  result.extra = serialized(from);
  return result;
}

/// Block sizes for which most programs need only a few memory blocks.
google::protobuf::ArenaOptions arena_options() {
  google::protobuf::ArenaOptions options;
  options.start_block_size = std::size_t{64} << 10;
  options.max_block_size = std::size_t{1} << 20;
  return options;
}

std::int64_t take_version(pb::ProgramDesc& from) {
  auto version = from.version().version();
  if (version == 0)
    return 0;
  from.mutable_version()->clear_version();
  if (from.version().ByteSizeLong() == 0)
    from.clear_version();
  return version;
}

/// Code that walks over the blocks of a program read from a file can then rely
/// on these checks.
void check_sub_blocks(const program& p, const std::string& name) {
  try {
    graph::check_sub_blocks(p);
  } catch (const error& e) {
    throw error(errc::bad_file, name + ": " + e.message(), e.where());
  }
}

} // namespace

program parse_program(std::string_view bytes, const std::string& name) {
  google::protobuf::Arena messages(arena_options());
  auto& from =
    *google::protobuf::Arena::CreateMessage<pb::ProgramDesc>(&messages);
  if (bytes.size() > std::numeric_limits<std::int32_t>::max()
      || !from.ParsePartialFromArray(bytes.data(),
                                     static_cast<int>(bytes.size())))
    bad(name, "not a Paddle program, or truncated");
  if (from.blocks().empty())
    bad(name, "not a Paddle program: it has no block");
  program result;
  result.blocks.clear();
  for (int i = 0; i < from.blocks_size(); ++i)
    result.blocks.push_back(
      take_block(*from.mutable_blocks(i), i, from.blocks_size(), name));
  check_sub_blocks(result, name);
  from.clear_blocks();
  result.version = take_version(from);
  result.extra = serialized(from);
  return result;
}

} // namespace troupe::graph
