import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ProtocolBroken, readGuestMessage, tokensOf } from './guest-message.js';
import { readDescription } from './read-description.js';

const read = (value: unknown) => readGuestMessage(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const error = { name: 'E', code: null, message: 'm', stack: 's' };

describe('a message of a runner process', () => {
  it.each([
    { t: 'ready' },
    { t: 'pong', n: 5 },
    { t: 'out', id: 'a', out: [] },
    { t: 'out', id: 'a', out: [['emit', '{"a":1}', { id: 'i', name: 'n', summary: 's', ts: 1, deliveryTs: 2 }]] },
    { t: 'out', id: 'a', out: [['log', 'warn', 1.5, 'm', null]] },
    { t: 'out', id: 'a', out: [['log', 'warn', 1, 'm', '[{"a":1}]']] },
    {
      t: 'out',
      id: 'a',
      out: [
        ['db', 'k', '1'],
        ['db', 'k', null],
        ['db', 'ä'.repeat(512), '1'],
        ['db', 'ä'.repeat(2000), null],
      ],
    },
    { t: 'done', id: 'a', out: [], error: null },
    { t: 'done', id: 'a', out: [], error },
    { t: 'done', id: 'a', out: [], error: null, refused: [error] },
    { t: 'late', id: 'a', error },
    { t: 'respond', id: 'a', status: 200, headers: { 'x-y': 'z' }, body: 'AA==' },
    { t: 'respond', id: 'a', status: 200, headers: { 'set-cookie': ['a=1', 'b=2'] }, body: '' },
    { t: 'described', id: 'a', description: { name: 'n' } },
    { t: 'rejected', id: 'a', message: 'm', line: 3, file: 'a/b.mjs' },
    { t: 'rejected', id: 'a', message: 'm', line: null, file: null },
  ])('is taken: %j', (message) => {
    expect(read(message)).toEqual(message);
  });

  it('loses what it should not have', () => {
    expect(
      read({
        t: 'done',
        id: 'a',
        out: [['emit', '1', { id: 'x', account: 'victim' }, 'more']],
        error: null,
        retry: true,
        account: 'victim',
      }),
    ).toEqual({
      t: 'done',
      id: 'a',
      out: [['emit', '1', { id: 'x' }]],
      error: null,
    });
  });

  it.each([
    ['no JSON', '{'],
    ['empty', ''],
    ['null', 'null'],
    ['an array', []],
    ['of an unknown kind', { t: 'exit' }],
    ['without an id', { t: 'done', out: [], error: null }],
    ['with an id that is not a string', { t: 'out', id: {}, out: [] }],
    ['with a long id', { t: 'out', id: 'x'.repeat(65), out: [] }],
    ['without output', { t: 'out', id: 'a' }],
    ['with output of an unknown kind', { t: 'out', id: 'a', out: [['exec', 'x']] }],
    ['with output that is not a tuple', { t: 'out', id: 'a', out: [null] }],
    ['with an event that is not text', { t: 'out', id: 'a', out: [['emit', 1, {}]] }],
    ['with an event that is not JSON', { t: 'out', id: 'a', out: [['emit', '{', {}]] }],
    ['with an empty event', { t: 'out', id: 'a', out: [['emit', '', {}]] }],
    ['with an event nested too deeply', { t: 'out', id: 'a', out: [['emit', '['.repeat(2000) + ']'.repeat(2000), {}]] }],
    ['with invalid metadata', { t: 'out', id: 'a', out: [['emit', '1', null]] }],
    ['with a ts that is not an integer', { t: 'out', id: 'a', out: [['emit', '1', { ts: 1.5 }]] }],
    ['with an id of an event that is a number', { t: 'out', id: 'a', out: [['emit', '1', { id: 1 }]] }],
    ['with a long id of an event', { t: 'out', id: 'a', out: [['emit', '1', { id: 'x'.repeat(4097) }]] }],
    ['with a long stream name', { t: 'out', id: 'a', out: [['emit', '1', { name: 'x'.repeat(257) }]] }],
    ['with an invalid log time', { t: 'out', id: 'a', out: [['log', 'log', null, 'm', null]] }],
    ['with log arguments that are not JSON', { t: 'out', id: 'a', out: [['log', 'log', 1, 'm', '{']] }],
    ['with a db value that is not JSON', { t: 'out', id: 'a', out: [['db', 'k', 'x']] }],
    ['with a db key of too many bytes', { t: 'out', id: 'a', out: [['db', 'ä'.repeat(513), '1']] }],
    ['with a db key that has a NUL character', { t: 'out', id: 'a', out: [['db', 'a\0', null]] }],
    ['with a db key that has an unpaired surrogate', { t: 'out', id: 'a', out: [['db', '\ud800', '1']] }],
    [
      'with too many refused calls',
      { t: 'done', id: 'a', out: [], error: null, refused: Array(12).fill({ name: '', code: null, message: '', stack: '' }) },
    ],
    ['with an error of half its parts', { t: 'done', id: 'a', out: [], error: { name: 'x' } }],
    ['with an invalid status', { t: 'respond', id: 'a', status: 99, headers: {}, body: '' }],
    ['with a header that splits the response', { t: 'respond', id: 'a', status: 200, headers: { a: 'b\r\nc: d' }, body: '' }],
    ['with an invalid header name', { t: 'respond', id: 'a', status: 200, headers: { 'a b': 'c' }, body: '' }],
    ['with a body that is not a string', { t: 'respond', id: 'a', status: 200, headers: {}, body: 1 }],
    ['with a line that is not a number', { t: 'rejected', id: 'a', message: 'm', line: 'x', file: null }],
    ['with a file that is not a text', { t: 'rejected', id: 'a', message: 'm', line: 1, file: 2 }],
  ])('is refused when it is %s', (_, message) => {
    expect(() => read(message)).toThrow(ProtocolBroken);
  });

  it('is taken or refused, whatever it is, and changes no prototype', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.string(),
          fc.object().map((value) => JSON.stringify({ t: 'out', id: 'a', out: [value] })),
        ),
        (text) => {
          try {
            read(text);
          } catch (thrown) {
            expect(thrown).toBeInstanceOf(ProtocolBroken);
          }
        },
      ),
    );
    expect(() => read('{"t":"out","id":"a","out":[["emit","1",{"__proto__":{"polluted":1}}]]}')).not.toThrow();
    expect('polluted' in {}).toBe(false);
  });
});

