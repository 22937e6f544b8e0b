// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace troupe::comm {

/// Frees what OpenSSL made.
template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* made) const noexcept {
    Free(made);
  }
};

using bio_handle = std::unique_ptr<BIO, freed_by<BIO_free_all>>;
using certificate_handle = std::unique_ptr<X509, freed_by<X509_free>>;
using key_handle = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;

/// Why OpenSSL failed last on this thread, in words. Forgets it.
std::string openssl_reason();

///@{
/// What the first block of a PEM text holds. Null if it is something else or is
/// encrypted: nobody is asked for a password.
certificate_handle read_certificate(const std::string& pem);
key_handle read_key(const std::string& pem);
///@}

/// The only name in the certificate of a process, "process 3".
std::string name_of_process(std::size_t process);
/// The number in that name; nothing if the name is another one.
std::optional<std::size_t> process_in(const X509* certificate);

} // namespace troupe::comm
