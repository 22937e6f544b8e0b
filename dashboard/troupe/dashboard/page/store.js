// What the page knows of the run. Views read it; connection.js writes it.
import {graph} from '/graph.js';
import {slices} from '/slices.js';
import {series} from '/series.js';

export class store {
  constructor() {
    this.run = null;
    this.graph = null;
    this.head = null;
    this.connection = {state: 'connecting', text: 'connecting'};
    this.selected = -1;
    this._listeners = new Map();
    this._clear();
  }

  // Calls `act` after each change of `what`: run, frame, connection, selection, history.
  on(what, act) {
    if (!this._listeners.has(what)) this._listeners.set(what, []);
    this._listeners.get(what).push(act);
  }

  // The page is connected. `graph_answer` is null if the graph is known.
  begin_run(run, graph_answer) {
    this.run = run;
    if (graph_answer) {
      this.graph = new graph(graph_answer);
      this.head = null;
      this.selected = -1;
      this._clear();
    }
    this._tell('run');
    this._tell('selection');
  }

  set_connection(state, text) {
    this.connection = {state, text};
    this._tell('connection');
  }

  select(handle) {
    this.selected = handle;
    this._tell('selection');
  }

  // What a view without content says: a file may lack what it shows.
  why_empty(words) {
    const {run, head, slices: {count}} = this;
    const lacks_ops = run?.recorded && head?.level === 'steps' && count === 0;
    return lacks_ops ? 'This file has steps only: record with --trace-level ops.' : words;
  }

  // What the server kept of the time before the page, or of frames that it missed.
  take_history(series_answer, timeline_answer) {
    this.series.replace(series_answer);
    this.slices.replace(timeline_answer.slices);
    this._tell('history');
  }

  take_frame({head, arrays}) {
    this.head = head;
    this.frame_at = performance.now();
    // A level that records less leaves arrays empty.
    for (const name of ['state', 'arrived', 'runs']) {
      if (arrays[name]?.length === this.graph.count) this[name] = arrays[name];
    }
    if (arrays.edge_messages?.length === this.lit_at.length) this._light_edges(arrays.edge_messages);
    this._count_states();
    this._add_slices(arrays);
    this._add_steps(arrays);
    for (const step of head.nan_steps ?? []) this.series.nan_steps.add(step);
    this._tell('frame');
  }

  _clear() {
    const {count: handles = 0, from = [], layers = []} = this.graph ?? {};
    this.state = new Uint8Array(handles);
    this.arrived = new Uint16Array(handles);
    this.runs = new Uint32Array(handles);
    this.edge_messages = null;
    this.lit_at = new Float64Array(from.length).fill(-Infinity);  // performance.now() of a message
    this.lit = [];       // edges that had messages lately
    this.layer_counts = new Uint32Array(5 * layers.length);
    this.state_counts = new Uint32Array(5);
    this.slices = new slices();
    this.series = new series();
  }

  _light_edges(messages) {
    const before = this.edge_messages;
    this.edge_messages = messages;
    if (!before) return;
    const oldest = this.frame_at - LIT_MS;
    const lit = [];
    for (let edge = 0; edge < messages.length; edge++) {
      if (messages[edge] !== before[edge]) this.lit_at[edge] = this.frame_at;
      if (this.lit_at[edge] > oldest) lit.push(edge);
    }
    this.lit = lit;
  }

  _count_states() {
    const {layer_of} = this.graph;
    this.layer_counts.fill(0);
    this.state_counts.fill(0);
    for (let h = 0; h < this.state.length; h++) {
      this.state_counts[this.state[h]] += 1;
      if (layer_of[h] >= 0) this.layer_counts[5 * layer_of[h] + this.state[h]] += 1;
    }
  }

  _add_slices(a) {
    for (let i = 0; i < (a.slice_begin?.length ?? 0); i++) {
      this.slices.add(a.slice_begin[i], a.slice_ms[i], a.slice_handle[i], a.slice_worker[i],
                      a.slice_step[i], a.slice_kind[i]);
    }
  }

  _add_steps(a) {
    for (let i = 0; i < (a.step_number?.length ?? 0); i++) {
      this.series.add(a.step_number[i], a.step_loss[i], a.step_ms[i], a.step_samples_per_s[i],
                      a.step_learning_rate[i]);
    }
  }

  _tell(what) {
    for (const act of this._listeners.get(what) ?? []) act();
  }
}

// For how long an edge stays lit after a message.
export const LIT_MS = 500;
