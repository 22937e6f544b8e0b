// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/program_file.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/dtype_number.hpp>

#include <framework.pb.h>

#include <limits>
#include <variant>

namespace troupe::graph {

namespace {

namespace pb = troupe::paddle::proto;

/// Starts a message with the fields that the struct has no member for.
template <class Message>
void restore(Message& to, const unknown_fields& extra) {
  if (!extra.empty() && !to.ParsePartialFromString(extra))
    throw error(errc::graph_invalid,
                "unknown fields kept from a program file are damaged");
}

void put_tensor(const var_desc& desc, pb::VarType::TensorDesc& to) {
  // A number that is already present was kept because there is no dtype for it.
  if (!to.has_data_type())
    to.set_data_type(dtype_number(desc.type));
  for (auto extent : desc.dims)
    to.add_dims(extent);
}

void put_lod_tensor(const var_desc& desc, pb::VarType::LoDTensorDesc& to) {
  put_tensor(desc, *to.mutable_tensor());
  if (desc.lod_level != 0)
    to.set_lod_level(desc.lod_level);
}

void put_type(const var_desc& desc, pb::VarType& to) {
  to.set_type(static_cast<std::int32_t>(desc.kind));
  if (desc.kind == var_kind::dense)
    put_lod_tensor(desc, *to.mutable_lod_tensor());
  else if (desc.kind == var_kind::tensor_array)
    put_lod_tensor(desc, *to.mutable_tensor_array());
  else if (desc.kind == var_kind::selected_rows)
    put_tensor(desc, *to.mutable_selected_rows());
}

/// Sets only true flags. A flag that was present as false in the file is
/// already restored from `extra`.
void put_flags(const var_desc& desc, pb::VarDesc& to) {
  if (desc.persistable)
    to.set_persistable(true);
  if (desc.need_check_feed)
    to.set_need_check_feed(true);
  if (desc.is_parameter)
    to.set_is_parameter(true);
  if (desc.stop_gradient)
    to.set_stop_gradient(true);
}

void put_var(const var_desc& desc, pb::VarDesc& to) {
  restore(to, desc.extra);
  to.set_name(desc.name);
  put_type(desc, *to.mutable_type());
  put_flags(desc, to);
}

void put_slot(const op_slot& slot, pb::OpDesc::Var& to) {
  to.set_parameter(slot.name);
  for (const auto& argument : slot.arguments)
    to.add_arguments(argument);
}

/// Stores an attribute's value and type. One overload per alternative.
struct put_value {
  pb::OpDesc::Attr& to;

  void operator()(std::int32_t value) const {
    to.set_type(pb::INT);
    to.set_i(value);
  }
  void operator()(float value) const {
    to.set_type(pb::FLOAT);
    to.set_f(value);
  }
  void operator()(const std::string& value) const {
    to.set_type(pb::STRING);
    to.set_s(value);
  }
  void operator()(const std::vector<std::int32_t>& values) const {
    to.set_type(pb::INTS);
    to.mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<float>& values) const {
    to.set_type(pb::FLOATS);
    to.mutable_floats()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    to.set_type(pb::STRINGS);
    to.mutable_strings()->Add(values.begin(), values.end());
  }
  void operator()(bool value) const {
    to.set_type(pb::BOOLEAN);
    to.set_b(value);
  }
  void operator()(const std::vector<bool>& values) const {
    to.set_type(pb::BOOLEANS);
    to.mutable_bools()->Add(values.begin(), values.end());
  }
  void operator()(block_ref value) const {
    to.set_type(pb::BLOCK);
    to.set_block_idx(value.index);
  }
  void operator()(std::int64_t value) const {
    to.set_type(pb::LONG);
    to.set_l(value);
  }
  void operator()(const std::vector<block_ref>& values) const {
    to.set_type(pb::BLOCKS);
    for (auto value : values)
      to.add_blocks_idx(value.index);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    to.set_type(pb::LONGS);
    to.mutable_longs()->Add(values.begin(), values.end());
  }
  void operator()(double value) const {
    to.set_type(pb::FLOAT64);
    to.set_float64(value);
  }
  void operator()(const std::vector<double>& values) const {
    to.set_type(pb::FLOAT64S);
    to.mutable_float64s()->Add(values.begin(), values.end());
  }
};

/// The same for a list that was a list of scalars in the file.
struct put_scalars {
  pb::OpDesc::Attr& to;

  pb::Scalar& add(pb::ScalarType type) const {
    auto& scalar = *to.add_scalars();
    scalar.set_type(type);
    return scalar;
  }
  void operator()(const std::vector<double>& values) const {
    for (auto value : values)
      add(pb::SCALAR_FLOAT64).set_r(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    for (auto value : values)
      add(pb::SCALAR_LONG).set_i(value);
  }
  void operator()(const std::vector<bool>& values) const {
    for (auto value : values)
      add(pb::SCALAR_BOOLEAN).set_b(value);
  }
  template <class Other>
  void operator()(const Other& value) const {
    put_value{to}(value);
  }
};

/// The attribute `name` among the first `count` if it was a list of scalars;
/// otherwise null.
pb::OpDesc::Attr* find_scalars(pb::OpDesc& op, int count,
                               const std::string& name) {
  for (int i = 0; i < count; ++i)
    if (auto& attr = *op.mutable_attrs(i);
        attr.type() == pb::SCALARS && attr.name() == name)
      return &attr;
  return nullptr;
}

void put_op(const op_desc& desc, pb::OpDesc& to) {
  restore(to, desc.extra);
  to.set_type(desc.type);
  for (const auto& slot : desc.inputs)
    put_slot(slot, *to.add_inputs());
  for (const auto& slot : desc.outputs)
    put_slot(slot, *to.add_outputs());
  const int kept = to.attrs_size();
  for (const auto& [name, value] : desc.attributes) {
    if (auto* scalars = find_scalars(to, kept, name)) {
      std::visit(put_scalars{*scalars}, value);
      continue;
    }
    auto& attr = *to.add_attrs();
    attr.set_name(name);
    std::visit(put_value{attr}, value);
  }
}

void put_block(const block& from, pb::BlockDesc& to) {
  restore(to, from.extra);
  to.set_idx(from.index);
  to.set_parent_idx(from.parent);
  if (from.forward_block != -1)
    to.set_forward_block_idx(from.forward_block);
  for (const auto& [name, var] : from.vars)
    put_var(var, *to.add_vars());
  for (const auto& op : from.ops)
    put_op(op, *to.add_ops());
}

} // namespace

std::string serialize_program(const program& p) {
  pb::ProgramDesc to;
  restore(to, p.extra);
  // Present even if 0, because Paddle's own loader requires it.
  to.mutable_version()->set_version(p.version);
  for (const auto& from : p.blocks)
    put_block(from, *to.add_blocks());
  if (to.ByteSizeLong() > std::numeric_limits<std::int32_t>::max())
    throw error(errc::invalid_argument,
                "a program of more than 2 GiB cannot be stored");
  return to.SerializePartialAsString();
}

} // namespace troupe::graph
