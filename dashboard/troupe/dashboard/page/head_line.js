// The line over all views: what the run does now.
import {make, set_hidden, set_text} from '/dom.js';
import {state_sign} from '/state_sign.js';
import {count, loss_of, NONE, percent, short} from '/format.js';

const WARNING_STAYS_MS = 60_000;
const FIELDS = ['state', 'step', 'loss', 'steps/s', 'messages/s', 'lost events', 'level',
                'overhead'];

export class head_line {
  constructor(store, list, run_line, connection, banner, announce) {
    this.store = store;
    this.run_line = run_line;
    this.connection = connection;
    this.banner = banner;
    this.announce = announce;
    this.fields = {};
    this._warning = '';
    for (const name of FIELDS) {
      this.fields[name] = make('dd', {}, NONE);
      list.append(make('div', {}, make('dt', {}, name), this.fields[name]));
    }
    store.on('run', () => this._show_run());
    store.on('frame', () => this._show_head());
    store.on('connection', () => this._show_connection());
  }

  _show_run() {
    const {run} = this.store;
    const words = run.cut ? ' (recorded, without its end: the file is cut)'
      : run.recorded ? ' (recorded)' : '';
    const line = `${run.command}${words} on ${shown_part(run)}`;
    set_text(this.run_line, line);
    this.run_line.title = line;  // a narrow page cuts it
    document.title = `${run.command} \u2013 Troupe`;
  }

  _show_head() {
    const {head, series} = this.store;
    this._show_state(head);
    this._show_warning(head);
    const last = series.last_loss();
    const texts = {
      step: head.step < 0 ? NONE : count(head.step), loss: loss_of(series, last),
      'steps/s': short(head.steps_per_s), 'messages/s': short(head.messages_per_s),
      'lost events': count(head.lost), level: head.level, overhead: percent(head.overhead),
    };
    for (const [name, text] of Object.entries(texts)) set_text(this.fields[name], text);
    this.fields['lost events'].classList.toggle('bad', head.lost > 0);
    this.fields.loss.classList.toggle('bad', series.is_nan(last));
  }

  _show_state(head) {
    if (this._state === head.state && this._failure === head.failure) return;
    if (this._state !== undefined) this.announce(`The run is ${head.state} at step ${head.step}.`);
    this._state = head.state;
    this._failure = head.failure;
    this.fields.state.replaceChildren(state_sign(head.state));
    this._show_banner();
  }

  _show_warning(head) {
    const is_new = head.warnings > 0 && head.time_ms - head.warning_ms < WARNING_STAYS_MS;
    const warning = is_new ? head.warning : '';
    if (this._warning === warning) return;
    this._warning = warning;
    if (warning) this.announce(warning);
    this._show_banner();
  }

  _show_connection() {
    const {state, text} = this.store.connection;
    set_text(this.connection, text);
    this.connection.dataset.state = state;
    document.body.classList.toggle('stale', state !== 'live');
    if (this._connection && this._connection !== state) this.announce(text);
    this._connection = state;
    this._show_banner();
  }

  // One line for what must not be missed.
  _show_banner() {
    const {state, text} = this.store.connection;
    const words = state === 'denied' ? text
      : this._state === 'failed' ? `The run failed: ${this._failure}` : this._warning;
    set_text(this.banner, words);
    set_hidden(this.banner, !words);
  }
}

// Which ranks of a job are shown: one that runs shows its own part, files can be of
// several.
function shown_part({ranks, processes, recorded}) {
  const list = of => [...new Set(ranks.map(of))].join(', ');
  const process = `pid ${list(one => one.pid)}`;
  const rest = ranks.length < processes
    ? ` (each rank ${recorded ? 'has a file' : 'prints links'} of its own)` : '';
  const which = processes > 1
    ? `, rank${ranks.length > 1 ? 's' : ''} ${list(one => one.rank)} of ${processes}${rest}` : '';
  return `${list(one => one.host)}${which}, ${process}`;
}
