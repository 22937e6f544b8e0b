// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/certificate_names.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace troupe::dashboard {

namespace {

std::shared_ptr<X509> read_first(const std::string& path) {
  const std::unique_ptr<BIO, int (*)(BIO*)> file{
    BIO_new_file(path.c_str(), "r"), BIO_free};
  std::shared_ptr<X509> read{
    file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr,
    X509_free};
  ERR_clear_error();
  if (!read)
    throw error(errc::io_failure,
                "cannot read a certificate in PEM from " + quoted_name(path));
  return read;
}

std::string without_brackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

struct names_free {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

std::string_view san_bytes(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

/// Empty for a name that is no host of its own, or that breaks a line.
std::string linked_host(std::string_view name) {
  constexpr std::string_view characters =
    "abcdefghijklmnopqrstuvwxyz0123456789-.";
  std::string host{name};
  for (auto& c : host)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return host.find_first_not_of(characters) == host.npos ? host : "";
}

/// @param bytes 4 or 16, as they stand in a certificate
std::string linked_address(std::string_view bytes) {
  const auto is_v6 = bytes.size() == 16;
  char text[INET6_ADDRSTRLEN];
  if ((!is_v6 && bytes.size() != 4)
      || !::inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes.data(), text,
                      sizeof text))
    return {};
  return is_v6 ? "[" + std::string{text} + "]" : text;
}

} // namespace

std::string first_name_in_certificate(const std::string& path) {
  const auto certificate = read_first(path);
  const std::unique_ptr<GENERAL_NAMES, names_free> names{
    static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
      certificate.get(), NID_subject_alt_name, nullptr, nullptr))};
  std::string host, address;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS && host.empty())
      host = linked_host(san_bytes(name->d.dNSName));
    else if (name->type == GEN_IPADD && address.empty())
      address = linked_address(san_bytes(name->d.iPAddress));
  }
  return host.empty() ? address : host;
}

std::function<bool(const std::string&)>
names_in_certificate(const std::string& path) {
  return [certificate = read_first(path)](const std::string& host) {
    if (host.empty() || host.starts_with('.')) // OpenSSL: all that end so
      return false;
    const auto address = without_brackets(host);
    return X509_check_ip_asc(certificate.get(), address.c_str(), 0) == 1
           || X509_check_host(certificate.get(), host.c_str(), host.size(), 0,
                              nullptr)
                == 1;
  };
}

} // namespace troupe::dashboard
