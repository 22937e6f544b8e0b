// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/certificate_names.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
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

} // namespace

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
