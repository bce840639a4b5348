// Emits the new items of an RSS or Atom feed.
import { createHash } from 'node:crypto';
import Parser from 'rss-parser';

/** The most that a run emits, unless SLUICE_MAX_RUN_EMITS is lower. */
const mostEmits = 1000;
/** Ids take 12 bytes each in the source's db of 1 MiB. */
const mostItems = 50_000;
/** Items are remembered beyond the current response, because a sender can omit some of them for a while. */
const leastRemembered = 5000;
const longestId = 4096;

const hashOf = (text) => createHash('sha256').update(text).digest('base64url');

export default {
  key: 'rss-feed',
  name: 'RSS Feed',
  version: '1.0.0',
  description: 'Emits an event for each new item of an RSS or Atom feed.',
  type: 'source',
  dedupe: 'unique',
  props: {
    db: '$.service.db',
    url: { type: 'string', label: 'Feed URL', description: 'The address of the feed.' },
    timer: { type: '$.interface.timer', label: 'Poll', default: { intervalSeconds: 900 } },
  },
  methods: {
    idOf: (item) => item.guid ?? item.id ?? item.link ?? `${item.title} ${item.isoDate ?? item.pubDate ?? ''}`,
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
  },
  async run() {
    const feed = await new Parser({ timeout: 20_000 }).parseURL(this.url);
    const items = feed.items.map((item) => {
      const ts = Date.parse(item.isoDate ?? item.pubDate ?? '');
      return { id: this.idOf(item), item, summary: item.title, ...(Number.isNaN(ts) ? {} : { ts }) };
    });
    // Feeds list the newest item first
    this.emitNew(items.reverse().sort((a, b) => (a.ts ?? 0) - (b.ts ?? 0)));
  },
};
