// Emits an event at a fixed interval.
export default {
  key: 'interval-timer',
  name: 'Interval Timer',
  version: '1.0.0',
  description: 'Emits an event at a fixed interval, with a count of its ticks.',
  type: 'source',
  props: {
    db: '$.service.db',
    timer: { type: '$.interface.timer', label: 'Interval', default: { intervalSeconds: 60 } },
  },
  async run(tick) {
    const count = (this.db.get('count') ?? 0) + 1;
    this.db.set('count', count);
    this.$emit({ ...tick, count }, { id: String(tick.timestamp), ts: tick.timestamp * 1000, summary: `Tick ${count}` });
  },
};
