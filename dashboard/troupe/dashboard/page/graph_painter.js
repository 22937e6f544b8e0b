// Draws the graph: handles when they are large enough to see, else layers.
import {DONE, READY, REMOTE, RUNNING, WAITING} from '/graph.js';
import {LIT_MS} from '/store.js';
import {has_motion, mix, text_on, theme} from '/colors.js';
import {text_cutter} from '/canvas.js';
import {count} from '/format.js';

// The layout's units.
const BOX_WIDTH = 120;
const BOX_HEIGHT = 30;
const RADIUS = 7;

const LEAST_SCALE = 0.13;    // below, a box would be 15 pixels wide
const MOST_HANDLES = 5000;   // more would be dots
const MOST_EDGES = 6000;     // more would be a grey area, and slow
const LABEL_SCALE = 0.5;
const COUNT_SCALE = 0.85;
const FEW_LIT = 150;         // lit edges that can be told apart
const SHADES = 4;            // of an edge that fades

export class graph_painter {
  constructor(store, view) {
    this.store = store;
    this.view = view;         // camera
    this.detail = 'auto';     // or layers, handles
    this.next_step = false;   // edges to the next step are drawn
    this.collapsed = new Set();
    this.matches = [];        // what the search found
    this.hovered = -1;
    this.version = 0;         // changes when what the two above say did
    this._cutter = new text_cutter();
    this._visible = [];
    this._stamp = new Uint32Array(0);
    this._stamp_now = 0;
    this._ground_key = '';
  }

  // What the picture shows: visible handles and whether they are drawn.
  look(width, height) {
    const {graph} = this.store;
    const {x, y, scale} = this.view;
    this.width = width;
    this.height = height;
    this.left = x - BOX_WIDTH / 2;
    this.top = y - BOX_HEIGHT / 2;
    this.right = x + width / scale + BOX_WIDTH / 2;
    this.bottom = y + height / scale + BOX_HEIGHT / 2;
    if (this._stamp.length !== graph.count) this._stamp = new Uint32Array(graph.count);
    this._stamp_now += 1;
    this._visible.length = 0;
    this.has_handles = this.detail === 'handles' ||
      (this.detail === 'auto' && scale >= LEAST_SCALE);
    if (!this.has_handles) return;
    const most = this.detail === 'auto' ? MOST_HANDLES : Infinity;
    graph.each_in(this.left, this.top, this.right, this.bottom, h => {
      if (graph.x[h] < this.left || graph.x[h] > this.right || graph.y[h] < this.top ||
          graph.y[h] > this.bottom || this.collapsed.has(graph.layer_of[h])) return;
      this._visible.push(h);
      this._stamp[h] = this._stamp_now;
    });
    if (this._visible.length > most) {
      this.has_handles = false;
      this._visible.length = 0;
      this._stamp_now += 1;
    }
  }

  // Layers and edges: what changes only with the camera.
  paint_ground(canvas) {
    const key = [this.view.version, canvas.element.width, canvas.element.height, theme.version,
                 this.version, this.detail, this.next_step, this.store.selected,
                 this.store.graph.run].join();
    if (key === this._ground_key) return;
    this._ground_key = key;
    const c = canvas.begin();
    this._paint_frames(c);
    if (this.has_handles) this._paint_edges(c);
    this._paint_layer_edges(c);
    this._paint_devices(c);
  }

  // States, counts and lit edges. Returns whether it goes on changing by itself.
  paint(canvas, now) {
    const c = canvas.begin();
    const fades = this._paint_lit(c, now);
    this._paint_layers(c);
    if (this.has_handles) this._paint_handles(c);
    this._paint_chosen(c);
    return fades;
  }

  // The handle at a point of the screen, else -1.
  handle_at(px, py) {
    if (!this.has_handles) return -1;
    const {graph} = this.store;
    const [x, y] = [px / this.view.scale + this.view.x, py / this.view.scale + this.view.y];
    const slack = 4 / this.view.scale;
    for (let i = this._visible.length - 1; i >= 0; i--) {
      const h = this._visible[i];
      const [dx, dy] = [Math.abs(graph.x[h] - x), Math.abs(graph.y[h] - y)];
      if (graph.is_op[h] ? dx <= BOX_WIDTH / 2 && dy <= BOX_HEIGHT / 2
                         : Math.hypot(dx, dy) <= RADIUS + slack) return h;
    }
    return -1;
  }

