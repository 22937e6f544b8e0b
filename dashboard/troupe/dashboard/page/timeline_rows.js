// The rows of the timeline: a worker each, then what devices merge or have launched.
import {MERGE, NO_WORKER, PENDING} from '/slices.js';

export class timeline_rows {
  constructor(store) {
    this.store = store;
    this.rows = [];
    this._workers = [];          // row by worker
    this._merges = [];           // row by device
    this._launches = [];
    this._seen = 0;
    this._key = '';
  }

  // Finds new rows in slices that were added since the last call.
  update() {
    const {slices, run, graph} = this.store;
    const has = this._has ??= new Set();
    if (this._slices !== slices) {
      this._slices = slices;
      this._seen = 0;
      has.clear();
      for (let w = 0; w < run.workers; w++) has.add(`w${w}`);
    }
    const first = Math.max(0, slices.count - (slices.total - this._seen));
    this._seen = slices.total;
    for (let i = first; i < slices.count; i++) {
      const kind = slices.kind[i];
      if (kind === MERGE) has.add(`m${graph.handles[slices.handle[i]].device}`);
      else if (kind === PENDING) has.add(`p${graph.handles[slices.handle[i]].device}`);
      else has.add(`w${slices.worker[i]}`);
    }
    if (this._key === `${graph.run} ${has.size}`) return;
    this._key = `${graph.run} ${has.size}`;
    this._make([...has]);
  }

  // The row of what `handle` did on `worker`.
  of(handle, worker, kind) {
    if (kind === MERGE) return this._merges[this.store.graph.handles[handle].device];
    if (kind === PENDING) return this._launches[this.store.graph.handles[handle].device];
    return this._workers[worker];
  }

  _make(keys) {
    const numbers = kind => keys.filter(key => key[0] === kind).map(key => Number(key.slice(1)))
      .sort((a, b) => a - b);
    const {devices} = this.store.graph;
    this.rows = [];
    this._workers = [];
    this._merges = [];
    this._launches = [];
    for (const worker of numbers('w')) {
      this._workers[worker] = this.rows.length;
      this.rows.push(worker === NO_WORKER ? {text: 'other threads', worker: -1}
                                          : {text: `worker ${worker}`, worker});
    }
    devices.forEach((device, d) => {
      if (keys.includes(`m${d}`)) {
        this._merges[d] = this.rows.length;
        this.rows.push({text: `${device} merges`, worker: -1});
      }
      if (keys.includes(`p${d}`)) {
        this._launches[d] = this.rows.length;
        this.rows.push({text: `${device} in flight`, worker: -1});
      }
    });
  }
}
