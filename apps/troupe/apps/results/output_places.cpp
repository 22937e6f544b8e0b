// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/output_places.hpp>

#include <troupe/apps/usage_error.hpp>
#include <troupe/base/files/target_path.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace troupe::apps {

namespace {

namespace fs = std::filesystem;

/// The file that `path` leads to, as an absolute canonical path without a slash
/// at its end. Two names of one file give the same path, also if the file does
/// not exist yet.
fs::path plain_path(const fs::path& path) {
  std::error_code failure;
  // weakly_canonical would leave the name of a missing file relative.
  const auto target = fs::absolute(resolve_target(path), failure);
  auto plain = fs::weakly_canonical(target, failure);
  if (failure)
    plain = target.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

/// True also for two names of the same file.
bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code failure;
  return plain_path(a) == plain_path(b) || fs::equivalent(a, b, failure);
}

/// True if `file` has the name of a file of a saved program.
bool is_of_program(const fs::path& file) {
  constexpr std::array<std::string_view, 5> names{
    "main.pdmodel", "startup.pdmodel", "test.pdmodel", "program.json",
    "params.pdiparams"};
  return std::ranges::find(names, file.filename().string()) != names.end();
}

bool has_extension_of_results(const fs::path& file) {
  constexpr std::array<std::string_view, 4> known{".jsonl", ".svg", ".npz",
                                                  ".trt"};
  return std::ranges::find(known, file.extension().string()) != known.end();
}

/// True if `file` is another name (a hard or symbolic link) of a file in
/// `folder`. Files with an extension of results do not count: they are not
/// read.
bool is_in(const fs::path& file, const fs::path& folder) {
  std::error_code failure;
  if (!fs::is_regular_file(file, failure))
    return false;
  using walk = fs::recursive_directory_iterator;
  walk at(folder, fs::directory_options::skip_permission_denied, failure);
  for (; !failure && at != walk{}; at.increment(failure)) {
    std::error_code unreadable;
    if (!has_extension_of_results(at->path())
        && fs::equivalent(file, at->path(), unreadable))
      return true;
  }
  return false;
}

/// True if writing a result to `file` would destroy input that is read from
/// `source`.
bool destroys(const fs::path& file, const fs::path& source) {
  std::error_code failure;
  if (!fs::is_directory(source, failure)) // or the name of a built-in net
    return fs::exists(source, failure) && is_same(file, source);
  const auto place = plain_path(file);
  const bool replaces_there = is_same(place.parent_path(), source)
                              && fs::exists(place, failure)
                              && !has_extension_of_results(place);
  return replaces_there || is_in(place, source);
}

/// True if `file` would be in the place of the saved program or of one of its
/// files.
bool meets(const fs::path& file, const fs::path& saved) {
  const auto place = plain_path(file);
  return is_same(place, saved)
         || (is_same(place.parent_path(), saved) && is_of_program(place));
}

[[noreturn]] void refuse(std::string_view first, const output_place& second) {
  throw usage_error(std::string{first} + " and " + second.option
                    + " would both write " + second.path);
}

/// True if `path`, or a folder above it, has the name of a temporary of
/// `target`. Both are plain paths.
bool is_in_temporary_of(const fs::path& target, fs::path path) {
  for (; path.has_relative_path(); path = path.parent_path())
    if (is_temporary_of(target, path))
      return true;
  return false;
}

/// Refuses an input or output that writing to `output` would remove.
void require_not_removed(const output_place& output, const std::string& used) {
  if (!output.path.empty() && !used.empty()
      && is_in_temporary_of(plain_path(output.path), plain_path(used)))
    throw usage_error(std::string{output.option} + " would remove " + used
                      + " as left by a killed run; rename it");
}

bool is_open_for_writing(int descriptor) noexcept {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/// N if `path` leads to /proc/self/fd/N, as /dev/stdout and /dev/fd/1 do; -1 if
/// it does not. The descriptor need not be open.
int named_descriptor(fs::path path) {
  constexpr int most_links = 40; // the system's limit
  std::error_code failure;
  const auto descriptors = fs::canonical("/proc/self/fd", failure);
  for (int links = 0; !failure && links < most_links; ++links) {
    const auto folder = fs::canonical(folder_of(path), failure);
    if (!failure && folder == descriptors)
      return std::atoi(path.filename().c_str());
    path = folder / fs::read_symlink(path, failure);
  }
  return -1;
}

/// Refuses a stream of the process that the output cannot go to. A standard
/// stream that was closed is open for reading only (see main).
void require_writable_stream(const output_place& output) {
  const int stream = named_descriptor(output.path);
  std::error_code failure;
  if (stream >= 0 && !is_open_for_writing(stream))
    throw usage_error(std::string{output.option} + " would write to "
                      + output.path + ", which is not open for writing");
  if (stream >= 0 && !output.appends
      && !fs::is_regular_file(output.path, failure))
    throw usage_error(std::string{output.option} + " would replace "
                      + output.path + ", which is not a file");
}

} // namespace

int descriptor_to(const std::string& path) {
  struct stat wanted {};
  if (::stat(path.c_str(), &wanted) != 0)
    return -1;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", ignored)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    struct stat there {};
    if (::fstat(descriptor, &there) == 0 && there.st_dev == wanted.st_dev
        && there.st_ino == wanted.st_ino && is_open_for_writing(descriptor))
      return descriptor;
  }
  return -1;
}

void require_places_of_their_own(std::span<const output_place> outputs,
                                 std::span<const std::string> read,
                                 const std::string& saved) {
  std::vector<output_place> written{outputs.begin(), outputs.end()};
  written.push_back({"--save", saved});
  for (const auto& output : written) {
    for (const auto& source : read)
      require_not_removed(output, source);
    for (const auto& other : written)
      require_not_removed(output, other.path);
  }
  std::error_code failure;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& output = outputs[i];
    if (output.path.empty())
      continue;
    require_writable_stream(output);
    if (!output.appends && fs::is_regular_file(output.path, failure)
        && descriptor_to(output.path) >= 0)
      throw usage_error(std::string{output.option} + " would replace "
                        + output.path + ", where other output goes");
    if (!saved.empty() && meets(output.path, saved))
      refuse("--save", output);
    for (const auto& other : outputs.first(i))
      if (!other.path.empty() && is_same(output.path, other.path))
        refuse(other.option, output);
    for (const auto& source : read)
      if (!source.empty() && destroys(output.path, source))
        throw usage_error(std::string{output.option} + " would write over "
                          + output.path + ", which is read");
  }
}

} // namespace troupe::apps
