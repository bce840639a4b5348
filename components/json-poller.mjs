// Emits the new items at a URL that returns JSON.
import { createHash } from 'node:crypto';

/** The most that a run emits, unless SLUICE_MAX_RUN_EMITS is lower. */
const mostEmits = 1000;
/** Ids take 12 bytes each in the source's db of 1 MiB. */
const mostItems = 50_000;
/** Items are remembered beyond the current response, because a sender can omit some of them for a while. */
const leastRemembered = 5000;
const longestId = 4096;

const summaryOf = (item, id) => (typeof item?.title === 'string' ? item.title : id.slice(0, 40));

const at = (value, path) => (path ? path.split('.').reduce((inner, name) => inner?.[name], value) : value);

const hashOf = (text) => createHash('sha256').update(text).digest('base64url');

/** Parses JSON. An integer that loses digits as a number becomes a text, because the ids of some APIs have that many digits. */
const parsed = (text) =>
  JSON.parse(
    text.replace(/"[^"\\]*(?:\\[^][^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
      /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
    ),
  );

export default {
  key: 'json-poller',
  name: 'JSON Poller',
  version: '1.0.0',
  description: 'Polls a URL that returns JSON and emits each new item, or the whole response if it has changed.',
  type: 'source',
  dedupe: 'unique',
  props: {
    db: '$.service.db',
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
  methods: {
    idOf(item) {
      const id = at(item, this.idPath);
      return (typeof id === 'string' && id !== '') || typeof id === 'number'
        ? String(id)
        : createHash('sha256').update(JSON.stringify(item)).digest('hex');
    },
    /** Emits the items that no earlier poll has emitted. Items above what a run may emit follow with the next polls. */
    emitNew(items) {
      if (items.length > mostItems) throw new Error(`${this.url} returned ${items.length} items; the limit is ${mostItems}`);
      const before = this.db.get('known') ?? '';
      const known = new Set(before.match(/.{12}/g));
      const current = new Set();
      let left = mostEmits;
      for (const { id, item, ...meta } of items) {
        const key = hashOf(id).slice(0, 12);
        if (!known.has(key) && !current.has(key)) {
          if (left === 0) continue;
          try {
            this.$emit(item, { id: id.length > longestId ? hashOf(id) : id, ...meta });
            left--;
          } catch (error) {
            // The run may emit no more. Any other error is about this item alone, and is on $errors
            if (error.message.endsWith('in one run')) left = 0;
            if (left === 0) continue;
          }
        }
        current.add(key);
      }
      const after = [...new Set([...current, ...known])].slice(0, Math.max(leastRemembered, current.size)).join('');
      if (after !== before) this.db.set('known', after);
    },
    /** Emits a response that is not a list if it is another one than before. The id has a count, because a response can return to what it was. */
    emitChange(response) {
      const hash = hashOf(JSON.stringify(response));
      const last = this.db.get('response');
      if (hash === last?.hash) return;
      const changes = (last?.changes ?? 0) + 1;
      this.$emit(response, { id: `${hash} ${changes}`, summary: summaryOf(response, hash) });
      this.db.set('response', { hash, changes });
    },
  },
  async run() {
    const response = await fetch(this.url, {
      headers: { accept: 'application/json', ...this.headers },
      signal: AbortSignal.timeout(20_000),
    });
    if (!response.ok) throw new Error(`${this.url} returned ${response.status}`);
    const found = at(parsed(await response.text()), this.itemsPath);
    if (found === undefined) throw new Error(`${this.url} returned nothing at itemsPath, "${this.itemsPath}"`);
    // Some APIs return null for an empty list
    if (found === null && this.itemsPath) return;
    if (!Array.isArray(found)) return this.emitChange(found);
    this.emitNew(
      found.map((item) => {
        const id = this.idOf(item);
        return { id, item, summary: summaryOf(item, id) };
      }),
    );
  },
};
