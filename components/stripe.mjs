// Receives webhooks of Stripe.
import { createHmac, timingSafeEqual } from 'node:crypto';

const bytesOf = ({ bodyRaw, bodyBase64 }) => Buffer.from(bodyRaw, bodyBase64 ? 'base64' : 'utf8');
const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};
// A captured request must not be repeated later
const toleranceSeconds = 300;
const isFresh = (timestamp) => Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds;

export default {
  key: 'stripe',
  name: 'Stripe',
  version: '1.0.0',
  description: 'Receives the events of a Stripe webhook endpoint, and verifies their signatures.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    secret: {
      type: 'string',
      label: 'Signing secret',
      secret: true,
      description: 'The signing secret of the endpoint in Stripe; it begins with whsec_.',
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
    const parts = String(request.headers['stripe-signature'] ?? '')
      .split(',')
      .map((part) => part.split('=', 2));
    const timestamp = parts.find(([name]) => name === 't')?.[1];
    const expected = createHmac('sha256', this.secret).update(`${timestamp}.`).update(bytesOf(request)).digest('hex');
    // While a secret is being replaced, there is a signature for each
    if (!parts.some(([name, value]) => name === 'v1' && isEqual(value, expected))) return this.refuse('the signature does not match');
    if (!isFresh(timestamp)) return this.refuse('the timestamp is too old');
    const { id, type = 'unknown' } = request.body ?? {};
    this.receive({ id: id ?? expected, type, payload: request.body });
  },
};
