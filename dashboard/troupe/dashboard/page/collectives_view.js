// Collectives, and updates that merge gradients without one: which devices, and ranks of a
// job, have arrived, whom the others wait for, for how long.
import {data_table, link, make, set_hidden, set_text} from '/dom.js';
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
      ['Missing', 'missing'], ['Waiting for', 'right'], ['Last', 'right'], ['Mean', 'right'],
      ['Merges', '']]);
    this.empty = make('p', {class: 'empty'});
    this.note = make('p', {class: 'note'});
    this.times = make('p', {class: 'note'}, 'Last and Mean: the time from the first arrival to '
      + 'the end, of the latest call that is over and of all that are. A rank of a job counts '
      + 'from its own arrival.');
    this.element = make('div', {class: 'view page'}, this.note,
      make('div', {class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': 'Collectives'},
        this.table.element), this.times, this.empty);
    this.poller = new poller(() => '/api/v1/collectives', answer => this._show(answer));
    store.on('run', () => this._begin());
  }

  _begin() {
    const {graph, run} = this.store;
    // A graph that is not built yet may have some.
    this.has_collectives = !graph.count || graph.handles.some(handle => handle.collective);
    const strategy = `(strategy ${run.strategy})`;
    set_text(this.note, 'Each row is the update of a parameter. '
      + `The devices of this run share memory ${strategy}, so it needs no collective: `
      + 'an update waits until the gradients of all devices are there, adds them up, and '
      + 'changes the parameter. A device has arrived when its gradients are there.');
    this.why_none = !this.has_collectives && graph.devices.length === 1
      ? 'One device: there is nothing to merge.'
      : !this.has_collectives && run.strategy === 'none'
        ? `This run merges no gradients ${strategy}.` : null;
    this._show([]);
  }

  // Those for which somebody waits come first, the longest wait on top.
  _show(collectives) {
    const is_empty = collectives.length === 0;
    set_hidden(this.empty, !is_empty);
    set_text(this.empty, this.why_none ?? this.store.why_empty('No collective has run yet.'));
    set_hidden(this.times, is_empty);
    set_hidden(this.table.element, is_empty);
    set_hidden(this.note, is_empty || this.has_collectives);
    const time = ns => (ns > 0 ? ms(ns / NS_PER_MS) : NONE);
    const names = (devices, ranks, sign) => devices.map((one, at) =>
      `${sign} ${one}${ranks?.length ? ` (rank ${ranks[at]})` : ''}`).join('   ') || NONE;
    const rows = [...collectives].sort((a, b) => b.waiting_ns - a.waiting_ns);
    this.table.set_rows(rows.map(one => [
      {key: one.name, make: () => link(one.name, () => this.open(one.handle))},
      count(one.step), `${one.arrived.length} of ${one.devices.length}`,
      names(one.arrived, one.arrived_ranks, '\u2713'),
      names(one.missing, one.missing_ranks, '\u25cb'),
      time(one.waiting_ns), time(one.last_ns), time(one.mean_ns), values_text(one.values)]));
  }
}

// A collective can merge hundreds of gradients.
function values_text([first = NONE, ...more]) {
  return more.length ? `${first} and ${count(more.length)} more` : first;
}
