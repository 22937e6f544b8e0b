// The search box of the graph: names that match, a list to choose from.
import {button, make, set_hidden, set_text} from '/dom.js';
import {count} from '/format.js';

const MOST_MARKED = 2000;
const MOST_LISTED = 12;

export class graph_search {
  // choose(handle) shows a handle; mark(handles) highlights all that match.
  constructor(store, choose, mark) {
    this.store = store;
    this.choose = choose;
    this.mark = mark;
    this.found = [];
    this.at = -1;
    this.input = make('input', {
      type: 'search', placeholder: 'Search handles', 'aria-label': 'Search handles by name',
      'aria-keyshortcuts': '/', autocomplete: 'off', spellcheck: 'false',
      on: {
        input: () => this._search(),
        keydown: event => this._key(event),
        focus: () => set_hidden(this.list, this.found.length === 0),
      },
    });
    this.number = make('span', {class: 'muted number', role: 'status'});
    this.list = make('ul', {class: 'found', hidden: true, 'aria-label': 'Handles found'});
    this.element = make('div', {class: 'search'}, this.input, this.number, this.list);
    this.element.addEventListener('focusout', event => {
      if (!this.element.contains(event.relatedTarget)) set_hidden(this.list, true);
    });
    store.on('run', () => this.clear());
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  // Returns whether there was anything to clear.
  clear() {
    const had = this.input.value !== '';
    this.input.value = '';
    this._search();
    return had;
  }

  _search() {
    const {graph} = this.store;
    this.found = graph ? graph.search(this.input.value, MOST_MARKED) : [];
    this.at = -1;
    const more = this.found.length === MOST_MARKED ? '+' : '';
    set_text(this.number, this.input.value.trim() ? `${count(this.found.length)}${more}` : '');
    this.list.replaceChildren(...this.found.slice(0, MOST_LISTED).map((handle, at) =>
      make('li', {}, button(graph.handles[handle].name, () => this._choose(at), {class: 'quiet'}))));
    set_hidden(this.list, this.found.length === 0);
    this.mark(this.found);
  }

  _choose(at) {
    this.at = at;
    set_hidden(this.list, true);
    this.choose(this.found[at]);
  }

  // Enter goes to the next match, with the shift key to the one before.
  _key(event) {
    if (event.key === 'Enter' && this.found.length) {
      const step = event.shiftKey ? this.found.length - 1 : 1;
      this._choose(this.at < 0 ? 0 : (this.at + step) % this.found.length);
    } else if (event.key === 'Escape') {
      if (!this.clear()) this.input.blur();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