  // The layer at a point of the screen, else -1.
  layer_at(px, py) {
    const [x, y] = [px / this.view.scale + this.view.x, py / this.view.scale + this.view.y];
    return this.store.graph.layers.findIndex(
      l => x >= l.x && x <= l.x + l.width && y >= l.y && y <= l.y + l.height);
  }

  is_closed(layer) {
    return layer >= 0 && (!this.has_handles || this.collapsed.has(layer));
  }

  _sx(x) {
    return (x - this.view.x) * this.view.scale;
  }

  _sy(y) {
    return (y - this.view.y) * this.view.scale;
  }

  _sees_layer(layer) {
    return layer.x <= this.right && layer.x + layer.width >= this.left &&
      layer.y <= this.bottom && layer.y + layer.height >= this.top;
  }

  _paint_frames(c) {
    const {layers} = this.store.graph;
    const {scale} = this.view;
    c.lineWidth = 1;
    c.font = `600 11px ${theme.font}`;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    layers.forEach((layer, at) => {
      if (this.is_closed(at) || !this._sees_layer(layer)) return;
      const [x, y] = [this._sx(layer.x), this._sy(layer.y)];
      const [w, h] = [layer.width * scale, layer.height * scale];
      c.fillStyle = theme.panel;
      c.strokeStyle = theme.line;
      c.beginPath();
      c.roundRect(x, y, w, h, Math.min(6, 12 * scale));
      c.fill();
      c.stroke();
      if (24 * scale < 8 && w < 40) return;
      c.fillStyle = theme.muted;
      const text = this._cutter.cut(c, layer.name, w - 12);
      if (24 * scale >= 8) c.fillText(text, x + 6, y + 13 * Math.min(1.2, scale) + 1);
    });
  }

  // Edges of visible handles, straight when there are many.
  _paint_edges(c) {
    const {graph} = this.store;
    const curved = this._visible.length < 700;
    c.strokeStyle = theme.edge;
    c.lineWidth = Math.max(0.5, Math.min(1.4, this.view.scale * 1.2));
    let drawn = 0;
    c.beginPath();
    for (const h of this._visible) {
      for (const edge of graph.out_edges(h)) {
        if (graph.distance[edge] > 0 && !this.next_step) continue;
        if (!curved && this._stamp[graph.to[edge]] !== this._stamp_now) continue;
        this._edge_path(c, edge, curved);
        // Long paths are slow to rasterise.
        if (++drawn % 250 === 0) {
          c.stroke();
          c.beginPath();
        }
      }
      if (curved) {
        for (const edge of graph.in_edges(h)) {
          if (this._stamp[graph.from[edge]] === this._stamp_now) continue;
          if (graph.distance[edge] > 0 && !this.next_step) continue;
          this._edge_path(c, edge, true);
        }
      }
      if (drawn > MOST_EDGES) break;
    }
    c.stroke();
    this._draws_curves = curved;
  }

  _edge_path(c, edge, curved) {
    const {graph} = this.store;
    const [from, to] = [graph.from[edge], graph.to[edge]];
    const drop = h => (graph.is_op[h] ? BOX_HEIGHT / 2 : RADIUS);
    const x0 = this._sx(graph.x[from]);
    const x1 = this._sx(graph.x[to]);
    const down = graph.y[to] >= graph.y[from] ? 1 : -1;
    const y0 = this._sy(graph.y[from] + down * drop(from));
    const y1 = this._sy(graph.y[to] - down * drop(to));
    c.moveTo(x0, y0);
    if (curved) {
      const bend = (y1 - y0) * 0.45;
      c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
    } else {
      c.lineTo(x1, y1);
    }
  }

  _paint_layer_edges(c) {
    const {graph} = this.store;
    c.strokeStyle = theme.edge;
    c.lineWidth = 0.75;
    c.beginPath();
    let drawn = 0;
    graph.layer_edges.forEach((edge, at) => {
      if (edge.next_step && !this.next_step) return;
      if (!this._sees_layer_edge(edge)) return;
      this._layer_edge_path(c, at);
      if (++drawn % 250 === 0) {
        c.stroke();
        c.beginPath();
      }
    });
    c.stroke();
  }

