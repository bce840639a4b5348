// Receives CloudEvents over HTTP: the three modes of the HTTP binding, and the handshake of the webhook specification.
import { timingSafeEqual } from 'node:crypto';

const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};

class Malformed extends Error {}

const mediaType = (headers) =>
  String(headers['content-type'] ?? '')
    .split(';', 1)[0]
    .trim()
    .toLowerCase();

/** Header values are percent-encoded where they are not printable ASCII. */
const decoded = (value) => {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
};

const jsonOf = (body) => {
  if (typeof body !== 'object' || body === null) throw new Malformed('the body is not JSON');
  return body;
};

/** The events of a request, in the JSON format of CloudEvents. */
function eventsOf({ headers, body, bodyRaw, bodyBase64 }) {
  const type = mediaType(headers);
  if (type === 'application/cloudevents-batch+json') {
    if (!Array.isArray(body)) throw new Malformed('the batch is not an array');
    return body.map(jsonOf);
  }
  if (type === 'application/cloudevents+json') return [jsonOf(body)];
  if (type.startsWith('application/cloudevents')) throw new Malformed(`the format ${type} is not supported; send JSON`);
  const attributes = Object.entries(headers)
    .filter(([name]) => name.startsWith('ce-'))
    .map(([name, value]) => [name.slice('ce-'.length), decoded(value)]);
  if (attributes.length === 0) throw new Malformed('the request is not a CloudEvent');
  const data = bodyRaw === '' ? {} : bodyBase64 ? { data_base64: bodyRaw } : { data: body };
  return [{ ...Object.fromEntries(attributes), ...(type && { datacontenttype: headers['content-type'] }), ...data }];
}

function check(event) {
  for (const name of ['specversion', 'id', 'source', 'type'])
    if (typeof event[name] !== 'string' || event[name] === '') throw new Malformed(`the attribute ${name} is missing`);
  if (event.specversion !== '1.0') throw new Malformed(`the version ${event.specversion} of CloudEvents is not supported`);
}

/** Whether the type can be the name of a stream. Other events go to the default stream. */
const isStream = (type) => /^(?!\$|\*$)[^\0]{1,128}$/s.test(type) && type.isWellFormed();

export default {
  key: 'cloudevents',
  name: 'CloudEvents',
  version: '1.0.0',
  description: 'Receives CloudEvents over HTTP in binary, structured and batch mode, and emits them in their JSON format.',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true, respondWhenStored: true },
    token: {
      type: 'string',
      label: 'Access token',
      description:
        'What senders must send as `Authorization: Bearer …` or as the query parameter access_token; without it, anyone may send.',
      optional: true,
      secret: true,
    },
    origins: {
      type: 'string[]',
      label: 'Origins',
      description: 'Senders that may register by the OPTIONS handshake; without it, all.',
      optional: true,
    },
    streams: {
      type: 'boolean',
      label: 'A stream per type',
      description: 'Emit each type of event on a separate stream, named after the type, if it can be the name of a stream.',
      optional: true,
      default: false,
    },
  },
  methods: {
    isAllowed({ headers, query }) {
      if (typeof this.token !== 'string') return true;
      // An empty file or variable must not open the endpoint
      if (this.token.trim() === '') return false;
      const [, bearer] = /^bearer (.+)$/i.exec(headers.authorization ?? '') ?? [];
      return isEqual(bearer ?? query.access_token, this.token);
    },
    /** A sender asks whether it may deliver here, before it sends anything. */
    shake({ headers }) {
      const origin = headers['webhook-request-origin'];
      if (!origin) return this.http.respond({ status: 400, body: { error: 'the header WebHook-Request-Origin is missing' } });
      if (this.origins?.length && !this.origins.includes(origin))
        return this.http.respond({ status: 403, body: { error: 'this origin may not send here' } });
      this.http.respond({
        status: 200,
        headers: {
          allow: 'POST, OPTIONS',
          'webhook-allowed-origin': origin,
          ...(headers['webhook-request-rate'] && { 'webhook-allowed-rate': '*' }),
        },
      });
    },
  },
  run(request) {
    if (!this.isAllowed(request)) return this.http.respond({ status: 401, body: { error: 'the access token does not match' } });
    if (request.method === 'OPTIONS') return this.shake(request);
    if (request.method !== 'POST')
      return this.http.respond({ status: 405, headers: { allow: 'POST, OPTIONS' }, body: { error: 'send events with POST' } });
    try {
      const events = eventsOf(request);
      events.forEach(check);
      for (const event of events) {
        const { id, source, type, time } = event;
        const ts = Date.parse(time ?? '');
        this.$emit(event, {
          // An event is identified by both
          id: `${source} ${id}`,
          summary: type,
          ...(Number.isNaN(ts) ? {} : { ts }),
          ...(this.streams && isStream(type) && { name: type }),
        });
      }
      this.http.respond({ status: 202 });
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.http.respond({ status: 400, body: { error: error.message } });
    }
  },
};
