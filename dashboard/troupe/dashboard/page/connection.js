// Reads the run, its graph, its history and frames. Tries again when the connection
// is lost, ever less often.
import {decode_frame} from '/frame.js';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
const HIDDEN_MS = 60000;      // a page that nobody sees costs the job nothing
const REFILL_MS = 5000;       // history is read again at most so often

export async function get_json(path, options = {cache: 'no-store'}) {
  const answer = await fetch(path, options);
  if (answer.ok) return answer.json();
  const text = why_of(await answer.text()) || `the server answered ${answer.status}`;
  throw Object.assign(new Error(text), {status: answer.status});
}

// Refusals are {"error": text}, or a line of text.
function why_of(body) {
  try {
    return JSON.parse(body).error;
  } catch {
    return body.trim();
  }
}

export function post_control(command, op_delay_ms) {
  return get_json('/api/v1/control', {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({command, op_delay_ms}),
  });
}

export class connection {
  constructor(store) {
    this.store = store;
    this._wait_ms = FIRST_WAIT_MS;
    this._refilled_at = -Infinity;
    document.addEventListener('visibilitychange', () => this._visibility_changed());
  }

  async open() {
    if (this._is_opening) return;
    this._is_opening = true;
    clearTimeout(this._timer);
    try {
      const run = await get_json('/api/v1/run');
      const is_known = this._graph_run === run.run;
      this.store.begin_run(run, is_known ? null : await get_json('/api/v1/graph'));
      this._graph_run = run.run;
      this._open_socket();
    } catch (error) {
      this._try_later(error);
    } finally {
      this._is_opening = false;
    }
  }

  _open_socket() {
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(`${scheme}//${location.host}/api/v1/live`, 'troupe.v1');
    socket.binaryType = 'arraybuffer';
    socket.onmessage = event => {
      if (socket === this._socket) this._take(event.data);
    };
    socket.onclose = () => {
      if (socket === this._socket) this._try_later(null);
    };
    this._socket = socket;
    this._sequence = -1;
  }

  _take(data) {
    let frame;
    try {
      frame = decode_frame(data);
    } catch (error) {
      this._try_later(error);
      return;
    }
    const handles = frame.arrays.state?.length;
    if (frame.head.run !== this.store.run.run || (handles && handles !== this.store.graph.count)) {
      // Another job has this port now, or the graph has been built.
      this._drop();
      this._graph_run = null;
      this._timer = setTimeout(() => this.open(), FIRST_WAIT_MS);
      return;
    }
    this._wait_ms = FIRST_WAIT_MS;
    if (this.store.connection.state !== 'live') {
      this.store.set_connection('live', this.store.run?.recorded ? 'a file' : 'live');
    }
    this.store.take_frame(frame);
    // Frames that this page was too slow for had slices and steps.
    if (frame.head.sequence !== this._sequence + 1) this._needs_history = true;
    this._sequence = frame.head.sequence;
    if (this._needs_history) this._refill();
  }

  async _refill() {
    const now = performance.now();
    if (now - this._refilled_at < REFILL_MS) return;
    this._refilled_at = now;
    this._needs_history = false;
    const run = this.store.run.run;
    try {
      const [series, timeline] = await Promise.all(
        [get_json('/api/v1/series'), get_json('/api/v1/timeline')]);
      if (this.store.run.run === run) this.store.take_history(series, timeline);
    } catch {
      this._needs_history = true;
    }
  }

  _try_later(error) {
    this._drop();
    const denied = error?.status === 401 || error?.status === 403;
    if (denied) this._wait_ms = LONGEST_WAIT_MS;
    this.store.set_connection(...(denied
      ? ['denied', 'no access: open the link that the run printed when it began']
      : ['lost', 'connection lost, trying again']));
    this._timer = setTimeout(() => this.open(), this._wait_ms);
    this._wait_ms = Math.min(LONGEST_WAIT_MS, 2 * this._wait_ms);
  }

  _drop() {
    const socket = this._socket;
    this._socket = null;
    this._refilled_at = -Infinity;
    if (socket) socket.close();
  }

  _visibility_changed() {
    clearTimeout(this._sleep_timer);
    if (document.hidden) {
      this._sleep_timer = setTimeout(() => {
        clearTimeout(this._timer);
        this._drop();
      }, HIDDEN_MS);
    } else if (!this._socket) {
      this.open();
    }
  }
}
