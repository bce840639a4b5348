import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Invalid } from '#contracts';
import { eventRecord, MAX_EVENT_BYTES, readEventRecord } from '#events';
import { cpuSeconds } from '#testing';
import type { HeldKey } from '../idempotency/idempotency.repository.js';
import { repeatableKsuid } from '../idempotency/new-ids.js';
import { type PublishedEvent, publishedEvents, type PublishRequest } from './published-events.js';

type Request = {
  heldKey?: HeldKey;
  headers?: PublishRequest['headers'];
  rawHeaders?: string[];
  body?: unknown;
  bytes?: Buffer;
  event_name?: unknown;
  id?: unknown;
  [parameter: string]: unknown;
};

const publish = ({ heldKey, headers, rawHeaders = [], body, bytes, ...query }: Request): PublishedEvent[] =>
  publishedEvents(
    {
      headers: { 'content-type': 'application/json', ...headers },
      rawHeaders,
      body: bytes ?? Buffer.from(JSON.stringify(body)),
      query,
      heldKey,
    },
    { maxEventBytes: MAX_EVENT_BYTES },
  );
const problemsOf = (request: Request) => {
  try {
    publish(request);
  } catch (error) {
    if (error instanceof Invalid) return { message: error.message, errors: error.details.errors };
    throw error;
  }
  throw new Error('it was accepted');
};
const structured = { 'content-type': 'application/cloudevents+json; charset=utf-8' };
const batch = { 'content-type': 'application/cloudevents-batch+json' };
const EVENT = { specversion: '1.0', id: 'a', source: '/shop', type: 'order', data: { n: 1 } };
/** As every reader of the log sees it. */
const inLog = (event: PublishedEvent) => {
  const { key, value, headers } = eventRecord({ ...event, emitterId: 'dc_1' });
  const read = readEventRecord({
    ...{ partition: 0, offset: 1, clock: 5, key, value },
    header: (name) => headers[name],
    headerNames: () => Object.keys(headers),
  });
  if (read.kind !== 'event') throw new Error(JSON.stringify(read));
  return read;
};

describe('a JSON body', () => {
  it.each([{ a: 1 }, [1, 2], 'text', 0, false, null])('%j is one event of the default stream, with a new emit id', (body) => {
    const [event, ...more] = publish({ body });
    expect(more).toEqual([]);
    expect(event).toMatchObject({ stream: '', emitId: expect.stringMatching(/^[0-9A-Za-z]{27}$/), context: undefined });
    expect(event?.json.toString()).toBe(JSON.stringify(body));
  });

  it('is kept byte for byte, without a byte order mark', () => {
    expect(publish({ bytes: Buffer.from('\uFEFF {"n": 1.0}') })[0]?.json.toString()).toBe(' {"n": 1.0}');
  });

  it('goes to the stream and has the emit id that the query names', () => {
    const [event] = publish({ body: 1, event_name: 'orders', id: 'x' });
    expect(event).toMatchObject({ stream: 'orders', emitId: 'x', context: { attributes: { id: 'x' } } });
    expect(publish({ body: 1, event_name: 'default', id: '' })[0]).toMatchObject({ stream: '', context: undefined });
  });

  it.each(['event_nam', 'event-name', 'eventName'])(
    'is refused with the parameter %j, without which it would go to another stream',
    (name) => {
      expect(problemsOf({ body: 1, [name]: 'refunds' }).errors).toEqual([
        { field: name, message: `unknown parameter "${name}"; did you mean event_name?` },
      ]);
    },
  );

  it('may have parameters that are unknown', () => {
    expect(publish({ body: 1, org_id: 'o_1', ts: '5' })[0]?.stream).toBe('');
  });

  it.each(['$errors', '$logs', '', 'x'.repeat(128)])('goes to the stream %j', (event_name) => {
    expect(publish({ body: 1, event_name })[0]?.stream).toBe(event_name);
  });

  it.each(['*', '$in', '$other', '$delete', 'x'.repeat(129), 'a\0b', '\ud800'])('the event_name %j is refused', (event_name) => {
    expect(problemsOf({ body: 1, event_name }).errors).toEqual([{ field: 'event_name', message: expect.stringContaining('event_name') }]);
  });

  it.each<[string, Buffer, RegExp]>([
    ['nothing', Buffer.alloc(0), /empty/],
    ['spaces', Buffer.from(' \n'), /empty/],
    ['no JSON', Buffer.from('{'), /not valid JSON/],
    ['bytes', Buffer.from([0x22, 0xff, 0x22]), /not UTF-8/],
    ['more than 1 MiB', Buffer.from(`"${'x'.repeat(MAX_EVENT_BYTES)}"`), /1048578 bytes of JSON; the limit is 1048576/],
    ['too many levels', Buffer.from(`${'['.repeat(201)}${']'.repeat(201)}`), /nested deeper than 200/],
  ])('%s is refused', (_, bytes, message) => {
    expect(problemsOf({ bytes }).message).toMatch(message);
  });

  it('an event of exactly 1 MiB is accepted', () => {
    expect(publish({ bytes: Buffer.from(`"${'x'.repeat(MAX_EVENT_BYTES - 2)}"`) })).toHaveLength(1);
  });

  it.each(['x'.repeat(257), 'a\0'])('the id %j is refused', (id) => {
    expect(problemsOf({ body: 1, id }).errors).toEqual([{ field: 'id', message: expect.any(String) }]);
  });

  it('a repeated parameter is refused', () => {
    expect(problemsOf({ body: 1, event_name: ['a', 'b'], id: ['a', 'b'] }).errors?.map(({ field }) => field)).toEqual(['event_name', 'id']);
  });

  it('carries the trace of the request', () => {
    const [event] = publish({ body: 1, headers: { traceparent: '00-a-b-01', tracestate: 'x=y' } });
    expect(event?.context).toEqual({ attributes: undefined, traceparent: '00-a-b-01', tracestate: 'x=y' });
  });
});

