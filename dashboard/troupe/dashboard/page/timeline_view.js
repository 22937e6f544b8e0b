// What each worker ran in the last seconds.
import {button, link, make, set_hidden, set_text, zoom_buttons} from '/dom.js';
import {painter, screen_canvas, text_cutter, tooltip} from '/canvas.js';
import {FAMILIES, family_of, has_motion, op_color, text_on, theme} from '/colors.js';
import {flow_to} from '/timeline_flow.js';
import {MOST_LANES, timeline_rows, worker_name} from '/timeline_rows.js';
import {HELP, KIND_WORDS, NO_WORKER, PARCEL} from '/slices.js';
import {ms, percent, tick_step} from '/format.js';

const LEAST_ROW = 26;          // pixels
const MOST_ROW = 52;
const AXIS = 22;
const DRAG = 4;                // pixels that make a press a drag
const LEAST_SPAN = 0.02;       // ms
const MOST_SPAN = 600000;
const FIRST_SPAN = 4000;
const FRAME_MS = 250;          // the next frame should be here by then
const LEAST_LEFT = 84;         // of the names of rows, in pixels
const MOST_LEFT = 260;
const LEFT_SHARE = 0.4;        // of the width, at most
const PARCEL_WIDTH = 3;        // it has no length

export class timeline_view {
  constructor(store, open) {
    this.name = 'Timeline';
    this.store = store;
    this.open = open;
    this.rows = new timeline_rows(store);
    this.begin = 0;            // of the window, in ms of the run
    this.span = FIRST_SPAN;
    this.row = LEAST_ROW;
    this.follows = true;
    this._is_new = true;       // nothing of the run has been painted
    this._zooms = [];          // windows to go back to
    this._cutter = new text_cutter();
    this.painter = new painter(() => this._paint());
    this.canvas = new screen_canvas(
      make('canvas', {class: 'touch_x', role: 'img', 'aria-label': 'Timeline'}),
      () => this.painter.ask());
    this.spacer = make('div');
    this.empty = make('p', {class: 'empty'}, 'Nothing has run yet.');
    this.place = make('div', {class: 'timeline_place', on: {scroll: () => this.painter.ask()}},
      this.canvas.element, this.spacer);
    this.frame = make('div', {class: 'canvases'}, this.place, this.empty);
    this.tip = new tooltip(this.frame);
    this.facts = make('p', {class: 'slice_facts', role: 'status'});
    this.follow_button = button('Follow', () => this.set_follows(!this.follows),
      {'aria-pressed': 'true', 'aria-keyshortcuts': 'f'});
    this.stream_button = button('By stream', () => this.set_by_stream(!this.rows.by_stream),
      {'aria-pressed': 'false', 'aria-keyshortcuts': 's', title: 'Rows by stream (s)'});
    this.legend = make('ul', {class: 'legend', 'aria-label': 'Colours of ops'});
    this.element = make('div', {class: 'view'},
      make('div', {class: 'tools'}, this.follow_button, this.stream_button,
        zoom_buttons(this, 'All'), this.legend),
      this.frame, this.facts);
    this._listen();
    this._choose(null);
    store.on('run', () => this._begin());
    for (const what of ['frame', 'history']) store.on(what, () => this.painter.ask());
  }

  theme_changed() {
    this._colors = [];
  }

  key(key) {
    if (key === 'ArrowLeft') this._shift(-0.2);
    else if (key === 'ArrowRight') this._shift(0.2);
    else if (key === 'ArrowUp') this.place.scrollTop -= this.row;
    else if (key === 'ArrowDown') this.place.scrollTop += this.row;
    else if (key === '+' || key === '=') this._zoom(1 / 1.5, 0.5);
    else if (key === '-') this._zoom(1.5, 0.5);
    else if (key === '0') this._show_all();
    else if (key === 's') this.set_by_stream(!this.rows.by_stream);
    else if (key === 'Escape' && this.chain) this._choose(null);
    else return false;
    return true;
  }

