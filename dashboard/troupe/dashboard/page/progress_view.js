// How the training goes: curves over steps, the last steps, memory.
import {data_table, make, set_hidden, set_text} from '/dom.js';
import {curve} from '/curve.js';
import {memory_panel} from '/memory_panel.js';
import {theme} from '/colors.js';
import {count, loss, ms, short} from '/format.js';

const LAST_STEPS = 12;

export class progress_view {
  constructor(store) {
    this.name = 'Progress';
    this.store = store;
    const hover = index => this.curves.forEach(one => one.set_hovered(index));
    const rate = value => (Number.isNaN(value) ? 'unknown' : short(value));
    this.loss = new curve('Loss', () => theme.running, loss, hover);
    this.rate = new curve('Learning rate', () => theme.collective, rate, hover);
    this.speed = new curve('Samples per second', () => theme.done, short, hover);
    this.time = new curve('Time of a step', () => theme.ready, ms, hover);
    this.curves = [this.loss, this.rate, this.speed, this.time];
    const log = make('input', {type: 'checkbox', on: {change: () => this.loss.set_log(log.checked)}});
    this.loss.tools.append(make('label', {}, log, ' log'));
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
    store.on('frame', () => this._update(false));
    store.on('history', () => this._update(true));
    store.on('run', () => this._update(true));
  }

  shown() {
    this._update(true);
  }

  theme_changed() {
    for (const one of this.curves) one.painter.ask();
  }

  _update(is_new) {
    if (this.element.hidden) return;
    const {series, head} = this.store;
    const last = series.steps.at(-1) ?? -1;
    if (is_new || last !== this._last) {
      this._last = last;
      this._show_steps(series);
    }
    this._show_notes(head);
    this.memory.update();
  }

  _show_steps(series) {
    this.loss.set(series.steps, series.loss);
    this.rate.set(series.steps, series.learning_rate);
    this.speed.set(series.steps, series.samples_per_s);
    this.time.set(series.steps, series.ms);
    const rows = [];
    for (let i = series.count - 1; i >= Math.max(0, series.count - LAST_STEPS); i--) {
      rows.push([count(series.steps[i]), loss(series.loss[i]),
                 Number.isNaN(series.learning_rate[i]) ? '\u2013' : short(series.learning_rate[i]),
                 ms(series.ms[i]), short(series.samples_per_s[i])]);
    }
    this.steps.set_rows(rows);
  }

  _show_notes(head) {
    const nan_steps = head?.nan_steps ?? [];
    set_hidden(this.nan, nan_steps.length === 0);
    set_text(this.nan, `The loss was NaN in step${nan_steps.length > 1 ? 's' : ''} ${
      nan_steps.map(count).join(', ')}.`);
  }
}
