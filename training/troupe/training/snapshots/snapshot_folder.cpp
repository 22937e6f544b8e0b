// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/snapshots/snapshot_folder.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/atomic_file.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// Names of arrays. No variable of a program begins like these.
const std::string prefix = "troupe:";
const std::string device_prefix = prefix + "device-";

tensor number_array(arena& memory, std::int64_t value) {
  auto array = tensor::make(memory, {1}, dtype::int64);
  array.values<std::int64_t>()[0] = value;
  return array;
}

tensor float_array(arena& memory, double value) {
  auto array = tensor::make(memory, {1}, dtype::float64);
  array.values<double>()[0] = value;
  return array;
}

tensor text_array(arena& memory, std::string_view text) {
  auto array = tensor::make(memory, {static_cast<std::int64_t>(text.size())},
                            dtype::uint8);
  std::memcpy(array.raw(), text.data(), text.size());
  return array;
}

named_tensors to_arrays(const snapshot& s, arena& memory) {
  named_tensors all = s.values;
  for (auto& [device, values] : s.of_device)
    for (auto& [name, value] : values)
      all.emplace(device_prefix + std::to_string(device) + ":" + name, value);
  const auto number = [&](const char* name, auto value) {
    all.emplace(prefix + name,
                number_array(memory, static_cast<std::int64_t>(value)));
  };
  number("steps", s.position.steps);
  all.emplace(prefix + "epoch_loss",
              float_array(memory, s.position.epoch_loss));
  all.emplace(prefix + "epoch_samples",
              float_array(memory, s.position.epoch_samples));
  all.emplace(prefix + "program", text_array(memory, s.identity.program));
  number("seed", s.identity.seed);
  number("batch", s.identity.batch);
  number("steps_per_epoch", s.identity.steps_per_epoch);
  number("accumulate", s.identity.accumulate);
  number("devices_per_rank", s.devices.per_rank);
  number("ranks", s.devices.ranks);
  all.emplace(prefix + "strategy",
              text_array(memory, to_string(s.devices.strategy)));
  number("sync_batch_norm", s.devices.sync_batch_norm);
  return all;
}

/// Takes named arrays out of a file's arrays.
class array_reader {
public:
  array_reader(named_tensors arrays, std::string file)
    : arrays_(std::move(arrays)), file_(std::move(file)) {}

  template <class T>
  T number(const std::string& name) {
    const auto value = take(name, dtype::int64, 1);
    return static_cast<T>(value.values<std::int64_t>()[0]);
  }
  double real(const std::string& name) {
    return take(name, dtype::float64, 1).values<double>()[0];
  }
  std::string text(const std::string& name) {
    const auto value = take(name, dtype::uint8, -1);
    return {reinterpret_cast<const char*>(value.raw()), value.bytes()};
  }

  /// What is left: values of variables.
  void move_values(snapshot& into) {
    for (auto& [name, value] : arrays_)
      if (name.starts_with(device_prefix))
        add_of_device(name, value, into);
      else
        into.values.insert_or_assign(name, value);
  }

private:
  [[noreturn]] void bad(const std::string& name) const {
    throw error(errc::bad_file, file_ + ": no snapshot: array " + name
                                  + " is missing or wrong");
  }

  /// @param numel -1: any
  tensor take(const std::string& name, dtype type, std::int64_t numel) {
    const auto found = arrays_.find(prefix + name);
    if (found == arrays_.end() || found->second.type() != type
        || (numel >= 0 && found->second.numel() != numel))
      bad(prefix + name);
    auto value = found->second;
    arrays_.erase(found);
    return value;
  }

  void add_of_device(const std::string& name, const tensor& value,
                     snapshot& into) const {
    std::size_t device = 0;
    int used = 0;
    const auto rest = name.substr(device_prefix.size());
    if (std::sscanf(rest.c_str(), "%zu:%n", &device, &used) != 1 || used == 0)
      bad(name);
    into.of_device[device].insert_or_assign(
      rest.substr(static_cast<std::size_t>(used)), value);
  }

  named_tensors arrays_;
  std::string file_;
};

} // namespace

snapshot_folder::snapshot_folder(std::filesystem::path path, std::size_t rank,
                                 std::size_t ranks)
  : path_(std::move(path)), rank_(rank), ranks_(ranks) {}

