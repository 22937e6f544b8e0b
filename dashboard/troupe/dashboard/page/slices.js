// What ran when: the newest slices of the run, in the order in which they ended.

// Kinds.
export const [HELP, MERGE, PENDING, PARCEL] = [1, 2, 3, 4];
export const NO_WORKER = 65535;
export const KIND_WORDS = ['ran', 'got help', 'merged', 'was in flight', 'sent or gets a value'];

const CAPACITY = 1 << 17;

export class slices {
  constructor() {
    this.begin = new Float64Array(CAPACITY);  // ms of the run
    this.ms = new Float64Array(CAPACITY);
    this.handle = new Uint32Array(CAPACITY);
    this.worker = new Uint16Array(CAPACITY);
    this.step = new Uint32Array(CAPACITY);
    this.kind = new Uint8Array(CAPACITY);
    this.lane = new Uint8Array(CAPACITY);     // by the timeline's rows
    // The latest end of all slices up to this one: a search by time needs it,
    // because slices of different workers are not quite in order.
    this.latest_end = new Float64Array(CAPACITY);
    this.count = 0;
    this.total = 0;  // ever added: changes when anything did
  }

  add(begin, ms, handle, worker, step, kind) {
    if (this.count === CAPACITY) this._forget(CAPACITY / 2);
    const at = this.count++;
    this.begin[at] = begin;
    this.ms[at] = ms;
    this.handle[at] = handle;
    this.worker[at] = worker;
    this.step[at] = step;
    this.kind[at] = kind;
    this.latest_end[at] = Math.max(at ? this.latest_end[at - 1] : -Infinity, begin + ms);
    this.total += 1;
  }

  // What the server kept replaces all that ended before its last slice.
  replace(rows) {
    const last = rows.reduce((end, row) => Math.max(end, row[0] + row[1]), -Infinity);
    const newer = [];
    for (let i = 0; i < this.count; i++) {
      if (this.begin[i] + this.ms[i] > last) newer.push(this.row(i));
    }
    this.count = 0;
    for (const row of rows) this.add(...row);
    for (const row of newer) this.add(...row);
  }

  row(at) {
    return [this.begin[at], this.ms[at], this.handle[at], this.worker[at], this.step[at],
            this.kind[at]];
  }

  // The first slice that can end at or after `time`.
  first_after(time) {
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.latest_end[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  _forget(number) {
    for (const column of [this.begin, this.ms, this.handle, this.worker, this.step, this.kind,
                          this.lane, this.latest_end]) {
      column.copyWithin(0, number);
    }
    this.count -= number;
  }
}