describe('with an Idempotency-Key', () => {
  const heldKey: HeldKey = {
    accountId: 'u_1',
    key: 'k',
    fingerprint: Buffer.from('f'),
    claimedAt: '2026-01-02 00:00:09',
    firstAt: new Date('2026-01-02'),
  };
  const ids = (held?: HeldKey): string[] => publish({ body: 1, heldKey: held }).map(({ emitId }) => emitId);

  it('an event has the same emit id at each attempt', () => {
    const [id] = ids(heldKey);
    expect(id).toMatch(/^[0-9A-Za-z]{27}$/);
    expect(ids({ ...heldKey, claimedAt: '2026-01-02 00:05:00' })).toEqual([id]);
    expect(new Set([0, 1, undefined].map((index) => repeatableKsuid(heldKey, index))).size).toBe(2);
  });

  it.each<[string, Partial<HeldKey>]>([
    ['of another account', { accountId: 'u_2' }],
    ['with another key', { key: 'l' }],
    ['with another payload', { fingerprint: Buffer.from('g') }],
    ['that uses the key again after a day', { firstAt: new Date('2026-01-03') }],
  ])('a request %s has other emit ids', (_, other) => {
    expect(ids({ ...heldKey, ...other })).not.toEqual(ids(heldKey));
  });

  it('an id of the producer takes precedence', () => {
    expect(publish({ body: 1, id: 'mine', heldKey })[0]?.emitId).toBe('mine');
    expect(publish({ headers: batch, body: [EVENT, { ...EVENT, id: 'b' }], heldKey }).map(({ emitId }) => emitId)).toEqual(['a', 'b']);
  });
});

