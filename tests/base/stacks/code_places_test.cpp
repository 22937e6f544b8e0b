// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/stacks/code_places.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

using namespace troupe;

TEST_SUITE("base.code_places") {

namespace {

/// No other file can call it, and the program does not export it.
[[gnu::noinline]] int local_function(int value) {
  return value * 3;
}

template <class Function>
std::uintptr_t address_of(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

/// What lies between an address of this program and that in its file: nothing
/// if it has a fixed place.
std::uintptr_t shift_of_program(std::uintptr_t address) {
  Elf64_Ehdr head{};
  std::ifstream{"/proc/self/exe", std::ios::binary}.read(
    reinterpret_cast<char*>(&head), sizeof head);
  if (head.e_type == ET_EXEC)
    return 0;
  Dl_info found{};
  ::dladdr(reinterpret_cast<void*>(address), &found);
  return reinterpret_cast<std::uintptr_t>(found.dli_fbase);
}

} // namespace

TEST_CASE("a function is named although the program does not export it") {
  code_places places;
  const auto at = address_of(&local_function);
  const auto place = places.at(at + 2);
  CHECK(place.symbol.ends_with("local_function(int)"));
  CHECK(place.symbol_offset == 2);
  CHECK(place.module == "base_test");
  CHECK(place.module_offset == at + 2 - shift_of_program(at));
}

TEST_CASE("a function of a library without a full table is named if it is "
          "exported") {
  code_places places;
  // Not its address in this program, which can be a stub.
  const auto at = address_of(::dlsym(RTLD_DEFAULT, "getppid"));
  const auto place = places.at(at);
  CHECK(place.symbol.find("getppid") != std::string::npos);
  CHECK(place.symbol_offset == 0);
  CHECK(place.module.starts_with("libc"));
}

TEST_CASE("an address outside of all files is only an address") {
  code_places places;
  const auto data = std::make_unique<int>(0);
  const auto at = address_of(data.get());
  const auto place = places.at(at);
  CHECK(place.symbol.empty());
  CHECK(place.module.empty());
  CHECK(place.module_offset == at);
  CHECK(places.at(0).module.empty());
}

TEST_CASE("the text of a place has all that is known") {
  CHECK(to_string(code_place{"run(int)", 0x2c, "troupe", 0x51f2a0})
        == "run(int)+0x2c (troupe+0x51f2a0)");
  CHECK(to_string(code_place{"", 0, "libdnnl.so.2", 0x10})
        == "libdnnl.so.2+0x10");
  CHECK(to_string(code_place{"f", 1, "", 0x7f00}) == "f+0x1 (0x7f00)");
  CHECK(to_string(code_place{"", 0, "", 0x7f00}) == "0x7f00, generated code");
}

} // TEST_SUITE("base.code_places")
