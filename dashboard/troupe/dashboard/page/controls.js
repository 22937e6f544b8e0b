// Pause, resume, one step, slow motion, dump. Only who may control the run sees them.
import {button, make, set_hidden, set_text} from '/dom.js';
import {post_control} from '/connection.js';

const DELAYS_MS = [0, 10, 50, 200, 1000];

function what_was_done(command, answer) {
  if (answer.file) return `Written: ${answer.file}.`;
  return command === 'slow' ? `Slow motion: ${answer.op_delay_ms} milliseconds per op.`
                            : `The run is ${answer.state}.`;
}

export class controls {
  constructor(store, element, announce) {
    this.store = store;
    this.element = element;
    this.announce = announce;
    this.pause = button('Pause', () => this.toggle(), {'aria-keyshortcuts': 'Space'});
    this.step = button('One step', () => this.one_step(), {'aria-keyshortcuts': 'n'});
    this.rewind = button('From the start', () => this._send('rewind'));
    this.dump = button('Dump', () => this._send('dump'),
      {title: 'Write the latest steps, and what workers are in the middle of, to a file'});
    const send = () => this._send('slow', DELAYS_MS[this.slider.value]);
    this.slider = make('input', {type: 'range', min: 0, max: DELAYS_MS.length - 1, value: 0,
      on: {input: () => this._show_delay(), change: send}});
    this.delay = make('output', {class: 'number'}, 'off');
    this.slow = make('label', {class: 'slow'}, make('span', {}, 'Slow',
      make('span', {class: 'if_wide'}, ' motion')), this.slider, this.delay);
    this.error = make('span', {class: 'bad', role: 'alert'});
    this.written = make('span', {class: 'muted'});
    element.append(this.pause, this.step, this.rewind, this.slow, this.dump, this.written,
      this.error);
    store.on('run', () => this._begin());
    store.on('frame', () => this._update());
  }

  toggle() {
    if (this._may(this.pause)) this._send(this._is_paused() ? 'resume' : 'pause');
  }

  one_step() {
    if (this._may(this.step)) this._send('step');
  }

  _may(control) {
    return !this.element.hidden && !control.disabled;
  }

  _is_paused() {
    return ['pausing', 'paused'].includes(this.store.head?.state);
  }

  _begin() {
    const {may_control, recorded} = this.store.run;
    set_hidden(this.element, !may_control);
    set_hidden(this.rewind, !recorded);
    set_hidden(this.dump, recorded);
    set_text(this.written, '');
    set_text(this.error, '');
  }

  _update() {
    const {head} = this.store;
    const is_over = head.state === 'ended' || head.state === 'failed';
    set_text(this.pause, this._is_paused() ? 'Resume' : 'Pause');
    this.pause.disabled = this.step.disabled = this.dump.disabled = is_over;
    this.slider.disabled = is_over && !this.store.run.recorded;
    if (document.activeElement !== this.slider && this.shown_ms !== head.op_delay_ms) {
      const at = DELAYS_MS.findIndex(ms => ms >= head.op_delay_ms);
      this.slider.value = at < 0 ? DELAYS_MS.length - 1 : at;
      this._show_delay(head.op_delay_ms);
    }
  }

  // A script can have chosen a delay that the slider does not have.
  _show_delay(ms = DELAYS_MS[this.slider.value]) {
    this.shown_ms = ms;
    set_text(this.delay, ms === 0 ? 'off' : `${ms} ms per op`);
    this.slider.setAttribute('aria-valuetext', ms === 0 ? 'off' : `${ms} milliseconds per op`);
  }

  async _send(command, op_delay_ms) {
    try {
      const answer = await post_control(command, op_delay_ms);
      set_text(this.error, '');
      set_text(this.written, answer.file ?? '');
      this.announce(what_was_done(command, answer));
    } catch (error) {
      set_text(this.error, `Not done: ${error.message}`);
    }
  }
}
