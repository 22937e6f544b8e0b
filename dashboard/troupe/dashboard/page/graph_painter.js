// Draws the graph: handles when they are large enough to see, else layers.
import {DONE, READY, REMOTE, RUNNING, WAITING} from '/graph.js';
import {LIT_MS} from '/store.js';
import {has_motion, text_on, theme} from '/colors.js';
import {text_cutter} from '/canvas.js';
import {count} from '/format.js';

// Half the size of an op, and of a variable, in units of the layout.
const OP = {x: 60, y: 15};
const VARIABLE = {x: 7, y: 7};

const LEAST_SCALE = 0.13;    // below, a box would be 15 pixels wide
const MOST_HANDLES = 5000;   // more would be dots
const MOST_EDGES = 6000;     // more would be a grey area, and slow
const MOST_CURVES = 700;     // handles whose edges are curves
const LABEL_SCALE = 0.5;
const COUNT_SCALE = 0.85;
const FEW_LIT = 150;         // lit edges that can be told apart
const MOST_LIT = 500;        // of one shade
const SHADES = 4;            // of an edge that fades
const PATH = 250;            // edges stroked at once: long paths are slow to rasterise

export class graph_painter {
  constructor(store, view) {
    this.store = store;
    this.view = view;         // camera
    this.detail = 'auto';     // or layers, handles
    this.next_step = false;   // edges to the next step are drawn
    this.collapsed = new Set();
    this.matches = [];        // what the search found
    this.version = 0;         // changes when `collapsed` or the graph did
    this._cutter = new text_cutter();
    this._visible = [];
    this._stamp = new Uint32Array(0);  // of a handle: the last look that saw it
    this._look = 0;
  }

  // Finds what is visible, and whether handles are drawn.
  look(width, height) {
    const {graph} = this.store;
    const {x, y, scale} = this.view;
    Object.assign(this, {width, height, left: x - OP.x, top: y - OP.y,
                         right: x + width / scale + OP.x, bottom: y + height / scale + OP.y});
    if (this._stamp.length !== graph.count) this._stamp = new Uint32Array(graph.count);
    this._look += 1;
    this._visible = [];
    this.has_handles = this.detail === 'handles' ||
      (this.detail === 'auto' && scale >= LEAST_SCALE);
    if (!this.has_handles) return;
    graph.each_in(this.left, this.top, this.right, this.bottom, h => {
      if (graph.x[h] >= this.left && graph.x[h] <= this.right && graph.y[h] >= this.top &&
          graph.y[h] <= this.bottom && !this.collapsed.has(graph.layer_of[h])) {
        this._visible.push(h);
      }
    });
    if (this.detail === 'auto' && this._visible.length > MOST_HANDLES) {
      this.has_handles = false;
      this._visible = [];
    }
    for (const h of this._visible) this._stamp[h] = this._look;
    this._is_curved = this._visible.length < MOST_CURVES;
  }

  // Layers and edges: what changes only with the camera.
  paint_ground(canvas) {
    const key = [this.view.version, canvas.element.width, canvas.element.height, theme.version,
                 this.version, this.detail, this.next_step].join();
    if (key === this._ground_key) return;
    this._ground_key = key;
    const c = canvas.begin();
    this._to_world(c, canvas);
    this._paint_frames(c);
    c.strokeStyle = theme.edge;
    c.lineWidth = Math.max(0.5, Math.min(1.4, this.view.scale * 1.2)) / this.view.scale;
    this._stroke(c, this._seen_edges(), edge => this._edge_path(c, edge));
    const {layer_edges} = this.store.graph;
    this._stroke(c, layer_edges.filter(edge => this._sees_layer_edge(edge)),
                 edge => this._layer_edge_path(c, edge));
    canvas.to_screen();
    this._paint_titles(c);
  }

  // States, counts and lit edges. Returns whether it goes on changing by itself.
  paint(canvas, now) {
    const c = canvas.begin();
    this._to_world(c, canvas);
    const fades = this._paint_lit(c, now);
    if (this.view.scale < LABEL_SCALE) this._paint_small(c);
    else for (const h of this._visible) this._paint_large(c, h);
    this._paint_chosen(c);
    canvas.to_screen();
    this.store.graph.layers.forEach((layer, at) => {
      if (this.is_closed(at) && this._sees(layer)) this._paint_layer(c, layer, at);
    });
    this._paint_devices(c);
    return fades;
  }

  // The handle at a point of the screen, else -1.
  handle_at(px, py) {
    const {graph} = this.store;
    const [x, y] = this._world(px, py);
    const slack = 3 / this.view.scale;
    return this._visible.findLast(h => Math.abs(graph.x[h] - x) <= half(graph, h).x + slack &&
                                       Math.abs(graph.y[h] - y) <= half(graph, h).y + slack) ?? -1;
  }

