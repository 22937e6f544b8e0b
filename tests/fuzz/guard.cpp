// SPDX-License-Identifier: Apache-2.0
// Runs a target and watches what it holds: all memory that C++ code takes goes
// through the operators below.

#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

// Bytes that the program holds, and how many it may.
std::atomic<std::size_t> held{0};
std::atomic<std::size_t> limit{SIZE_MAX};

[[noreturn]] void end_process(const char* why, const char* detail) {
  std::fprintf(stderr, "finding: %s%s\n", why, detail);
  std::abort();
}

void* take(std::size_t bytes, std::size_t alignment) {
  // Size classes of arenas and of the allocator are within the constants.
  if (held.load() + bytes > limit.load()) {
    limit = SIZE_MAX;
    end_process("memory beyond the size of the input", "");
  }
  const auto rounded = (bytes + alignment - 1) / alignment * alignment;
  void* block = alignment > alignof(std::max_align_t)
                  ? std::aligned_alloc(alignment, rounded)
                  : std::malloc(bytes);
  if (block == nullptr)
    end_process("out of memory", "");
  held += malloc_usable_size(block);
  return block;
}

void give_back(void* block) noexcept {
  if (block != nullptr)
    held -= malloc_usable_size(block);
  std::free(block);
}

} // namespace

void* operator new(std::size_t bytes) {
  return take(bytes, 1);
}
void* operator new[](std::size_t bytes) {
  return take(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept {
  give_back(block);
}
void operator delete[](void* block) noexcept {
  give_back(block);
}
void operator delete(void* block, std::size_t) noexcept {
  give_back(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  give_back(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  give_back(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  give_back(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  give_back(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  give_back(block);
}

namespace troupe::fuzz {

void fail(const std::string& why) {
  end_process(why.c_str(), "");
}

void accept_errors(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    if (e.message().empty() || e.message().find('\n') != std::string::npos)
      end_process("an error that is not one line: ", e.what());
  } catch (const std::exception& e) {
    end_process("an exception that is no troupe::error: ", e.what());
  }
}

bool accept_only(std::initializer_list<errc> kinds,
                 const std::function<void()>& action) {
  bool has_failed = false;
  accept_errors([&] {
    try {
      action();
    } catch (const error& e) {
      has_failed = true;
      if (std::ranges::find(kinds, e.code()) == kinds.end())
        end_process("an error of another kind: ", e.what());
      throw;
    }
  });
  return !has_failed;
}

void run_guarded(std::string_view bytes) {
  const auto [per_byte, at_once] = allowance();
  limit = held.load() + at_once + per_byte * bytes.size();
  accept_errors([&] { run_target(bytes); });
  limit = SIZE_MAX;
}

memory_file::memory_file(std::string_view bytes)
  : descriptor_(::memfd_create("input", 0)) {
  if (descriptor_ < 0
      || ::write(descriptor_, bytes.data(), bytes.size())
           != static_cast<ssize_t>(bytes.size()))
    end_process("no file in memory", "");
}

memory_file::~memory_file() {
  ::close(descriptor_);
}

std::string memory_file::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

} // namespace troupe::fuzz
