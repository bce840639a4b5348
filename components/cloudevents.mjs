// Receives CloudEvents over HTTP: the three modes of the HTTP binding, and the handshake of the webhook specification.
import { createHash, timingSafeEqual } from 'node:crypto';

/** The most events that a run emits. */
const mostEvents = 1000;
/** The ids that the runtime remembers for `dedupe`. Those of a larger batch are remembered in the source's db. */
const remembered = { byRuntime: 100, inDb: 5000 };
/** Of the id of an emit, in characters. */
const longestId = 4096;

const isEqual = (a, b) => {
  const [left, right] = [Buffer.from(String(a ?? '')), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};

class Malformed extends Error {
  constructor(message, status = 400) {
    super(message);
    this.status = status;
  }
}

const mediaType = (headers) =>
  String(headers['content-type'] ?? '')
    .split(';', 1)[0]
    .trim()
    .toLowerCase();

/**
 * The value of a header, which can be quoted and is percent-encoded UTF-8 (HTTP binding, 3.1.3.2). Node reads other bytes as Latin-1. A percent sign that
 * encodes nothing stands for itself: some SDKs do not encode.
 */
const decoded = (name, value) => {
  const text = /^".*"$/s.test(value) ? value.slice(1, -1).replace(/\\(.)/gs, '$1') : value;
  try {
    return decodeURIComponent(
      text.replace(/%(?![0-9a-f]{2})/gi, '%25').replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`),
    );
  } catch {
    throw new Malformed(`the header ${name} is not percent-encoded UTF-8`);
  }
};

const jsonOf = (body) => {
  if (typeof body !== 'object' || body === null) throw new Malformed('the body is not JSON');
  return body;
};

/** The data of an event in binary mode: only JSON is parsed. */
function dataOf(type, { body, bodyRaw, bodyBase64 }) {
  if (bodyRaw === '') return {};
  if (bodyBase64) return { data_base64: bodyRaw };
  if (!/^[\w.+-]+\/(?:[\w.+-]+\+)?json$/.test(type)) return { data: bodyRaw };
  // The runtime passes on as text what does not parse, and a JSON string has quotes
  if (body === bodyRaw) throw new Malformed('the body is not JSON');
  return { data: body };
}

/** The events of a request, in the JSON format of CloudEvents. */
function eventsOf(request) {
  const { headers, body } = request;
  const type = mediaType(headers);
  if (type === 'application/cloudevents-batch+json') {
    if (!Array.isArray(body)) throw new Malformed('the batch is not an array');
    return body.map(jsonOf);
  }
  if (type === 'application/cloudevents+json') return [jsonOf(body)];
  if (type.startsWith('application/cloudevents')) throw new Malformed(`the format ${type} is not supported; send JSON`);
  const attributes = Object.entries(headers)
    .filter(([name]) => name.startsWith('ce-'))
    .map(([name, value]) => [name.slice('ce-'.length), decoded(name, value)]);
  if (attributes.length === 0) throw new Malformed('the request is not a CloudEvent');
  return [{ ...Object.fromEntries(attributes), ...(type && { datacontenttype: headers['content-type'] }), ...dataOf(type, request) }];
}

/** An event is identified by both. */
const keyOf = ({ id, source }) => `${source} ${id}`;

const shortOf = (key) => createHash('sha256').update(key).digest('base64url').slice(0, 12);

function check(event) {
  for (const name of ['specversion', 'id', 'source', 'type'])
    if (typeof event[name] !== 'string' || event[name] === '') throw new Malformed(`the attribute ${name} is missing`);
  if (event.specversion !== '1.0') throw new Malformed(`the version ${event.specversion} of CloudEvents is not supported`);
  if (keyOf(event).length > longestId || event.type.length > longestId)
    throw new Malformed(`the type, and the source with the id, must each have at most ${longestId} characters`);
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
    db: '$.service.db',
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
    /** The events of a batch that no earlier batch had: senders repeat a batch as a whole. */
    fresh(events) {
      if (events.length <= remembered.byRuntime) return events;
      const known = new Set((this.db.get('known') ?? '').match(/.{12}/g));
      const fresh = events.filter((event) => {
        const key = shortOf(keyOf(event));
        const isNew = !known.has(key);
        known.add(key);
        return isNew;
      });
      this.db.set('known', [...known].slice(-remembered.inDb).join(''));
      return fresh;
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
      if (events.length > mostEvents) throw new Malformed(`the batch has ${events.length} events; the limit is ${mostEvents}`, 413);
      events.forEach(check);
      for (const event of this.fresh(events)) {
        const { type, time } = event;
        const ts = Date.parse(time ?? '');
        this.$emit(event, {
          id: keyOf(event),
          summary: type,
          ...(Number.isNaN(ts) ? {} : { ts }),
          ...(this.streams && isStream(type) && { name: type }),
        });
      }
      this.http.respond({ status: 202 });
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.http.respond({ status: error.status, body: { error: error.message } });
    }
  },
};
