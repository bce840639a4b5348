import { describe, expect, it } from '@jest/globals';
import { Type } from 'class-transformer';
import { Allow, IsArray, IsBoolean, IsInt, IsOptional, ValidateNested } from 'class-validator';
import { type FieldProblem, type Invalid } from '#contracts';
import { PayloadPipe } from './payload.js';

class Part {
  @IsInt() size!: number;
}
class Parent {
  @IsOptional() @IsBoolean() active?: boolean;
}
class Thing extends Parent {
  @Allow() data?: unknown;
  @IsOptional() @Type(() => Number) @IsInt() limit: number = 10;
  @IsOptional() @IsArray() @ValidateNested({ each: true }) @Type(() => Part) parts?: Part[];
}

const pipe = new PayloadPipe();
const taken = (json: string): Promise<Thing> => pipe.transform(JSON.parse(json), { type: 'body', metatype: Thing }) as Promise<Thing>;
const badFields = (json: string): Promise<string[]> =>
  taken(json).then(
    () => [],
    (error: Invalid) => (error.details.errors as FieldProblem[]).map(({ field }) => field),
  );

const strange = '{"constructor":"x","__proto__":{"a":1},"prototype":null,"toString":5,"then":"y","b":{"constructor":{"constructor":1}}}';

it('creates an instance with defaults, and converts numeric strings to numbers', async () => {
  expect(await taken('{}')).toBeInstanceOf(Thing);
  expect(await taken('{}')).toEqual({ limit: 10 });
  expect(await taken('{"limit":"7","active":true}')).toEqual({ limit: 7, active: true });
});

it("leaves users' data unchanged, whatever its keys and its depth", async () => {
  expect(JSON.stringify((await taken(`{"data":${strange}}`)).data)).toBe(strange);
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  expect(Array.isArray((await taken(`{"data":${deep}}`)).data)).toBe(true);
});

it('drops fields that the contract does not name, including keys of nested objects', async () => {
  const thing = await taken(`{"x":${strange},${strange.slice(1)}`);
  expect(Object.keys(thing)).toEqual(['limit']);
  expect(Object.getPrototypeOf(thing)).toBe(Thing.prototype);
});

describe('the payload pipe rejects', () => {
  it.each([
    ['{"active":"yes","limit":1.5}', ['limit', 'active']],
    [`{"active":${strange}}`, ['active']],
    [`{"limit":${strange}}`, ['limit']],
    ['{"limit":[5]}', ['limit']],
    ['{"parts":[{"size":1},{"size":"1"}]}', ['parts.1.size']],
    [`[${strange}]`, ['body']],
    ['"x"', ['body']],
  ])('%s', async (json, fields) => {
    const bad = await badFields(json);
    expect(bad).toEqual(fields);
  });
});
