// The graph of a run, in arrays: places, edges by handle, layers, an index by place.

export const STATES = ['waiting', 'ready', 'running', 'done', 'remote'];
export const [WAITING, READY, RUNNING, DONE, REMOTE] = STATES.keys();

const CELL = 600;  // of the index by place, in units of the layout

// Edges by one of their ends: edges[first[h]] to edges[first[h + 1]] are those of h.
function by_end(ends, handles) {
  const first = new Uint32Array(handles + 1);
  for (const handle of ends) first[handle + 1] += 1;
  for (let h = 0; h < handles; h++) first[h + 1] += first[h];
  const next = first.slice();
  const edges = new Uint32Array(ends.length);
  ends.forEach((handle, edge) => { edges[next[handle]++] = edge; });
  return {first, edges};
}

export class graph {
  constructor(answer) {
    const {handles, edges} = answer;
    this.run = answer.run;
    this.devices = answer.devices;
    this.handles = handles;
    this.count = handles.length;
    this.x = Float32Array.from(handles, h => h.x);
    this.y = Float32Array.from(handles, h => h.y);
    this.is_op = Uint8Array.from(handles, h => (h.op ? 1 : 0));
    this.from = Uint32Array.from(edges, e => e[0]);
    this.to = Uint32Array.from(edges, e => e[1]);
    this.distance = Uint8Array.from(edges, e => e[2]);
    this.senders = by_end(this.to, this.count);
    this.receivers = by_end(this.from, this.count);
    this.lower_names = handles.map(h => h.name.toLowerCase());
    this._set_layers(answer.layers);
    this._set_cells(answer);
    this._set_device_boxes();
  }

  // Edges that end at `handle`, and edges that begin there.
  in_edges(handle) {
    const {first, edges} = this.senders;
    return edges.subarray(first[handle], first[handle + 1]);
  }

  out_edges(handle) {
    const {first, edges} = this.receivers;
    return edges.subarray(first[handle], first[handle + 1]);
  }

  // Handles whose names have all words of `text`, at most `most`.
  search(text, most) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    if (!words.length) return found;
    for (let h = 0; h < this.count && found.length < most; h++) {
      if (words.every(word => this.lower_names[h].includes(word))) found.push(h);
    }
    return found;
  }

  // Calls `visit` with each handle whose centre may lie in the rectangle.
  each_in(left, top, right, bottom, visit) {
    for (let row = this._row(top); row <= this._row(bottom); row++) {
      const cell = row * this.columns;
      const [from, to] = [cell + this._column(left), cell + this._column(right) + 1];
      const {first, edges: handles} = this.cells;
      for (let i = first[from]; i < first[to]; i++) visit(handles[i]);
    }
  }

  _column(x) {
    return Math.max(0, Math.min(this.columns - 1, Math.floor(x / CELL)));
  }

  _row(y) {
    return Math.max(0, Math.min(this.rows - 1, Math.floor(y / CELL)));
  }

  _set_layers(layers) {
    this.layers = layers;
    this.layer_of = new Int32Array(this.count).fill(-1);
    layers.forEach((layer, at) => {
      for (const handle of layer.handles) this.layer_of[handle] = at;
    });
    // Edges between the same two layers are one edge of the picture of layers.
    const pairs = new Map();
    this.layer_edge_of = new Int32Array(this.from.length).fill(-1);
    this.layer_edges = [];
    for (let edge = 0; edge < this.from.length; edge++) {
      const from = this.layer_of[this.from[edge]];
      const to = this.layer_of[this.to[edge]];
      if (from < 0 || to < 0 || from === to) continue;
      const key = from * layers.length + to;
      if (!pairs.has(key)) {
        pairs.set(key, this.layer_edges.length);
        this.layer_edges.push({from, to, next_step: true});
      }
      const at = pairs.get(key);
      this.layer_edge_of[edge] = at;
      if (this.distance[edge] === 0) this.layer_edges[at].next_step = false;
    }
  }

  _set_cells({width, height}) {
    this.box = {left: 0, top: 0, right: width, bottom: height};
    this.columns = Math.ceil(width / CELL) || 1;
    this.rows = Math.ceil(height / CELL) || 1;
    const cells = this.handles.map(({x, y}) => this._row(y) * this.columns + this._column(x));
    this.cells = by_end(cells, this.columns * this.rows);
  }

  // The rectangle of each device, for its name.
  _set_device_boxes() {
    this.device_boxes = this.devices.map(
      () => ({left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity}));
    for (const {device, x, y} of this.handles) {
      const box = this.device_boxes[device];
      box.left = Math.min(box.left, x - 76);
      box.top = Math.min(box.top, y - 50);
      box.right = Math.max(box.right, x + 76);
      box.bottom = Math.max(box.bottom, y + 30);
    }
  }
}
