// Emits the new items of an RSS or Atom feed.
import Parser from 'rss-parser';

export default {
  key: 'rss-feed',
  name: 'RSS Feed',
  version: '1.0.0',
  description: 'Emits an event for each new item of an RSS or Atom feed.',
  type: 'source',
  dedupe: 'unique',
  props: {
    url: { type: 'string', label: 'Feed URL', description: 'The address of the feed.' },
    timer: { type: '$.interface.timer', label: 'Poll', default: { intervalSeconds: 900 } },
  },
  methods: {
    idOf: (item) => item.guid ?? item.id ?? item.link ?? `${item.title} ${item.isoDate ?? item.pubDate ?? ''}`,
  },
  async run() {
    const feed = await new Parser({ timeout: 20_000 }).parseURL(this.url);
    for (const item of feed.items) {
      const ts = Date.parse(item.isoDate ?? item.pubDate ?? '');
      this.$emit(item, { id: this.idOf(item), summary: item.title, ts: Number.isNaN(ts) ? undefined : ts });
    }
  },
};