void snapshot_folder::require_writable() const {
  std::error_code failed;
  std::filesystem::create_directories(path_, failed);
  if (failed && !std::filesystem::is_directory(path_))
    throw error(errc::io_failure,
                "cannot make " + path_.string() + ": " + failed.message());
  atomic_file{path_ / file_name(0)}; // made and removed, to check the folder
}

std::string snapshot_folder::name_of(std::uint64_t steps) const {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08llu",
                static_cast<unsigned long long>(steps));
  return (path_ / name).string();
}

std::string snapshot_folder::file_name(std::uint64_t steps) const {
  return std::filesystem::path{name_of(steps)}.filename().string() + ".rank-"
         + std::to_string(rank_) + "-of-" + std::to_string(ranks_) + ".npz";
}

void snapshot_folder::write(const snapshot& taken, std::size_t keep) const {
  arena memory{make_host_memory_source()};
  const auto name = file_name(taken.position.steps);
  auto arrays = to_arrays(taken, memory);
  arrays.emplace(prefix + "file", text_array(memory, name));
  write_npz(path_ / name, arrays);
  remove_old(keep);
}

std::vector<snapshot_folder::entry> snapshot_folder::list() const {
  // By steps and number of ranks.
  std::map<std::pair<std::uint64_t, std::size_t>, entry> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(path_, failed), end;
       !failed && at != end; at.increment(failed)) {
    const auto name = at->path().filename().string();
    unsigned long long steps = 0;
    std::size_t rank = 0, ranks = 0;
    int used = 0;
    if (std::sscanf(name.c_str(), "step-%llu.rank-%zu-of-%zu.npz%n", &steps,
                    &rank, &ranks, &used)
          != 3
        || static_cast<std::size_t>(used) != name.size() || rank >= ranks)
      continue;
    auto& e = found[{steps, ranks}];
    e.steps = steps;
    e.ranks = ranks;
    e.files.push_back(at->path());
  }
  std::vector<entry> all;
  for (auto& [key, e] : found) {
    std::ranges::sort(e.files); // any fixed order
    all.push_back(std::move(e));
  }
  std::ranges::reverse(all);
  return all;
}

std::vector<snapshot_folder::entry> snapshot_folder::complete() const {
  auto all = list();
  std::erase_if(all, [](const entry& e) { return e.files.size() != e.ranks; });
  return all;
}

snapshot snapshot_folder::read(const entry& from, arena& memory) const {
  snapshot whole;
  for (auto& file : from.files) {
    array_reader arrays{read_npz(file, memory), file.string()};
    const auto place = file.filename().string();
    if (arrays.text("file") != place)
      throw error(errc::bad_file, file.string()
                                    + ": is a file of another snapshot under "
                                      "this name");
    whole.position = {arrays.number<std::uint64_t>("steps"),
                      arrays.real("epoch_loss"), arrays.real("epoch_samples")};
    whole.identity = {arrays.text("program"),
                      arrays.number<std::uint64_t>("seed"),
                      arrays.number<std::int64_t>("batch"),
                      arrays.number<std::uint64_t>("steps_per_epoch"),
                      arrays.number<std::uint64_t>("accumulate")};
    whole.devices.per_rank = arrays.number<std::size_t>("devices_per_rank");
    whole.devices.ranks = arrays.number<std::size_t>("ranks");
    whole.devices.strategy =
      graph::parse_merge_strategy(arrays.text("strategy"));
    whole.devices.sync_batch_norm = arrays.number<bool>("sync_batch_norm");
    arrays.move_values(whole);
  }
  return whole;
}

std::optional<snapshot> snapshot_folder::newest(
  arena& memory,
  const std::function<void(const std::string& why)>& damaged) const {
  for (auto& e : complete())
    try {
      return read(e, memory);
    } catch (const error& failure) {
      damaged(failure.message());
    }
  return std::nullopt;
}

// Files of snapshots that lack others are old too, because other ranks have
// removed theirs already.
void snapshot_folder::remove_old(std::size_t keep) const {
  const auto kept = complete();
  if (kept.size() < keep)
    return;
  const auto oldest = kept[keep - 1].steps;
  std::error_code ignored;
  for (auto& e : list())
    for (auto& file : e.files) {
      const auto is_own = file.filename() == file_name(e.steps)
                          || (e.ranks != ranks_ && rank_ == 0);
      if (e.steps < oldest && is_own)
        std::filesystem::remove(file, ignored);
    }
}

} // namespace troupe
