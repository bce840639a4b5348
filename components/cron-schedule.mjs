// Emits an event on a cron schedule.
export default {
  key: 'cron-schedule',
  name: 'Cron Schedule',
  version: '1.0.0',
  description: 'Emits an event on a cron schedule, in a time zone of your choice.',
  type: 'source',
  props: {
    timer: {
      type: '$.interface.timer',
      label: 'Schedule',
      description: 'For example {"cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}.',
      default: { cron: '0 * * * *' },
    },
  },
  async run(tick) {
    this.$emit(tick, { id: String(tick.timestamp), ts: tick.timestamp * 1000, summary: new Date(tick.timestamp * 1000).toISOString() });
  },
};
