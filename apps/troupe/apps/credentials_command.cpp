// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/letter.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace troupe::apps {

namespace {

struct credentials_options {
  std::size_t nodes = 0;
  std::string folder;
};

[[noreturn]] void fail_to_make(const std::string& folder,
                               const std::string& why) {
  throw error(errc::io_failure,
              "cannot make the folder " + one_line(folder) + ": " + why);
}

/// A folder for secrets, new or empty before. Unless it is kept, its destructor
/// removes what was made.
class new_folder {
public:
  explicit new_folder(std::string path) : path_(std::move(path)) {
    is_made_ = ::mkdir(path_.c_str(), 0700) == 0;
    if (!is_made_)
      take_empty_folder(errno);
  }
  ~new_folder() {
    if (is_kept_)
      return;
    std::error_code ignored;
    for (const auto& file : files_)
      std::filesystem::remove(file, ignored);
    if (is_made_)
      std::filesystem::remove(path_, ignored);
  }
  new_folder(const new_folder&) = delete;
  new_folder& operator=(const new_folder&) = delete;

  void add(std::size_t rank, const comm::job_credentials& credentials) {
    const auto file = path_ + "/rank-" + std::to_string(rank) + ".credentials";
    comm::write_credentials(file, credentials);
    files_.push_back(file);
  }
  void keep() { is_kept_ = true; }

private:
  /// @param why the folder could not be made
  void take_empty_folder(int why) const {
    std::error_code failure;
    if (why != EEXIST || !std::filesystem::is_directory(path_, failure))
      fail_to_make(path_, std::strerror(why));
    const bool is_empty = std::filesystem::is_empty(path_, failure);
    if (failure)
      fail_to_make(path_, failure.message());
    if (!is_empty)
      fail_to_make(path_, "it exists and is not empty");
    if (::chmod(path_.c_str(), 0700) != 0)
      fail_to_make(path_, std::strerror(errno));
  }

  std::string path_;
  std::vector<std::string> files_;
  bool is_made_ = false, is_kept_ = false;
};

void check_credentials(const credentials_options& options) {
  if (options.nodes == 0)
    throw usage_error("--nodes is required (see troupe credentials --help)");
  if (options.nodes > comm::max_ranks)
    throw usage_error("--nodes: must be at most "
                      + std::to_string(comm::max_ranks) + ", not "
                      + std::to_string(options.nodes));
  if (options.folder.empty())
    throw usage_error("DIR is missing: troupe credentials --nodes N DIR (see "
                      "troupe credentials --help)");
}

int run_credentials(const credentials_options& options) {
  check_credentials(options);
  new_folder folder(options.folder);
  const auto all = comm::make_job_credentials(options.nodes);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    folder.add(rank, all[rank]);
  folder.keep();
  return 0;
}

} // namespace

void add_credentials(CLI::App& app, action& chosen) {
  auto options = std::make_shared<credentials_options>();
  auto& command = *app.add_subcommand(
    "credentials", "make the secrets with which ranks on several hosts "
                   "prove that they belong to one job");
  command.add_option("--nodes", options->nodes, "how many ranks the job has")
    ->check(positive());
  command
    .add_option("DIR", options->folder,
                "new or empty folder for rank-0.credentials, "
                "rank-1.credentials, ...")
    ->check(not_empty());
  command.footer(
    "For mpirun, srun and torchrun; troupe launch --hosts makes its own. Copy "
    "DIR to all\nhosts, or give each rank's file to its host. Whoever has a "
    "file can take part in the job.\n\nExample:\n  troupe credentials --nodes "
    "4 run.credentials\n  TROUPE_CREDENTIALS=run.credentials "
    "TROUPE_ADDRESS=a:20000 srun -n 4 troupe train ...");
  command.callback([options, &chosen] {
    chosen = [options] { return run_credentials(*options); };
  });
}

} // namespace troupe::apps
