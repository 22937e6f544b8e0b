// Keys of the page. A key that a field or a button needs is left to it.
import {button, make} from '/dom.js';

const HELP = [
  ['1 \u2013 6', 'views'], ['/', 'search in the graph'], ['Space', 'pause or resume'],
  ['n', 'one step'], ['f', 'timeline: follow the run'],
  ['s', 'timeline: rows by stream'],
  ['\u2190 \u2191 \u2192 \u2193', 'move in the graph and the timeline'],
  ['+  \u2212', 'zoom'], ['0', 'fit all'], ['Esc', 'clear search or choice'],
];

export class keyboard {
  // `views`: show(index), current, search(), follow(); `dialog`: the help.
  constructor(views, controls, dialog) {
    this.views = views;
    this.controls = controls;
    this.dialog = dialog;
    dialog.append(make('h2', {id: 'help_title'}, 'Keys'),
      make('dl', {class: 'facts'}, ...HELP.flatMap(([key, what]) =>
        [make('dt', {}, make('kbd', {}, key)), make('dd', {}, what)])),
      button('Close', () => dialog.close()));
    document.addEventListener('keydown', event => {
      if (this._take(event)) event.preventDefault();
    });
  }

  show_help() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  _take(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return false;
    const {target, key} = event;
    if (target.matches('input:not([type=checkbox]), select')) return false;
    // The space bar presses a button that has the focus, arrows move between tabs.
    if (key === ' ' && target.matches('button, input')) return false;
    if (key.startsWith('Arrow') && target.matches('[role=tab], [tabindex="0"]')) return false;
    return this._act(key);
  }

  _act(key) {
    if (key >= '1' && key <= '6') this.views.show(Number(key) - 1);
    else if (key === '/') this.views.search();
    else if (key === ' ') this.controls.toggle();
    else if (key === 'n') this.controls.one_step();
    else if (key === 'f') this.views.follow();
    else if (key === '?') this.show_help();
    else return this.views.current.key?.(key) ?? false;
    return true;
  }
}