  // The layer at a point of the screen, else -1.
  layer_at(px, py) {
    const [x, y] = this._world(px, py);
    return this.store.graph.layers.findIndex(
      l => x >= l.x && x <= l.x + l.width && y >= l.y && y <= l.y + l.height);
  }

  is_closed(layer) {
    return layer >= 0 && (!this.has_handles || this.collapsed.has(layer));
  }

  _world(px, py) {
    return [px / this.view.scale + this.view.x, py / this.view.scale + this.view.y];
  }

  _screen(x, y) {
    return [(x - this.view.x) * this.view.scale, (y - this.view.y) * this.view.scale];
  }

  // From here on, coordinates are those of the layout.
  _to_world(c, canvas) {
    const scale = this.view.scale * canvas.ratio;
    c.setTransform(scale, 0, 0, scale, -this.view.x * scale, -this.view.y * scale);
  }

  _sees({x, y, width, height}) {
    return x <= this.right && x + width >= this.left && y <= this.bottom && y + height >= this.top;
  }

  _paint_frames(c) {
    c.fillStyle = theme.panel;
    c.strokeStyle = theme.line;
    c.lineWidth = 1 / this.view.scale;
    this.store.graph.layers.forEach((layer, at) => {
      if (this.is_closed(at) || !this._sees(layer)) return;
      c.beginPath();
      c.roundRect(layer.x, layer.y, layer.width, layer.height, 8);
      c.fill();
      c.stroke();
    });
  }

  // Names of layers, like those of devices, have one size at any scale.
  _paint_titles(c) {
    const {graph} = this.store;
    const {scale} = this.view;
    c.fillStyle = theme.muted;
    c.font = `600 11px ${theme.font}`;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    graph.layers.forEach((layer, at) => {
      if (24 * scale < 8 || this.is_closed(at) || !this._sees(layer)) return;
      const [x, y] = this._screen(layer.x, layer.y);
      c.fillText(this._cutter.cut(c, layer.name, layer.width * scale - 12), x + 6,
                 y + 13 * Math.min(1.2, scale) + 1);
    });
  }

  // Over all else: in a small picture, a name has no room of its own.
  _paint_devices(c) {
    const {graph} = this.store;
    c.font = `600 12px ${theme.font}`;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    graph.device_boxes.forEach((box, device) => this._paint_device(c, box, graph.devices[device]));
  }

  // The name stays at the edge of the picture while its device is in sight.
  _paint_device(c, box, name) {
    const [left, top] = this._screen(box.left, box.top);
    const [right, bottom] = this._screen(box.right, box.bottom);
    const [x, y] = [Math.max(8, left), Math.max(10, top - 13)];
    if (x > right - 20 || x > this.width || y > this.height || bottom < 0) return;
    const text = this._cutter.cut(c, name, Math.max(30, right - x));
    c.fillStyle = theme.ground;
    c.fillRect(x - 4, y - 8, c.measureText(text).width + 8, 16);
    c.fillStyle = theme.text;
    c.fillText(text, x, y);
  }

  // Edges of visible handles; when there are many, only those between two of them.
  _seen_edges() {
    const {graph} = this.store;
    const seen = [];
    for (const h of this._visible) {
      for (const edge of graph.out_edges(h)) if (this._is_seen(edge)) seen.push(edge);
      for (const edge of graph.in_edges(h)) {
        if (this._stamp[graph.from[edge]] !== this._look && this._is_seen(edge)) seen.push(edge);
      }
      if (seen.length > MOST_EDGES) break;
    }
    return seen;
  }

  _is_seen(edge) {
    const {graph} = this.store;
    if (graph.distance[edge] > 0 && !this.next_step) return false;
    const from = this._stamp[graph.from[edge]] === this._look;
    const to = this._stamp[graph.to[edge]] === this._look;
    return this._is_curved ? from || to : from && to;
  }

  // Between layers of which one is closed: else the edges of handles are there.
  _sees_layer_edge({from, to, next_step}) {
    const {layers} = this.store.graph;
    return (!next_step || this.next_step) && (this.is_closed(from) || this.is_closed(to)) &&
      this._sees(layers[from]) && this._sees(layers[to]);
  }

  _edge_path(c, edge, is_curved = this._is_curved) {
    const {graph} = this.store;
    const [from, to] = [graph.from[edge], graph.to[edge]];
    const [x0, x1] = [graph.x[from], graph.x[to]];
    const down = graph.y[to] >= graph.y[from] ? 1 : -1;
    const y0 = graph.y[from] + down * half(graph, from).y;
    const y1 = graph.y[to] - down * half(graph, to).y;
    c.moveTo(x0, y0);
    const bend = (y1 - y0) * 0.45;
    if (is_curved) c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
    else c.lineTo(x1, y1);
  }

