// Keeps the page connected to the job: reads the run, its graph and its history,
// then frames. Tries again when the connection is lost, ever less often.
import {decode_frame} from '/frame.js';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
const HIDDEN_MS = 60000;      // a page that nobody sees costs the job nothing
const REFILL_MS = 5000;       // history is read again at most so often

export class http_error extends Error {
  constructor(status, text) {
    super(text || `the server answered ${status}`);
    this.status = status;
  }
}

export async function get_json(path) {
  const answer = await fetch(path, {cache: 'no-store'});
  if (!answer.ok) throw new http_error(answer.status, (await answer.text()).trim());
  return answer.json();
}

export async function post_control(command, factor) {
  const answer = await fetch('/api/v1/control', {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify(factor === undefined ? {command} : {command, factor}),
  });
  if (!answer.ok) throw new http_error(answer.status, (await answer.text()).trim());
  return answer.json();
}

export class connection {
  constructor(store) {
    this.store = store;
    this._wait_ms = FIRST_WAIT_MS;
    this._socket = null;
    this._timer = 0;
    this._sequence = -1;
    this._refilled_at = -Infinity;
    addEventListener('online', () => this._retry_now());
    document.addEventListener('visibilitychange', () => this._visibility_changed());
  }

  async open() {
    if (this._is_opening) return;
    this._is_opening = true;
    clearTimeout(this._timer);
    try {
      const run = await get_json('/api/v1/run');
      const known = this.store.graph && this.store.run.run === run.run;
      this.store.begin_run(run, known ? null : await get_json('/api/v1/graph'));
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
      this._drop();
      this._try_later(error);
      return;
    }
    if (frame.head.run !== this.store.run.run) {
      this._drop();
      this.open();  // another job listens at this port now
      return;
    }
    this._wait_ms = FIRST_WAIT_MS;
    if (this.store.connection.state !== 'live') this.store.set_connection('live', 'live');
    this.store.take_frame(frame);
    // Frames that this page was too slow for had slices and steps.
    const missed = frame.head.sequence !== this._sequence + 1;
    this._sequence = frame.head.sequence;
    if (missed) this._needs_history = true;
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
    if (this._is_asleep) return;
    const denied = error instanceof http_error && (error.status === 401 || error.status === 403);
    if (denied) this._wait_ms = LONGEST_WAIT_MS;
    const seconds = this._wait_ms / 1000;
    if (denied) {
      this.store.set_connection(
        'denied', 'no access: open the link that the job printed when it began');
    } else {
      this.store.set_connection('lost', 'connection lost, trying again');
    }
    this._timer = setTimeout(() => this.open(), 1000 * seconds);
    this._wait_ms = Math.min(LONGEST_WAIT_MS, 2 * this._wait_ms);
  }

  _drop() {
    const socket = this._socket;
    this._socket = null;
    this._refilled_at = -Infinity;
    if (socket) socket.close();
  }

  _retry_now() {
    if (this._socket || this._is_asleep) return;
    this._wait_ms = FIRST_WAIT_MS;
    this.open();
  }

  _visibility_changed() {
    clearTimeout(this._sleep_timer);
    if (document.hidden) {
      this._sleep_timer = setTimeout(() => {
        this._is_asleep = true;
        clearTimeout(this._timer);
        this._drop();
      }, HIDDEN_MS);
    } else {
      this._is_asleep = false;
      this._retry_now();
    }
  }
}
