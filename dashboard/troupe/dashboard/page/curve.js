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
  // text(index) writes a value; hover(index) is told where the pointer is, -1: nowhere.
  constructor(title, color, text, hover) {
    this._color = color;  // name in the theme
    this._text = text;
    this._hovered = -1;
    this.set([], [], new Set());
    this.value = make('span', {class: 'number value'});
    this.empty = make('p', {class: 'empty'}, 'No step has ended yet.');
    const canvas = make('canvas', {role: 'img', 'aria-label': `Curve of ${title}; a table has numbers`,
      on: {pointermove: event => hover(this._index_at(event)), pointerleave: () => hover(-1)}});
    this.painter = new painter(() => this._paint());
    this._canvas = new screen_canvas(canvas, () => this.painter.ask());
    this.element = make('figure', {class: 'curve'},
      make('figcaption', {}, make('h3', {}, title), this.value),
      make('div', {class: 'canvases'}, canvas, this.empty));
  }

  // The arrays are read when the curve is painted. `marks`: steps that get a cross.
  set(xs, ys, marks) {
    Object.assign(this, {_xs: xs, _ys: ys, _marks: marks});
  }

  set_hovered(index) {
    if (index === this._hovered) return;
    this._hovered = index;
    this.show();
  }

  // `without_values` is said if there are steps, and no value for any.
  show(without_values = this._without_values) {
    this._without_values = without_values;
    const is_hovered = this._hovered >= 0 && this._hovered < this._xs.length;
    const at = is_hovered ? this._hovered : this._xs.length - 1;
    this._is_empty = !this._ys.some(Number.isFinite) && this._marks.size === 0;
    set_hidden(this.empty, !this._is_empty);
    set_text(this.empty, at < 0 ? 'No step has ended yet.' : without_values);
    set_text(this.value, at < 0 ? ''
      : `${is_hovered ? `step ${count(this._xs[at])}: ` : ''}${this._text(at)}`);
    this.painter.ask();
  }

  // The step next to the pointer.
  _index_at(event) {
    const [x] = this._canvas.at(event);
    const off = i => Math.abs(this._px(this._xs[i]) - x);
    return this._xs.reduce((best, _, i) => (best < 0 || off(i) < off(best) ? i : best), -1);
  }

  // Ranges of both axes.
  _measure() {
    const xs = this._xs;
    [this._x0, this._x1] = [xs[0] ?? 0, Math.max(xs.at(-1) ?? 1, (xs[0] ?? 0) + 1)];
    let [low, high] = [Infinity, -Infinity];
    for (const y of this._ys) {
      if (!Number.isFinite(y)) continue;
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
    if (low > high) [low, high] = [0, 1];
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    // Zero is a good floor when it is near.
    this._y0 = low >= 0 && low < 0.35 * high ? 0 : low - margin;
    this._y1 = high + margin;
  }

  _px(x) {
    return LEFT + ((x - this._x0) / (this._x1 - this._x0)) * (this._canvas.width - LEFT - RIGHT);
  }

  _py(y) {
    return this._foot - ((y - this._y0) / (this._y1 - this._y0)) * (this._foot - TOP);
  }

  _paint() {
    if (!this._canvas.width) return;
    this._foot = this._canvas.height - BOTTOM;
    this._measure();
    const c = this._canvas.begin();
    if (this._is_empty) return;
    c.font = `11px ${theme.font}`;
    this._paint_axes(c);
    this._paint_line(c);
    this._paint_marks(c);
    this._paint_hovered(c);
  }

  _paint_axes(c) {
    const {width} = this._canvas;
    c.fillStyle = theme.muted;
    c.strokeStyle = theme.line;
    c.lineWidth = 1;
    c.beginPath();
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    for (const y of ticks(this._y0, this._y1, tick_step(this._y1 - this._y0, (this._foot - TOP) / 32))) {
      const at = Math.round(this._py(y)) + 0.5;
      c.moveTo(LEFT, at);
      c.lineTo(width - RIGHT, at);
      c.fillText(short(y), LEFT - 6, at);
    }
    c.stroke();
    c.textBaseline = 'top';
    const step = Math.max(1, tick_step(this._x1 - this._x0, (width - LEFT) / 90));
    for (const x of ticks(this._x0, this._x1, step)) {
      const at = this._px(x);
      c.textAlign = at > width - 30 ? 'right' : 'center';
      c.fillText(count(x), Math.min(at, width - 2), this._foot + 5);
    }
  }

  // Of many steps in one column of pixels, least and largest are drawn. The line
  // passes over steps without a value, and ends at marked ones.
  _paint_line(c) {
    c.strokeStyle = theme[this._color];
    c.lineWidth = 1.5;
    c.lineJoin = 'round';
    c.beginPath();
    let column = -1;  // -1: the line begins anew
    let [low, high, last] = [0, 0, 0];
    const end_column = () => {
      if (column < 0 || high - low <= 0.5) return;
      c.moveTo(column, low);
      c.lineTo(column, high);
      c.moveTo(column, last);
    };
    this._ys.forEach((y, i) => {
      if (this._marks.has(this._xs[i])) {
        end_column();
        column = -1;
      }
      if (!Number.isFinite(y)) return;
      const [px, py] = [this._px(this._xs[i]), this._py(y)];
      if (Math.floor(px) === column) {
        [low, high, last] = [Math.min(low, py), Math.max(high, py), py];
        return;
      }
      end_column();
      if (column < 0) c.moveTo(px - 1, py);  // so that a single step is a dot
      c.lineTo(px, py);
      column = Math.floor(px);
      low = high = last = py;
    });
    end_column();
    c.stroke();
  }

  // A NaN has no place on the axis: a cross at the foot.
  _paint_marks(c) {
    const y = this._foot - 6;
    c.strokeStyle = theme.bad;
    c.lineWidth = 2;
    c.beginPath();
    for (const step of this._marks) {
      const x = this._px(step);
      if (x < LEFT) continue;
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
    const y = this._ys[this._hovered];
    c.fillStyle = theme.muted;
    c.fillRect(Math.round(x), TOP, 1, this._foot - TOP);
    if (!Number.isFinite(y)) return;
    c.fillStyle = theme[this._color];
    c.beginPath();
    c.arc(x, this._py(y), 3.5, 0, 2 * Math.PI);
    c.fill();
  }
}

// Multiples of `step` from `low` to `high`.
function ticks(low, high, step) {
  const first = Math.ceil(low / step);
  return Array.from({length: Math.floor(high / step) - first + 1}, (_, i) => (first + i) * step);
}
