// A canvas with the size of its place in the page, in pixels of the screen.
import {make} from '/dom.js';

// At most one painting per frame of the screen, none while nothing changed.
export class painter {
  constructor(paint) {
    this._paint = paint;
    this._asked = false;
    this._run = now => {
      this._asked = false;
      this._paint(now);
    };
  }

  ask() {
    if (this._asked) return;
    this._asked = true;
    requestAnimationFrame(this._run);
  }
}

export class screen_canvas {
  // `on_size` is called when the size changed.
  constructor(element, on_size) {
    this.element = element;
    this.context = element.getContext('2d');
    this.width = 0;
    this.height = 0;
    new ResizeObserver(() => {
      if (this.fit()) on_size();
    }).observe(element);
  }

  // Where the pointer is.
  at(event) {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // Cleared, and with coordinates in CSS pixels.
  begin() {
    this.to_screen();
    this.context.clearRect(0, 0, this.width, this.height);
    return this.context;
  }

  to_screen() {
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
  }

  // Takes the size that the element has now. Returns whether that is another one.
  fit() {
    const {clientWidth, clientHeight} = this.element;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    if (clientWidth === 0) return false;  // hidden: it keeps what it shows
    this.width = clientWidth;
    this.height = clientHeight;
    const [width, height] = [Math.round(clientWidth * this.ratio),
                             Math.round(clientHeight * this.ratio)];
    if (this.element.width === width && this.element.height === height) return false;
    this.element.width = width;
    this.element.height = height;
    return true;
  }
}

// Texts cut to a width. Measuring is slow, and names come again in every frame.
export class text_cutter {
  constructor() {
    this._known = new Map();
  }

  cut(context, text, width) {
    const key = `${context.font}|${width | 0}|${text}`;
    let cut = this._known.get(key);
    if (cut === undefined) {
      if (this._known.size > 20000) this._known.clear();
      cut = shorten(context, text, width);
      this._known.set(key, cut);
    }
    return cut;
  }
}

function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}\u2026`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low)}\u2026` : '';
}

// A tooltip that follows the pointer within `parent`.
export class tooltip {
  constructor(parent) {
    this.parent = parent;
    this.element = make('div', {class: 'tooltip', hidden: true});
    parent.append(this.element);
  }

  show(x, y, lines) {
    const {element, parent} = this;
    element.hidden = false;
    element.textContent = lines.join('\n');
    // Left of the pointer, or above it, where the room ends.
    const place = (at, size, room) =>
      (at + 14 + size > room ? Math.max(0, at - 10 - size) : at + 14);
    const left = place(x, element.offsetWidth, parent.clientWidth);
    const top = place(y, element.offsetHeight, parent.clientHeight);
    element.style.transform = `translate(${left}px, ${top}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}
