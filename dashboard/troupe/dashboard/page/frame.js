// Decodes what the live socket sends: a head in JSON, then arrays of numbers.

const KINDS = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array};

// The arrays are views of `buffer`: nothing is copied. Throws RangeError or
// SyntaxError if the bytes are no frame.
export function decode_frame(buffer) {
  const head_bytes = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, head_bytes));
  const head = JSON.parse(text);
  const arrays = {};
  let at = 4 + head_bytes;
  for (const {name, type, count} of head.arrays) {
    const kind = KINDS[type];
    if (!kind) throw new RangeError(`an array of unknown type ${type}`);
    arrays[name] = new kind(buffer, at, count);
    at += Math.ceil((count * kind.BYTES_PER_ELEMENT) / 8) * 8;
  }
  return {head, arrays};
}