  _layer_edge_path(c, edge) {
    const [from, to] = [edge.from, edge.to].map(at => this.store.graph.layers[at]);
    c.moveTo(from.x + from.width / 2, from.y + from.height / 2);
    c.lineTo(to.x + to.width / 2, to.y + to.height / 2);
  }

  _stroke(c, edges, path) {
    for (let i = 0; i < edges.length; i += PATH) {
      c.beginPath();
      edges.slice(i, i + PATH).forEach(path);
      c.stroke();
    }
  }

  // Edges over which a message went lately, brighter the newer it is.
  _paint_lit(c, now) {
    const {graph, lit, lit_at} = this.store;
    const moves = has_motion();
    const [edges, layers] = [0, 1].map(() => Array.from({length: SHADES}, () => []));
    const newest = new Map();  // shade by edge between layers
    let fades = false;
    for (const edge of lit) {
      const age = moves ? (now - lit_at[edge]) / LIT_MS : 0.3;
      if (age >= 1) continue;
      fades = moves;
      const shade = Math.max(0, Math.floor(age * SHADES));
      const layer_edge = graph.layer_edge_of[edge];
      if ((newest.get(layer_edge) ?? SHADES) > shade) newest.set(layer_edge, shade);
      if (this._is_seen(edge)) edges[shade].push(edge);
    }
    newest.delete(-1);
    for (const [at, shade] of newest) {
      const edge = graph.layer_edges[at];
      if (this._sees_layer_edge(edge)) layers[shade].push(edge);
    }
    const {scale} = this.view;
    c.lineWidth = Math.max(1, Math.min(2.4, scale * 2.2)) / scale;
    this._stroke_shades(c, edges, edge => this._edge_path(c, edge));
    this._stroke_shades(c, layers, edge => this._layer_edge_path(c, edge));
    return fades;
  }

  // Of many edges each glows less: when steps are short, all are lit all the time.
  _stroke_shades(c, shades, path) {
    const total = shades.reduce((sum, edges) => sum + edges.length, 0);
    const strength = Math.max(0.3, Math.min(1, FEW_LIT / total));
    c.strokeStyle = theme.lit;
    for (let shade = SHADES - 1; shade >= 0; shade--) {
      c.globalAlpha = strength * (1 - shade / SHADES);
      this._stroke(c, shades[shade].slice(0, MOST_LIT), path);
    }
    c.globalAlpha = 1;
  }

  // A closed layer: its name, and how many of its handles are in which state.
  _paint_layer(c, layer, at) {
    const {scale} = this.view;
    const [x, y] = this._screen(layer.x, layer.y);
    const [w, h] = [Math.max(1.5, layer.width * scale), Math.max(1.5, layer.height * scale)];
    const counts = this.store.layer_counts.subarray(5 * at, 5 * at + 5);
    const state = [RUNNING, READY, WAITING, DONE].find(one => counts[one]) ?? REMOTE;
    c.fillStyle = theme.tints[state];
    c.fillRect(x, y, w, h);
    if (w < 26 || h < 12) return;
    c.strokeStyle = theme.states[state];
    c.lineWidth = state === RUNNING ? 2 : 1;
    c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    let bar = x + 3;
    for (const one of [DONE, RUNNING, READY, WAITING, REMOTE]) {
      const share = ((w - 6) * counts[one]) / layer.handles.length;
      c.fillStyle = theme.states[one];
      c.fillRect(bar, y + h - 6, share, 3);
      bar += share;
    }
    if (w < 46 || h < 20) return;
    c.textAlign = 'left';
    c.textBaseline = 'top';
    c.fillStyle = theme.text;
    c.font = `600 11px ${theme.font}`;
    c.fillText(this._cutter.cut(c, layer.name, w - 10), x + 5, y + 4);
    if (h < 38) return;
    const [number, word] = counts[RUNNING] ? [counts[RUNNING], 'running'] : [counts[DONE], 'done'];
    c.font = `10px ${theme.font}`;
    c.fillText(this._cutter.cut(c, `${number}/${layer.handles.length} ${word}`, w - 10), x + 5,
               y + 18);
  }

  // Boxes without words: waiting is an outline, ready is half full, running is full
  // with a frame, done is pale.
  _paint_small(c) {
    const {graph, state} = this.store;
    const pixel = 1 / this.view.scale;
    c.lineWidth = pixel;
    theme.states.forEach((color, s) => {
      c.fillStyle = s === RUNNING || s === READY ? color : theme.tints[s];
      c.strokeStyle = s === RUNNING ? theme.text : color;
      for (const h of this._visible) {
        if (state[h] !== s) continue;
        const {x, y} = half(graph, h);
        const [left, top] = [graph.x[h] - x, graph.y[h] - y];
        c.fillRect(left, top, s === READY ? x : 2 * x, 2 * y);
        if (s === DONE || !graph.is_op[h]) continue;
        const margin = s === RUNNING ? 1.5 * pixel : 0;
        c.strokeRect(left - margin, top - margin, 2 * (x + margin), 2 * (y + margin));
      }
    });
  }

