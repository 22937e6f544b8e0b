// The views and their tabs. A view has a name and an element, and may have key(key),
// shown(), theme_changed(), a painter, and a poller that reads while it is shown.
import {make} from '/dom.js';
import {actors_view} from '/actors_view.js';
import {collectives_view} from '/collectives_view.js';
import {graph_view} from '/graph_view.js';
import {progress_view} from '/progress_view.js';
import {timeline_view} from '/timeline_view.js';
import {why_view} from '/why_view.js';

export class views {
  constructor(store, tab_list, place) {
    const open = handle => this._open(handle);
    const why = handle => this._why(handle);
    this.graph = new graph_view(store, why);
    this.timeline = new timeline_view(store, open);
    this.why = new why_view(store, open);
    this.all = [this.graph, this.timeline, this.why, new progress_view(store),
                new collectives_view(store, open), new actors_view(store)];
    this.tabs = this.all.map((view, at) => this._add(view, at, tab_list, place));
    tab_list.addEventListener('keydown', event => this._tab_key(event));
    // #timeline shows the timeline: a reload keeps the view.
    this.show(Math.max(0, this.all.findIndex(view => `#${id_of(view)}` === location.hash)));
  }

  show(at) {
    const view = this.all[at];
    if (this.current === view) return;
    const before = this.current;
    this.current = view;
    this.all.forEach((one, i) => {
      one.element.hidden = one !== view;
      this.tabs[i].setAttribute('aria-selected', String(one === view));
      this.tabs[i].tabIndex = one === view ? 0 : -1;
    });
    before?.poller?.stop();
    view.poller?.start();
    view.shown?.();
    view.painter?.ask();
    this.tabs[at].scrollIntoView({block: 'nearest', inline: 'nearest'});
    history.replaceState(null, '', `#${id_of(view)}`);
  }

  search() {
    this.show(0);
    this.graph.search.focus();
  }

  follow() {
    this.show(1);
    this.timeline.set_follows(!this.timeline.follows);
  }

  theme_changed() {
    for (const view of this.all) {
      view.theme_changed?.();
      view.painter?.ask();
    }
  }

  _open(handle) {
    this.show(0);
    this.graph.show_handle(handle);
  }

  _why(handle) {
    this.why.ask(handle);
    this.show(2);
  }

  _add(view, at, tab_list, place) {
    const id = id_of(view);
    const tab = make('button', {type: 'button', role: 'tab', id: `tab_${id}`,
      'aria-controls': `view_${id}`, 'aria-keyshortcuts': String(at + 1),
      on: {click: () => this.show(at)}}, view.name);
    view.element.id = `view_${id}`;
    view.element.setAttribute('role', 'tabpanel');
    view.element.setAttribute('aria-labelledby', tab.id);
    tab_list.append(tab);
    place.append(view.element);
    return tab;
  }

  _tab_key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1};
    if (!steps[event.key]) return;
    const at = (this.all.indexOf(this.current) + steps[event.key] + this.all.length) %
      this.all.length;
    this.show(at);
    this.tabs[at].focus();
    event.preventDefault();
  }
}

function id_of(view) {
  return view.name.toLowerCase();
}
