// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// A place in the code of a process.
struct code_place {
  std::string symbol; ///< the function, demangled; empty: unknown
  std::uint64_t symbol_offset = 0;
  /// Name of the file of the program or library, without its folder; empty: in
  /// none, as code that was generated at run time.
  std::string module;
  /// Offset in that file's addresses, as `addr2line -e FILE` and `nm` have
  /// them; the address itself if there is no file.
  std::uint64_t module_offset = 0;
};

/// "run(int)+0x2c (troupe+0x51f2a0)"; without a symbol "libdnnl.so.2+0x51f2a0";
/// in no file "0x7f3a5c001040, generated code".
std::string to_string(const code_place& place);

} // namespace troupe
