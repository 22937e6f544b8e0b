// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// The version of these headers, by Semantic Versioning. CMake reads it here.
#define TROUPE_VERSION "0.2.0"

/// The same as a number, for the preprocessor: major * 10000 + minor * 100 +
/// patch.
#define TROUPE_VERSION_NUMBER 200

/// All of Troupe: an actor runtime that trains neural networks. Names that an
/// application uses in most of its files are here: tensors, devices, errors,
/// executors, data sources, sessions, and the actors that train and predict.
/// Namespaces inside hold what belongs together.
namespace troupe {

/// The version of the library that runs, such as "0.2.0". Differs from
/// TROUPE_VERSION if the loader found another libtroupe.so than the program was
/// compiled with. Any thread.
const char* version() noexcept;

/// How the library was built, in one line: compiler, kind of build, options
/// that are not the usual ones, and which of the optional parts dashboard,
/// gloo, mpi and cuda it has. Such as "GCC 12.2.0, Release; with dashboard,
/// gloo, mpi; without cuda". Any thread.
std::string build_facts();

} // namespace troupe