describe('ce- headers', () => {
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'ce-specversion': '1.0',
    'ce-id': 'e1',
    'ce-source': '/shop',
    'ce-type': 'com.example.order',
    'ce-time': '2026-01-02T03:04:05Z',
    'ce-subject': 'Gr%C3%B6%C3%9Fe%20100%25',
    'ce-tenant': '7',
  };
  it('may contain an empty time, which counts as absent', () => {
    expect(publish({ body: { n: 1 }, headers: { ...headers, 'ce-time': '' } })[0]?.time).toBeUndefined();
  });
  it('are attributes: percent-decoded, and read back from the log as they are', () => {
    const event = inLog(publish({ body: { n: 1 }, headers })[0]!);
    expect(event).toMatchObject({ stream: 'com.example.order', emitId: 'e1', time: '2026-01-02T03:04:05Z' });
    expect(event.context?.attributes).toEqual({
      id: 'e1',
      source: '/shop',
      subject: 'Größe 100%',
      tenant: '7',
      datacontenttype: 'application/json; charset=utf-8',
    });
  });
  it('are overridden by the query, and the type is kept as a type', () => {
    const event = inLog(publish({ body: 1, headers, event_name: 'default', id: 'q' })[0]!);
    expect(event).toMatchObject({ stream: '', emitId: 'q', context: { attributes: { id: 'q', type: 'com.example.order' } } });
  });
  it('name the stream by sluicestream; our other attributes are overwritten', () => {
    const event = inLog(publish({ body: 1, headers: { ...headers, 'ce-sluicestream': 'orders', 'ce-sluiceevent': 'x' } })[0]!);
    expect(event).toMatchObject({ stream: 'orders', context: { attributes: { type: 'com.example.order' } } });
    expect(event.context?.attributes).not.toHaveProperty('sluiceevent');
  });
  it.each(['$delete', '$in', '$other', '*', 'x'.repeat(129)])(
    'an event with the type %j, which cannot be a stream, is on the default stream and keeps the type',
    (type) => {
      const event = inLog(publish({ body: 1, headers: { 'ce-type': type, 'ce-dueat': '1', 'ce-sluicedueat': '1' } })[0]!);
      expect(event).toMatchObject({ stream: '', waited: false, dueAt: undefined, context: { attributes: { type, dueat: '1' } } });
    },
  );
  it.each(['$errors', '$logs'])('an event with the type %j is on that stream', (type) => {
    expect(inLog(publish({ body: 1, headers: { 'ce-type': type } })[0]!)).toMatchObject({ stream: type, context: undefined });
  });
  it('without an id get a new one', () => {
    const [event] = publish({ body: 1, headers: { 'ce-subject': 's' } });
    expect(inLog(event!)).toMatchObject({ emitId: event?.emitId, context: { attributes: { subject: 's' } } });
    expect(inLog(event!).context?.attributes).not.toHaveProperty('id');
  });
  it.each<[string, Record<string, string>, string]>([
    ['another version', { 'ce-specversion': '0.3' }, 'ce-specversion'],
    ['a bad stream', { 'ce-sluicestream': '*' }, 'ce-sluicestream'],
    ['a bad time', { 'ce-time': 'yesterday' }, 'ce-time'],
    ['a day that no month has', { 'ce-time': '2026-02-30T00:00:00Z' }, 'ce-time'],
    ['a time with very many digits', { 'ce-time': `2026-01-02T03:04:05.${'1'.repeat(101)}Z` }, 'ce-time'],
    ['an id that is too long', { 'ce-id': 'x'.repeat(257) }, 'ce-id'],
    ['an attribute that is too long', { 'ce-itemid': 'x'.repeat(4097) }, 'ce-itemid'],
    ['bytes that are not UTF-8', { 'ce-subject': '%FF' }, 'ce-subject'],
    ['a NUL character', { 'ce-subject': '%00' }, 'body'],
    ['a bad name', { 'ce-my_name': '1' }, 'ce-my_name'],
    ['the name of the payload', { 'ce-data': '1' }, 'ce-data'],
    ['too many headers', Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`ce-x${n}`, '1'])), 'body'],
    ['too many bytes for record headers', { 'ce-subject': 'x'.repeat(9000) }, 'body'],
  ])('a header with %s is refused', (_, more, field) => {
    const message = field === 'body' ? expect.any(String) : expect.stringMatching(new RegExp(`^${field}\\b`));
    expect(problemsOf({ body: 1, headers: more }).errors).toEqual([{ field, message }]);
  });
  it('repeated headers are refused, because their values would be joined', () => {
    const request = { body: 1, headers: { 'ce-id': 'b5, b6', 'ce-subject': 's' } };
    const once = ['CE-ID', 'b5, b6', 'ce-subject', 's'];
    expect(publish({ ...request, rawHeaders: once })[0]?.emitId).toBe('b5, b6');
    const rawHeaders = ['CE-ID', 'b5', 'ce-subject', 's', 'x', 'ce-id', 'ce-id', 'b6'];
    expect(problemsOf({ ...request, rawHeaders }).errors).toEqual([{ field: 'ce-id', message: 'ce-id must be sent once' }]);
  });
});

