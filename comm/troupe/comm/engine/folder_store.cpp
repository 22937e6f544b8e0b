// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/folder_store.hpp>

#include <troupe/base/error.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

namespace troupe::comm {

namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

} // namespace

folder_store::folder_store(const gloo_group_options& options)
  : options_(options),
    deadline_(std::chrono::steady_clock::now() + options.timeout) {}

void folder_store::clear() noexcept {
  std::error_code ignored;
  for (auto& path : own_)
    std::filesystem::remove(path, ignored);
  own_.clear();
}

std::string folder_store::path_of(const std::string& key) const {
  return options_.folder + "/gloo-" + key;
}

void folder_store::set(const std::string& key, const std::vector<char>& data) {
  const auto path = path_of(key);
  const auto unfinished = path + ".new";
  if (exists(path))
    throw error(errc::io_failure,
                path
                  + " is there already: of another group, or of a process "
                    "with the same number");
  {
    std::ofstream file{unfinished, std::ios::binary};
    file.write(data.data(), static_cast<std::streamsize>(data.size()));
    if (!file.flush())
      throw error(errc::io_failure, unfinished + " cannot be written");
  }
  own_.push_back(path);
  std::error_code failed;
  std::filesystem::rename(unfinished, path, failed); // readers see all of it
  if (failed)
    throw error(errc::io_failure,
                path + " cannot be made: " + failed.message());
}

std::vector<char> folder_store::get(const std::string& key) {
  wait({key});
  std::ifstream file{path_of(key), std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void folder_store::wait(const std::vector<std::string>& keys,
                        const std::chrono::milliseconds&) {
  wait(keys);
}

void folder_store::wait(const std::vector<std::string>& keys) {
  constexpr std::chrono::milliseconds pause{2};
  for (auto& key : keys)
    while (!exists(path_of(key))) {
      if (options_.check)
        options_.check();
      if (std::chrono::steady_clock::now() >= deadline_)
        throw error(errc::peer_failure,
                    "processes that did not join in time: "
                      + key.substr(key.find_last_of('_') + 1));
      std::this_thread::sleep_for(pause);
    }
}

} // namespace troupe::comm
