// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/program_folder.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/atomic_directory.hpp>
#include <troupe/base/files/atomic_file.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_file.hpp>

#include <nlohmann/json.hpp>

#include <set>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

namespace troupe::graph {

namespace {

using nlohmann::json;

constexpr const char* main_name = "main.pdmodel";
constexpr const char* startup_name = "startup.pdmodel";
constexpr const char* test_name = "test.pdmodel";
constexpr const char* info_name = "program.json";

/// As of the option --batch. Products with it stay far below 2^63.
constexpr std::int64_t max_batch = std::int64_t{1} << 32;

constexpr std::uint64_t max_info_bytes = 16 << 20;

/// Reads the values of program.json; errors name file and key.
class info_reader {
public:
  explicit info_reader(const std::string& name) : name_(name) {}

  program_info read(std::string_view text) const {
    auto root = json::parse(text, nullptr, false);
    if (!root.is_object())
      fail("is not a JSON object");
    program_info info;
    info.net = string_at(root, "net");
    info.loss = string_at(root, "loss_var");
    info.batch = positive_at(root, "batch");
    if (info.batch > max_batch)
      fail("'batch' is " + std::to_string(*info.batch)
           + ", but must be at most " + std::to_string(max_batch));
    if (const auto* feeds = find(root, "feeds"))
      info.feeds = read_feeds(*feeds);
    return info;
  }

private:
  [[noreturn]] void fail(const std::string& why) const {
    throw error(errc::bad_file, name_ + ": " + why);
  }

  /// Null if the key is missing or its value is null.
  static const json* find(const json& object, const std::string& key) {
    auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  std::string string_at(const json& object, const std::string& key) const {
    const auto* value = find(object, key);
    if (value && !value->is_string())
      fail("'" + key + "' is not a string");
    return value ? value->get<std::string>() : std::string();
  }

  std::int64_t positive(const json& value, const std::string& key) const {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1)
      fail("'" + key + "' is not a positive integer");
    return value.get<std::int64_t>();
  }

  std::optional<std::int64_t> positive_at(const json& object,
                                          const std::string& key) const {
    const auto* value = find(object, key);
    return value ? std::optional(positive(*value, key)) : std::nullopt;
  }

  decltype(program_info::feeds) read_feeds(const json& feeds) const {
    if (!feeds.is_object())
      fail("'feeds' is not an object");
    decltype(program_info::feeds) result;
    for (const auto& [name, feed] : feeds.items())
      result.emplace(name, read_feed(name, feed));
    return result;
  }

  feed_info read_feed(const std::string& name, const json& feed) const {
    if (!feed.is_object())
      fail("feed " + quoted_name(name) + " is not an object");
    return {read_shape(name, find(feed, "shape")),
            read_type(name, string_at(feed, "dtype")),
            positive_at(feed, "below")};
  }

  shape read_shape(const std::string& name, const json* value) const {
    if (!value || !value->is_array() || value->size() > shape::max_rank)
      fail("feed " + quoted_name(name)
           + " has no 'shape' of at most 8 extents");
    std::vector<std::int64_t> dims;
    for (const auto& extent : *value)
      dims.push_back(positive(extent, "shape"));
    return shape(dims);
  }

  dtype read_type(const std::string& name, const std::string& text) const {
    for (int i = 0; i <= static_cast<int>(dtype::boolean); ++i)
      if (to_string(static_cast<dtype>(i)) == text)
        return static_cast<dtype>(i);
    fail("feed " + quoted_name(name) + " has dtype " + quoted_name(text)
         + ", which is unknown");
  }

  const std::string& name_;
};

json to_json(const feed_info& feed) {
  auto dims = feed.dims.dims();
  json result{{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
              {"dtype", std::string(to_string(feed.type))}};
  result["below"] = feed.below ? json(*feed.below) : json(nullptr);
  return result;
}

json to_json(const program_info& info) {
  auto result = json::object();
  if (!info.net.empty())
    result["net"] = info.net;
  if (!info.loss.empty())
    result["loss_var"] = info.loss;
  if (info.batch)
    result["batch"] = *info.batch;
  for (const auto& [name, feed] : info.feeds)
    result["feeds"][name] = to_json(feed);
  return result;
}

void write_info(const program_info& info, const fs::path& path) {
  atomic_file file(path);
  // Invalid UTF-8 in names is replaced.
  file.write(to_json(info).dump(1, ' ', false, json::error_handler_t::replace)
             + "\n");
  file.commit();
}

/// All files that a program's folder can have. A folder with one of these names
/// would make the program unreadable.
std::set<fs::path> file_names() {
  return {main_name, startup_name, test_name, info_name, combined_file_name};
}

/// Files that an earlier program may have left and the new one does not have.
std::set<fs::path> stale_names(const program_folder& folder,
                               const scope* values) {
  std::set<fs::path> stale;
  if (!folder.test)
    stale.insert(test_name);
  if (!values)
    stale.insert(combined_file_name);
  return stale;
}

} // namespace

program_info parse_program_info(std::string_view text,
                                const std::string& name) {
  return info_reader(name).read(text);
}

program_folder read_program_folder(const fs::path& path) {
  program_folder folder{read_program(path / main_name),
                        read_program(path / startup_name)};
  std::error_code ignored;
  if (fs::exists(path / test_name, ignored))
    folder.test = read_program(path / test_name);
  if (auto info = path / info_name; fs::exists(info, ignored))
    folder.info =
      parse_program_info(read_whole_file(info, max_info_bytes), info.string());
  return folder;
}

void require_program_folder_place(const fs::path& path) {
  const atomic_directory made{path}; // removed again
  made.require_files(file_names());
  atomic_file{made.path() / main_name}; // too
}

void write_program_folder(const program_folder& folder, const fs::path& path,
                          const scope* values) {
  atomic_directory made(path);
  made.require_files(file_names());
  write_program(folder.main, made.path() / main_name);
  write_program(folder.startup, made.path() / startup_name);
  if (folder.test)
    write_program(*folder.test, made.path() / test_name);
  write_info(folder.info, made.path() / info_name);
  if (values)
    save_parameters(folder.main, *values, made.path() / combined_file_name);
  made.commit(stale_names(folder, values));
}

} // namespace troupe::graph