it('a name of 65 characters is refused because of its length', () => {
  const name = 'a'.repeat(65);
  const rule = 'the name of an attribute must be 1 to 64 lower-case letters and digits, but not data';
  expect(problemsOf({ headers: structured, body: { ...EVENT, [name]: 'x' } }).errors).toEqual([
    { field: name, message: `${name}: ${rule}` },
  ]);
  expect(problemsOf({ body: 1, headers: { [`ce-${name}`]: 'x' } }).errors).toEqual([
    { field: `ce-${name}`, message: `ce-${name}: ${rule}` },
  ]);
  publish({ headers: structured, body: { ...EVENT, [name.slice(1)]: 'x' } });
});

describe('a structured CloudEvent', () => {
  it('becomes its data with its attributes', () => {
    const [event] = publish({ headers: structured, body: { ...EVENT, datacontenttype: 'application/vnd.shop+json', count: 3, ok: true } });
    expect(event?.json.toString()).toBe('{"n":1}');
    const read = inLog(event!);
    expect(read).toMatchObject({ stream: 'order', emitId: 'a' });
    expect(read.context?.attributes).toEqual({
      id: 'a',
      source: '/shop',
      datacontenttype: 'application/vnd.shop+json',
      count: '3',
      ok: 'true',
    });
  });
  it('binary data becomes a string in base64', () => {
    const { data: _, ...bare } = EVENT;
    const [event] = publish({ headers: structured, body: { ...bare, data_base64: 'AAEC', datacontenttype: 'image/png' } });
    expect(event?.json.toString()).toBe('"AAEC"');
    expect(inLog(event!).context?.attributes).toMatchObject({ datacontentencoding: 'base64', datacontenttype: 'image/png' });
  });
  it.each(['{"n": 1.0}', '12345678901234567890', '[1e400, -0]', '{"b":1,"1":2,"b":3}', '"\\u00fc}"'])(
    'has the data %s as it was sent',
    (data) => {
      const event = `{"specversion":"1.0","id":"a","source":"/s","data":1,"d\\u0061ta" : ${data} ,"type":"t","n":12345678901234567890}`;
      const events = [
        ...publish({ headers: structured, bytes: Buffer.from(`\uFEFF ${event}`) }),
        ...publish({ headers: batch, bytes: Buffer.from(`[\n${JSON.stringify(EVENT)}, ${event}]`) }),
      ];
      expect(events.map(({ json }) => json.toString())).toEqual([data, '{"n":1}', data]);
      expect(events.map(({ context }) => context?.attributes?.n)).toEqual(['12345678901234567890', undefined, '12345678901234567890']);
    },
  );
  it('without data is null', () => {
    const { data: _, ...bare } = EVENT;
    expect(publish({ headers: structured, body: bare })[0]?.json.toString()).toBe('null');
  });
  it.each(['specversion', 'id', 'source', 'type'])('without %s is refused', (name) => {
    const { [name as 'id']: _, ...rest } = EVENT;
    expect(problemsOf({ headers: structured, body: rest }).errors).toEqual([{ field: name, message: expect.stringContaining(name) }]);
  });
  it.each<[string, unknown, string]>([
    ['an array', [EVENT], 'body'],
    ['an attribute that is an object', { ...EVENT, extra: {} }, 'extra'],
    ['a bad name', { ...EVENT, myName: 1 }, 'myName'],
    ['both kinds of data', { ...EVENT, data_base64: 'AAEC' }, 'data_base64'],
    ['no base64', { ...EVENT, data: undefined, data_base64: '?' }, 'data_base64'],
    ['more than 128 members', { ...EVENT, ...Object.fromEntries(Array.from({ length: 124 }, (_, n) => [`x${n}`, null])) }, 'body'],
  ])('%s is refused', (_, body, field) => {
    expect(problemsOf({ headers: structured, body }).errors).toEqual([{ field, message: expect.any(String) }]);
  });
});

