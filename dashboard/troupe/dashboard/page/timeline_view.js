// What each worker ran in the last seconds.
import {button, link, make, set_hidden} from '/dom.js';
import {painter, screen_canvas, text_cutter, tooltip} from '/canvas.js';
import {has_motion, text_on, theme, type_color, type_rank_color} from '/colors.js';
import {flow_to} from '/timeline_flow.js';
import {timeline_rows} from '/timeline_rows.js';
import {HELP, KIND_WORDS, NO_WORKER} from '/slices.js';
import {ms, percent, tick_step} from '/format.js';

const LEAST_ROW = 26;
const MOST_ROW = 52;
const AXIS = 22;
const LEAST_SPAN = 0.02;       // ms
const MOST_SPAN = 600000;
const FIRST_SPAN = 4000;
const DRAG = 4;                // pixels that make a press a drag
const LEGEND = 7;

export class timeline_view {
  constructor(store, open) {
    this.name = 'Timeline';
    this.store = store;
    this.open = open;
    this.rows = new timeline_rows(store);
    this.begin = 0;
    this.span = FIRST_SPAN;
    this.row = LEAST_ROW;      // pixels
    this.follows = true;
    this.chosen = null;        // a slice as a row, with what it waited for
    this._zooms = [];          // windows to go back to
    this._cutter = new text_cutter();
    this._colors = [];
    this.painter = new painter(() => this._paint());
    this.canvas = new screen_canvas(
      make('canvas', {class: 'touch_x', role: 'img', 'aria-label': 'Timeline of the workers'}),
      () => this.painter.ask());
    this.spacer = make('div', {});
    this.empty = make('p', {class: 'empty'}, 'Nothing has run yet.');
    this.place = make('div', {class: 'timeline_place', tabindex: '-1',
      on: {scroll: () => this.painter.ask()}}, this.canvas.element, this.spacer);
    this.frame = make('div', {class: 'canvases'}, this.place, this.empty);
    this.tip = new tooltip(this.frame, make('div', {}));
    this.facts = make('p', {class: 'slice_facts', role: 'status'});
    this.element = make('div', {class: 'view'}, this._make_tools(), this.frame, this.facts);
    this._listen();
    this._tell_chosen();
    store.on('run', () => this._begin());
    store.on('frame', () => this._changed());
    store.on('history', () => this._changed());
  }

  shown() {
    this.painter.ask();
  }

  theme_changed() {
    this._colors = [];
    this.painter.ask();
  }

  key(key) {
    if (key === 'ArrowLeft') this._shift(-0.2);
    else if (key === 'ArrowRight') this._shift(0.2);
    else if (key === 'ArrowUp') this.place.scrollTop -= this.row;
    else if (key === 'ArrowDown') this.place.scrollTop += this.row;
    else if (key === '+' || key === '=') this._zoom(1 / 1.5, 0.5);
    else if (key === '-') this._zoom(1.5, 0.5);
    else if (key === '0') this._show_all();
    else if (key === 'f') this.set_follows(!this.follows);
    else if (key === 'Escape') return this._escape();
    else return false;
    return true;
  }

  set_follows(follows) {
    this.follows = follows;
    this.follow_button.setAttribute('aria-pressed', String(follows));
    this.painter.ask();
  }

  _make_tools() {
    this.follow_button = button('Follow', () => this.set_follows(!this.follows),
      {'aria-pressed': 'true', 'aria-keyshortcuts': 'f', title: 'Follow the run (f)'});
    const zoom = (text, key, label) =>
      button(text, () => this.key(key), {'aria-label': label, title: `${label} (${key})`});
    this.legend = make('ul', {class: 'legend', 'aria-label': 'Colours of ops'});
    return make('div', {class: 'tools'}, this.follow_button,
      make('div', {class: 'joined'}, zoom('\u2212', '-', 'Zoom out'), zoom('+', '+', 'Zoom in'),
        zoom('All', '0', 'Show all that is kept')),
      this.legend);
  }

  _begin() {
    const {graph} = this.store;
    this.chosen = null;
    this._colors = [];
    this._zooms = [];
    this._tell_chosen();
    const items = graph.types.slice(0, LEGEND).map((type, rank) => swatch(type_rank_color(rank), type));
    if (graph.types.length > LEGEND) items.push(swatch(type_rank_color(LEGEND), 'other'));
    if (items.length) items.push(swatch(null, 'gradient: darker'));
    this.legend.replaceChildren(...items);
    this.painter.ask();
  }

  _changed() {
    if (!this.element.hidden) this.painter.ask();
  }

  // The run's time now. Between frames it goes on, so that following is smooth.
  _now() {
    const {head, frame_at} = this.store;
    if (!head) return 0;
    if (head.state !== 'running' || !has_motion()) return head.time_ms;
    return head.time_ms + Math.min(250, performance.now() - frame_at);
  }

