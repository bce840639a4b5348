// Emits every HTTP request that arrives at the source's endpoint.
export default {
  key: 'http-request',
  name: 'HTTP Request',
  version: '1.0.0',
  description: 'Emits an event for each HTTP request to the endpoint: its method, path, query, headers and body.',
  type: 'source',
  props: {
    http: { type: '$.interface.http', label: 'Endpoint', description: 'Any method, any path below it.' },
    bodyOnly: {
      type: 'boolean',
      label: 'Body only',
      description: 'Emit the parsed body instead of the whole request.',
      optional: true,
      default: false,
    },
  },
  async run(request) {
    this.$emit(this.bodyOnly ? (request.bodyRaw === '' ? null : (request.body ?? null)) : request, {
      summary: `${request.method} ${request.path}`,
    });
  },
};
