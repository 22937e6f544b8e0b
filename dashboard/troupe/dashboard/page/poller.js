// Reads an answer of the server once a second while somebody looks at it.
import {get_json} from '/connection.js';

const PERIOD_MS = 1000;

export class poller {
  // path() is asked before each reading.
  constructor(path, take, fail = () => {}) {
    this._path = path;
    this._take = take;
    this._fail = fail;
    this._turn = 0;
  }

  start() {
    if (this._runs) return;
    this._runs = true;
    this.again();
  }

  stop() {
    this._runs = false;
    this._turn += 1;
    clearTimeout(this._timer);
  }

  // Reads at once, for example because the question changed.
  async again() {
    if (!this._runs) return;
    clearTimeout(this._timer);
    const turn = ++this._turn;
    const path = this._path();
    try {
      const answer = path === null || document.hidden ? null : await get_json(path);
      if (turn === this._turn && answer !== null) this._take(answer);
    } catch (error) {
      if (turn === this._turn) this._fail(error);
    }
    if (turn === this._turn) this._timer = setTimeout(() => this.again(), PERIOD_MS);
  }
}
