import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { SecretBox } from '#secrets';
import { deletionRecord } from './deletions.js';
import { type EmittedEvent, eventRecord, readEventRecord } from './event-record.js';

interface Produced {
  key: string | null;
  value: Buffer | string | null;
  headers?: Record<string, string>;
  hasTooManyHeaders?: boolean;
}
const record = ({ key, value, headers = {}, hasTooManyHeaders }: Produced) => ({
  partition: 3,
  offset: 7,
  clock: 1_700_000_000_000,
  key,
  value: value === null ? null : Buffer.from(value),
  header: (name: string) => headers[name],
  headerNames: () => Object.keys(headers),
  hasTooManyHeaders,
});
const read = (produced: Parameters<typeof record>[0], options?: Parameters<typeof readEventRecord>[1]) =>
  readEventRecord(record(produced), options);
const signer = new SecretBox([Buffer.alloc(32)]);
const place = { ms: 1_700_000_000_000, seq: 7 * 4096 + 3 };

describe('a record of the topic events', () => {
  it('is read back in binary mode as the event that it was built from', () => {
    const event: Omit<EmittedEvent, 'kind' | 'place'> = {
      emitterId: 'dc_1',
      stream: '$errors',
      emitId: 'e1',
      json: Buffer.from('{"a": 1}'),
      summary: 'Größe 100%',
      itemId: '5',
      itemTs: 12,
      time: '2026-01-01T00:00:00Z',
      hops: 2,
    };
    expect(read(eventRecord(event))).toMatchObject({ kind: 'event', place, ...event });
  });
  it.each([
    [11, 'custom', 'malformed'],
    [10, 'custom', 'event'],
    [11, '$errors', 'event'],
    [1_048_577, '$logs', 'malformed'],
  ])('an event of %i bytes on the stream %s is %s while events are limited to 10 bytes', (length, ce_type, kind) => {
    const value = JSON.stringify('x'.repeat(length - 2));
    expect(read({ key: 'dc_1', value, headers: { ce_type } }, { maxBytes: 10 }).kind).toBe(kind);
  });
  it.each([
    ['default', ''],
    ['custom', 'custom'],
    [undefined, ''],
  ])('a record with the ce_type %j is on the stream %j', (type, stream) => {
    expect(read({ key: 'dc_1', value: '1', headers: type === undefined ? {} : { ce_type: type } })).toMatchObject({
      kind: 'event',
      stream,
    });
  });
  it('may be a bare JSON value, whose position then provides the emit id', () => {
    const bare = read({ key: 'dc_1', value: '[1, 2]' }) as EmittedEvent;
    expect(bare).toMatchObject({ kind: 'event', stream: '', hops: 0 });
    expect(bare.json.toString()).toBe('[1, 2]');
    expect(bare.emitId).toMatch(/^[0-9A-Za-z]{27}$/);
    expect(read({ key: 'dc_1', value: '[1, 2]' })).toEqual(bare);
  });
  it('has another emit id than a record of another log, at the same position within the same second', () => {
    const given = record({ key: 'dc_1', value: '1' });
    const ids = [0, 1, 999].map((ms) => (readEventRecord({ ...given, clock: given.clock + ms }) as EmittedEvent).emitId);
    expect(new Set(ids).size).toBe(3);
  });
  it('may be a structured CloudEvent, whose data is the event', () => {
    const value = JSON.stringify({
      specversion: '1.0',
      id: 'x',
      source: 'dc_1',
      type: 'orders',
      data: { a: 1 },
      time: '2026-01-01T00:00:00Z',
    });
    const event = read({ key: 'dc_1', value, headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' } });
    expect(event).toMatchObject({
      kind: 'event',
      emitId: 'x',
      stream: 'orders',
      time: '2026-01-01T00:00:00Z',
      json: Buffer.from('{"a":1}'),
    });
  });
  it.each([
    ['{"data":{"n": 1.0}}', '{"n": 1.0}'],
    ['{ "data" : 12345678901234567890 }', '12345678901234567890'],
    ['{"data":[1e400,{"a":"\\"]}"}],"id":"x"}', '[1e400,{"a":"\\"]}"}]'],
    ['{"data":1,"d\\u0061ta":{"b":1,"1":2}}', '{"b":1,"1":2}'],
    ['{"nested":{"data":1},"data":"ü"}', '"ü"'],
    ['{"data":null,"data_base64":"MQ=="}', 'null'],
    ['{"data_base64":"IDEuMA=="}', ' 1.0'],
    ['{"data_base64":"77u/MQ=="}', '1'],
  ])('may be the structured CloudEvent %s, whose event is %s byte for byte', (value, json) => {
    const event = read({ key: 'dc_1', value, headers: { 'content-type': 'application/cloudevents+json' } }) as EmittedEvent;
    expect(event.json.toString()).toBe(json);
  });
  it('may be a structured CloudEvent with any JSON as data', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom(undefined, 1, '\t'), (data, indent) => {
        const value = JSON.stringify({ id: 'x', before: data, data, after: data }, null, indent);
        const event = read({ key: 'dc_1', value, headers: { 'content-type': 'application/cloudevents+json' } }) as EmittedEvent;
        expect(JSON.parse(event.json.toString())).toEqual(JSON.parse(JSON.stringify(data)));
      }),
    );
  });
  it('may be a structured CloudEvent with numbers as attributes, which keep their digits', () => {
    const value = '{"data":1,"id":"e","tenant":1,"ten\\u0061nt":12345678901234567890,"ratio":1.50,"subject":5,"subject":"s"}';
    expect(read({ key: 'dc_1', value, headers: { 'content-type': 'application/cloudevents+json' } })).toMatchObject({
      context: { attributes: { tenant: '12345678901234567890', ratio: '1.50', subject: 's' } },
    });
  });
  it('belongs to the emitter in its key, or in ce_source if it has no key', () => {
    expect(read({ key: null, value: '1', headers: { ce_source: 'p_1' } })).toMatchObject({ emitterId: 'p_1' });
    expect(read({ key: '', value: '1', headers: { ce_source: 'p_1' } })).toMatchObject({ emitterId: 'p_1' });
    expect(read({ key: 'dc_1', value: '1', headers: { ce_source: 'p_1' } })).toMatchObject({ emitterId: 'dc_1' });
  });
  it('may be a deletion of a range of events', () => {
    expect(read(deletionRecord({ emitterId: 'dc_1', startId: '5-1', endId: '9-4096', stream: '' }, signer))).toEqual({
      kind: 'delete',
      place,
      emitterId: 'dc_1',
      start: { ms: 5, seq: 1 },
      end: { ms: 9, seq: 4096 },
      stream: '',
    });
    expect(read(deletionRecord({ emitterId: 'dc_1' }, signer))).toMatchObject({ start: null, stream: null });
  });
  it.each([undefined, '9999999999999-0'])('deletes nothing that comes much later, whatever its end is: %s', (endId) => {
    const end = { ms: 1_700_000_600_000, seq: 0 };
    expect(read(deletionRecord({ emitterId: 'dc_1', endId }, signer, 1_700_000_000_000))).toMatchObject({ end });
  });
  it('is a deletion for a reader that verifies signatures only if it is signed for its emitter', () => {
    const record = deletionRecord({ emitterId: 'dc_1' }, signer);
    const { ce_sluicesignature: signature = '', ...unsigned } = record.headers;
    const kind = (headers: Record<string, string>, key = 'dc_1', value = String(record.value)) =>
      read({ key, value, headers }, { signer }).kind;
    expect(kind(record.headers)).toBe('delete');
    expect(kind(unsigned)).toBe('malformed');
    expect(kind({ ...unsigned, ce_sluicesignature: `${signature.slice(0, -4)}AAAA` })).toBe('malformed');
    expect(kind(record.headers, 'dc_2')).toBe('malformed');
    expect(kind(record.headers, 'dc_1', '{}')).toBe('malformed');
    expect(kind({ ce_type: '$delete', ce_sluicestream: 'default' })).toBe('event');
  });
  it.each(['$other', '$in', '*', 'x'.repeat(129)])(
    'a record with the type %j, which cannot be a stream, keeps the type and is on the default stream',
    (type) => {
      expect(read({ key: 'dc_1', value: '1', headers: { ce_type: type } })).toMatchObject({
        ...{ kind: 'event', stream: '', dueAt: undefined, waited: false },
        context: { attributes: { type } },
      });
    },
  );
  it('waits, or has waited, only if it comes from an outbox', () => {
    const of = (headers: Record<string, string>) => read({ key: 'dc_1', value: '1', headers: { ...headers, ce_sluicedueat: '5' } });
    const waits = { stream: '', dueAt: undefined, waited: false };
    expect(of({ ce_type: '$in' })).toMatchObject({ ...waits, context: { attributes: { type: '$in' } } });
    expect(of({ ce_type: 'x' })).toMatchObject({ ...waits, stream: 'x' });
    expect(of({ ce_type: '$in', 'sluice-outbox': '1' })).toMatchObject({ stream: '$in', dueAt: 5, waited: false });
    expect(of({ ce_type: 'x', 'sluice-outbox': '1' })).toMatchObject({ stream: 'x', dueAt: undefined, waited: true });
  });
  it('passes on the time of an item with the digits of its producer', () => {
    const event = read({ key: 'dc_1', value: '1', headers: { ce_itemts: '0012' } }) as EmittedEvent;
    expect([event.itemTs, eventRecord(event).headers.ce_itemts]).toEqual([12, '0012']);
  });
  it.each([
    [{ ce_type: 'order.created', ce_sluicestream: 'orders' }, 'orders'],
    [{ ce_type: 'order.created', ce_sluicestream: 'default' }, ''],
    [{ ce_type: '$delete', ce_sluicestream: 'default' }, ''],
    [{ ce_sluicestream: '$errors' }, '$errors'],
  ])('a record with %j is on the stream %j', (headers: Record<string, string>, stream) => {
    expect(read({ key: 'dc_1', value: '{}', headers })).toMatchObject({
      ...{ kind: 'event', stream },
      context: headers.ce_type === undefined ? undefined : { attributes: { type: headers.ce_type } },
    });
  });
  it('keeps what its producer states about it, and nothing that Sluice does', () => {
    const headers = {
      ...{ ce_specversion: '1.0', ce_id: 'e', ce_source: '/shop', ce_type: 'order', ce_time: '2026-01-01T00:00:00Z', ce_subject: 's' },
      ...{ ce_summary: 'x', ce_sluiceevent: 'y', ce_BadName: 'z', traceparent: '00-a-b-01', 'content-type': 'text/json' },
    };
    expect(read({ key: 'dc_1', value: '1', headers })).toMatchObject({ stream: 'order', summary: 'x' });
    expect((read({ key: 'dc_1', value: '1', headers }) as EmittedEvent).context).toEqual({
      attributes: { id: 'e', source: '/shop', subject: 's', summary: 'x', datacontenttype: 'text/json' },
      traceparent: '00-a-b-01',
    });
    const own = { emitterId: 'dc_1', stream: 'order', emitId: 'e1', json: Buffer.from('1'), summary: 's'.repeat(9000), hops: 2 } as const;
    expect((read(eventRecord(own)) as EmittedEvent).context).toBeUndefined();
  });
  it.each([
    ['with more than 512 characters', 'traceparent', 'x'.repeat(513)],
    ['with more than 512 characters', 'tracestate', 'x'.repeat(513)],
    ['other than ASCII', 'tracestate', 'a=\uFFFD'],
    ['with a NUL character', 'tracestate', 'a\0'],
  ])('does not have a trace header %s: %s', (_, name, value) => {
    expect(read({ key: 'dc_1', value: '1', headers: { [name]: value } })).toMatchObject({ kind: 'event', context: undefined });
    const fits = { [name]: 'x'.repeat(512) };
    expect(read({ key: 'dc_1', value: '1', headers: fits })).toMatchObject({ context: fits });
  });
  it.each([
    ['no time', 'yesterday'],
    ['empty', ''],
    ['a day that no month has', '2026-02-30T00:00:00Z'],
    ['the end of a day', '2026-01-01T24:00:00Z'],
    ['longer than a header should be', `2026-01-01T00:00:00.${'1'.repeat(101)}Z`],
    ['a leap second in the middle of an hour', '2016-12-31T23:30:60Z'],
  ])('has no time if the one that its producer states is %s', (_, ce_time) => {
    expect(read({ key: 'dc_1', value: '1', headers: { ce_time } })).toMatchObject({ kind: 'event', time: undefined });
  });
  it.each(['2016-12-31T23:59:60Z', '2016-12-31T15:59:60.5-08:00', '2017-01-01T05:29:60+05:30'])(
    'may have happened in a leap second: %s',
    (ce_time) => expect(read({ key: 'dc_1', value: '1', headers: { ce_time } })).toMatchObject({ time: ce_time }),
  );
  it.each([
    ['-1', 0],
    ['-9007199254740991', 0],
    ['1e308', 0],
    ['0x10', 0],
    [' 16 ', 0],
    ['1e1', 0],
    ['1.0', 0],
    ['17', 17],
  ])('whose ce_hops are %s has %d hops', (ce_hops, hops) => {
    expect(read({ key: 'dc_1', value: '1', headers: { ce_hops } })).toMatchObject({ kind: 'event', hops });
  });
  it.each([
    ['-5', undefined],
    ['0', undefined],
    ['9007199254740991', { root: 'r', spread: 1e9 }],
  ])('whose ce_sluicespread is %s has the cause %j', (ce_sluicespread, cause) => {
    const headers = { ce_sluiceroot: 'r', ce_sluicespread };
    expect((read({ key: 'dc_1', value: '1', headers }) as EmittedEvent).cause).toEqual(cause);
  });
  it('is written again with what its producer states', () => {
    const context = { attributes: { id: 'e', type: '$delete', subject: 'ü', datacontenttype: 'application/x+json' }, tracestate: 'a=b' };
    const event = { emitterId: 'dc_1', stream: 'orders', emitId: 'e', json: Buffer.from('1'), context } as const;
    expect(read(eventRecord(event))).toMatchObject({ kind: 'event', ...event });
  });
  it('has no attribute of the name data, which CloudEvents reserves for the payload', () => {
    const event = read({ key: 'dc_1', value: Buffer.from('1'), headers: { ce_id: 'x', ce_data: '2', ce_datacount: '3' } });
    expect(event).toMatchObject({ json: Buffer.from('1'), context: { attributes: { id: 'x', datacount: '3' } } });
    expect((event as EmittedEvent).context?.attributes).not.toHaveProperty('data');
  });
  it('takes halves of surrogate pairs in attributes for what they become', () => {
    const value = Buffer.from('{"data":1,"id":"a\\ud83d","type":"s\\ud83d","summary":"\\ude00"}');
    const structured = { key: 'dc_1', value, headers: { 'content-type': 'application/cloudevents+json' } };
    expect(read(structured)).toMatchObject({ emitId: 'a\uFFFD', stream: 's\uFFFD', summary: '\uFFFD' });
  });

  it('is a CloudEvent without data, whose event is null, or with bytes that are not JSON, whose event is their base64', () => {
    const structured = (members: object) =>
      read({
        key: 'dc_1',
        value: JSON.stringify({ specversion: '1.0', id: 'x', source: '/s', type: 't', ...members }),
        headers: { 'content-type': 'application/cloudevents+json' },
      }) as EmittedEvent;
    expect(structured({}).json.toString()).toBe('null');
    expect(structured({ data_base64: Buffer.from('{"a": 1}').toString('base64') }).json.toString()).toBe('{"a": 1}');
    const bytes = structured({ data_base64: '//79' });
    expect(bytes.json.toString()).toBe('"//79"');
    expect(bytes.context?.attributes).toMatchObject({ datacontentencoding: 'base64' });
  });
  it.each([
    ['the key', { key: 'dc_1', headers: { ce_source: 'dc_2' } }],
    ['ce_source', { key: null, headers: { ce_source: 'dc_1' } }],
    ['the source of a structured CloudEvent', { key: null, headers: { 'content-type': 'application/cloudevents+json' } }],
  ])('names its emitter by %s', (_, { key, headers }) => {
    const value = JSON.stringify({ specversion: '1.0', id: 'x', source: 'dc_1', type: 't', data: 1 });
    expect(read({ key, value, headers: headers })).toMatchObject({ kind: 'event', emitterId: 'dc_1' });
  });

  const deep = Buffer.from('['.repeat(400_000) + ']'.repeat(400_000));
  const malformed: [string, Pick<Partial<Produced>, 'headers' | 'hasTooManyHeaders'> & { key: string | null; value: Buffer | null }][] = [
    ['no emitter', { key: null, value: Buffer.from('1') }],
    ['a key that is not an emitter id', { key: 'wh_1', value: Buffer.from('1') }],
    ['no value', { key: 'dc_1', value: null }],
    ['a value that is not JSON', { key: 'dc_1', value: Buffer.from('hello') }],
    ['a sluicestream that is none', { key: 'dc_1', value: Buffer.from('1'), headers: { ce_sluicestream: '$other' } }],
    ['the sluicestream *', { key: 'dc_1', value: Buffer.from('1'), headers: { ce_sluicestream: '*' } }],
    ['the sluicestream $in', { key: 'dc_1', value: Buffer.from('1'), headers: { ce_sluicestream: '$in', ce_sluicedueat: '5' } }],
    ['attributes that no header holds', { key: 'dc_1', value: Buffer.from('1'), headers: { ce_subject: 'ü'.repeat(1400) } }],
    ['an extension with a NUL character', { key: 'dc_1', value: Buffer.from('1'), headers: { ce_tenant: 'a\0' } }],
    [
      'a structured CloudEvent without data and version',
      { key: 'dc_1', value: Buffer.from('{}'), headers: { 'content-type': 'application/cloudevents+json' } },
    ],
    [
      'a summary that is too long',
      { key: 'dc_1', value: Buffer.from('1'), headers: { ce_sluicemade: 'all', ce_summary: 'x'.repeat(65_537) } },
    ],
    [
      'an item id that is too long',
      { key: 'dc_1', value: Buffer.from('1'), headers: { ce_sluicemade: 'all', ce_itemid: 'x'.repeat(4097) } },
    ],
    ['more than 1000 headers', { key: 'dc_1', value: Buffer.from('1'), headers: { h: 'x' }, hasTooManyHeaders: true }],
    ['a time with a NUL character', { key: 'dc_1', value: Buffer.from('1'), headers: { ce_time: 'a\0' } }],
    ['more levels than can be written', { key: 'dc_1', value: deep }],
    [
      'more levels than can be written in a structured CloudEvent',
      {
        key: 'dc_1',
        value: Buffer.concat([Buffer.from('{"data":'), deep, Buffer.from('}')]),
        headers: { 'content-type': 'application/cloudevents+json' },
      },
    ],
    [
      'a structured CloudEvent with more than 128 members',
      {
        key: 'dc_1',
        value: Buffer.from(`{"data":1${',"x":1'.repeat(128)}}`),
        headers: { 'content-type': 'application/cloudevents+json' },
      },
    ],
    ['a deletion of more than 4 KiB', { key: 'dc_1', value: Buffer.from(`{"x":"${'x'.repeat(4096)}"}`), headers: { ce_type: '$delete' } }],
    ['a deletion with an invalid event id', { key: 'dc_1', value: Buffer.from('{"start_id":"x"}'), headers: { ce_type: '$delete' } }],
  ];
  it('is not parsed, however it is written', () => {
    const parse = jest.spyOn(JSON, 'parse');
    const json = JSON.stringify({ a: [1, { b: 'c' }] });
    read({ key: 'dc_1', value: json });
    const structured = {
      key: null,
      value: `{"source":"dc_1","data":${json}}`,
      headers: { 'content-type': 'application/cloudevents+json' },
    };
    expect(read(structured)).toMatchObject({ kind: 'event', emitterId: 'dc_1', json: Buffer.from(json) });
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });
  it.each<[string, Parameters<typeof record>[0], string]>([
    ['no emitter', { key: null, value: '1' }, 'the record has no key, and its source is not the id of a source or workflow'],
    ['another key', { key: 'wh_1', value: '1' }, 'the key is not the id of a source or workflow'],
    [
      'text in binary mode',
      { key: 'dc_1', value: 'hello', headers: { 'content-type': 'text/plain' } },
      'the value is not JSON: unexpected character at byte 0; data of the type text/plain needs structured mode',
    ],
    [
      'bytes in binary mode',
      { key: 'dc_1', value: Buffer.from([0xff]), headers: { 'content-type': 'image/png' } },
      'the value is not UTF-8; data of the type image/png needs structured mode',
    ],
  ])('is malformed with %s, and the reason names it', (_, produced, reason) => expect(read(produced)).toMatchObject({ reason }));
  it('may begin with a byte order mark, which is skipped', () => {
    expect(read({ key: 'dc_1', value: '\uFEFF{"a":1}' })).toMatchObject({ json: Buffer.from('{"a":1}') });
    const structured = '\uFEFF{"specversion":"1.0","source":"dc_1","data":2}';
    const headers = { 'content-type': 'application/cloudevents+json' };
    expect(read({ key: null, value: structured, headers })).toMatchObject({ emitterId: 'dc_1', json: Buffer.from('2') });
  });
  it.each(malformed)('is malformed with %s', (_, produced) => expect(read(produced)).toMatchObject({ kind: 'malformed', place }));
});