  _paint() {
    if (!this.store.graph || !this.canvas.width || this.element.hidden) return;
    this.rows.update();
    set_hidden(this.empty, this.store.slices.count > 0);
    const count = this.rows.rows.length;
    this.row = Math.max(LEAST_ROW, Math.min(MOST_ROW, (this.place.clientHeight - AXIS) / count | 0));
    const height = AXIS + count * this.row;
    this.spacer.style.height = `${Math.max(0, height - this.place.clientHeight)}px`;
    if (this.follows) this.begin = this._now() - this.span;
    this.labels = this.canvas.width < 560 ? 64 : 118;
    const c = this.canvas.begin();
    c.font = `11px ${theme.font}`;
    this._paint_axis(c);
    c.save();
    c.beginPath();
    c.rect(0, AXIS, this.canvas.width, this.canvas.height - AXIS);
    c.clip();
    this._paint_rows(c);
    this._paint_slices(c);
    this._paint_flow(c);
    this._paint_labels(c);
    c.restore();
    this._paint_drag(c);
    const {head} = this.store;
    if (this.follows && head && head.state === 'running' && has_motion() &&
        performance.now() - this.store.frame_at < 250) this.painter.ask();
  }

  _x(time) {
    return this.labels + ((time - this.begin) / this.span) * (this.canvas.width - this.labels);
  }

  _time(x) {
    return this.begin + ((x - this.labels) / (this.canvas.width - this.labels)) * this.span;
  }

  _y(row) {
    return AXIS + row * this.row - this.place.scrollTop;
  }

  _paint_axis(c) {
    const step = tick_step(this.span, (this.canvas.width - this.labels) / 110);
    const digits = step >= 1000 ? 0 : Math.max(0, Math.ceil(-Math.log10(step / 1000)));
    c.textBaseline = 'middle';
    c.textAlign = 'center';
    c.fillStyle = theme.muted;
    c.strokeStyle = theme.line;
    c.lineWidth = 1;
    c.beginPath();
    for (let t = Math.ceil(this.begin / step) * step; t <= this.begin + this.span; t += step) {
      const x = Math.round(this._x(t)) + 0.5;
      c.moveTo(x, AXIS - 4);
      c.lineTo(x, Math.min(this.canvas.height, this._y(this.rows.rows.length)));
      if (x > this.labels + 20) c.fillText(`${(t / 1000).toFixed(digits)}\u2009s`, x, AXIS / 2 - 1);
    }
    c.moveTo(0, AXIS + 0.5);
    c.lineTo(this.canvas.width, AXIS + 0.5);
    c.stroke();
  }

  _paint_rows(c) {
    c.strokeStyle = theme.line;
    c.beginPath();
    this.rows.rows.forEach((_, row) => {
      const y = this._y(row + 1) + 0.5;
      c.moveTo(0, y);
      c.lineTo(this.canvas.width, y);
    });
    c.stroke();
  }

  // Names of the rows, over slices that begin left of the window.
  _paint_labels(c) {
    c.fillStyle = theme.ground;
    c.fillRect(0, AXIS + 1, this.labels - 4, this.canvas.height);
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    const workers = this.store.head ? this.store.head.workers : [];
    this.rows.rows.forEach(({text, worker}, row) => {
      const y = this._y(row) + this.row / 2;
      const busy = worker >= 0 && workers[worker] ? workers[worker].busy : NaN;
      c.font = `11px ${theme.font}`;
      c.fillStyle = theme.text;
      const room = this.labels - 10 - (busy >= 0 && this.labels > 100 ? 40 : 0);
      c.fillText(this._cutter.cut(c, text, room), 4, y);
      if (!(busy >= 0) || this.labels < 100) return;
      c.fillStyle = theme.muted;
      c.textAlign = 'right';
      c.fillText(percent(busy), this.labels - 10, y);
      c.textAlign = 'left';
    });
  }

  _color(handle) {
    return this._colors[handle] ??=
      type_color(this.store.graph, this.store.graph.handles[handle].type);
  }

