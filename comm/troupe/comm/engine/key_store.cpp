// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/key_store.hpp>

#include <troupe/base/error.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::comm {

namespace {

class folder_store final : public key_store {
public:
  explicit folder_store(std::string folder) : folder_(std::move(folder)) {}
  ~folder_store() override { folder_store::clear(); }
  folder_store(const folder_store&) = delete;
  folder_store& operator=(const folder_store&) = delete;

  void publish(const std::string& key, std::span<const char> value) override {
    const auto path = path_of(key);
    const auto unfinished = path + ".new";
    if (is_there(path))
      throw error(errc::io_failure,
                  path
                    + " is there already: of another group, or of a process "
                      "with the same number");
    write(unfinished, value);
    own_.push_back(path);
    std::error_code failed;
    std::filesystem::rename(unfinished, path, failed); // readers see all of it
    if (failed)
      throw error(errc::io_failure,
                  path + " cannot be made: " + failed.message());
  }

  std::optional<std::vector<char>> find(const std::string& key) override {
    const auto path = path_of(key);
    if (!is_there(path))
      return std::nullopt;
    std::ifstream file{path, std::ios::binary};
    if (file)
      return std::vector<char>{std::istreambuf_iterator<char>{file}, {}};
    if (is_there(path))
      throw error(errc::io_failure, path + " cannot be read");
    return std::nullopt; // it was removed meanwhile
  }

  void clear() noexcept override {
    std::error_code ignored;
    for (auto& path : own_)
      std::filesystem::remove(path, ignored);
    own_.clear();
  }

private:
  static bool is_there(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  }

  static void write(const std::string& path, std::span<const char> value) {
    std::ofstream file{path, std::ios::binary};
    file.write(value.data(), static_cast<std::streamsize>(value.size()));
    if (!file.flush())
      throw error(errc::io_failure, path + " cannot be written");
  }

  std::string path_of(const std::string& key) const {
    return folder_ + "/" + key;
  }

  std::string folder_;
  std::vector<std::string> own_; // paths
};

} // namespace

std::vector<char> wait_for_key(key_store& store, const std::string& key,
                               std::chrono::steady_clock::time_point deadline,
                               const std::function<void()>& check) {
  constexpr std::chrono::milliseconds pause{2};
  for (;;) {
    if (auto value = store.find(key))
      return std::move(*value);
    if (check)
      check();
    if (std::chrono::steady_clock::now() >= deadline)
      throw error(errc::peer_failure,
                  "processes that did not join in time: "
                    + key.substr(key.find_last_of("-_") + 1));
    std::this_thread::sleep_for(pause);
  }
}

std::shared_ptr<key_store> make_folder_store(std::string folder) {
  return std::make_shared<folder_store>(std::move(folder));
}

} // namespace troupe::comm
