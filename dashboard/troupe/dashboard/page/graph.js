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
    this._set_boxes();
    this._set_cells();
    this._set_types();
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
    const column = x => Math.max(0, Math.min(this.columns - 1, Math.floor((x - this.left) / CELL)));
    const row = y => Math.max(0, Math.min(this.rows - 1, Math.floor((y - this.top) / CELL)));
    const last_column = column(right);
    const last_row = row(bottom);
    for (let r = row(top); r <= last_row; r++) {
      for (let c = column(left); c <= last_column; c++) {
        const cell = r * this.columns + c;
        for (let i = this.cells.first[cell]; i < this.cells.first[cell + 1]; i++) {
          visit(this.cells.edges[i]);
        }
      }
    }
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

  // The rectangle of each device, and that of the graph.
  _set_boxes() {
    const empty = () => ({left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity});
    const add = (box, left, top, right, bottom) => {
      box.left = Math.min(box.left, left);
      box.top = Math.min(box.top, top);
      box.right = Math.max(box.right, right);
      box.bottom = Math.max(box.bottom, bottom);
    };
    this.device_boxes = this.devices.map(empty);
    const box_of = device => this.device_boxes[device] ?? empty();
    for (const l of this.layers) add(box_of(l.device), l.x, l.y, l.x + l.width, l.y + l.height);
    this.handles.forEach(({device, x, y}) => add(box_of(device), x - 64, y - 20, x + 64, y + 20));
    const all = empty();
    for (const {left, top, right, bottom} of this.device_boxes) add(all, left, top, right, bottom);
    Object.assign(this, this.count ? all : {left: 0, top: 0, right: 1, bottom: 1});
  }

  _set_cells() {
    this.columns = Math.ceil((this.right - this.left) / CELL);
    this.rows = Math.ceil((this.bottom - this.top) / CELL);
    const cells = Uint32Array.from(this.handles, ({x, y}) =>
      Math.floor((y - this.top) / CELL) * this.columns + Math.floor((x - this.left) / CELL));
    this.cells = by_end(cells, this.columns * this.rows);
  }

  // Types of ops, the most frequent first; a gradient counts as its op.
  _set_types() {
    const counts = new Map();
    for (const {op, type} of this.handles) {
      if (op) counts.set(base_type(type), (counts.get(base_type(type)) ?? 0) + 1);
    }
    this.types = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
    this.type_rank = new Map(this.types.map((type, rank) => [type, rank]));
  }
}

// conv2d of conv2d_grad.
export function base_type(type) {
  return type.endsWith('_grad') ? type.slice(0, -5) : type;
}
