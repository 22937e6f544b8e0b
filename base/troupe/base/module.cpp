// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/module.hpp>

#include <troupe/base/error.hpp>

#include <dlfcn.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>

namespace troupe {

namespace {

/// Folder of the shared library or program that this code is part of; empty if
/// it is not known.
std::filesystem::path own_folder() {
  std::error_code failed;
  Dl_info found{};
  // Of a program, the loader may know only the name that it was started by.
  if (::dladdr(reinterpret_cast<const void*>(&has_module), &found) != 0
      && found.dli_fname != nullptr && found.dli_fname[0] == '/')
    return std::filesystem::canonical(found.dli_fname, failed).parent_path();
  return {};
}

std::filesystem::path folder_of_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
}

/// Path of the module's file; nothing if there is none.
std::optional<std::filesystem::path> find_module(const std::string& name) {
  std::error_code failed;
  const auto program = folder_of_program();
  const std::filesystem::path folders[] = {
    program, program / TROUPE_MODULES_FROM_PROGRAM, own_folder() / "troupe",
    TROUPE_MODULES};
  for (const auto& folder : folders)
    if (auto path = folder / (name + ".so");
        path.is_absolute() && std::filesystem::exists(path, failed))
      return path;
  return std::nullopt;
}

std::string reason_of_failure() {
  const char* text = ::dlerror();
  return text ? text : "for an unknown reason";
}

} // namespace

bool has_module(const std::string& name) {
  return find_module(name).has_value();
}

void* function_of_module(const std::string& name, const char* function) {
  const auto path = find_module(name);
  if (!path)
    throw error(errc::not_found,
                name
                  + ".so, a part of Troupe, is not beside the program, and "
                    "not installed in " TROUPE_MODULES);
  // The loader has a lock of its own. ThreadSanitizer does not see it, so the
  // module's libraries, once used, would seem to race with their initialisation
  // by another thread.
  static std::mutex opening;
  const std::lock_guard guard{opening};
  void* module = ::dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = module ? ::dlsym(module, function) : nullptr;
  if (!found)
    throw error(errc::io_failure,
                "cannot load " + path->string() + ": " + reason_of_failure());
  return found;
}

} // namespace troupe
