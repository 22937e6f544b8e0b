// The actors of the run: how many of each kind, their messages, mailboxes, errors,
// processes.
import {data_table, make, set_hidden} from '/dom.js';
import {poller} from '/poller.js';
import {state_sign} from '/state_sign.js';
import {count, ms, NONE, short} from '/format.js';

export class actors_view {
  constructor(store) {
    this.name = 'Actors';
    this.store = store;
    this.numbers = new data_table('Actors and messages', [['', ''], ['', 'right']]);
    this.own = new data_table('Actors of the application', [
      ['Actor', ''], ['State', ''], ['Mailbox', 'right'], ['Longest', 'right'],
      ['Handled', 'right'], ['Busy', 'right'], ['Message', ''], ['Reason', '']]);
    this.streams = new data_table('Queues of streams', [
      ['Device', ''], ['Stream', ''], ['Ready ops', 'right'], ['Running', 'right']]);
    this.nodes = new data_table('Processes', [['Rank', ''], ['Host', ''], ['State', '']]);
    this.run = new data_table('Run', [['', ''], ['', '']]);
    this.errors = make('ul', {class: 'errors'});
    this.no_errors = make('p', {class: 'muted'}, 'No actor has failed.');
    this.empty = make('p', {class: 'empty'}, 'No actor has been made yet.');
    this.element = make('div', {class: 'view page'}, this.empty,
      this.own_place = make('div', {class: 'scrolls', tabindex: '0', role: 'region',
        'aria-label': 'Actors of the application', hidden: true}, this.own.element),
      this.columns = make('div', {class: 'columns', hidden: true},
        make('section', {}, this.numbers.element, make('h2', {}, 'Errors'), this.errors,
          this.no_errors),
        make('section', {}, this.streams.element, this.nodes.element, this.run.element)));
    this.poller = new poller(() => '/api/v1/actors', answer => this._show(answer));
    store.on('run', () => this._show_run());
  }

  _show(answer) {
    set_hidden(this.empty, answer.actors > 0);
    set_hidden(this.columns, answer.actors === 0);
    this.numbers.set_rows(Object.entries(answer).filter(([, value]) => typeof value === 'number')
      .map(([key, value]) => [title(key), key.includes('_per_') ? short(value) : count(value)]));
    this._show_own(answer.application ?? []);
    const streams = answer.streams ?? [];
    set_hidden(this.streams.element, streams.length === 0);
    this.streams.set_rows(streams.map(({device, stream, ready, running}) => [
      device, stream, count(ready), count(running)]));
    const nodes = answer.nodes ?? [];
    set_hidden(this.nodes.element, nodes.length === 0);
    this.nodes.set_rows(nodes.map(({rank, host, state}) => [
      count(rank), host, {key: state, make: () => state_sign(state)}]));
    const errors = answer.errors ?? [];
    set_hidden(this.no_errors, errors.length > 0);
    this.errors.replaceChildren(...errors.map(error => make('li', {}, error)));
  }

  // What a mailbox holds is not known before its actor has handled a message.
  _show_own(actors) {
    set_hidden(this.own_place, actors.length === 0);
    this.own.set_rows(actors.map(one => [
      `${one.name}#${one.id}${one.node ? `@${one.node}` : ''}`,
      {key: one.state, make: () => state_sign(one.state)},
      one.mailbox === null ? NONE : count(one.mailbox), count(one.longest_mailbox),
      count(one.handled), one.busy_ms > 0 ? ms(one.busy_ms) : NONE, one.message, one.reason]));
  }

  _show_run() {
    this.run.set_rows(Object.entries(this.store.run)
      .filter(([, value]) => typeof value !== 'boolean' && typeof value !== 'object')
      .map(([key, value]) => [title(key), String(value)]));
  }
}

// Op actors for op_actors: the server's words are the page's. Its `actors` are those of ops,
// variables and streams; the application's have a row of their own.
function title(key) {
  const words = key === 'actors' ? 'actors of the graph' : key;
  return (words[0].toUpperCase() + words.slice(1)).replaceAll('_', ' ');
}
