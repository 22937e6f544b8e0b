// A curve over steps, with ticks, the value under the pointer, and marks for NaN.
import {make, set_hidden, set_text} from '/dom.js';
import {painter, screen_canvas} from '/canvas.js';
import {theme} from '/colors.js';
import {count, short, tick_step} from '/format.js';

const LEFT = 60;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 20;

export class curve {
  // `text(value)` writes a value; `hover(index)` is told where the pointer is, -1: nowhere.
  constructor(title, color, text, hover) {
    this._color = color;
    this._text = text;
    this._xs = [];
    this._ys = [];
    this._hovered = -1;
    this._log = false;
    this.value = make('span', {class: 'number value'});
    this.empty = make('p', {class: 'empty'}, 'No step has ended yet.');
    this._canvas = new screen_canvas(
      make('canvas', {role: 'img', 'aria-label': `Curve of ${title}; the table below has numbers`}),
      () => this.painter.ask());
    this.painter = new painter(() => this._paint());
    this.tools = make('span', {});
    this.element = make('figure', {class: 'curve'},
      make('figcaption', {}, make('h3', {}, title), this.tools, this.value),
      make('div', {class: 'canvases'}, this._canvas.element, this.empty));
    const canvas = this._canvas.element;
    canvas.addEventListener('pointermove', event => hover(this._index_at(event)));
    canvas.addEventListener('pointerleave', () => hover(-1));
  }

  // The arrays are read when the curve is painted.
  set(xs, ys) {
    this._xs = xs;
    this._ys = ys;
    set_hidden(this.empty, xs.length > 0);
    this._show_value();
    this.painter.ask();
  }

  set_hovered(index) {
    if (index === this._hovered) return;
    this._hovered = index;
    this._show_value();
    this.painter.ask();
  }

  set_log(log) {
    this._log = log;
    this.painter.ask();
  }

  _show_value() {
    const at = this._hovered >= 0 && this._hovered < this._xs.length ? this._hovered
                                                                     : this._xs.length - 1;
    const where = this._hovered >= 0 ? `step ${count(this._xs[at])}: ` : '';
    set_text(this.value, at < 0 ? '' : `${where}${this._text(this._ys[at])}`);
  }

  _index_at(event) {
    const box = this._canvas.element.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (this._canvas.width - LEFT - RIGHT);
    const wanted = this._x0 + share * (this._x1 - this._x0);
    let best = -1;
    for (let i = 0; i < this._xs.length; i++) {
      if (best < 0 || Math.abs(this._xs[i] - wanted) < Math.abs(this._xs[best] - wanted)) best = i;
    }
    return best;
  }

