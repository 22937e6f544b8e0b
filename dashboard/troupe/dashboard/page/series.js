// Numbers per step: the newest steps of the run.

const KEPT = 10000;
const NAMES = ['steps', 'loss', 'ms', 'samples_per_s', 'learning_rate'];

// Rates over the last `window` steps, for steps of the same size. Of steps in flight
// together, one can end right after the other: its own rate then says nothing.
export function rates_over(window, rates) {
  let time = 0;
  let steps = 0;
  const add = (rate, sign) => {
    if (!(rate > 0)) return;
    time += sign / rate;
    steps += sign;
  };
  return rates.map((rate, at) => {
    add(rate, 1);
    if (at >= window) add(rates[at - window], -1);
    return steps > 0 ? steps / time : NaN;
  });
}

export class series {
  constructor() {
    for (const name of NAMES) this[name] = [];
    // A step without a loss is NaN in `loss` too: only the run knows which are real.
    this.nan_steps = new Set();
  }

  get count() {
    return this.steps.length;
  }

  // Steps come in order; one that is known is not added again.
  add(step, loss, ms, samples_per_s, learning_rate) {
    if (this.count && step <= this.steps[this.count - 1]) return;
    [step, loss, ms, samples_per_s, learning_rate].forEach((value, at) =>
      this[NAMES[at]].push(value));
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
