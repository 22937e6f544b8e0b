// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace troupe {

/// A module is a part of Troupe in a shared library of its own, "NAME.so": it
/// needs libraries that most programs do without, and is loaded by those that
/// use it.
///
/// It lies beside the program, in `../lib/troupe` as seen from there, in the
/// folder `troupe` beside libtroupe.so, or where Troupe was installed. A module
/// stays loaded until the process ends. It must be of the same build as the
/// program.
///
/// Thread rule: any thread.

/// True if there is such a file. Does not load it.
bool has_module(const std::string& name);

/// The function with that C name in a module. Throws error(not_found) if there
/// is no such file, error(io_failure) if it cannot be loaded, for example
/// because a library that it needs is missing; the message says which one.
void* function_of_module(const std::string& name, const char* function);

} // namespace troupe
