// Colours of canvases: those of Okabe and Ito, which the colour-blind can tell apart.
import {base_type} from '/graph.js';

// Of types of ops, the most frequent first; the other types are grey.
const TYPES = ['#56b4e9', '#e69f00', '#009e73', '#cc79a7', '#d55e00', '#0072b2', '#f0e442'];
const OTHER = '#9aa3ae';

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

export function type_rank_color(rank) {
  return rank < TYPES.length ? TYPES[rank] : OTHER;
}

// A gradient has a darker shade of the colour of its op.
export function type_color(graph, type) {
  const color = type_rank_color(graph.type_rank.get(base_type(type)) ?? TYPES.length);
  return type.endsWith('_grad') ? mix(color, '#000000', 0.32) : color;
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
