// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/stacks/code_place.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe {

/// Finds out what is at an address of this process's code. Names come from the
/// symbol tables of the files, so that a program need not export its functions
/// to its libraries; a file that was stripped has only those that it exports.
/// What cannot be read is unknown.
///
/// Thread rule: one thread at a time. Keeps the tables that it has read.
class code_places {
public:
  code_places();
  ~code_places();
  code_places(const code_places&) = delete;
  code_places& operator=(const code_places&) = delete;

  /// @param address of an instruction. Of a call's return address, the call is
  ///   the byte before: pass `address - 1` and add 1 to the offsets.
  code_place at(std::uintptr_t address);

private:
  class symbol_file;
  std::map<std::string, std::unique_ptr<symbol_file>> files_; // by path
};

} // namespace troupe