describe('the cost of a frame', () => {
  const frame = (items: number) =>
    Buffer.from(JSON.stringify({ t: 'out', id: 'a', out: Array.from({ length: items }, () => ['db', 'k', null]) }));

  it('is known before it is read', () => {
    expect(tokensOf(frame(1000), 40_000)).toBeLessThan(10_000);
    expect(() => tokensOf(frame(400_000), 40_000)).toThrow('a frame of more than 40000 pieces');
  });

  it('the cost of a large reply does not depend on its body', () => {
    const body = Buffer.alloc(5 << 20, 7).toString('base64');
    const reply = { t: 'respond', id: 'a', status: 200, headers: { 'x-y': 'a "quoted" one' }, body };
    expect(read(reply)).toEqual(reply);
    const event = ['emit', JSON.stringify('x'.repeat(4 << 20)), {}];
    for (const large of [
      { t: 'out', id: 'a', out: [event] },
      { t: 'pong', n: 1, more: body },
      { ...reply, more: body },
      { ...reply, body: [body] },
    ])
      expect(() => read(large)).toThrow(ProtocolBroken);
  });

  it('is the same whatever stands in its texts', () => {
    const emit = (event: unknown) => Buffer.from(JSON.stringify({ t: 'out', id: 'a', out: [['emit', JSON.stringify(event), {}]] }));
    expect(tokensOf(emit(Array.from({ length: 100_000 }, () => ({ a: '"' }))), 40_000)).toBe(tokensOf(emit(1), 40_000));
  });
});

describe('a description', () => {
  const whole = {
    name: 'n',
    key: null,
    version: null,
    description: null,
    dedupe: null,
    concurrency: 1,
    hooks: [],
    has_run: true,
    configurable_props: [],
  };

  it('is taken as it is', () => {
    const description = {
      ...whole,
      hooks: ['deploy'],
      dedupe: 'last',
      configurable_props: [{ name: 'ä'.repeat(256), type: 'string', label: 'A' }],
    };
    expect(readDescription({ ...description, owner: 'victim' })).toEqual(description);
  });

  it('has only texts that the database can store', () => {
    const prop = {
      name: 'a',
      type: 't\0',
      label: 'half \ud83d',
      default: ['\0', { 'k\udc00': '\0' }],
      min: 1,
      optional: true,
      extra: null,
    };
    const described = {
      ...whole,
      description: 'd\0',
      configurable_props: [prop],
      warnings: [{ message: '\ud83d', line: 1, column: null }],
    };
    const stored = {
      name: 'a',
      type: 't\ufffd',
      label: 'half \ufffd',
      default: ['\ufffd', { 'k\ufffd': '\ufffd' }],
      min: 1,
      optional: true,
    };
    expect(readDescription(described)).toEqual({
      ...whole,
      description: 'd\ufffd',
      configurable_props: [{ ...stored, extra: null }],
      warnings: [{ message: '\ufffd', line: 1, column: null }],
    });
  });

  it.each([
    ['a name that is not a string', { name: 1 }],
    ['no props', { configurable_props: null }],
    ['an invalid prop', { configurable_props: [1] }],
    ['a prop without a type', { configurable_props: [{ name: 'a' }] }],
    ['a prop without a name', { configurable_props: [{ name: '', type: 'string' }] }],
    ['a prop whose name is too long', { configurable_props: [{ name: 'x'.repeat(257), type: 'string' }] }],
    ['a prop whose name has a NUL character', { configurable_props: [{ name: 'a\0', type: 'string' }] }],
    ['a prop whose name has an unpaired surrogate', { configurable_props: [{ name: '\udc00', type: 'string' }] }],
    ['an unknown hook', { hooks: ['exec'] }],
    ['an unknown dedupe', { dedupe: 'x' }],
    ['a thousand props', { configurable_props: Array.from({ length: 1000 }, () => ({ name: 'a', type: 'b' })) }],
  ])('is refused with %s', (_, change) => {
    expect(() => readDescription({ ...whole, ...change })).toThrow(ProtocolBroken);
  });
});