  _paint_large(c, h) {
    const {graph, state} = this.store;
    const s = state[h];
    const is_full = graph.is_op[h] ? s === RUNNING : s === DONE;
    c.fillStyle = is_full ? theme.states[s] : theme.ground;
    c.strokeStyle = theme.states[s];
    c.lineWidth = s === RUNNING ? 2 : 1.25;
    c.setLineDash(s === REMOTE ? [4, 3] : []);
    this._box_path(c, h, 0);
    c.fill();
    c.stroke();
    c.setLineDash([]);
    if (graph.is_op[h]) this._label_op(c, h, s);
  }

  _box_path(c, h, margin) {
    const {graph} = this.store;
    const {x, y} = half(graph, h);
    c.beginPath();
    c.roundRect(graph.x[h] - x - margin, graph.y[h] - y - margin, 2 * (x + margin),
                2 * (y + margin), graph.is_op[h] ? 5 : y + margin);
  }

  _label_op(c, h, s) {
    const {graph, arrived, runs} = this.store;
    const handle = graph.handles[h];
    const [x, y] = [graph.x[h] - OP.x, graph.y[h]];
    const has_counts = this.view.scale >= COUNT_SCALE;
    const ink = s === RUNNING ? text_on(theme.running) : '';
    draw_glyph(c, s, x + 2 * OP.x - 9, y - (has_counts ? 5 : 0), 4.5, ink || theme.states[s]);
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    c.fillStyle = ink || (s === DONE || s === REMOTE ? theme.muted : theme.text);
    c.font = `${handle.collective ? 700 : 500} 11px ${theme.narrow}`;
    const name = handle.name.slice(0, handle.name.lastIndexOf('@')) || handle.name;
    c.fillText(this._cutter.cut(c, name, 97), x + 7, y - (has_counts ? 5 : 0));
    if (!has_counts) return;
    c.fillStyle = ink || theme.muted;
    c.font = `8.5px ${theme.narrow}`;
    c.fillText(this._cutter.cut(
      c, `${arrived[h]}/${handle.needs} messages \u00b7 ${count(runs[h])} runs`, 108), x + 7, y + 7);
  }

  // What the search found, and the chosen handle with its edges.
  _paint_chosen(c) {
    const {graph, selected} = this.store;
    const pixel = 1 / this.view.scale;
    c.strokeStyle = theme.accent;
    c.lineWidth = 2 * pixel;
    for (const h of this.matches) {
      this._box_path(c, h, 4 * pixel);
      c.stroke();
    }
    if (selected < 0) return;
    this._box_path(c, selected, 3 * pixel);
    c.lineWidth = 3 * pixel;
    c.stroke();
    c.lineWidth = 1.75 * pixel;
    for (const [edges, color] of [[graph.in_edges(selected), theme.ready],
                                  [graph.out_edges(selected), theme.done]]) {
      c.strokeStyle = color;
      for (const edge of edges) {
        c.setLineDash(graph.distance[edge] > 0 ? [6 * pixel, 4 * pixel] : []);
        c.beginPath();
        this._edge_path(c, edge, true);
        c.stroke();
      }
    }
    c.setLineDash([]);
  }
}

function half(graph, h) {
  return graph.is_op[h] ? OP : VARIABLE;
}

// Ring, half ring, triangle, tick, three dots.
function draw_glyph(c, state, x, y, r, color) {
  c.strokeStyle = c.fillStyle = color;
  c.lineWidth = 1.4;
  c.beginPath();
  if (state === WAITING || state === READY) {
    c.arc(x, y, r * 0.85, 0, 2 * Math.PI);
    c.stroke();
    if (state === WAITING) return;
    c.beginPath();
    c.arc(x, y, r * 0.85, Math.PI / 2, 1.5 * Math.PI);
    c.fill();
  } else if (state === DONE) {
    c.moveTo(x - r * 0.9, y);
    c.lineTo(x - r * 0.2, y + r * 0.7);
    c.lineTo(x + r, y - r * 0.7);
    c.stroke();
  } else {
    if (state === RUNNING) {
      c.moveTo(x - r * 0.7, y - r);
      c.lineTo(x + r, y);
      c.lineTo(x - r * 0.7, y + r);
    } else {
      for (const shift of [-0.8, 0, 0.8]) c.rect(x + shift * r - 0.8, y - 0.8, 1.6, 1.6);
    }
    c.fill();
  }
}
