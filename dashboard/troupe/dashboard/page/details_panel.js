// What is known of the chosen handle: state, counts, inputs, outputs.
import {button, link, make, set_hidden, set_text} from '/dom.js';
import {STATES} from '/graph.js';
import {count} from '/format.js';
import {state_sign} from '/state_sign.js';

const MOST_LINKS = 40;

export class details_panel {
  // open(handle) shows a handle in the graph; why(handle) asks why it waits.
  constructor(store, open, why) {
    this.store = store;
    this.open = open;
    this.title = make('h2', {});
    this.list = make('dl', {class: 'facts'});
    this.sign = make('span', {});
    this.facts = {};
    for (const name of ['type', 'device', 'layer', 'stream', 'shape', 'state', 'messages', 'runs']) {
      this.facts[name] = make('dd', {});
      this.list.append(make('dt', {}, name), this.facts[name]);
    }
    this.inputs = make('ul', {class: 'links'});
    this.outputs = make('ul', {class: 'links'});
    this.inputs_title = make('h3', {});
    this.outputs_title = make('h3', {});
    this.element = make(
      'aside', {class: 'details', 'aria-label': 'Chosen handle', hidden: true},
      make('div', {class: 'details_head'}, this.title,
        button('\u00d7', () => store.select(-1), {class: 'quiet', 'aria-label': 'Close details'})),
      this.list,
      button('Why is it waiting?', () => why(store.selected), {class: 'wide'}),
      this.inputs_title, this.inputs, this.outputs_title, this.outputs);
    store.on('selection', () => this._fill());
    store.on('frame', () => this._update());
  }

  _fill() {
    const {graph, selected} = this.store;
    set_hidden(this.element, selected < 0 || !graph);
    if (selected < 0 || !graph) return;
    const handle = graph.handles[selected];
    set_text(this.title, handle.name);
    set_text(this.facts.type, `${handle.type}${handle.collective ? ' (collective)' : ''}`);
    set_text(this.facts.device, graph.devices[handle.device] ?? '\u2013');
    set_text(this.facts.layer, handle.layer || '\u2013');
    set_text(this.facts.stream, handle.stream || '\u2013');
    set_text(this.facts.shape, handle.shape || '\u2013');
    this._set_links(this.inputs_title, this.inputs, 'Inputs', graph.in_edges(selected), graph.from);
    this._set_links(this.outputs_title, this.outputs, 'Outputs', graph.out_edges(selected),
                    graph.to);
    this._update();
  }

  _set_links(title, list, word, edges, ends) {
    const {graph} = this.store;
    set_text(title, `${word} (${edges.length})`);
    list.replaceChildren(...[...edges.subarray(0, MOST_LINKS)].map(edge => {
      const other = ends[edge];
      const item = make('li', {}, link(graph.handles[other].name, () => this.open(other)));
      if (graph.distance[edge] > 0) {
        item.append(make('span', {class: 'muted'}, word === 'Inputs' ? ' of the step before'
                                                                     : ' of the next step'));
      }
      return item;
    }));
    if (edges.length > MOST_LINKS) {
      list.append(make('li', {class: 'muted'}, `and ${count(edges.length - MOST_LINKS)} more`));
    }
  }

  _update() {
    const {graph, selected, state, arrived, runs} = this.store;
    if (selected < 0 || !graph) return;
    const word = STATES[state[selected]];
    if (this.facts.state.dataset.state !== word) {
      this.facts.state.dataset.state = word;
      this.facts.state.replaceChildren(state_sign(word));
    }
    const handle = graph.handles[selected];
    set_text(this.facts.messages, `${count(arrived[selected])} of ${count(handle.needs)} arrived`);
    set_text(this.facts.runs, `${count(runs[selected])}${handle.op ? '' : ' versions ready'}`);
  }
}