  _paint_slices(c) {
    const {slices, graph} = this.store;
    const end = this.begin + this.span;
    const pixel = this.span / (this.canvas.width - this.labels);
    const drawn = new Float64Array(this.rows.rows.length).fill(-Infinity);
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    c.font = `11px ${theme.font}`;
    let color = '';
    for (let i = slices.first_after(this.begin); i < slices.count; i++) {
      const from = slices.begin[i];
      const to = from + slices.ms[i];
      if (from > end || to < this.begin) continue;
      const row = this.rows.of(slices.handle[i], slices.worker[i], slices.kind[i]);
      // Of several slices in one pixel, the first is enough.
      if (to < drawn[row] + pixel) continue;
      const y = this._y(row);
      if (y > this.canvas.height || y < AXIS - this.row) continue;
      const x = this._x(Math.max(from, this.begin));
      const width = Math.max(1, this._x(Math.min(to, end)) - x - (to - from > 4 * pixel ? 1 : 0));
      drawn[row] = to;
      const own = this._color(slices.handle[i]);
      if (own !== color) c.fillStyle = color = own;
      if (slices.kind[i] === HELP) this._paint_hatched(c, x, y + 4, width, this.row - 7);
      else c.fillRect(x, y + 4, width, this.row - 7);
      if (width < 34) continue;
      const words = slices.kind[i] === HELP ? 'helps ' : '';
      c.fillStyle = slices.kind[i] === HELP ? theme.text : text_on(own);
      c.fillText(this._cutter.cut(c, words + graph.handles[slices.handle[i]].type, width - 8),
                 x + 4, y + this.row / 2 + 0.5);
      color = '';
    }
  }

  // Help with an op that runs elsewhere: an outline with a bar.
  _paint_hatched(c, x, y, width, height) {
    c.fillRect(x, y, width, 3);
    c.fillRect(x, y + height - 3, width, 3);
    c.globalAlpha = 0.35;
    c.fillRect(x, y + 3, width, height - 6);
    c.globalAlpha = 1;
  }

  // Arrows from the slices for which the chosen one waited.
  _paint_flow(c) {
    if (!this.chosen) return;
    const {chain} = this.chosen;
    for (let i = chain.length - 1; i >= 0; i--) this._paint_outline(c, chain[i], i === 0);
    for (let i = chain.length - 2; i >= 0; i--) this._paint_arrow(c, chain[i + 1], chain[i], i === 0);
  }

  _row_of([, , handle, worker, , kind]) {
    return this.rows.of(handle, worker, kind);
  }

  _paint_outline(c, slice, is_chosen) {
    const y = this._y(this._row_of(slice));
    const [x0, x1] = [this._x(slice[0]), this._x(slice[0] + slice[1])];
    c.strokeStyle = theme.text;
    c.lineWidth = is_chosen ? 2.5 : 1;
    c.strokeRect(x0 - 0.5, y + 3, Math.max(2, x1 - x0), this.row - 5);
  }

  _paint_arrow(c, from, to, is_first) {
    const x0 = this._x(from[0] + from[1]);
    const x1 = this._x(to[0]);
    const y0 = this._y(this._row_of(from)) + this.row / 2;
    const y1 = this._y(this._row_of(to)) + this.row / 2;
    if (Math.max(x0, x1) < this.labels || Math.min(x0, x1) > this.canvas.width) return;
    c.strokeStyle = c.fillStyle = theme.text;
    c.lineWidth = is_first ? 2 : 1;
    const bend = Math.max(14, Math.abs(x1 - x0) / 2);
    c.beginPath();
    c.moveTo(x0, y0);
    c.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    c.stroke();
    c.beginPath();
    c.moveTo(x1 + 1, y1);
    c.lineTo(x1 - 6, y1 - 4);
    c.lineTo(x1 - 6, y1 + 4);
    c.fill();
  }

  _paint_drag(c) {
    if (!this._drag || !this._drag.is_drag) return;
    const [left, right] = [this._drag.x, this._drag.now].sort((a, b) => a - b);
    c.fillStyle = theme.accent;
    c.globalAlpha = 0.2;
    c.fillRect(left, AXIS, right - left, this.canvas.height);
    c.globalAlpha = 1;
    c.fillStyle = theme.text;
    c.textAlign = 'center';
    c.textBaseline = 'top';
    c.fillText(ms(this._time(right) - this._time(left)), (left + right) / 2, AXIS + 4);
  }

  // The slice at a point of the canvas, as a row; null if there is none.
  _slice_at(x, y) {
    const {slices} = this.store;
    if (x < this.labels || y < AXIS) return null;
    const time = this._time(x);
    const slack = (2 * this.span) / this.canvas.width;
    let best = -1;
    let best_off = slack;
    for (let i = slices.first_after(time - slack); i < slices.count; i++) {
      const from = slices.begin[i];
      const to = from + slices.ms[i];
      const off = Math.max(0, from - time, time - to);
      if (off > best_off || (off === best_off && best >= 0)) continue;
      const top = this._y(this.rows.of(slices.handle[i], slices.worker[i], slices.kind[i]));
      if (y < top || y >= top + this.row) continue;
      best = i;
      best_off = off;
    }
    return best < 0 ? null : slices.row(best);
  }

