// Collectives: which devices, and ranks of a job, have arrived, whom the others wait for,
// for how long. Where updates merge gradients themselves, the same of them.
import {data_table, link, make, set_hidden, set_text} from '/dom.js';
import {arrivals_of, merges_in_updates} from '/merges_in_updates.js';
import {poller} from '/poller.js';
import {count, ms, NONE} from '/format.js';

const NS_PER_MS = 1e6;

export class collectives_view {
  constructor(store, open) {
    this.name = 'Collectives';
    this.store = store;
    this.open = open;
    this.table = new data_table('Collectives', [
      ['Collective', ''], ['Step', 'right'], ['Arrived', 'right'], ['Here', 'here'],
      ['Missing', 'missing'], ['Waiting for', 'right'], ['Last', 'right'], ['Mean', 'right']]);
    this.merges = [];
    this.merge_table = new data_table('Updates that merge gradients', [
      ['Update', ''], ['Gradient', ''], ['Arrived', 'right'], ['Here', 'here'],
      ['Missing', 'missing']]);
    this.empty = make('p', {class: 'empty'});
    this.note = make('p', {class: 'note'});
    this.element = make('div', {class: 'view page'}, this.note,
      make('div', {class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': 'Collectives'},
        this.table.element, this.merge_table.element), this.empty);
    this.poller = new poller(() => '/api/v1/collectives', answer => this._show(answer));
    set_hidden(this.table.element, true);
    store.on('run', () => this._begin());
    store.on('frame', () => this._update());
  }

  shown() {
    if (this.store.head) this._update();
  }

  _begin() {
    const {graph} = this.store;
    this.merges = merges_in_updates(graph);
    // A graph that is not built yet may have some.
    this.has_collectives = !graph.count || graph.handles.some(handle => handle.collective);
    const strategy = `(strategy ${this.store.run.strategy})`;
    set_hidden(this.merge_table.element, this.merges.length === 0);
    set_hidden(this.note, this.merges.length === 0 || this.has_collectives);
    set_text(this.note, `This run has no collectives ${strategy}: `
      + 'updates add up the gradients of all devices themselves.');
    set_text(this.empty, this.has_collectives ? 'No collective has run yet.'
      : graph.devices.length === 1 ? 'One device: there is nothing to merge.'
        : `This run merges no gradients ${strategy}.`);
    this._show([]);
  }

  // Those for which somebody waits come first, the longest wait on top.
  _show(collectives) {
    set_hidden(this.empty, collectives.length > 0
      || (this.merges.length > 0 && !this.has_collectives));
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

  _update() {
    if (this.element.hidden) return;
    const names = (devices, sign) => devices.map(one => `${sign} ${one}`).join('   ') || NONE;
    this.merge_table.set_rows(this.merges.map(merge => {
      const {name} = this.store.graph.handles[merge.op];
      const {here, missing} = arrivals_of(merge, this.store);
      return [{key: name, make: () => link(name, () => this.open(merge.op))}, merge.gradient,
              `${here.length} of ${merge.parts.length}`, names(here, '\u2713'),
              names(missing, '\u25cb')];
    }));
  }
}