it('a structured CloudEvent or a batch with a million levels is refused', () => {
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
  const bytes = Buffer.from(`{"specversion":"1.0","id":"a","source":"/s","type":"t","data":${deep}}`);
  const message = 'the event is nested deeper than 200 levels';
  expect(problemsOf({ headers: structured, bytes }).errors).toEqual([{ field: 'body', message }]);
  expect(problemsOf({ headers: batch, bytes: Buffer.from(`[${bytes.toString()}]`) }).errors).toEqual([
    { index: 0, field: '[0]', message: `[0] ${message}` },
  ]);
});

it.each([
  ['is nested too deeply', '200 levels', { data: JSON.parse(`${'['.repeat(300)}"]}\\""${']'.repeat(300)}`) }],
  ['has too many members', '128 members', Object.fromEntries(Array.from({ length: 129 }, (_, n) => [`x${n}`, null]))],
])('an event of a batch that %s does not hide the problems of the later ones', (_, most, members) => {
  const { errors } = problemsOf({ headers: batch, body: [{ ...EVENT, id: '' }, { ...EVENT, ...members }, EVENT, { ...EVENT, time: 'x' }] });
  expect(errors).toEqual([
    { index: 0, field: '[0].id', message: expect.any(String) },
    { index: 1, field: '[1]', message: expect.stringContaining(most) },
    { index: 3, field: '[3].time', message: expect.any(String) },
  ]);
});

it.each(['', '}', ',{}', ']}]'])('a batch that is broken off behind too many levels is refused: %j', (rest) => {
  const bytes = Buffer.from(`[{"data":${'['.repeat(300)}${rest}`);
  expect(() => publish({ headers: batch, bytes })).toThrow(Invalid);
});

describe('a body that takes long to parse', () => {
  const names = `{${Array.from({ length: 85_000 }, (_, n) => `"k${n}":0`).join()}}`;
  const deep = `${'['.repeat(900_000)}${']'.repeat(900_000)}`;
  const attributes = `"specversion":"1.0","id":"a","source":"/s","type":"t"`;

  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each([
    ['an event', {}, names],
    ['a structured CloudEvent', structured, `{${attributes},"data":${names}}`],
    ['a batch', batch, `[{${attributes},"data":${names}}]`],
  ])('is accepted without being parsed: %s', (_, headers, body) => {
    const parse = jest.spyOn(JSON, 'parse');
    const [event] = publish({ headers, bytes: Buffer.from(body) });
    expect(event?.json.toString()).toBe(names);
    inLog(event!);
    expect(parse).not.toHaveBeenCalled();
  });

  it.each([
    ['a million levels', {}, deep],
    ['a million levels in its data', structured, `{${attributes},"data":${deep}}`],
    ['a hundred thousand attributes', structured, `{${attributes},${Array.from({ length: 100_000 }, (_, n) => `"K${n}":0`).join()}}`],
    ['a million characters to encode', structured, `{${attributes},"subject":"${'é'.repeat(1_000_000)}"}`],
  ])('is refused in little time with %s', async (_, headers, body) => {
    const bytes = Buffer.from(body);
    const refuse = () => {
      for (let n = 0; n < 25; n++) problemsOf({ headers, bytes });
    };
    expect(await cpuSeconds(refuse)).toBeLessThan(1);
  });
});

