// The rows of the timeline. By worker: a row each, then what devices merge or have in
// flight, and what comes from devices of other ranks or goes there. By stream: for each
// device its streams, each with the workers that ran its ops, then the same.
import {MERGE, NO_WORKER, PARCEL, PENDING} from '/slices.js';

// Rows of a device that no worker has, after those of workers or streams.
const OTHER_ROWS = ['merges', 'in flight', 'parcels'];
const PLACES = {[MERGE]: 0, [PENDING]: 1, [PARCEL]: 2};
const MOST_WORKERS = 1 << 16;
export const MOST_LANES = 4;

export class timeline_rows {
  constructor(store) {
    this.store = store;
    this.by_stream = false;
    this.rows = [];             // {text, worker, lanes}; worker: -1 for rows of a device
    this._row = new Map();      // by key
  }

  set_by_stream(by_stream) {
    this.by_stream = by_stream;
    this._slices = null;        // all rows anew
  }

  // Finds new rows in slices that were added since the last call.
  update() {
    const {slices, graph, run} = this.store;
    const before = this._row.size;
    if (this._slices !== slices) {
      this._slices = slices;
      this._seen = 0;
      this.rows = [];
      this._streams = [...new Set(graph.handles.filter(h => h.op).map(h => h.stream ?? ''))].sort();
      this._row = new Map(this.by_stream ? []
        : Array.from({length: run.workers}, (_, worker) => [worker, 0]));
    }
    const first = Math.max(0, slices.count - (slices.total - this._seen));
    if (first === 0) this._ends = new Map();
    for (let i = first; i < slices.count; i++) {
      const key = this._key(slices.handle[i], slices.worker[i], slices.kind[i]);
      if (!this._row.has(key)) this._row.set(key, 0);
      slices.lane[i] = this._lane_of(slices, i, key);
    }
    this._seen = slices.total;
    if (this.rows.length && this._row.size === before) return;
    this.rows = [...this._row.keys()].sort((a, b) => a - b).map((key, row) => {
      this._row.set(key, row);
      return {...this._row_of(key), lanes: this._ends.get(key)?.length ?? 1};
    });
  }

  // What devices merge or have in flight can overlap: each slice gets the first lane of its
  // row that is free. Slices come in the order of their ends.
  _lane_of({begin, ms, kind}, at, key) {
    if (kind[at] !== MERGE && kind[at] !== PENDING) return 0;
    if (!this._ends.has(key)) this._ends.set(key, [0]);
    const ends = this._ends.get(key);
    let lane = ends.findIndex(end => end <= begin[at]);
    if (lane < 0 && ends.length < MOST_LANES) {
      lane = ends.length;
      const row = this.rows[this._row.get(key)];
      if (row) row.lanes = lane + 1;
    }
    if (lane < 0) lane = ends.indexOf(Math.min(...ends));
    ends[lane] = begin[at] + ms[at];
    return lane;
  }

  // The row of what `handle` did on `worker`.
  of(handle, worker, kind) {
    return this._row.get(this._key(handle, worker, kind));
  }

  // Rows are in the order of their keys: group by group, in each by worker.
  _key(handle, worker, kind) {
    const {device, stream} = this.store.graph.handles[handle];
    const place = PLACES[kind];
    if (!this.by_stream) {
      const {devices} = this.store.graph;
      return place === undefined ? worker : (1 + place * devices.length + device) * MOST_WORKERS;
    }
    const of_device = device * (this._streams.length + OTHER_ROWS.length);
    return place === undefined
      ? (of_device + this._streams.indexOf(stream ?? '')) * MOST_WORKERS + worker
      : (of_device + this._streams.length + place) * MOST_WORKERS;
  }

  _row_of(key) {
    const {devices} = this.store.graph;
    const [group, worker] = [Math.floor(key / MOST_WORKERS), key % MOST_WORKERS];
    if (!this.by_stream) {
      if (group === 0) return {text: worker_name(this.store.run, worker), worker};
      const [place, device] = [Math.floor((group - 1) / devices.length),
                               (group - 1) % devices.length];
      return {text: `${devices[device]} ${OTHER_ROWS[place]}`, worker: -1};
    }
    const groups = this._streams.length + OTHER_ROWS.length;
    const [device, at] = [devices[Math.floor(group / groups)], group % groups];
    return at < this._streams.length ? {text: `${device} ${this._streams[at]}`, worker}
      : {text: `${device} ${OTHER_ROWS[at - this._streams.length]}`, worker: -1};
  }
}

// Workers are numbered through all ranks that are shown. Their names say the rank if there
// are several, and its own number.
export function worker_name({ranks}, worker) {
  if (worker === NO_WORKER) return 'other threads';
  if (ranks.length === 1) return `worker ${worker}`;
  let before = 0;
  for (const {rank, workers} of ranks) {
    if (worker < before + workers) return `rank ${rank} worker ${worker - before}`;
    before += workers;
  }
  return `worker ${worker}`;
}
