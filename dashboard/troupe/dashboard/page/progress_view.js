// How the training goes: curves over steps, the last steps, memory.
import {data_table, make, set_hidden, set_text} from '/dom.js';
import {curve} from '/curve.js';
import {memory_panel} from '/memory_panel.js';
import {count, loss_of, ms, short} from '/format.js';

const LAST_STEPS = 12;
const NONE = new Set();
const NOT_IN_A_FILE = 'A file of a run does not have this.';
const NOT_TOLD = 'The run has not told this.';
const MOST_NAN_STEPS = 8;      // in words

export class progress_view {
  constructor(store) {
    this.name = 'Progress';
    this.store = store;
    const hover = index => this.curves.forEach(one => one.set_hovered(index));
    const text = (name, format) => at => format(store.series[name][at]);
    this.loss = new curve('Loss', 'running', at => loss_of(store.series, at), hover);
    this.rate = new curve('Learning rate', 'accent', text('learning_rate', short), hover);
    this.speed = new curve('Samples per second', 'done', text('samples_per_s', short), hover);
    this.time = new curve('Time of a step', 'ready', text('ms', ms), hover);
    this.curves = [this.loss, this.rate, this.speed, this.time];
    this.nan = make('p', {class: 'note bad', role: 'status', hidden: true});
    this.steps = new data_table('Last steps', [
      ['Step', 'right'], ['Loss', 'right'], ['Learning rate', 'right'], ['Time', 'right'],
      ['Samples/s', 'right']]);
    this.memory = new memory_panel(store);
    this.poller = this.memory.poller;
    this.element = make('div', {class: 'view page'}, this.nan,
      make('div', {class: 'curves'}, ...this.curves.map(one => one.element)),
      make('div', {class: 'columns'},
        make('section', {}, this.steps.element), this.memory.element));
    store.on('frame', () => this._update());
    for (const what of ['history', 'run']) store.on(what, () => this.shown());
  }

  shown() {
    this._changes = undefined;
    this._update();
  }

  theme_changed() {
    for (const one of this.curves) one.painter.ask();
  }

  _update() {
    if (this.element.hidden) return;
    const {changes} = this.store.series;
    if (changes !== this._changes) this._show_steps(this.store.series);
    this._changes = changes;
    const {nan_steps = [], nan_count = nan_steps.length} = this.store.head ?? {};
    set_hidden(this.nan, nan_steps.length === 0);
    set_text(this.nan, nan_text(nan_steps, nan_count));
    this.memory.update();
  }

  _show_steps(series) {
    const {steps, loss, ms: times, samples_per_s, learning_rate, nan_steps} = series;
    this.loss.set(steps, loss, nan_steps);
    this.rate.set(steps, learning_rate, NONE);
    this.speed.set(steps, samples_per_s, NONE);
    this.time.set(steps, times, NONE);
    for (const one of this.curves) one.show(this.store.run?.recorded ? NOT_IN_A_FILE : NOT_TOLD);
    const rows = steps.slice(-LAST_STEPS).map((step, i) => {
      const at = Math.max(0, steps.length - LAST_STEPS) + i;
      return [count(step), loss_of(series, at), short(learning_rate[at]), ms(times[at]),
              short(samples_per_s[at])];
    });
    this.steps.set_rows(rows.reverse());
  }
}

// `steps` are the first one and the newest ones; there are `number` in all.
function nan_text(steps, number) {
  const list = of => of.map(count).join(', ');
  if (number <= MOST_NAN_STEPS) {
    return `The loss was NaN in step${number > 1 ? 's' : ''} ${list(steps)}.`;
  }
  return `The loss was NaN in ${count(number)} steps: first in ${list(steps.slice(0, 1))}, last in ${
    list(steps.slice(1 - MOST_NAN_STEPS))}.`;
}
