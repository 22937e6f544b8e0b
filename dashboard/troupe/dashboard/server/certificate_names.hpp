// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace troupe::dashboard {

/// Reads the first certificate of a file in PEM. The result is true for hosts
/// that the certificate is for, in lower case and IPv6 addresses in brackets.
/// It can be called on any thread. Throws error(io_failure) if the file cannot
/// be read or does not begin with a certificate.
std::function<bool(const std::string&)>
names_in_certificate(const std::string& path);

} // namespace troupe::dashboard
