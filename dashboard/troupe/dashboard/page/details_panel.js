// What is known of the chosen handle.
import {button, link, make, set_hidden, set_text} from '/dom.js';
import {STATES} from '/graph.js';
import {count, NONE} from '/format.js';
import {state_sign} from '/state_sign.js';

const MOST_LINKS = 40;

export class details_panel {
  // open(handle) shows a handle in the graph; why(handle) asks why it waits.
  constructor(store, open, why) {
    this.store = store;
    this.open = open;
    this.title = make('h2');
    this.facts = {};
    for (const name of ['type', 'device', 'layer', 'stream', 'shape', 'state', 'messages', 'runs']) {
      this.facts[name] = make('dd');
    }
    this.links = make('div');
    this.element = make(
      'aside', {class: 'details', 'aria-label': 'Chosen handle', hidden: true},
      make('div', {class: 'details_head'}, this.title,
        button('\u00d7', () => store.select(-1), {class: 'quiet', 'aria-label': 'Close details'})),
      make('dl', {class: 'facts'}, ...Object.entries(this.facts).flatMap(
        ([name, value]) => [make('dt', {}, name), value])),
      button('Why is it waiting?', () => why(store.selected), {class: 'wide'}), this.links);
    store.on('selection', () => this._fill());
    store.on('frame', () => this._update());
  }

  _fill() {
    const {graph, selected} = this.store;
    set_hidden(this.element, selected < 0);
    if (selected < 0) return;
    const {name, type, collective, device, ...handle} = graph.handles[selected];
    set_text(this.title, name);
    set_text(this.facts.type, collective ? `${type} (collective)` : type);
    set_text(this.facts.device, graph.devices[device] ?? NONE);
    for (const fact of ['layer', 'stream', 'shape']) set_text(this.facts[fact], handle[fact] || NONE);
    this.links.replaceChildren(
      ...this._list('Inputs', graph.in_edges(selected), graph.from, ' of the step before'),
      ...this._list('Outputs', graph.out_edges(selected), graph.to, ' of the next step'));
    this._update();
  }

  _list(title, edges, ends, other_step) {
    const {handles, distance} = this.store.graph;
    const items = [...edges.subarray(0, MOST_LINKS)].map(edge => make('li', {},
      link(handles[ends[edge]].name, () => this.open(ends[edge])),
      make('span', {class: 'muted'}, distance[edge] > 0 ? other_step : '')));
    if (edges.length > MOST_LINKS) items.push(`and ${count(edges.length - MOST_LINKS)} more`);
    return [make('h3', {}, `${title} (${edges.length})`), make('ul', {}, ...items)];
  }

  _update() {
    const {graph, selected, state, arrived, runs} = this.store;
    if (selected < 0) return;
    const word = STATES[state[selected]];
    if (this._word !== word) this.facts.state.replaceChildren(state_sign(word));
    this._word = word;
    const {needs, op} = graph.handles[selected];
    set_text(this.facts.messages, `${count(arrived[selected])} of ${count(needs)} arrived`);
    set_text(this.facts.runs, `${count(runs[selected])}${op ? '' : ' versions ready'}`);
  }
}
