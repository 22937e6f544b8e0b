// Why something waits: the chain from a handle to what holds it up.
import {button, link, make, set_hidden, set_text} from '/dom.js';
import {poller} from '/poller.js';
import {state_sign} from '/state_sign.js';

export class why_view {
  constructor(store, open) {
    this.name = 'Why';
    this.store = store;
    this.open = open;
    this.handle = -1;          // -1: the oldest running step
    this.title = make('h2', {});
    this.oldest = button('Ask for the oldest step', () => this.ask(-1));
    this.answer = make('p', {class: 'answer'});
    this.chain = make('ol', {class: 'chain'});
    this.missing = make('p', {class: 'note'});
    this.empty = make('p', {class: 'empty'});
    this.element = make('div', {class: 'view page'}, this.title,
      this.oldest, this.answer, this.chain, this.missing, this.empty);
    this.poller = new poller(() => this._path(), answer => this._show(answer), error =>
      this._show({links: [], missing: `The server gave no answer: ${error.message}`, text: ''}));
    this._shown_key = '';
    store.on('run', () => this.ask(-1));
  }

  // Asks for a handle, or with -1 for the oldest running step.
  ask(handle) {
    this.handle = handle;
    this._shown_key = '';
    this._update_tools();
    this.poller.again();
  }

  _path() {
    if (!this.store.graph) return null;
    return this.handle < 0 ? '/api/v1/why' : `/api/v1/why?handle=${this.handle}`;
  }

  _update_tools() {
    const {graph} = this.store;
    set_hidden(this.oldest, this.handle < 0);
    set_text(this.title, this.handle >= 0 && graph
      ? `Why does ${graph.handles[this.handle].name} wait?`
      : 'What does the oldest running step wait for?');
  }

  _show({links, missing, text}) {
    // An answer that is the same stays: a reader may have the focus in it.
    const empty = this.store.why_empty('Nothing waits: no step is running.');
    const key = JSON.stringify([links, missing, text, empty]);
    if (key === this._shown_key) return;
    this._shown_key = key;
    set_hidden(this.empty, Boolean(links.length || text || missing));
    set_text(this.empty, empty);
    set_text(this.answer, text);
    set_text(this.missing, missing);
    this.chain.replaceChildren(...links.map(one => make('li', {},
      make('div', {class: 'chain_head'},
        state_sign(one.state), link(one.name, () => this.open(one.handle)),
        make('span', {class: 'muted'}, `step ${one.step}`)),
      make('p', {}, one.text))));
  }
}
