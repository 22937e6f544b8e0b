// Colours of canvases: those of Okabe and Ito, which the colour-blind can tell apart.

// Families of ops have the same colour in all runs: name, colour, types of ops. Their yellow
// is left out: it cannot be seen on white.
export const FAMILIES = [
  ['convolutions', '#56b4e9', /^(depthwise_)?conv\dd/],
  ['products', '#e69f00', /^(gathered_)?(mul|matmul|matmul_v2|bmm|dot|rnn|lstm|gru|gru_unit)$/],
  ['norms', '#0072b2', /(batch|layer|group|instance)_norm|fused_bn/],
  ['element-wise', '#cc79a7', new RegExp('^(elementwise_\\w+|sum|scale|cast|clip|where|dropout|'
    + '\\w*relu6?|[cs]?elu|gelu|silu|swish|mish|(hard_|log)?sigmoid|hard_swish|(hard_|soft|tanh_)'
    + 'shrink|s?tanh|soft(plus|sign|max)|log_softmax|exp|expm1|log|log2|log10|log1p|r?sqrt|square|'
    + 'reciprocal|pow|abs|erf|sin|cos|tan|ceil|floor|round|sign)$')],
  ['updates', '#009e73', new RegExp('^(merging_|gathered_)?((lars_|dgc_)?momentum|sgd|adam|adamw|'
    + 'adamax|(decayed_)?adagrad|adadelta|rmsprop|ftrl|lamb|accumulate)$')],
  ['collectives', '#d55e00', /^(all_reduce|reduce|broadcast|gather_losses|send|recv)$/],
  ['other', '#9aa3ae', /./],
];
const COLLECTIVES = FAMILIES.findIndex(([name]) => name === 'collectives');

const dark_query = matchMedia('(prefers-color-scheme: dark)');
const motion_query = matchMedia('(prefers-reduced-motion: reduce)');

export const theme = {};

// Reads the custom properties of style.css, so that page and canvases agree.
function read_theme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['ground', 'panel', 'line', 'text', 'muted', 'accent', 'lit', 'bad', 'edge',
                      'waiting', 'ready', 'running', 'done', 'font', 'narrow']) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  theme.states = [theme.waiting, theme.ready, theme.running, theme.done, theme.muted];
  // Pale, for areas.
  theme.tints = [0.14, 0.45, 0.55, 0.35, 0.14].map(
    (share, state) => mix(theme.ground, theme.states[state], share));
  theme.version = (theme.version ?? 0) + 1;
}

// Calls `act` now and whenever the theme changes.
export function watch_theme(act) {
  read_theme();
  dark_query.addEventListener('change', () => { read_theme(); act(); });
  act();
}

export function has_motion() {
  return !motion_query.matches;
}

// The number of an op's family. A gradient is of the family of its op.
export function family_of({type, collective}) {
  const of = type.replace(/_grad$/, '');
  return collective ? COLLECTIVES : FAMILIES.findIndex(([, , types]) => types.test(of));
}

// A gradient has a darker shade of the colour of its op.
export function op_color(handle) {
  const [, color] = FAMILIES[family_of(handle)];
  return handle.type.endsWith('_grad') ? mix(color, '#000000', 0.32) : color;
}

// `share` of `other` in `color`; both are #rrggbb.
export function mix(color, other, share) {
  const part = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const sum = at => Math.round(part(color, at) * (1 - share) + part(other, at) * share);
  return `#${[1, 3, 5].map(at => sum(at).toString(16).padStart(2, '0')).join('')}`;
}

// Black or white: whichever is read more easily on `color`.
export function text_on(color) {
  const linear = at => (parseInt(color.slice(at, at + 2), 16) / 255) ** 2.2;
  const light = 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
  return light > 0.18 ? '#000' : '#fff';
}
