// The actors of the run: how many of each kind, their messages, errors, processes.
import {data_table, make, set_hidden} from '/dom.js';
import {poller} from '/poller.js';
import {state_sign} from '/state_sign.js';
import {count, short} from '/format.js';

export class actors_view {
  constructor(store) {
    this.name = 'Actors';
    this.store = store;
    this.numbers = new data_table('Actors and messages', [['', ''], ['', 'right']]);
    this.nodes = new data_table('Processes', [['Rank', ''], ['Host', ''], ['State', '']]);
    this.run = new data_table('Run', [['', ''], ['', '']]);
    this.errors = make('ul', {class: 'errors'});
    this.no_errors = make('p', {class: 'muted'}, 'No actor has failed.');
    this.empty = make('p', {class: 'empty'}, 'No actor has been made yet.');
    this.element = make('div', {class: 'view page'}, this.empty,
      this.columns = make('div', {class: 'columns', hidden: true},
        make('section', {}, this.numbers.element, make('h2', {}, 'Errors'), this.errors,
          this.no_errors),
        make('section', {}, this.nodes.element, this.run.element)));
    this.poller = new poller(() => '/api/v1/actors', answer => this._show(answer));
    store.on('run', () => this._show_run());
  }

  _show(answer) {
    set_hidden(this.empty, answer.actors > 0);
    set_hidden(this.columns, answer.actors === 0);
    this.numbers.set_rows(Object.entries(answer).filter(([, value]) => typeof value === 'number')
      .map(([key, value]) => [title(key), key.includes('_per_') ? short(value) : count(value)]));
    const nodes = answer.nodes ?? [];
    set_hidden(this.nodes.element, nodes.length === 0);
    this.nodes.set_rows(nodes.map(({rank, host, state}) => [
      count(rank), host, {key: state, make: () => state_sign(state)}]));
    const errors = answer.errors ?? [];
    set_hidden(this.no_errors, errors.length > 0);
    this.errors.replaceChildren(...errors.map(error => make('li', {}, error)));
  }

  _show_run() {
    this.run.set_rows(Object.entries(this.store.run)
      .filter(([, value]) => typeof value !== 'boolean')
      .map(([key, value]) => [title(key), String(value)]));
  }
}

// Op actors for op_actors: the server's words are the page's.
function title(key) {
  return (key[0].toUpperCase() + key.slice(1)).replaceAll('_', ' ');
}
