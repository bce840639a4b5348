// Emits the new items at a URL that returns JSON.
import { createHash } from 'node:crypto';

const at = (value, path) => (path ? path.split('.').reduce((inner, name) => inner?.[name], value) : value);

export default {
  key: 'json-poller',
  name: 'JSON Poller',
  version: '1.0.0',
  description: 'Polls a URL that returns JSON and emits each new item, or the whole response if it has changed.',
  type: 'source',
  dedupe: 'unique',
  props: {
    url: { type: 'string', label: 'URL' },
    headers: { type: 'object', label: 'Headers', optional: true, description: 'Sent with each request.' },
    itemsPath: {
      type: 'string',
      label: 'Path of the items',
      optional: true,
      description: 'The path of the list of items in the response, for example data.items; default: the response itself.',
    },
    idPath: {
      type: 'string',
      label: 'Path of the id',
      optional: true,
      default: 'id',
      description: 'The path of the id in an item; an item without an id is identified by its content.',
    },
    timer: { type: '$.interface.timer', label: 'Poll', default: { intervalSeconds: 60 } },
  },
  async run() {
    const response = await fetch(this.url, {
      headers: { accept: 'application/json', ...this.headers },
      signal: AbortSignal.timeout(20_000),
    });
    if (!response.ok) throw new Error(`${this.url} returned ${response.status}`);
    const found = at(await response.json(), this.itemsPath);
    for (const item of Array.isArray(found) ? found : [found]) {
      const id = at(item, this.idPath);
      const known =
        typeof id === 'string' || typeof id === 'number'
          ? String(id)
          : createHash('sha256')
              .update(JSON.stringify(item ?? null))
              .digest('hex');
      this.$emit(item ?? null, { id: known, summary: typeof item?.title === 'string' ? item.title : known.slice(0, 40) });
    }
  },
};
