// The graph of the run: which handle waits, runs or is done, and where messages go.
import {make, set_hidden, set_text, zoom_buttons} from '/dom.js';
import {camera, attach_camera} from '/camera.js';
import {painter, screen_canvas, tooltip} from '/canvas.js';
import {details_panel} from '/details_panel.js';
import {graph_painter} from '/graph_painter.js';
import {graph_search} from '/graph_search.js';
import {STATES} from '/graph.js';
import {state_sign} from '/state_sign.js';
import {count} from '/format.js';

const PAN = 80;       // pixels per arrow key
const FADE_MS = 60;   // between paintings of edges that fade
const READABLE = 1;   // scale at which names can be read

export class graph_view {
  constructor(store, why) {
    this.name = 'Graph';
    this.store = store;
    this.view = new camera();
    this.drawing = new graph_painter(store, this.view);
    this.painter = new painter(now => this._paint(now));
    const canvas = (...attributes) =>
      new screen_canvas(make('canvas', ...attributes), () => this.painter.ask());
    this.ground = canvas({'aria-hidden': 'true'});
    this.top = canvas({class: 'touch', role: 'img', 'aria-label':
      'Graph of the run. The search box and the links of the details reach every handle.'});
    this.search = new graph_search(store, handle => this.show_handle(handle), found => {
      this.drawing.matches = found;
      this.painter.ask();
    });
    this.details = new details_panel(store, handle => this.show_handle(handle), why);
    this.empty = make('p', {class: 'empty'}, 'The graph has not been built yet.');
    this.note = make('p', {class: 'note', hidden: true});
    this.place = make('div', {class: 'canvases'}, this.ground.element, this.top.element,
                      this.empty);
    this.tip = new tooltip(this.place);
    this.element = make('div', {class: 'view'}, this._make_tools(), this.note,
      make('div', {class: 'split'}, this.place, this.details.element));
    attach_camera(this.top, this.view, () => this._moved(), (x, y) => this._clicked(x, y));
    const {element} = this.top;
    element.addEventListener('pointermove', event => this._point(event));
    element.addEventListener('pointerleave', () => this.tip.hide());
    element.addEventListener('dblclick', event => this._close_layer(event));
    store.on('run', () => this._begin());
    store.on('frame', () => this._frame());
    store.on('selection', () => this.painter.ask());
  }

  // Chooses a handle and moves it into the middle of the picture.
  show_handle(handle) {
    const {graph} = this.store;
    this.drawing.collapsed.delete(graph.layer_of[handle]);
    this._show_handles();
    this._wanted = handle;
    this.store.select(handle);
    this._center();
  }

  // Keys of this view. Returns whether the key was one.
  key(key) {
    const {width, height} = this.top;
    const moves = {ArrowLeft: [PAN, 0], ArrowRight: [-PAN, 0], ArrowUp: [0, PAN],
                   ArrowDown: [0, -PAN]};
    if (moves[key]) this.view.move(...moves[key]);
    else if (key === '+' || key === '=') this.view.zoom(1.3, width / 2, height / 2);
    else if (key === '-') this.view.zoom(1 / 1.3, width / 2, height / 2);
    else if (key === 'Escape') return this._escape();
    else if (key !== '0') return false;
    this._moved(key === '0');
    return true;
  }

  _make_tools() {
    const choose = () => this._set_detail(this.detail_choice.value);
    this.detail_choice = make('select', {on: {change: choose}},
      ...[['auto', 'by zoom'], ['layers', 'layers'], ['handles', 'handles']].map(
        ([value, text]) => make('option', {value}, text)));
    const next = make('input', {type: 'checkbox', on: {change: () => {
      this.drawing.next_step = next.checked;
      this.painter.ask();
    }}});
    this.counts = {};
    const legend = make('ul', {class: 'legend', 'aria-label': 'Handles by state'});
    for (const state of STATES) {
      this.counts[state] = make('span', {class: 'number'}, '0');
      this.counts[state].item = make('li', {hidden: state === 'remote'}, state_sign(state),
                                     this.counts[state]);
      legend.append(this.counts[state].item);
    }
    return make('div', {class: 'tools'}, this.search.element,
      zoom_buttons(this, 'Fit'),
      make('label', {}, 'Detail ', this.detail_choice),
      make('label', {}, next, ' to next step'), legend);
  }

