// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>

#include <limits>
#include <string>
#include <vector>

namespace troupe::apps {

/// Checks of an option's number that answer in one short line; CLI11's own name
/// the largest double, with all its digits. What is no number is left to the
/// option's conversion, which names it. A number above `most` is refused, too,
/// and so are "nan" and "".
CLI::Validator positive(double most = std::numeric_limits<double>::infinity());
CLI::Validator
not_negative(double most = std::numeric_limits<double>::infinity());

/// The same of a number from `least` to `most`.
CLI::Validator from_to(double least, double most);

/// The same of each number in a list, 1,10,100.
CLI::Validator number_list(const CLI::Validator& each);
/// What such a list holds.
std::vector<double> parse_numbers(const std::string& list);

/// The same of the samples of a step: 2^32 at most.
CLI::Validator batch_size();

/// The same of a number of workers: from 1 to 4096.
CLI::Validator thread_count();

/// The same of a number of steps in flight: from 1 to 1024.
CLI::Validator in_flight_count();

/// Turns a size of memory, `2500MiB`, into bytes: a whole number and a unit, B
/// to EiB. KB, MB, ... are KiB, MiB, ...; refuses all else.
CLI::Validator memory_size();

/// Refuses a list of names, VAR,VAR, in which one is empty.
CLI::Validator name_list();

/// Refuses "", which a script passes for a variable that it has not set.
CLI::Validator not_empty();

} // namespace troupe::apps