  // Between layers of which one is closed: else the edges of handles are there.
  _sees_layer_edge(edge) {
    const {layers} = this.store.graph;
    return (this.is_closed(edge.from) || this.is_closed(edge.to)) &&
      this._sees_layer(layers[edge.from]) && this._sees_layer(layers[edge.to]);
  }

  _layer_edge_path(c, at) {
    const {layers, layer_edges} = this.store.graph;
    const [from, to] = [layers[layer_edges[at].from], layers[layer_edges[at].to]];
    const down = to.y >= from.y + from.height * 0.5;
    const up = from.y >= to.y + to.height * 0.5;
    const right = to.x > from.x;
    if (down || up) {
      c.moveTo(this._sx(from.x + from.width / 2), this._sy(down ? from.y + from.height : from.y));
      c.lineTo(this._sx(to.x + to.width / 2), this._sy(down ? to.y : to.y + to.height));
    } else {
      c.moveTo(this._sx(right ? from.x + from.width : from.x), this._sy(from.y + from.height / 2));
      c.lineTo(this._sx(right ? to.x : to.x + to.width), this._sy(to.y + to.height / 2));
    }
  }

  _paint_devices(c) {
    const {graph} = this.store;
    if (!this._device_boxes || this._device_boxes.graph !== graph) {
      this._device_boxes = {graph, boxes: device_boxes(graph)};
    }
    c.font = `600 12px ${theme.font}`;
    c.textBaseline = 'bottom';
    c.textAlign = 'left';
    this._device_boxes.boxes.forEach((box, device) => {
      if (!box) return;
      // The name stays at the edge of the picture while its device is in sight.
      const x = Math.max(8, this._sx(box.left));
      const y = Math.max(18, this._sy(box.top) - 5);
      const end = this._sx(box.right);
      if (x > end - 20 || x > this.width || y > this.height ||
          this._sy(box.bottom) < 0) return;
      const text = this._cutter.cut(c, graph.devices[device], Math.max(30, end - x));
      c.fillStyle = theme.ground;
      c.fillRect(x - 4, y - 15, c.measureText(text).width + 8, 16);
      c.fillStyle = theme.text;
      c.fillText(text, x, y);
    });
  }

  // Edges over which a message went lately, brighter the newer it is.
  _paint_lit(c, now) {
    const {graph, lit, lit_at} = this.store;
    if (!lit.length) return false;
    const moves = has_motion();
    const shades = Array.from({length: SHADES}, () => []);
    const layer_shades = new Map();
    let newest = 0;
    for (const edge of lit) {
      const age = moves ? (now - lit_at[edge]) / LIT_MS : 0.3;
      if (age >= 1) continue;
      newest = 1;
      const shade = Math.min(SHADES - 1, Math.max(0, Math.floor(age * SHADES)));
      const layer_edge = graph.layer_edge_of[edge];
      if (layer_edge >= 0 && (layer_shades.get(layer_edge) ?? SHADES) > shade) {
        layer_shades.set(layer_edge, shade);
      }
      if (this.has_handles && this._is_seen(edge)) shades[shade].push(edge);
    }
    const layers = Array.from({length: SHADES}, () => []);
    for (const [at, shade] of layer_shades) {
      const edge = graph.layer_edges[at];
      if ((!edge.next_step || this.next_step) && this._sees_layer_edge(edge)) layers[shade].push(at);
    }
    c.strokeStyle = theme.lit;
    c.lineWidth = Math.max(1, Math.min(2.4, this.view.scale * 2.2));
    this._stroke_shades(c, shades, edge => this._edge_path(c, edge, this._draws_curves));
    c.lineWidth = 1.25;
    this._stroke_shades(c, layers, at => this._layer_edge_path(c, at));
    return moves && newest > 0;
  }

