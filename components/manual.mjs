// Emits nothing by itself: events are published in its name over HTTP or Kafka.
export default {
  key: 'manual',
  name: 'Manual',
  version: '1.0.0',
  description: 'Emits nothing by itself: publish events with POST /v1/sources/{id}/events, or to the topic `events`.',
  type: 'source',
  props: {},
  run() {},
};
