// Receives webhooks of Slack.
import { createHmac, timingSafeEqual } from 'node:crypto';

const bytesOf = ({ bodyRaw, bodyBase64 }) => Buffer.from(bodyRaw, bodyBase64 ? 'base64' : 'utf8');
const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};
// A captured request must not be repeated later
const toleranceSeconds = 300;
const isFresh = (timestamp) => Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds;

/** An interaction is JSON in a form field. */
const payloadOf = (body) => (typeof body?.payload === 'string' ? JSON.parse(body.payload) : body);

export default {
  key: 'slack',
  name: 'Slack',
  version: '1.0.0',
  description: 'Receives the events, commands and interactions of a Slack app, and verifies their signatures.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    secret: {
      type: 'string',
      label: 'Signing secret',
      secret: true,
      description: 'The signing secret of the app in Slack, under Basic Information.',
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
    const { 'x-slack-signature': signature, 'x-slack-request-timestamp': timestamp } = request.headers;
    const expected = createHmac('sha256', this.secret).update(`v0:${timestamp}:`).update(bytesOf(request)).digest('hex');
    if (!isEqual(signature, `v0=${expected}`)) return this.refuse('the signature does not match');
    if (!isFresh(timestamp)) return this.refuse('the timestamp is too old');
    const payload = payloadOf(request.body);
    if (payload?.type === 'url_verification')
      return this.http.respond({ status: 200, headers: { 'content-type': 'text/plain' }, body: String(payload.challenge) });
    const type = payload?.event?.type ?? payload?.type ?? payload?.command ?? 'unknown';
    // An empty response: Slack would show any text to the user who sent a command
    this.receive({ id: payload?.event_id ?? payload?.trigger_id ?? expected, type, payload }, { status: 200 });
  },
};