  _is_seen(edge) {
    const {graph} = this.store;
    if (graph.distance[edge] > 0 && !this.next_step) return false;
    const from = this._stamp[graph.from[edge]] === this._stamp_now;
    const to = this._stamp[graph.to[edge]] === this._stamp_now;
    return this._draws_curves ? from || to : from && to;
  }

  // Of many edges each glows less: when steps are short, all are lit all the time.
  _stroke_shades(c, shades, path) {
    const total = shades.reduce((sum, edges) => sum + edges.length, 0);
    const strength = Math.max(0.3, Math.min(1, FEW_LIT / total));
    for (let shade = SHADES - 1; shade >= 0; shade--) {
      c.globalAlpha = strength * (1 - shade / SHADES);
      for (let i = 0; i < shades[shade].length; i += 250) {
        c.beginPath();
        shades[shade].slice(i, i + 250).forEach(path);
        c.stroke();
      }
    }
    c.globalAlpha = 1;
  }

  _paint_layers(c) {
    const {layers} = this.store.graph;
    for (let at = 0; at < layers.length; at++) {
      if (this.is_closed(at) && this._sees_layer(layers[at])) this._paint_layer(c, layers[at], at);
    }
  }

  // A closed layer: its name, and how many of its handles are in which state.
  _paint_layer(c, layer, at) {
    const {scale} = this.view;
    const [x, y] = [this._sx(layer.x), this._sy(layer.y)];
    const [w, h] = [Math.max(1.5, layer.width * scale), Math.max(1.5, layer.height * scale)];
    const counts = this.store.layer_counts.subarray(5 * at, 5 * at + 5);
    const busiest = counts[RUNNING] ? RUNNING : counts[READY] ? READY
      : counts[WAITING] ? WAITING : counts[DONE] ? DONE : REMOTE;
    if (w < 26 || h < 12) {
      c.fillStyle = this._layer_tints()[busiest];
      c.fillRect(x, y, w, h);
      return;
    }
    c.fillStyle = this._layer_tints()[busiest];
    c.fillRect(x, y, w, h);
    c.strokeStyle = theme.states[busiest];
    c.lineWidth = busiest === RUNNING ? 2 : 1;
    c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    this._paint_shares(c, counts, x + 3, y + h - 6, w - 6, 3);
    if (w < 46 || h < 20) return;
    c.textAlign = 'left';
    c.textBaseline = 'top';
    c.fillStyle = theme.text;
    c.font = `600 11px ${theme.font}`;
    c.fillText(this._cutter.cut(c, layer.name, w - 10), x + 5, y + 4);
    if (h < 38) return;
    c.fillStyle = theme.muted;
    c.font = `10px ${theme.font}`;
    const words = counts[RUNNING] ? `${counts[RUNNING]} of ${layer.handles.length} running`
      : `${counts[DONE]} of ${layer.handles.length} done`;
    c.fillText(this._cutter.cut(c, words, w - 10), x + 5, y + 18);
  }

  _layer_tints() {
    if (this._tints_version !== theme.version) {
      this._tints_version = theme.version;
      this._tints = theme.states.map((color, state) =>
        mix(theme.ground, color, state === RUNNING ? 0.6 : state === READY ? 0.45
          : state === DONE ? 0.28 : 0.14));
    }
    return this._tints;
  }

  _paint_shares(c, counts, x, y, width, height) {
    const total = counts.reduce((sum, n) => sum + n, 0) || 1;
    for (const state of [DONE, RUNNING, READY, WAITING, REMOTE]) {
      const share = (width * counts[state]) / total;
      if (!share) continue;
      c.fillStyle = theme.states[state];
      c.fillRect(x, y, share, height);
      x += share;
    }
  }

  _paint_handles(c) {
    const {scale} = this.view;
    if (scale < LABEL_SCALE) this._paint_small(c);
    else for (const h of this._visible) this._paint_large(c, h);
  }