  set_follows(follows) {
    this.follows = follows;
    this.follow_button.setAttribute('aria-pressed', String(follows));
    this.painter.ask();
  }

  set_by_stream(by_stream) {
    this.rows.set_by_stream(by_stream);
    this.stream_button.setAttribute('aria-pressed', String(by_stream));
    this.painter.ask();
  }

  _begin() {
    this._colors = [];         // by handle
    this._zooms = [];
    this._is_new = true;
    this._choose(null);
    const ops = this.store.graph.handles.filter(handle => handle.op);
    const families = new Set(ops.map(family_of));
    const swatch = ([name, color], family) => {
      if (!families.has(family)) return '';
      const square = make('span', {class: 'swatch'});
      square.style.background = color;
      return make('li', {}, square, name);
    };
    this.legend.replaceChildren(...FAMILIES.map(swatch),
      ops.length ? make('li', {}, 'gradient: darker') : '');
  }

  // The newest part of the run, and no time before its begin. A file opens with all of it if
  // it is short.
  _follow() {
    const {run, head, slices} = this.store;
    const now = this._now();
    if (this._is_new && slices.count) {
      this._is_new = false;
      if (run.recorded && head.state === 'ended') {
        this.span = Math.max(LEAST_SPAN, Math.min(FIRST_SPAN, now - slices.begin[0]));
      }
    }
    this.begin = Math.max(0, now - this.span);
  }

  // The run's time now. Between frames it goes on, so that following is smooth.
  _now() {
    const {head, frame_at, run} = this.store;
    if (!head) return 0;
    if (head.state !== 'running' || !has_motion()) return head.time_ms;
    // A recording's clock goes from event to event, a job's goes on.
    if (run.recorded) return head.time_ms;
    return head.time_ms + Math.min(FRAME_MS, performance.now() - frame_at);
  }

  _paint() {
    const {graph, slices, head, frame_at} = this.store;
    if (!graph || !this.canvas.width || this.element.hidden) return;
    this.rows.update();
    set_hidden(this.empty, slices.count > 0);
    set_text(this.empty, this.store.why_empty('Nothing has run yet.'));
    const {width, height} = this.canvas;
    const count = this.rows.rows.length;
    this.row = Math.max(LEAST_ROW, Math.min(MOST_ROW, Math.floor((height - AXIS) / count)));
    this.spacer.style.height = `${Math.max(0, AXIS + count * this.row - height)}px`;
    if (this.follows) this._follow();
    const c = this.canvas.begin();
    c.font = `11px ${theme.font}`;
    this._fit_names(c);
    this.pixels = (width - this.left) / this.span;  // per ms
    c.textBaseline = 'middle';
    this._paint_axis(c);
    c.save();
    c.beginPath();
    c.rect(0, AXIS + 1, width, height);
    c.clip();
    this._paint_slices(c);
    this._paint_flow(c);
    this._paint_rows(c);
    c.restore();
    if (this._drag?.is_drag) this._paint_drag(c);
    if (this.follows && head?.state === 'running' && has_motion() &&
        performance.now() - frame_at < FRAME_MS) this.painter.ask();
  }

  // Makes room for the names of rows. On a phone most of the width is for slices.
  _fit_names(c) {
    const {rows} = this.rows;
    const {width} = this.canvas;
    if (this._fitted === rows && this._fitted_width === width) return;
    [this._fitted, this._fitted_width] = [rows, width];
    const needs = ({text, worker}) => {
      const note = this._note_of(worker, '100 %');
      return c.measureText(text).width + (note ? c.measureText(note).width + 8 : 0) + 15;
    };
    this.left = Math.ceil(Math.max(LEAST_LEFT, Math.min(MOST_LEFT, width * LEFT_SHARE,
                                                        Math.max(...rows.map(needs)))));
  }

  _x(time) {
    return this.left + (time - this.begin) * this.pixels;
  }

  _time(x) {
    return this.begin + (Math.max(this.left, x) - this.left) / this.pixels;
  }

  _y(row) {
    return AXIS + row * this.row - this.place.scrollTop;
  }

