// The actors of the run: how many of each kind, their messages, errors, processes.
import {data_table, make, set_hidden} from '/dom.js';
import {poller} from '/poller.js';
import {state_sign} from '/state_sign.js';
import {count, short} from '/format.js';

// Keys of the answer and what they are called.
const NUMBERS = [
  ['actors', 'Actors'], ['op_actors', 'Op actors'], ['variable_actors', 'Variable actors'],
  ['stream_actors', 'Stream actors'], ['mailboxes', 'Mailboxes'], ['messages', 'Messages'],
  ['messages_per_step', 'Messages per step'], ['steps', 'Steps'],
];

export class actors_view {
  constructor(store) {
    this.name = 'Actors';
    this.store = store;
    this.numbers = new data_table('Actors and messages', [['', ''], ['', 'right']]);
    this.nodes = new data_table('Processes', [['Rank', ''], ['Host', ''], ['State', '']]);
    this.run = new data_table('Run', [['', ''], ['', '']]);
    this.errors = make('ul', {class: 'errors'});
    this.no_errors = make('p', {class: 'empty_line'}, 'No actor has failed.');
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
    this.numbers.set_rows(NUMBERS.filter(([key]) => key in answer).map(([key, title]) =>
      [title, key === 'messages_per_step' ? short(answer[key]) : count(answer[key])]));
    const nodes = answer.nodes ?? [];
    set_hidden(this.nodes.element, nodes.length === 0);
    this.nodes.set_rows(nodes.map(({rank, host, state}) => [
      count(rank), host, {key: state, make: () => state_sign(state)}]));
    const errors = answer.errors ?? [];
    set_hidden(this.no_errors, errors.length > 0);
    this.errors.replaceChildren(...errors.map(error => make('li', {}, error)));
  }

  _show_run() {
    const {run} = this.store;
    this.run.set_rows([
      ['Command', `troupe ${run.command}`], ['Host', run.host], ['Process id', String(run.pid)],
      ['Process', `${run.process} of ${run.processes}`], ['Workers', count(run.workers)],
      ['Strategy', run.strategy], ['Level', run.level], ['Version', run.version],
      ['Run', run.run]]);
  }
}
