// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>

#include <limits>
#include <string>
#include <vector>

namespace troupe::apps {

/// Checks the number that an option takes. Also refuses numbers above `most`,
/// "nan" and "". Text that is not a number is left to the option's conversion,
/// which reports it. The error is one short line; CLI11's own checks print the
/// largest double with all its digits.
CLI::Validator positive(double most = std::numeric_limits<double>::infinity());
CLI::Validator
not_negative(double most = std::numeric_limits<double>::infinity());

/// The same for a number from `least` to `most`.
CLI::Validator from_to(double least, double most);

/// The same for each number in a list: 1,10,100.
CLI::Validator number_list(const CLI::Validator& each);
/// The numbers of such a list.
std::vector<double> parse_numbers(const std::string& list);

/// The same for the number of samples per step: at most 2^32.
CLI::Validator batch_size();

/// The same for the number of workers: from 1 to 4096.
CLI::Validator thread_count();

/// The same for the number of steps in flight: from 1 to 1024.
CLI::Validator in_flight_count();

/// A whole number of any size, for an option that keeps its text: what it may
/// be shows later.
CLI::Validator whole_number();

/// Converts a memory size such as `2500MiB` to bytes: a whole number with a
/// unit from B to EiB, or without one. KB, MB, ... mean KiB, MiB, .... Anything
/// else is refused, and so is 0 or more than 2^60 bytes.
CLI::Validator memory_size();

/// Refuses a list VAR,VAR with an empty name.
CLI::Validator name_list();

/// Refuses "", which a script passes for an unset variable.
CLI::Validator not_empty();

} // namespace troupe::apps
