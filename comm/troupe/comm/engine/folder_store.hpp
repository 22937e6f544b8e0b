// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/join.hpp>

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <string>
#include <vector>

namespace troupe::comm {

/// Where the processes of a Gloo group publish their addresses: a file per key.
/// Removes its own files when it is destroyed, at the latest.
class folder_store final : public gloo::rendezvous::Store {
public:
  /// @param options must outlive all functions but `clear`
  explicit folder_store(const gloo_group_options& options);
  ~folder_store() override { clear(); }
  /// Removes the files of this process.
  void clear() noexcept;

  /// Throws error(io_failure) if there is such a file already, or none can be
  /// written.
  void set(const std::string& key, const std::vector<char>& data) override;
  /// Waits for the key. Throws error(peer_failure) that names the process if it
  /// does not come in time.
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  /// Waits as long as the options say.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

private:
  std::string path_of(const std::string& key) const;

  const gloo_group_options& options_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<std::string> own_;
};

} // namespace troupe::comm
