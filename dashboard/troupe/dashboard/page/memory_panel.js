// Memory of each device: now, at most, and which variables hold it.
import {data_table, make, set_hidden, set_text} from '/dom.js';
import {poller} from '/poller.js';
import {bytes} from '/format.js';

const MOST_HOLDERS = 12;

export class memory_panel {
  constructor(store) {
    this.store = store;
    this.table = new data_table('Memory', [
      ['Device', ''], ['Now', 'right'], ['Peak', 'right'], ['', 'wide']]);
    this.holders = new data_table(
      'What holds it', [['Device', ''], ['Variable', ''], ['Bytes', 'right']]);
    this.empty = make('p', {class: 'empty'}, 'No device has reported memory yet.');
    this.element = make('section', {}, this.table.element, this.empty, this.holders.element);
    this.poller = new poller(() => '/api/v1/memory', answer => this._show_holders(answer));
  }

  update() {
    const devices = this.store.head?.memory ?? [];
    const most = Math.max(1, ...devices.map(device => device.peak_bytes));
    const why_not = this.store.why_empty(
      devices.length > 0 ? '' : 'No device has reported memory yet.');
    set_text(this.empty, why_not);
    set_hidden(this.empty, !why_not);
    set_hidden(this.table.element, Boolean(why_not));
    this.table.set_rows(devices.map(({device, bytes: now, peak_bytes}) => [
      device, bytes(now), bytes(peak_bytes),
      {key: device, make: () => make('meter', {max: 1, 'aria-label': `Memory of ${device}`})}]));
    this.table.element.querySelectorAll('meter').forEach((meter, at) => {
      meter.value = devices[at].bytes / most;
    });
  }

  _show_holders(devices) {
    const rows = devices.flatMap(({device, holders}) =>
      holders.slice(0, MOST_HOLDERS).map(holder => [device, holder.name, bytes(holder.bytes)]));
    set_hidden(this.holders.element, rows.length === 0);
    this.holders.set_rows(rows);
  }
}
