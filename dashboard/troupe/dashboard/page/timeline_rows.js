// The rows of the timeline: a worker each, then what devices merge or have in flight,
// and what comes from devices of other ranks or goes there.
import {MERGE, NO_WORKER, PARCEL, PENDING} from '/slices.js';

// Keys of rows; below them are workers. Rows are in the order of their keys.
const MERGES = 1 << 16;
const IN_FLIGHT = 1 << 17;
const PARCELS = 1 << 18;

export class timeline_rows {
  constructor(store) {
    this.store = store;
    this.rows = [];             // {text, worker}
    this._row = new Map();      // by key
  }

  // Finds new rows in slices that were added since the last call.
  update() {
    const {slices, run} = this.store;
    const before = this._row.size;
    if (this._slices !== slices) {
      this._slices = slices;
      this._seen = 0;
      this.rows = [];
      this._row = new Map(Array.from({length: run.workers}, (_, worker) => [worker, 0]));
    }
    for (let i = Math.max(0, slices.count - (slices.total - this._seen)); i < slices.count; i++) {
      const key = this._key(slices.handle[i], slices.worker[i], slices.kind[i]);
      if (!this._row.has(key)) this._row.set(key, 0);
    }
    this._seen = slices.total;
    if (this.rows.length && this._row.size === before) return;
    this.rows = [...this._row.keys()].sort((a, b) => a - b).map((key, row) => {
      this._row.set(key, row);
      return {text: this._text(key), worker: key};
    });
  }

  // The row of what `handle` did on `worker`.
  of(handle, worker, kind) {
    return this._row.get(this._key(handle, worker, kind));
  }

  _key(handle, worker, kind) {
    const {device} = this.store.graph.handles[handle];
    if (kind === PARCEL) return PARCELS + device;
    return kind === MERGE ? MERGES + device : kind === PENDING ? IN_FLIGHT + device : worker;
  }

  _text(key) {
    const {devices} = this.store.graph;
    if (key >= PARCELS) return `parcels ${devices[key - PARCELS]}`;
    if (key >= IN_FLIGHT) return `${devices[key - IN_FLIGHT]} in flight`;
    if (key >= MERGES) return `${devices[key - MERGES]} merges`;
    return key === NO_WORKER ? 'other threads' : `worker ${key}`;
  }
}
