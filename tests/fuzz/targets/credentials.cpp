// SPDX-License-Identifier: Apache-2.0
// Credentials of a process: as the text of a file, or as certificates and a key
// from which the target makes a text whose checksum is right.

#include "fuzz/fuzz_target.hpp"
#include "fuzz/input_bytes.hpp"

#include <troupe/comm/tls/certificates.hpp>
#include <troupe/comm/tls/tls_identity.hpp>

#include <openssl/pem.h>

namespace troupe::fuzz {

namespace {

std::string pem_of(const char* label, std::string_view bytes) {
  const comm::bio_handle to{BIO_new(BIO_s_mem())};
  PEM_write_bio(to.get(), label, "",
                reinterpret_cast<const unsigned char*>(bytes.data()),
                static_cast<long>(bytes.size()));
  char* text = nullptr;
  const auto size = BIO_get_mem_data(to.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string text_of(input_bytes& in) {
  comm::job_credentials made;
  made.authority = pem_of("CERTIFICATE", in.take(in.number()));
  made.certificate = pem_of("CERTIFICATE", in.take(in.number()));
  made.key = pem_of("PRIVATE KEY", in.rest());
  return comm::to_text(made);
}

void check_text(const std::string& text) {
  const auto read = comm::parse_credentials(text);
  if (comm::to_text(read) != text)
    fail("credentials change on their way");
  const auto certificate = comm::read_certificate(read.certificate);
  const auto names_process =
    certificate && comm::process_in(certificate.get()).has_value();
  const comm::tls_identity used{read};
  if (!names_process)
    fail("a certificate without a process is used");
}

} // namespace

memory_allowance allowance() {
  return {.per_byte = 16};
}

void run_target(std::string_view bytes) {
  input_bytes in{bytes};
  const auto is_text = in.byte() == 'T';
  const auto text = is_text ? std::string{in.rest()} : text_of(in);
  accept_only({errc::bad_file}, [&] { check_text(text); });
}

} // namespace troupe::fuzz
