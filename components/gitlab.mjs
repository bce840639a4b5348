// Receives webhooks of GitLab.
import { randomUUID, timingSafeEqual } from 'node:crypto';

const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};

export default {
  key: 'gitlab',
  name: 'GitLab',
  version: '1.0.0',
  description: 'Receives the webhooks of a GitLab project or group, and verifies their secret token.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    secret: { type: 'string', label: 'Secret token', secret: true, description: 'The secret token of the webhook in GitLab.' },
    streams: {
      type: 'boolean',
      label: 'A stream per type',
      description: 'Emit each type of event on a separate stream, named after the type.',
      optional: true,
      default: false,
    },
  },
  methods: {
    refuse(reason) {
      this.http.respond({ status: 401, body: { error: reason } });
    },
    receive({ id, type, payload }, response = { status: 200, body: { received: true } }) {
      this.$emit({ id, type, payload }, { id, summary: type, ...(this.streams && { name: type }) });
      this.http.respond(response);
    },
  },
  run({ headers, body }) {
    if (!this.secret?.trim()) return this.refuse('no secret is configured');
    if (!isEqual(headers['x-gitlab-token'], this.secret)) return this.refuse('the token does not match');
    const id = headers['idempotency-key'] ?? headers['x-gitlab-event-uuid'] ?? randomUUID();
    this.receive({ id, type: body?.object_kind ?? headers['x-gitlab-event'] ?? 'unknown', payload: body });
  },
};