  _paint_axis(c) {
    const step = tick_step(this.span, (this.canvas.width - this.left) / 110);
    const digits = Math.max(0, Math.ceil(-Math.log10(step / 1000)));
    const bottom = Math.min(this.canvas.height, this._y(this.rows.rows.length));
    c.textAlign = 'center';
    c.fillStyle = theme.muted;
    c.strokeStyle = theme.line;
    c.lineWidth = 1;
    c.beginPath();
    for (let t = Math.ceil(this.begin / step) * step; t <= this.begin + this.span; t += step) {
      const x = Math.round(this._x(t)) + 0.5;
      c.moveTo(x, AXIS - 4);
      c.lineTo(x, bottom);
      if (x > this.left + 20) c.fillText(`${(t / 1000).toFixed(digits)}\u2009s`, x, AXIS / 2 - 1);
    }
    c.moveTo(0, AXIS + 0.5);
    c.lineTo(this.canvas.width, AXIS + 0.5);
    c.stroke();
  }

  _paint_slices(c) {
    const {slices, graph} = this.store;
    const end = this.begin + this.span;
    const drawn = [];  // by row and lane: the end of the last slice that was drawn
    c.textAlign = 'left';
    for (let i = slices.first_after(this.begin); i < slices.count; i++) {
      const [from, length, handle, worker, , kind] = slices.row(i);
      if (from > end || from + length < this.begin) continue;
      const row = this.rows.of(handle, worker, kind);
      const [lane, height_of_lane] = this._lane(i, row);
      const y = this._y(row) + 4 + lane * height_of_lane;
      // Of several slices in one pixel, the first is enough.
      const place = row * MOST_LANES + lane;
      if ((from + length - drawn[place]) * this.pixels < 1 || y > this.canvas.height) continue;
      drawn[place] = from + length;
      const x = this._x(Math.max(from, this.begin));
      const right = this._x(Math.min(from + length, end));
      const width = Math.max(kind === PARCEL ? PARCEL_WIDTH : 1,
                             right - x - (right - x > 4 ? 1 : 0));
      const color = this._colors[handle] ??= op_color(graph.handles[handle]);
      c.fillStyle = color;
      // Help with an op that runs elsewhere is half as high.
      const height = kind === HELP ? (this.row - 7) / 2
        : Math.max(2, height_of_lane - (height_of_lane < this.row - 7 ? 1 : 0));
      c.fillRect(x, y, width, height);
      if (width < 34 || height < 16) continue;
      c.fillStyle = text_on(color);
      c.fillText(this._cutter.cut(c, graph.handles[handle].type, width - 8), x + 4,
                 y + height / 2 + 0.5);
    }
  }

  // Slices of a row that overlap are in different lanes: the lane of slice `at`, and the
  // height of a lane.
  _lane(at, row) {
    return [this.store.slices.lane[at], (this.row - 7) / this.rows.rows[row].lanes];
  }

  // Lines and names of the rows, over slices that begin left of the window.
  _paint_rows(c) {
    const workers = this.store.head?.workers ?? [];
    c.fillStyle = theme.ground;
    c.fillRect(0, 0, this.left - 4, this.canvas.height);
    c.fillStyle = theme.line;
    for (let row = 1; row <= this.rows.rows.length; row++) {
      c.fillRect(0, this._y(row), this.canvas.width, 1);
    }
    this.rows.rows.forEach(({text, worker}, row) => {
      const y = this._y(row) + this.row / 2;
      // How busy a worker is now: nothing that a file has.
      const busy = workers[worker] && !this.store.run.recorded ? percent(workers[worker].busy) : '';
      const note = this._note_of(worker, busy);
      const room = note ? c.measureText(note).width + 8 : 0;
      c.fillStyle = theme.text;
      c.textAlign = 'left';
      c.fillText(this._cutter.cut(c, text, this.left - 10 - room), 4, y);
      c.fillStyle = theme.muted;
      c.textAlign = 'right';
      c.fillText(note, this.left - 10, y);
    });
  }

