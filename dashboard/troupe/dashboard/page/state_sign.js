// The sign and the word of a state, as in the graph: a shape and a colour.
import {make} from '/dom.js';

const SIGNS = {
  waiting: '\u25cb', ready: '\u25d0', running: '\u25b6', done: '\u2713', remote: '\u2026',
  pausing: '\u2016', paused: '\u2016', ended: '\u25a0', failed: '\u2715', idle: '\u25cb', sender: '\u2192',
  launched: '\u25b7', here: '\u2713', elsewhere: '\u2026',
};

const WORDS = {remote: 'in another process', sender: 'sends only'};

export function state_sign(state) {
  return make('span', {class: `state state_${state}`},
    make('span', {class: 'sign', 'aria-hidden': 'true'}, SIGNS[state] ?? ''),
    WORDS[state] ?? state);
}