  // Ranges of both axes. A logarithmic axis leaves out what is not above zero.
  _measure() {
    const xs = this._xs;
    [this._x0, this._x1] = [xs[0] ?? 0, Math.max(xs.at(-1) ?? 1, (xs[0] ?? 0) + 1)];
    let [low, high] = [Infinity, -Infinity];
    for (const y of this._ys) {
      if (!Number.isFinite(y) || (this._log && y <= 0)) continue;
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
    if (low > high) [low, high] = [0, 1];
    if (this._log) [low, high] = [Math.log10(low), Math.log10(high)];
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    // Zero is a good floor when it is near.
    this._y0 = !this._log && low >= 0 && low < 0.35 * high ? 0 : low - margin;
    this._y1 = high + margin;
  }

  _px(x) {
    return LEFT + ((x - this._x0) / (this._x1 - this._x0)) * (this._canvas.width - LEFT - RIGHT);
  }

  _py(y) {
    const at = this._log ? Math.log10(y) : y;
    return this._canvas.height - BOTTOM -
      ((at - this._y0) / (this._y1 - this._y0)) * (this._canvas.height - TOP - BOTTOM);
  }

  _paint() {
    if (!this._canvas.width) return;
    this._measure();
    const c = this._canvas.begin();
    c.font = `11px ${theme.font}`;
    this._paint_axes(c);
    this._paint_line(c);
    this._paint_marks(c);
    this._paint_hovered(c);
  }

  _paint_axes(c) {
    const {width, height} = this._canvas;
    c.strokeStyle = theme.line;
    c.fillStyle = theme.muted;
    c.lineWidth = 1;
    c.beginPath();
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    for (const y of this._y_ticks()) {
      const at = Math.round(this._py(y)) + 0.5;
      c.moveTo(LEFT, at);
      c.lineTo(width - RIGHT, at);
      c.fillText(short(y), LEFT - 6, at);
    }
    c.stroke();
    c.textBaseline = 'top';
    const step = Math.max(1, tick_step(this._x1 - this._x0, (width - LEFT) / 90));
    for (let x = Math.ceil(this._x0 / step) * step; x <= this._x1; x += step) {
      const at = this._px(x);
      c.textAlign = at > width - 30 ? 'right' : 'center';
      c.fillText(count(x), Math.min(at, width - 2), height - BOTTOM + 5);
    }
  }

  _y_ticks() {
    const ticks = [];
    const step = tick_step(this._y1 - this._y0, (this._canvas.height - TOP - BOTTOM) / 32);
    for (let y = Math.ceil(this._y0 / step) * step; y <= this._y1; y += step) {
      ticks.push(this._log ? 10 ** y : Math.abs(y) < step / 1000 ? 0 : y);
    }
    return ticks;
  }

  // Of many steps in one column of pixels, least and largest are drawn.
  _paint_line(c) {
    c.strokeStyle = this._color();
    c.lineWidth = 1.5;
    c.lineJoin = 'round';
    c.beginPath();
    let column = -1;
    let pen = false;
    let [low, high, last] = [0, 0, 0];
    const flush = () => {
      if (column >= 0 && high - low > 0.5) {
        c.moveTo(column, low);
        c.lineTo(column, high);
        c.moveTo(column, last);
      }
    };
    for (let i = 0; i < this._xs.length; i++) {
      const y = this._ys[i];
      if (!Number.isFinite(y) || (this._log && y <= 0)) {
        pen = false;
        continue;
      }
      const [px, py] = [this._px(this._xs[i]), this._py(y)];
      if (pen && Math.floor(px) === column) {
        [low, high, last] = [Math.min(low, py), Math.max(high, py), py];
        continue;
      }
      flush();
      if (pen) c.lineTo(px, py);
      else c.moveTo(px, py);
      // A step between two NaN is a dot.
      if (!pen && !Number.isFinite(this._ys[i + 1])) c.lineTo(px + 1, py);
      pen = true;
      column = Math.floor(px);
      low = high = last = py;
    }
    flush();
    c.stroke();
  }

  // A NaN has no place on the axis: a cross at the foot.
  _paint_marks(c) {
    const y = this._canvas.height - BOTTOM - 6;
    c.strokeStyle = theme.bad;
    c.lineWidth = 2;
    c.beginPath();
    let before = -Infinity;
    for (let i = 0; i < this._xs.length; i++) {
      if (!Number.isNaN(this._ys[i])) continue;
      const x = this._px(this._xs[i]);
      if (x - before < 2) continue;
      before = x;
      c.moveTo(x - 4, y - 4);
      c.lineTo(x + 4, y + 4);
      c.moveTo(x + 4, y - 4);
      c.lineTo(x - 4, y + 4);
    }
    c.stroke();
  }

  _paint_hovered(c) {
    if (this._hovered < 0 || this._hovered >= this._xs.length) return;
    const x = this._px(this._xs[this._hovered]);
    c.strokeStyle = theme.muted;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(Math.round(x) + 0.5, TOP);
    c.lineTo(Math.round(x) + 0.5, this._canvas.height - BOTTOM);
    c.stroke();
    const y = this._ys[this._hovered];
    if (!Number.isFinite(y) || (this._log && y <= 0)) return;
    c.fillStyle = this._color();
    c.beginPath();
    c.arc(x, this._py(y), 3.5, 0, 2 * Math.PI);
    c.fill();
  }
}