  // Beside the name of a row: its worker, or how busy that is.
  _note_of(worker, busy) {
    const is_wide = this.canvas.width >= 560;
    if (worker < 0) return '';
    if (this.rows.by_stream) return is_wide || worker === NO_WORKER
      ? worker_name(this.store.run, worker) : `${worker}`;
    return is_wide ? busy : '';
  }

  // The chosen slice, and arrows from those for which it waited.
  _paint_flow(c) {
    c.strokeStyle = c.fillStyle = theme.text;
    this.chain?.forEach((slice, at) => {
      const [begin, length, handle, worker, , kind] = slice;
      const y = this._y(this.rows.of(handle, worker, kind));
      const x = this._x(begin);
      c.lineWidth = at === 0 ? 2.5 : 1;
      c.strokeRect(x - 0.5, y + 3, Math.max(2, length * this.pixels), this.row - 5);
      const before = this.chain[at + 1];
      if (!before) return;
      const y0 = this._y(this.rows.of(before[2], before[3], before[5])) + this.row / 2;
      const x0 = this._x(before[0] + before[1]);
      // What is in flight began before the value came that it waited for.
      this._paint_arrow(c, x0, y0, Math.max(x, x0), y + this.row / 2);
    });
  }

  _paint_arrow(c, x0, y0, x1, y1) {
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
    const [left, right] = [this._drag.x, this._drag.now].sort((a, b) => a - b);
    c.fillStyle = theme.accent;
    c.globalAlpha = 0.2;
    c.fillRect(left, AXIS, right - left, this.canvas.height);
    c.globalAlpha = 1;
    c.fillStyle = theme.text;
    c.textAlign = 'center';
    c.fillText(ms(this._time(right) - this._time(left)), (left + right) / 2, AXIS + 10);
  }

  // The slice at a point of the canvas, as a row; null if there is none.
  _slice_at(x, y) {
    const {slices, graph} = this.store;
    if (!graph || x < this.left || y < AXIS) return null;
    const time = this._time(x);
    let best = null;
    let least = 2 / this.pixels;  // how far off the slice is
    for (let i = slices.first_after(time - least); i < slices.count; i++) {
      const slice = slices.row(i);
      const off = Math.max(0, slice[0] - time, time - slice[0] - slice[1]);
      const row = this.rows.of(slice[2], slice[3], slice[5]);
      const top = this._y(row);
      if (off > least || (best && off === least) || y < top || y >= top + this.row) continue;
      const [lane, height] = this._lane(i, row);
      const [above, below] = [lane === 0 ? top : top + 4 + lane * height,
                              top + 4 + (lane + 1) * height];
      if (this.rows.rows[row].lanes > 1 && (y < above || y >= below)) continue;
      best = slice;
      least = off;
    }
    return best;
  }