  _set_detail(detail) {
    this.detail_choice.value = detail;
    this.drawing.detail = detail;
    if (detail !== 'auto') this.drawing.collapsed.clear();
    this.painter.ask();
  }

  // What is shown in layers only is shown by zoom.
  _show_handles() {
    this.drawing.version += 1;
    if (this.drawing.detail === 'layers') this._set_detail('auto');
  }

  _begin() {
    this.drawing.collapsed.clear();
    this.drawing.matches = [];
    this.drawing.version += 1;
    this._fits = true;
    set_hidden(this.empty, this.store.graph.count > 0);
    this.painter.ask();
  }

  _frame() {
    const note = this.store.why_empty('');
    set_text(this.note, note);
    set_hidden(this.note, !note);
    if (!this.element.hidden) this.painter.ask();
    STATES.forEach((state, s) => {
      const number = this.store.state_counts[s];
      set_text(this.counts[state], count(number));
      if (state === 'remote') set_hidden(this.counts[state].item, number === 0);
    });
  }

  // While it fits, the graph fits any size of the window.
  _moved(fits = false) {
    this._fits = fits;
    this.tip.hide();
    this.painter.ask();
  }

  _paint(now) {
    if (!this.store.graph || !this.top.width || this.element.hidden) return;
    if (this._fits) this.view.fit(this.store.graph.box, this.top.width, this.top.height);
    if (this._wanted !== undefined) this._center();
    this.drawing.look(this.top.width, this.top.height);
    this.drawing.paint_ground(this.ground);
    clearTimeout(this._fading);
    if (this.drawing.paint(this.top, now)) {
      this._fading = setTimeout(() => this.painter.ask(), FADE_MS);
    }
  }

  // Waits until the canvas has a size: another view may have been shown before.
  _center() {
    const {graph} = this.store;
    // The details may just have taken their room.
    this.top.fit();
    if (this.element.hidden || !this.top.width) return;
    const handle = this._wanted;
    this._wanted = undefined;
    this.view.center(graph.x[handle], graph.y[handle], Math.max(READABLE, this.view.scale),
                     this.top.width, this.top.height);
    this._moved();
  }

  _clicked(x, y) {
    const handle = this.drawing.handle_at(x, y);
    if (handle >= 0) {
      this.store.select(handle);
      return;
    }
    const layer = this.drawing.layer_at(x, y);
    if (layer >= 0 && this.drawing.is_closed(layer)) this._open_layer(layer);
    else this.store.select(-1);
  }

  // A click on a closed layer shows its handles.
  _open_layer(at) {
    const layer = this.store.graph.layers[at];
    this.drawing.collapsed.delete(at);
    this._show_handles();
    if (!this.drawing.has_handles) {
      this.view.fit({left: layer.x, top: layer.y, right: layer.x + layer.width,
                     bottom: layer.y + layer.height}, this.top.width, this.top.height);
    }
    this._moved();
  }

  // A double click on the ground of a layer closes it.
  _close_layer(event) {
    const [x, y] = this.top.at(event);
    const layer = this.drawing.layer_at(x, y);
    if (layer < 0 || this.drawing.handle_at(x, y) >= 0 || this.drawing.is_closed(layer)) return;
    this.drawing.collapsed.add(layer);
    this.drawing.version += 1;
    this.painter.ask();
  }

  _point(event) {
    if (event.buttons || !this.store.graph || event.pointerType === 'touch') return;
    const [x, y] = this.top.at(event);
    const handle = this.drawing.handle_at(x, y);
    const {graph, state, arrived, runs} = this.store;
    this.top.element.classList.toggle('points', handle >= 0);
    if (handle >= 0) {
      const {name, needs, shape} = graph.handles[handle];
      this.tip.show(x, y, [name, `${STATES[state[handle]]}, ${arrived[handle]}/${needs} messages, ` +
        `${count(runs[handle])} runs`, ...(shape ? [shape] : [])]);
      return;
    }
    const layer = this.drawing.layer_at(x, y);
    if (layer >= 0) {
      const counts = this.store.layer_counts.subarray(5 * layer, 5 * layer + 5);
      this.tip.show(x, y, [graph.layers[layer].name || 'no layer',
        STATES.map((word, s) => `${counts[s]} ${word}`).filter((_, s) => counts[s]).join(', ')]);
    } else {
      this.tip.hide();
    }
  }

  _escape() {
    if (!this.search.clear()) this.store.select(-1);
    return true;
  }
}