  _listen() {
    const {element} = this.canvas;
    const at = event => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    element.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      const [x, y] = at(event);
      element.setPointerCapture(event.pointerId);
      this._drag = {x, y, now: x, is_drag: false};
    });
    element.addEventListener('pointermove', event => {
      const [x, y] = at(event);
      if (!this._drag) {
        this._hover(x, y);
        return;
      }
      this._drag.now = Math.max(this.labels, x);
      this._drag.is_drag ||= Math.abs(x - this._drag.x) > DRAG;
      this.tip.hide();
      this.painter.ask();
    });
    element.addEventListener('pointerup', () => this._end_drag());
    element.addEventListener('pointercancel', () => { this._drag = null; });
    element.addEventListener('pointerleave', () => this.tip.hide());
    element.addEventListener('dblclick', () => this._zoom_back());
    element.addEventListener('wheel', event => this._wheel(event, at(event)), {passive: false});
  }

  _end_drag() {
    const drag = this._drag;
    this._drag = null;
    if (!drag || !this.store.graph) return;
    if (!drag.is_drag) {
      this._choose(this._slice_at(drag.x, drag.y));
      return;
    }
    const [begin, end] = [this._time(Math.max(this.labels, Math.min(drag.x, drag.now))),
                          this._time(Math.max(drag.x, drag.now))];
    this._zooms.push([this.begin, this.span, this.follows]);
    this.set_follows(false);
    this.begin = begin;
    this.span = Math.max(LEAST_SPAN, end - begin);
  }

  _zoom_back() {
    const before = this._zooms.pop();
    if (!before) {
      this._zoom(2, 0.5);
      return;
    }
    [this.begin, this.span] = before;
    this.set_follows(before[2]);
  }

  // A wheel zooms; with the shift key it moves; if there are many rows, it scrolls
  // unless the control key is pressed.
  _wheel(event, [x]) {
    const overflows = this.place.scrollHeight > this.place.clientHeight + 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this._shift((event.deltaX || event.deltaY) / 800);
    } else if (event.ctrlKey || !overflows) {
      event.preventDefault();
      const share = (x - this.labels) / (this.canvas.width - this.labels);
      this._zoom(Math.exp(event.deltaY * 0.0016), Math.max(0, Math.min(1, share)));
    }
  }

  _zoom(factor, share) {
    const span = Math.max(LEAST_SPAN, Math.min(MOST_SPAN, this.span * factor));
    this.begin += (this.span - span) * share;
    this.span = span;
    this.painter.ask();
  }

  _shift(share) {
    this.set_follows(false);
    this.begin += this.span * share;
  }

  _show_all() {
    const first = this.store.slices.first_time();
    this._zooms.push([this.begin, this.span, this.follows]);
    this.set_follows(false);
    this.begin = first;
    this.span = Math.max(LEAST_SPAN, this._now() - first);
  }

  _hover(x, y) {
    const slice = this.store.graph && this.labels ? this._slice_at(x, y) : null;
    this.canvas.element.classList.toggle('points', Boolean(slice));
    if (!slice) {
      this.tip.hide();
      return;
    }
    const [, length, handle, , step, kind] = slice;
    const words = kind === 0 ? '' : ` (${KIND_WORDS[kind]})`;
    this.tip.show(x, y, [`${this.store.graph.handles[handle].name}${words}`,
                         `step ${step}, ${ms(length)}`]);
  }

  _choose(slice) {
    this.chosen = slice && {slice, chain: flow_to(this.store, slice)};
    if (slice) {
      if (this.follows) this.set_follows(false);
      this.store.select(slice[2]);
    }
    this._tell_chosen();
    this.painter.ask();
  }

  _tell_chosen() {
    if (!this.chosen) {
      this.facts.replaceChildren('Click an op to see what it waited for. Drag to zoom in, double-click to zoom out.');
      return;
    }
    const {graph} = this.store;
    const [slice, before] = this.chosen.chain;
    const name = handle => link(graph.handles[handle].name, () => this.open(handle));
    const where = slice[3] === NO_WORKER ? 'no worker' : `worker ${slice[3]}`;
    const parts = [name(slice[2]), ` ${KIND_WORDS[slice[5]]} in step ${slice[4]} on ${where} for `,
                   make('b', {}, ms(slice[1])), '. '];
    if (before) {
      parts.push('It waited for ', name(before[2]), `, which ended ${
        ms(Math.max(0, slice[0] - before[0] - before[1]))} before it began.`);
    } else {
      parts.push('Nothing in its step that is kept ran before it.');
    }
    this.facts.replaceChildren(...parts);
  }

  _escape() {
    if (!this.chosen) return false;
    this._choose(null);
    return true;
  }
}

function swatch(color, text) {
  const square = make('span', {class: 'swatch'});
  if (color) square.style.background = color;
  else square.hidden = true;
  return make('li', {}, square, text);
}
