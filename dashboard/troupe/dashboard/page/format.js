// Numbers as people read them.

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const THIN = '\u2009';
export const NONE = '\u2013';

export function count(value) {
  return Number.isFinite(value) ? whole.format(value) : NONE;
}

// Three or four significant digits: 0.01234, 12.3, 1,234.
export function short(value) {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2).replace('e+', 'e');
  if (size >= 1000) return whole.format(value);
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
}

// The loss of a step of `series`, with a fixed number of digits, so that a number
// that changes does not jump.
export function loss_of(series, at) {
  const loss = series.loss[at];
  if (series.is_nan(at)) return 'NaN';
  if (!Number.isFinite(loss)) return loss > 0 ? '\u221e' : NONE;
  const size = Math.abs(loss);
  return size >= 1e5 || (size < 1e-3 && size > 0) ? loss.toExponential(3) : loss.toFixed(4);
}

export function bytes(value) {
  if (!Number.isFinite(value)) return NONE;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)}${THIN}${units[unit]}`;
}

// Milliseconds in the unit that suits them.
export function ms(value) {
  const size = Math.abs(value);
  const [factor, unit] = size >= 60000 ? [1 / 60000, 'min'] : size >= 1000 ? [0.001, 's']
    : size >= 1 ? [1, 'ms'] : [1000, '\u00b5s'];
  return Number.isFinite(value) ? `${short(value * factor)}${THIN}${unit}` : NONE;
}

export function percent(value) {
  if (!Number.isFinite(value)) return NONE;
  return `${(value * 100).toFixed(value < 0.1 ? 1 : 0)}${THIN}%`;
}

// Steps for axis ticks: 1, 2 or 5 times a power of ten.
export function tick_step(span, ticks) {
  const raw = span / Math.max(1, ticks);
  const power = 10 ** Math.floor(Math.log10(raw));
  const rest = raw / power;
  return (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10) * power;
}