  // Boxes without words. The shape says the state: waiting is an outline, ready is
  // half full, running is full with a frame, done is pale.
  _paint_small(c) {
    const {graph, state} = this.store;
    const {scale} = this.view;
    const by_state = [[], [], [], [], []];
    for (const h of this._visible) by_state[state[h]].push(h);
    const tints = this._layer_tints();
    by_state.forEach((handles, s) => {
      c.fillStyle = s === DONE ? mix(theme.ground, theme.done, 0.5)
        : s === RUNNING || s === READY ? theme.states[s] : tints[s];
      c.strokeStyle = theme.states[s];
      c.lineWidth = 1;
      for (const h of handles) {
        const half_width = (graph.is_op[h] ? BOX_WIDTH / 2 : RADIUS) * scale;
        const half_height = (graph.is_op[h] ? BOX_HEIGHT / 2 : RADIUS) * scale;
        const [x, y] = [this._sx(graph.x[h]), this._sy(graph.y[h])];
        c.fillRect(x - half_width, y - half_height, s === READY ? half_width : 2 * half_width,
                   2 * half_height);
        if ((s === WAITING || s === READY || s === REMOTE) && graph.is_op[h]) {
          c.strokeRect(x - half_width, y - half_height, 2 * half_width, 2 * half_height);
        }
      }
      if (s !== RUNNING) return;
      c.strokeStyle = theme.text;
      for (const h of handles) {
        if (!graph.is_op[h]) continue;
        c.strokeRect(this._sx(graph.x[h]) - (BOX_WIDTH / 2) * scale - 1.5,
                     this._sy(graph.y[h]) - (BOX_HEIGHT / 2) * scale - 1.5,
                     BOX_WIDTH * scale + 3, BOX_HEIGHT * scale + 3);
      }
    });
  }

  _paint_large(c, h) {
    const {graph} = this.store;
    if (graph.is_op[h]) this._paint_op(c, h);
    else this._paint_variable(c, h);
  }

  _paint_op(c, h) {
    const {graph, state, arrived, runs} = this.store;
    const {scale} = this.view;
    const s = state[h];
    const color = theme.states[s];
    const [w, height] = [BOX_WIDTH * scale, BOX_HEIGHT * scale];
    const [x, y] = [this._sx(graph.x[h]) - w / 2, this._sy(graph.y[h]) - height / 2];
    const handle = graph.handles[h];
    c.fillStyle = s === RUNNING ? color : theme.ground;
    c.strokeStyle = color;
    c.lineWidth = s === RUNNING ? 2 : 1.25;
    c.setLineDash(s === REMOTE ? [4, 3] : []);
    c.beginPath();
    c.roundRect(x, y, w, height, 5 * scale);
    c.fill();
    c.stroke();
    c.setLineDash([]);
    const ink = s === RUNNING ? text_on(color) : color;
    const has_counts = scale >= COUNT_SCALE;
    draw_glyph(c, s, x + w - 9 * scale, y + height * (has_counts ? 0.34 : 0.5), 4.5 * scale, ink);
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    c.fillStyle = s === RUNNING ? ink : s === DONE || s === REMOTE ? theme.muted : theme.text;
    c.font = `${handle.collective ? 700 : 500} ${(11 * scale).toFixed(1)}px ${theme.narrow}`;
    const room = w - 23 * scale;
    const name = handle.name.slice(0, handle.name.lastIndexOf('@')) || handle.name;
    c.fillText(this._cutter.cut(c, name, room), x + 7 * scale,
               y + height * (has_counts ? 0.33 : 0.53));
    if (!has_counts) return;
    c.font = `${(8.5 * scale).toFixed(1)}px ${theme.narrow}`;
    c.fillStyle = s === RUNNING ? ink : theme.muted;
    const words = `${arrived[h]}/${handle.needs} messages \u00b7 ${count(runs[h])} runs`;
    c.fillText(this._cutter.cut(c, words, w - 12 * scale), x + 7 * scale, y + height * 0.74);
  }

  _paint_variable(c, h) {
    const {graph, state} = this.store;
    const {scale} = this.view;
    const s = state[h];
    const [x, y] = [this._sx(graph.x[h]), this._sy(graph.y[h])];
    c.fillStyle = s === DONE ? theme.done : theme.ground;
    c.strokeStyle = theme.states[s];
    c.lineWidth = 1.5;
    c.setLineDash(s === REMOTE ? [3, 2] : []);
    c.beginPath();
    c.arc(x, y, RADIUS * scale, 0, 2 * Math.PI);
    c.fill();
    c.stroke();
    c.setLineDash([]);
    if (scale < 1.5) return;
    c.fillStyle = theme.muted;
    c.font = `${(6 * scale).toFixed(1)}px ${theme.font}`;
    c.textAlign = 'center';
    c.textBaseline = 'top';
    const name = graph.handles[h].name.split('@')[0];
    c.fillText(this._cutter.cut(c, name, 40 * scale), x, y + (RADIUS + 2) * scale);
  }

