// Puts the page together.
import {connection} from '/connection.js';
import {controls} from '/controls.js';
import {head_line} from '/head_line.js';
import {keyboard} from '/keyboard.js';
import {set_text} from '/dom.js';
import {store} from '/store.js';
import {views} from '/views.js';
import {watch_theme} from '/colors.js';

const element = id => document.getElementById(id);
const announce = text => set_text(element('announcer'), text);

const state = new store();
new head_line(state, element('head_line'), element('run_line'), element('connection'),
              element('banner'), announce);
const pages = new views(state, element('tabs'), element('views'));
const control = new controls(state, element('controls'), announce);
const keys = new keyboard(pages, control, element('help'));
element('help_button').addEventListener('click', () => keys.show_help());
watch_theme(() => pages.theme_changed());
new connection(state).open();