  _listen() {
    const {element} = this.canvas;
    element.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      const [x, y] = this.canvas.at(event);
      element.setPointerCapture(event.pointerId);
      this._drag = {x, y, now: x, is_drag: false};
    });
    element.addEventListener('pointermove', event => {
      const [x, y] = this.canvas.at(event);
      if (!this._drag) {
        this._hover(x, y);
        return;
      }
      this._drag.now = x;
      this._drag.is_drag ||= Math.abs(x - this._drag.x) > DRAG;
      this.tip.hide();
      this.painter.ask();
    });
    element.addEventListener('pointerup', () => this._end_drag());
    element.addEventListener('pointercancel', () => { this._drag = null; });
    element.addEventListener('pointerleave', event => {
      if (event.pointerType === 'mouse') this.tip.hide();  // a tap leaves at once
    });
    element.addEventListener('dblclick', () => this._zoom_back());
    element.addEventListener('wheel', event => this._wheel(event), {passive: false});
  }

  _end_drag() {
    const drag = this._drag;
    this._drag = null;
    if (!drag || !this.store.graph) return;
    if (!drag.is_drag) {
      if (drag.x < this.left) return this._tell_row(drag.x, drag.y);
      this._choose(this._slice_at(drag.x, drag.y));
      return;
    }
    const [begin, end] = [this._time(Math.min(drag.x, drag.now)),
                          this._time(Math.max(drag.x, drag.now))];
    this._leave_window();
    this.begin = begin;
    this.span = Math.max(LEAST_SPAN, end - begin);
  }

  _leave_window() {
    this._zooms.push([this.begin, this.span, this.follows]);
    this.set_follows(false);
  }

  _zoom_back() {
    const before = this._zooms.pop();
    if (!before) return this._zoom(2, 0.5);
    [this.begin, this.span] = before;
    this.set_follows(before[2]);
  }

  // A wheel zooms, and moves sideways. If there are many rows it scrolls, and zooms
  // with the control key.
  _wheel(event) {
    if (this.spacer.offsetHeight > 0 && !event.deltaX && !event.ctrlKey) return;
    event.preventDefault();
    if (event.deltaX) this._shift(event.deltaX / 800);
    const share = (this._time(this.canvas.at(event)[0]) - this.begin) / this.span;
    this._zoom(Math.exp(event.deltaY * 0.0016), share);
  }

  // What is at `share` of the window stays there.
  _zoom(factor, share) {
    const span = Math.max(LEAST_SPAN, Math.min(MOST_SPAN, this.span * factor));
    this.begin += (this.span - span) * share;
    this.span = span;
    this.painter.ask();
  }

  _shift(share) {
    this.begin += this.span * share;
    this.set_follows(false);
  }

  _show_all() {
    if (!this.store.slices.count) return;
    this._leave_window();
    this.begin = this.store.slices.begin[0];
    this.span = Math.max(LEAST_SPAN, this._now() - this.begin);
  }

  // The whole name of a row, where it was cut or its worker is but a number.
  _tell_row(x, y) {
    const at = Math.floor((y + this.place.scrollTop - AXIS) / this.row);
    const row = y > AXIS ? this.rows.rows[at] : null;
    if (!row) return this.tip.hide();
    const is_of_stream = this.rows.by_stream && row.worker >= 0;
    this.tip.show(x, y, [row.text, ...is_of_stream ? [worker_name(this.store.run, row.worker)]
      : []]);
  }

  _hover(x, y) {
    if (x < this.left) {
      this.canvas.element.classList.remove('points');
      this._tell_row(x, y);
      return;
    }
    const slice = this._slice_at(x, y);
    this.canvas.element.classList.toggle('points', Boolean(slice));
    if (!slice) {
      this.tip.hide();
      return;
    }
    const [, length, handle, , step, kind] = slice;
    this.tip.show(x, y, [this.store.graph.handles[handle].name,
                         `${KIND_WORDS[kind]} in step ${step}${
                           kind === PARCEL ? '' : ` for ${ms(length)}`}`]);
  }

  _choose(slice) {
    this.chain = slice && flow_to(this.store, slice);
    if (slice) {
      this.set_follows(false);
      this.store.select(slice[2]);
      this._tell_chosen(...this.chain);
    } else {
      this.facts.replaceChildren(
        'Click an op to see what it waited for. Drag to zoom in, double-click to zoom out.');
    }
    this.painter.ask();
  }

  _tell_chosen(slice, before) {
    const [begin, length, handle, worker, step, kind] = slice;
    const name = of => link(this.store.graph.handles[of].name, () => this.open(of));
    const where = worker === NO_WORKER ? 'no worker' : worker_name(this.store.run, worker);
    const waited = before ? ['It waited for ', name(before[2]), `, which ended ${
      ms(Math.max(0, begin - before[0] - before[1]))} before it began.`]
      : ['Nothing in its step that is kept ran before it.'];
    const what = kind === PARCEL ? [` of another rank ${
      this.store.graph.handles[handle].type === 'recv' ? 'gets' : 'sent'} a value of step ${step}. `]
      : [` ${KIND_WORDS[kind]} in step ${step} on ${where} for `, make('b', {}, ms(length)), '. '];
    this.facts.replaceChildren(name(handle), ...what, ...waited);
  }
}
