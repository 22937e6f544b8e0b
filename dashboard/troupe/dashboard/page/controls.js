// Pause, resume, one step, slow motion. Only who may control the run sees them.
import {button, make, set_hidden, set_text} from '/dom.js';
import {post_control} from '/connection.js';

const FACTORS = [1, 2, 5, 10, 50];

export class controls {
  constructor(store, element, announce) {
    this.store = store;
    this.element = element;
    this.announce = announce;
    this.pause = button('Pause', () => this.toggle(), {'aria-keyshortcuts': 'Space'});
    this.step = button('One step', () => this.one_step(), {'aria-keyshortcuts': 'n'});
    const send = () => this._send('slow', FACTORS[this.slider.value]);
    this.slider = make('input', {type: 'range', min: 0, max: FACTORS.length - 1, value: 0,
      on: {input: () => this._show_factor(), change: send}});
    this.factor = make('output', {class: 'number'}, '1\u00d7');
    this.slow = make('label', {class: 'slow'}, 'Slow motion ', this.slider, this.factor);
    this.error = make('span', {class: 'bad', role: 'alert'});
    element.append(this.pause, this.step, this.slow, this.error);
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
    return this.store.head?.state === 'paused';
  }

  _begin() {
    const {may_control, recorded, speed_control} = this.store.run;
    set_hidden(this.element, !may_control && !recorded);
    set_hidden(this.slow, speed_control === false);
    set_text(this.error, '');
  }

  _update() {
    const {head} = this.store;
    const is_over = head.state === 'ended' || head.state === 'failed';
    set_text(this.pause, this._is_paused() ? 'Resume' : 'Pause');
    this.pause.disabled = this.step.disabled = this.slider.disabled =
      is_over && !this.store.run.recorded;
    const at = FACTORS.indexOf(head.slow ?? 1);
    if (at >= 0 && document.activeElement !== this.slider && Number(this.slider.value) !== at) {
      this.slider.value = at;
      this._show_factor();
    }
  }

  _show_factor() {
    const factor = FACTORS[this.slider.value];
    set_text(this.factor, `${factor}\u00d7`);
    this.slider.setAttribute('aria-valuetext', `${factor} times slower`);
  }

  async _send(command, factor) {
    try {
      const answer = await post_control(command, factor);
      set_text(this.error, '');
      this.announce(command === 'slow' ? `Slow motion: ${factor} times slower.`
                                       : `The run is ${answer.state}.`);
    } catch (error) {
      set_text(this.error, `Not done: ${error.message}`);
    }
  }
}
