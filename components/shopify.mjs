// Receives webhooks of Shopify.
import { createHmac, timingSafeEqual } from 'node:crypto';

const bytesOf = ({ bodyRaw, bodyBase64 }) => Buffer.from(bodyRaw, bodyBase64 ? 'base64' : 'utf8');
const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};

export default {
  key: 'shopify',
  name: 'Shopify',
  version: '1.0.0',
  description: 'Receives the webhooks of a Shopify app or shop, and verifies their signatures.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    secret: {
      type: 'string',
      label: 'Secret',
      secret: true,
      description: 'The client secret of the app, or the signing secret that the shop shows under its webhooks.',
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
    const { headers } = request;
    const expected = createHmac('sha256', this.secret).update(bytesOf(request)).digest('base64');
    if (!isEqual(headers['x-shopify-hmac-sha256'], expected)) return this.refuse('the signature does not match');
    // Shopify repeats a delivery under the same webhook id
    this.receive({ id: headers['x-shopify-webhook-id'] ?? expected, type: headers['x-shopify-topic'] ?? 'unknown', payload: request.body });
  },
};
