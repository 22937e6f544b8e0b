// SPDX-License-Identifier: Apache-2.0
#include "fuzz/ops/op_case_file.hpp"

#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <algorithm>

namespace troupe::fuzz {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view input_prefix = "in:";

std::vector<std::int64_t> integers(const tensor& from) {
  const auto values = from.values<std::int64_t>();
  return {values.begin(), values.end()};
}

const tensor* find(const named_tensors& arrays, const std::string& name) {
  const auto found = arrays.find(name);
  return found == arrays.end() ? nullptr : &found->second;
}

case_value take_value(const named_tensors& arrays, const std::string& array,
                      arena& memory) {
  const tensor& held = arrays.at(array);
  const auto var = array.substr(input_prefix.size());
  case_value value;
  value.dims.assign(held.dims().begin(), held.dims().end());
  value.type = held.type();
  const auto exact = cast(held, dtype::float64, memory);
  const auto elements = exact.values<double>();
  value.elements.assign(elements.begin(), elements.end());
  if (const auto* rows = find(arrays, "rows:" + var)) {
    value.rows = integers(*rows);
    value.height = integers(arrays.at("height:" + var)).at(0);
  }
  while (const auto* level = find(
           arrays, "lod" + std::to_string(value.levels.size()) + ":" + array)) {
    const auto offsets = integers(*level);
    value.levels.emplace_back(offsets.begin(), offsets.end());
  }
  return value;
}

op_case_file read_op_case(const fs::path& path) {
  arena memory{make_host_memory_source()};
  const auto arrays = read_npz(path, memory);
  const auto bytes = arrays.at("program").values<std::uint8_t>();
  op_case_file c;
  c.name = path.stem().string();
  c.program = graph::parse_program(
    {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, c.name);
  for (const auto& [name, array] : arrays)
    if (name.starts_with(input_prefix))
      c.inputs.emplace(name.substr(input_prefix.size()),
                       take_value(arrays, name, memory));
  return c;
}

tensor to_tensor(const case_value& value, arena& memory) {
  auto exact =
    tensor::make(memory, shape{std::span{value.dims}}, dtype::float64);
  const auto to = exact.values<double>();
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] =
      value.elements.empty() ? 0 : value.elements[i % value.elements.size()];
  return cast(exact, value.type, memory);
}

} // namespace

std::vector<op_case_file> read_op_cases(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".npz")
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<op_case_file> cases;
  for (const auto& path : paths)
    cases.push_back(read_op_case(path));
  return cases;
}

void set_inputs(const op_case_file& c, scope& values, arena& memory) {
  for (const auto& [name, value] : c.inputs) {
    auto dense = to_tensor(value, memory);
    if (value.is_rows()) {
      auto rows = value.rows; // as many as there are values, wherever they are
      rows.resize(value.dims.empty() ? 0
                                     : static_cast<std::size_t>(value.dims[0]));
      values.var(name).set(
        selected_rows{std::move(rows), value.height, std::move(dense)});
      continue;
    }
    const auto rows = value.dims.empty() ? 1 : value.dims[0];
    dense.set_levels(make_lod(value.levels, rows));
    values.var(name).set(std::move(dense));
  }
}

} // namespace troupe::fuzz
