// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/parameter_file.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/atomic_directory.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/graph/paddle/tensor_record.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <algorithm>
#include <utility>

namespace fs = std::filesystem;

namespace troupe::graph {

namespace {

using stored_vars = std::map<std::string_view, const var_desc*>;
using loaded_values = std::vector<std::pair<std::string_view, variable>>;

bool is_stored(const var_desc& var) {
  return var.persistable
         && (var.kind == var_kind::dense
             || var.kind == var_kind::selected_rows);
}

/// Stored variables by name. If several blocks declare a name, the outermost
/// declaration counts.
stored_vars stored(const program& p) {
  stored_vars result;
  for (const auto& b : p.blocks)
    for (const auto& [name, var] : b.vars)
      if (is_stored(var))
        result.emplace(name, &var);
  return result;
}

std::string text_of(const fs::path& path, std::string_view name) {
  return path.string() + ": variable " + quoted_name(name);
}

/// True if a value of shape `found` matches the declared shape.
bool fits(const shape& found, const shape& declared) {
  return std::equal(
    found.begin(), found.end(), declared.begin(), declared.end(),
    [](std::int64_t f, std::int64_t d) { return d == -1 || f == d; });
}

void check_dims(const shape& found, const var_desc& var, const fs::path& path) {
  if (!fits(found, var.dims))
    throw error(errc::shape_mismatch,
                text_of(path, var.name) + " has shape " + to_string(found)
                  + ", the program declares " + to_string(var.dims),
                {.variable = var.name});
}

void check_type(dtype found, const var_desc& var, const fs::path& path) {
  if (found != var.type)
    throw error(errc::dtype_mismatch,
                text_of(path, var.name) + " is " + std::string(to_string(found))
                  + ", the program declares "
                  + std::string(to_string(var.type)),
                {.variable = var.name});
}

/// Shape of the tensor that the rows are part of.
shape whole_dims(const selected_rows& rows) {
  auto dims = rows.values.dims();
  dims[0] = rows.height;
  return dims;
}

variable read_record(input_file& file, const var_desc& var, arena& memory) {
  variable value;
  if (var.kind == var_kind::selected_rows) {
    auto rows = read_rows_record(file, var.name, memory);
    check_type(rows.values.type(), var, file.path());
    check_dims(whole_dims(rows), var, file.path());
    value.set(std::move(rows));
  } else {
    auto dense = read_tensor_record(file, var.name, memory);
    check_type(dense.type(), var, file.path());
    check_dims(dense.dims(), var, file.path());
    value.set(std::move(dense));
  }
  return value;
}

variable read_value(input_file& file, const var_desc& var, arena& memory) {
  return naming_file(file.path().string() + ": " + quoted_name(var.name),
                     [&] { return read_record(file, var, memory); });
}

void expect_end(const input_file& file, const std::string& after) {
  if (file.remaining() != 0)
    throw error(errc::bad_file,
                file.path().string() + ": has " + std::to_string(file.size())
                  + " bytes, of which " + std::to_string(file.remaining())
                  + " lie behind " + after);
}

loaded_values load_combined(const stored_vars& vars, const fs::path& path,
                            arena& memory) {
  input_file file(path);
  loaded_values values;
  for (const auto& [name, var] : vars)
    values.emplace_back(name, read_value(file, *var, memory));
  expect_end(file, "the last of the program's " + std::to_string(vars.size())
                     + " variables");
  return values;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20;
}

/// The file of a variable. Its name may contain slashes but must not lead out
/// of the folder.
fs::path record_path(const fs::path& folder, std::string_view name) {
  fs::path relative(name);
  if (relative.empty() || relative.is_absolute() || !relative.has_filename()
      || std::any_of(name.begin(), name.end(), is_control)
      || std::any_of(
        relative.begin(), relative.end(),
        [](const fs::path& part) { return part == ".." || part == "."; }))
    throw error(errc::invalid_argument,
                "variable " + quoted_name(name)
                  + " cannot be the name of a file in " + folder.string(),
                {.variable = std::string(name)});
  return folder / relative;
}

loaded_values load_separate(const stored_vars& vars, const fs::path& folder,
                            arena& memory) {
  loaded_values values;
  for (const auto& [name, var] : vars) {
    input_file file(record_path(folder, name));
    values.emplace_back(name, read_value(file, *var, memory));
    expect_end(file, "the record of variable " + quoted_name(name));
  }
  return values;
}

loaded_values load(const stored_vars& vars, const fs::path& path,
                   arena& memory) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return load_combined(vars, path, memory);
  if (auto combined = path / combined_file_name;
      fs::is_regular_file(combined, ignored))
    return load_combined(vars, combined, memory);
  return load_separate(vars, path, memory);
}

const variable& value_of(const scope& values, const var_desc& var) {
  const auto* value = values.find(var.name);
  if (!value || !value->has_value())
    throw error(errc::not_found,
                "cannot store variable " + quoted_name(var.name)
                  + ": it has no value",
                {.variable = var.name});
  if (value->is_rows() != (var.kind == var_kind::selected_rows))
    throw error(errc::invalid_argument,
                "cannot store variable " + quoted_name(var.name)
                  + ": the program declares another kind of value",
                {.variable = var.name});
  return *value;
}

void write_value(atomic_file& file, const scope& values, const var_desc& var) {
  const auto& value = value_of(values, var);
  arena host{make_host_memory_source()};
  if (value.is_rows()) {
    auto rows = value.as_rows();
    rows.values = values.to_host(rows.values, host);
    write_rows_record(file, rows, var.name);
  } else {
    write_tensor_record(file, values.to_host(value.as_tensor(), host),
                        var.name);
  }
}

void save_combined(const stored_vars& vars, const scope& values,
                   const fs::path& path) {
  atomic_file file(path);
  for (const auto& [name, var] : vars)
    write_value(file, values, *var);
  file.commit();
}

void make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure)
    throw error(errc::io_failure, folder.string() + ": " + failure.message());
}

void save_separate(const stored_vars& vars, const scope& values,
                   const fs::path& path) {
  atomic_directory folder(path);
  for (const auto& [name, var] : vars) {
    auto target = record_path(folder.path(), name);
    make_folder(target.parent_path());
    atomic_file file(target);
    write_value(file, values, *var);
    file.commit();
  }
  folder.commit();
}

} // namespace

std::vector<std::string> stored_names(const program& p) {
  std::vector<std::string> names;
  for (const auto& [name, var] : stored(p))
    names.emplace_back(name);
  return names;
}

void load_parameters(const program& p, const fs::path& path, scope& values,
                     arena& memory) {
  for (auto& [name, value] : load(stored(p), path, memory))
    values.var(name) = std::move(value);
}

void save_parameters(const program& p, const scope& values,
                     const fs::path& path, parameter_layout layout) {
  if (layout == parameter_layout::combined)
    save_combined(stored(p), values, path);
  else
    save_separate(stored(p), values, path);
}

} // namespace troupe::graph
