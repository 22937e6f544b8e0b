// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/failure_codec.hpp>

#include <troupe/base/byte_reader.hpp>

#include <cstdint>
#include <utility>

namespace troupe {

namespace {

constexpr auto last_code = errc::busy;

void put_text(std::string& out, const std::string& text) {
  put_bytes(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

std::string get_text(byte_reader& in) {
  return std::string{in.take(in.get<std::uint64_t>())};
}

error read_failure(byte_reader& in) {
  const auto code = in.get<errc>();
  if (code > last_code)
    throw byte_reader::malformed("a failure", "has an unknown code");
  const auto message = get_text(in);
  error_context where;
  for (auto* field :
       {&where.op, &where.op_type, &where.variable, &where.device})
    *field = get_text(in);
  if (in.get<std::uint8_t>() != 0)
    where.step = in.get<std::uint64_t>();
  for (auto frames = in.get<std::uint64_t>(); frames > 0; --frames)
    where.call_stack.push_back(get_text(in));
  in.require_end();
  return error{code, message, std::move(where)};
}

} // namespace

std::string encode_failure(const error& failure) {
  const auto& where = failure.where();
  std::string out;
  put_bytes(out, failure.code());
  put_text(out, failure.message());
  for (auto* field :
       {&where.op, &where.op_type, &where.variable, &where.device})
    put_text(out, *field);
  put_bytes(out, static_cast<std::uint8_t>(where.step ? 1 : 0));
  if (where.step)
    put_bytes(out, *where.step);
  put_bytes(out, static_cast<std::uint64_t>(where.call_stack.size()));
  for (auto& frame : where.call_stack)
    put_text(out, frame);
  return out;
}

error decode_failure(std::string_view bytes) {
  byte_reader in{bytes, "a failure"};
  try {
    return read_failure(in);
  } catch (const error& malformed) {
    return malformed;
  }
}

} // namespace troupe