  // What the user chose, searched for or points at.
  _paint_chosen(c) {
    const {graph, selected} = this.store;
    if (this.matches.length) {
      c.strokeStyle = theme.accent;
      c.lineWidth = 2;
      for (const h of this.matches) this._paint_ring(c, h, 4);
    }
    if (selected < 0) return;
    const edges = [[graph.in_edges(selected), theme.ready], [graph.out_edges(selected), theme.done]];
    for (const [own, color] of edges) {
      c.strokeStyle = color;
      c.lineWidth = 1.75;
      for (const edge of own) {
        c.setLineDash(graph.distance[edge] > 0 ? [6, 4] : []);
        c.beginPath();
        this._edge_path(c, edge, true);
        c.stroke();
      }
    }
    c.setLineDash([]);
    c.strokeStyle = theme.accent;
    c.lineWidth = 3;
    this._paint_ring(c, selected, 3);
  }

  _paint_ring(c, h, margin) {
    const {graph} = this.store;
    const {scale} = this.view;
    const least = 3;
    const half_width = Math.max(least, (graph.is_op[h] ? BOX_WIDTH / 2 : RADIUS) * scale) + margin;
    const half_height = Math.max(least, (graph.is_op[h] ? BOX_HEIGHT / 2 : RADIUS) * scale) + margin;
    const [x, y] = [this._sx(graph.x[h]), this._sy(graph.y[h])];
    if (x < -100 || y < -100 || x > this.width + 100 || y > this.height + 100) return;
    c.beginPath();
    c.roundRect(x - half_width, y - half_height, 2 * half_width, 2 * half_height,
                graph.is_op[h] ? 6 : half_height);
    c.stroke();
  }
}

// The sign of a state: empty ring, half ring, triangle, tick, three dots.
export function draw_glyph(c, state, x, y, r, color) {
  c.strokeStyle = color;
  c.fillStyle = color;
  c.lineWidth = Math.max(1, r / 3.2);
  c.beginPath();
  if (state === WAITING || state === READY) {
    c.arc(x, y, r * 0.85, 0, 2 * Math.PI);
    c.stroke();
    if (state === READY) {
      c.beginPath();
      c.arc(x, y, r * 0.85, Math.PI / 2, 1.5 * Math.PI);
      c.fill();
    }
  } else if (state === RUNNING) {
    c.moveTo(x - r * 0.7, y - r);
    c.lineTo(x + r, y);
    c.lineTo(x - r * 0.7, y + r);
    c.fill();
  } else if (state === DONE) {
    c.moveTo(x - r * 0.9, y);
    c.lineTo(x - r * 0.2, y + r * 0.7);
    c.lineTo(x + r, y - r * 0.7);
    c.stroke();
  } else {
    for (const shift of [-0.8, 0, 0.8]) c.rect(x + shift * r - r / 6, y - r / 6, r / 3, r / 3);
    c.fill();
  }
}

function device_boxes(graph) {
  const boxes = [];
  const add = (device, left, top, right, bottom) => {
    const box = boxes[device] ??= {left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity};
    box.left = Math.min(box.left, left);
    box.top = Math.min(box.top, top);
    box.right = Math.max(box.right, right);
    box.bottom = Math.max(box.bottom, bottom);
  };
  for (const l of graph.layers) add(l.device, l.x, l.y, l.x + l.width, l.y + l.height);
  graph.handles.forEach((handle, h) => {
    if (graph.layer_of[h] < 0) {
      add(handle.device, graph.x[h] - BOX_WIDTH / 2, graph.y[h] - BOX_HEIGHT / 2,
          graph.x[h] + BOX_WIDTH / 2, graph.y[h] + BOX_HEIGHT / 2);
    }
  });
  return boxes;
}
