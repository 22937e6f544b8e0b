// Elements of the page. Text from the run becomes text nodes only, never markup.

// make('a', {class: 'x', 'aria-label': 'y', on: {click: f}}, 'text', child): an element.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') {
      for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if ((value ?? false) !== false) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children);
  return element;
}

// Writes only what differs: a text that is the same costs no layout.
export function set_text(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function set_hidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

// A button that looks like a link.
export function link(text, act) {
  return button(text, act, {class: 'link'});
}

// Buttons that do what the keys - + 0 do in a view.
export function zoom_buttons(view, fit) {
  const keys = [['-', '\u2212', 'Zoom out'], ['+', '+', 'Zoom in'], ['0', fit, 'Show all']];
  return make('div', {class: 'joined'}, ...keys.map(([key, text, label]) =>
    button(text, () => view.key(key), {'aria-label': label, title: `${label} (${key})`})));
}

export function button(text, act, attributes = {}) {
  return make('button', {type: 'button', on: {click: act}, ...attributes}, text);
}

// A table. `columns`: [title, class]. A cell is a text, or {key, make}: make() is
// called for the element when the key is another one than before.
export class data_table {
  constructor(caption, columns) {
    this.body = make('tbody');
    this.columns = columns;
    this.element = make(
      'table', {},
      make('caption', {}, caption),
      columns.some(([title]) => title)
        ? make('thead', {}, make('tr', {},
          ...columns.map(([title, kind]) => make('th', {scope: 'col', class: kind}, title)))) : '',
      this.body);
  }

  // Cells are changed in place, so that a selection and the focus outlive an update.
  set_rows(rows) {
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((cells, at) => this._set_row(at, cells));
  }

  _set_row(at, cells) {
    let row = this.body.rows[at];
    if (!row) {
      row = this.body.insertRow();
      for (const [, kind] of this.columns) row.append(make('td', {class: kind}));
    }
    cells.forEach((cell, column) => {
      const place = row.cells[column];
      if (typeof cell === 'string') set_text(place, cell);
      else if (place.dataset.key !== cell.key) {
        place.dataset.key = cell.key;
        place.replaceChildren(cell.make());
      }
    });
  }
}
