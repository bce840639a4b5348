// Emits the new items of an RSS or Atom feed.
import { createHash } from 'node:crypto';
import { TextDecoder } from 'node:util';
import Parser from 'rss-parser';

/** The most that a run emits, unless SLUICE_MAX_RUN_EMITS is lower. */
const mostEmits = 1000;
/** Ids take 12 bytes each in the source's db of 1 MiB. */
const mostItems = 50_000;
/** Items are remembered beyond the current response, because a sender can omit some of them for a while. */
const leastRemembered = 5000;
const longestId = 4096;

const hashOf = (text) => createHash('sha256').update(text).digest('base64url');

const isText = (value) => typeof value === 'string' && value.trim() !== '';

/** A parser that bad dates and bare links in an Atom feed do not stop. */
class FeedParser extends Parser {
  parseItemAtom({ published, updated, link, ...entry }) {
    const valid = (dates) => dates?.filter((date) => !Number.isNaN(Date.parse(date)));
    const links = link?.map((each) => (each.$ ? each : { $: { rel: 'alternate', href: each } }));
    return super.parseItemAtom({ ...entry, published: valid(published), updated: valid(updated), link: links });
  }
}

const decoderOf = (encoding) => {
  try {
    return new TextDecoder(encoding);
  } catch {
    return null;
  }
};

/** The text of a feed: a byte order mark decides, then the charset of the response, then the XML declaration (RFC 7303). */
function textOf(bytes, contentType) {
  const mark = { fffe: 'utf-16le', feff: 'utf-16be' }[bytes.toString('hex', 0, 2)];
  const charset = /\bcharset\s*=\s*["']?([^\s;"']+)/i.exec(contentType)?.[1];
  const declared = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)/.exec(bytes.toString('latin1', 0, 500))?.[1];
  // A declaration that is readable as ASCII is not in UTF-16, although it can claim so
  const known = [mark, charset, /^utf-16/i.test(declared) ? undefined : declared].filter(Boolean).map(decoderOf).find(Boolean);
  return (known ?? new TextDecoder()).decode(bytes);
}

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
    /** A guid can be empty, and an object if it has attributes only. */
    idOf: (item) => [item.guid, item.id, item.link].find(isText) ?? hashOf(JSON.stringify(item)),
    async read() {
      const url = new URL(this.url);
      const login = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
      url.username = url.password = '';
      const response = await fetch(url, {
        headers: {
          accept: 'application/rss+xml, application/atom+xml, application/xml;q=0.9, */*;q=0.8',
          'user-agent': 'rss-parser',
          ...(login !== ':' && { authorization: `Basic ${Buffer.from(login).toString('base64')}` }),
        },
        signal: AbortSignal.timeout(20_000),
      });
      if (!response.ok) throw new Error(`${url} returned ${response.status}`);
      const text = textOf(Buffer.from(await response.arrayBuffer()), response.headers.get('content-type'));
      return new FeedParser().parseString(text);
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
  },
  async run() {
    const feed = await this.read();
    const items = feed.items.map((item) => {
      const ts = Date.parse(item.isoDate ?? item.pubDate ?? '');
      return { id: this.idOf(item), item, summary: isText(item.title) ? item.title : undefined, ...(Number.isNaN(ts) ? {} : { ts }) };
    });
    // Feeds list the newest item first
    this.emitNew(items.reverse().sort((a, b) => (a.ts ?? 0) - (b.ts ?? 0)));
  },
};
