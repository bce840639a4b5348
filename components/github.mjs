// Receives webhooks of GitHub.
import { createHmac, timingSafeEqual } from 'node:crypto';

const bytesOf = ({ bodyRaw, bodyBase64 }) => Buffer.from(bodyRaw, bodyBase64 ? 'base64' : 'utf8');
const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};

/** GitHub sends JSON, or a form with the JSON in one field: that is a setting of the webhook. */
const payloadOf = ({ headers, body }) =>
  String(headers['content-type']).startsWith('application/x-www-form-urlencoded') ? JSON.parse(body.payload) : body;

export default {
  key: 'github',
  name: 'GitHub',
  version: '1.0.0',
  description: 'Receives the webhooks of a GitHub repository, organization or app, and verifies their signatures.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    secret: {
      type: 'string',
      label: 'Secret',
      secret: true,
      description: 'The secret of the webhook in GitHub.',
    },
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
  run(request) {
    if (!this.secret?.trim()) return this.refuse('no secret is configured');
    const { 'x-hub-signature-256': signature, 'x-github-event': type = 'unknown', 'x-github-delivery': id } = request.headers;
    const expected = createHmac('sha256', this.secret).update(bytesOf(request)).digest('hex');
    if (!isEqual(signature, `sha256=${expected}`)) return this.refuse('the signature does not match');
    if (type === 'ping') return this.http.respond({ status: 200, body: { pong: true } });
    this.receive({ id: id ?? expected, type, payload: payloadOf(request) });
  },
};
