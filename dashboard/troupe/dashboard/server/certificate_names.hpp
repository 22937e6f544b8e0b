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

/// The first host that the first certificate of a file in PEM names, or else
/// its first address, as they stand in links: in lower case, an IPv6 address in
/// brackets. Empty if it names neither; a name for many hosts ("*.example") is
/// none. Errors as above.
std::string first_name_in_certificate(const std::string& path);

} // namespace troupe::dashboard
