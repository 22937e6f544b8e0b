// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/fetch_file.hpp>

#include <troupe/base/quoted_name.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::apps {

namespace {

bool same_shape(const std::vector<tensor>& values) {
  return std::ranges::all_of(values, [&](const tensor& value) {
    return value.dims() == values[0].dims() && value.type() == values[0].type();
  });
}

tensor stack(const std::vector<tensor>& values, arena& memory) {
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(values.size())};
  const auto inner = values[0].dims().dims();
  dims.insert(dims.end(), inner.begin(), inner.end());
  tensor out = tensor::make(memory, shape(dims), values[0].type());
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(out.raw() + i * values[i].bytes(), values[i].raw(),
                values[i].bytes());
  return out;
}

} // namespace

fetch_file::fetch_file(std::filesystem::path file,
                       std::vector<std::string> variables,
                       std::vector<std::string> persistable)
  : file_(std::move(file)), variables_(std::move(variables)),
    persistable_(std::move(persistable)) {}

void fetch_file::add(const step_result& result) {
  for (const std::string& name : variables_) {
    const bool alike =
      std::ranges::find(persistable_, name) != persistable_.end();
    values_[name].push_back(alike ? result.fetched.find(name)->second.front()
                                  : result.merged(name));
  }
}

void fetch_file::write(arena& memory) const {
  named_tensors arrays;
  for (auto& [name, values] : values_)
    if (same_shape(values) && values[0].dims().rank() < shape::max_rank)
      arrays.emplace(
        name, naming_file(file_.string() + ": " + quoted_name(name),
                          [&, &all = values] { return stack(all, memory); }));
    else
      for (std::size_t step = 0; step < values.size(); ++step)
        arrays.emplace(name + "/" + std::to_string(step), values[step]);
  write_npz(file_, arrays);
}

} // namespace troupe::apps
