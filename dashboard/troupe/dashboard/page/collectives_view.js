// Collectives: which devices, and ranks of a job, have arrived, whom the others wait for,
// for how long.
import {data_table, link, make, set_hidden, set_text} from '/dom.js';
import {poller} from '/poller.js';
import {count, ms, NONE, percent} from '/format.js';

const NS_PER_MS = 1e6;

export class collectives_view {
  constructor(store, open) {
    this.name = 'Collectives';
    this.store = store;
    this.open = open;
    this.table = new data_table('Collectives', [
      ['Collective', ''], ['Step', 'right'], ['Arrived', 'right'], ['Here', 'here'],
      ['Missing', 'missing'], ['Waiting for', 'right'], ['Last', 'right'], ['Mean', 'right']]);
    this.empty = make('p', {class: 'empty'}, 'No collective has run yet.');
    this.note = make('p', {class: 'note'});
    this.element = make('div', {class: 'view page'},
      make('div', {class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': 'Collectives'},
        this.table.element), this.empty, this.note);
    this.poller = new poller(() => '/api/v1/collectives', answer => this._show(answer));
    set_hidden(this.table.element, true);
    store.on('run', () => this._show([]));
    store.on('frame', () => this._note());
  }

  // Those for which somebody waits come first, the longest wait on top.
  _show(collectives) {
    set_hidden(this.empty, collectives.length > 0);
    set_hidden(this.table.element, collectives.length === 0);
    const time = ns => (ns > 0 ? ms(ns / NS_PER_MS) : NONE);
    const names = (devices, ranks, sign) => devices.map((one, at) =>
      `${sign} ${one}${ranks?.length ? ` (rank ${ranks[at]})` : ''}`).join('   ') || NONE;
    const rows = [...collectives].sort((a, b) => b.waiting_ns - a.waiting_ns);
    this.table.set_rows(rows.map(one => [
      {key: one.name, make: () => link(one.name, () => this.open(one.handle))},
      count(one.step), `${one.arrived.length} of ${one.devices.length}`,
      names(one.arrived, one.arrived_ranks, '\u2713'),
      names(one.missing, one.missing_ranks, '\u25cb'),
      time(one.waiting_ns), time(one.last_ns), time(one.mean_ns)]));
  }

  _note() {
    const {overlap} = this.store.head;
    set_text(this.note, typeof overlap !== 'number' ? ''
      : `${percent(overlap)} of the time of collectives, ops ran beside them.`);
  }
}
