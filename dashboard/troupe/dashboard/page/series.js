// Numbers per step: the newest steps of the run.

const KEPT = 10000;
const NAMES = ['steps', 'loss', 'ms', 'samples_per_s', 'learning_rate'];

export class series {
  constructor() {
    for (const name of NAMES) this[name] = [];
    this.changes = 0;
    // A step without a loss is NaN in `loss` too: only the run knows which are real.
    this.nan_steps = new Set();
  }

  get count() {
    return this.steps.length;
  }

  // Steps come in order. The latest come again: more may be known of them.
  add(...row) {
    let at = this.count;
    while (at && this.steps[at - 1] > row[0]) at--;
    if (at && this.steps[at - 1] === row[0]) at--;
    else if (at < this.count) return;
    if (NAMES.every((name, column) => Object.is(this[name][at], row[column]))) return;
    this.changes += 1;
    NAMES.forEach((name, column) => { this[name][at] = row[column]; });
    // Not one by one: that would move all of them for each step.
    if (this.count > KEPT + 1000) for (const name of NAMES) this[name].splice(0, 1000);
  }

  // Puts the server's answer in the place of the steps that it has.
  replace(answer) {
    const last = answer.steps.at(-1) ?? -1;
    const newer = this.steps.findIndex(step => step > last);
    for (const name of NAMES) {
      const own = newer < 0 ? [] : this[name].slice(newer);
      this[name] = answer[name].map(value => value ?? NaN).concat(own);
    }
  }

  is_nan(at) {
    return this.nan_steps.has(this.steps[at]);
  }

  // The newest step with a loss, else -1.
  last_loss() {
    for (let at = this.count - 1; at >= 0; at--) {
      if (!Number.isNaN(this.loss[at]) || this.is_nan(at)) return at;
    }
    return -1;
  }
}
