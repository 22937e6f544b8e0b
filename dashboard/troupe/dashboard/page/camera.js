// Which part of the graph a canvas shows. screen = (world - origin) * scale.
const LEAST = 0.002;
const MOST = 4;
const MARGIN = 20;
const TITLE = 18;

export class camera {
  constructor() {
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.version = 0;  // changes with each move
  }

  move(pixels_x, pixels_y) {
    this._set(this.x - pixels_x / this.scale, this.y - pixels_y / this.scale, this.scale);
  }

  // The point under (x, y) of the screen stays where it is.
  zoom(factor, x, y) {
    const scale = Math.max(LEAST, Math.min(MOST, this.scale * factor));
    this._set(this.x + x / this.scale - x / scale, this.y + y / this.scale - y / scale, scale);
  }

  // Shows a rectangle of the world, with a margin that has room for a title above.
  fit({left, top, right, bottom}, width, height) {
    const scale = Math.max(LEAST, Math.min(
      1.25, (width - 2 * MARGIN) / Math.max(1, right - left),
      (height - 2 * MARGIN - TITLE) / Math.max(1, bottom - top)));
    this._set((left + right) / 2 - width / 2 / scale,
              (top + bottom) / 2 - (height + TITLE) / 2 / scale, scale);
  }

  center(x, y, scale, width, height) {
    this._set(x - width / 2 / scale, y - height / 2 / scale, scale);
  }

  _set(x, y, scale) {
    if (x === this.x && y === this.y && scale === this.scale) return;
    Object.assign(this, {x, y, scale});
    this.version += 1;
  }
}

// Drag, wheel and pinch of a screen_canvas move `view`; `on_move` follows each move.
// Calls on_click(x, y) for a press that is no drag.
export function attach_camera(canvas, view, on_move, on_click) {
  const {element} = canvas;
  const at = event => canvas.at(event);
  const points = new Map();
  let travelled = 0;
  element.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    points.set(event.pointerId, at(event));
    if (points.size === 1) travelled = 0;
  });
  element.addEventListener('pointermove', event => {
    const before = points.get(event.pointerId);
    if (!before) return;
    const now = at(event);
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    const others = [...points].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    points.set(event.pointerId, now);
    if (others.length) {
      const [x, y] = others[0];
      view.zoom(Math.hypot(now[0] - x, now[1] - y) /
                Math.max(1, Math.hypot(before[0] - x, before[1] - y)), x, y);
    } else if (travelled > 3) {
      view.move(now[0] - before[0], now[1] - before[1]);
    }
    on_move();
  });
  const end = event => {
    if (!points.delete(event.pointerId)) return;
    if (event.type === 'pointerup' && travelled <= 3) on_click(...at(event));
  };
  element.addEventListener('pointerup', end);
  element.addEventListener('pointercancel', end);
  element.addEventListener('wheel', event => {
    event.preventDefault();
    view.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...at(event));
    on_move();
  }, {passive: false});
}