describe('a batch', () => {
  it('becomes its events in order; an empty one is accepted', () => {
    const events = publish({ headers: batch, body: [EVENT, { ...EVENT, id: 'b', type: 'other' }] });
    expect(events.map(({ emitId, stream }) => [emitId, stream])).toEqual([
      ['a', 'order'],
      ['b', 'other'],
    ]);
    expect(publish({ headers: batch, body: [] })).toEqual([]);
  });
  it('is refused as a whole, with each bad event by its index', () => {
    const { errors } = problemsOf({ headers: batch, body: [EVENT, 5, { ...EVENT, id: '' }, EVENT, { ...EVENT, time: 'x' }] });
    expect(errors).toEqual([
      { index: 1, field: '[1]', message: '[1] must be a CloudEvent: a JSON object' },
      { index: 2, field: '[2].id', message: expect.stringMatching(/^\[2\] id must be/) },
      { index: 4, field: '[4].time', message: expect.stringMatching(/^\[4\] time must be/) },
    ]);
  });
  it('is refused with each bad event, even if there are 500 of them', () => {
    const { errors } = problemsOf({ headers: batch, body: Array<unknown>(500).fill({}) });
    expect(new Set(errors!.map(({ index }) => index)).size).toBe(500);
  });
  it.each<[string, unknown, Request, RegExp]>([
    ['no array', EVENT, {}, /must be a JSON array/],
    ['501 events', Array<unknown>(501).fill(EVENT), {}, /more than 500 events/],
    ['one id for several events', [EVENT, EVENT], { id: 'x' }, /id names one event/],
    ['a bad event_name', [EVENT], { event_name: '*' }, /event_name must not be \*/],
  ])('a batch of %s is refused', (_, body, query, message) => {
    expect(problemsOf({ headers: batch, body, ...query }).message).toMatch(message);
  });
  it('more than 10 000 attributes are refused', () => {
    const ofAttributes = (count: number) => ({
      ...EVENT,
      ...Object.fromEntries(Array.from({ length: count - 4 }, (_, n) => [`x${n}`, 1])),
    });
    expect(publish({ headers: batch, body: Array<unknown>(500).fill(ofAttributes(20)) })).toHaveLength(500);
    expect(problemsOf({ headers: batch, body: Array<unknown>(500).fill(ofAttributes(21)) }).message).toMatch(/more than 10000 attributes/);
  });
  it.each(['[{}', '[{},]', '[{} {}]', '[{}] 1', '[{"a":1,}]', '[{"a"}]', '[nul]', '[{"a":1]'])(
    'a batch that is not JSON is refused: %s',
    (text) => {
      const bytes = Buffer.from(text);
      expect(problemsOf({ headers: batch, bytes }).message).toMatch(/^the body is not valid JSON: /);
    },
  );
  it('500 events are accepted', () => {
    expect(publish({ headers: batch, body: Array<unknown>(500).fill(EVENT), event_name: 'all' })).toHaveLength(500);
  });
});

describe('an event that is accepted', () => {
  const names = [
    ...['id', 'source', 'type', 'subject', 'dataschema', 'datacontenttype', 'time', 'summary', 'itemid', 'itemts', 'hops'],
    ...['sluicestream', 'sluicedueat', 'sluiceroot', 'sluicespread', 'sluicemade', 'traceparent', 'tracestate', 'extension'],
  ];
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('', '*', '$in', '$delete', '$errors', '-1', '1e3', '9999', '2026-11-29T00:00:00Z', 'application/json', 'text/plain'),
    fc
      .tuple(fc.constantFrom('a', 'é', ' '), fc.constantFrom(256, 257, 4096, 4097, 8000, 65_536, 65_537))
      .map(([text, n]) => text.repeat(n)),
  );

  it('is never malformed for the readers of the log', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 5 }), (attributes) => {
        const request = { headers: batch, body: [{ ...EVENT, ...attributes }] };
        let events: PublishedEvent[];
        try {
          events = publish(request);
        } catch (error) {
          if (error instanceof Invalid) return;
          throw error;
        }
        accepted++;
        expect(inLog(events[0]!).json.toString()).toBe('{"n":1}');
      }),
      { numRuns: 1000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });

  it.each([
    ['itemid', 4096],
    ['summary', 65_536],
  ])('has an attribute %s of at most %d characters', (name, longest) => {
    const { errors } = problemsOf({ headers: batch, body: [EVENT, { ...EVENT, [name]: 'x'.repeat(longest + 1) }] });
    expect(errors).toContainEqual({
      index: 1,
      field: `[1].${name}`,
      message: `[1] ${name} must be at most ${longest} characters long`,
    });
  });
});
