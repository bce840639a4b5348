import { describe, expect, it } from '@jest/globals';
import { IsOptional, IsString } from 'class-validator';
import { nearestName, RequestPipe } from './request.pipe.js';

class Body {
  @IsOptional() @IsString() name?: string;
}

describe('a request body', () => {
  const read = (value: unknown, type: 'body' | 'query' = 'body') => new RequestPipe().transform(value, { type, metatype: Body });

  it('with an unknown field is refused, with a suggestion', async () => {
    await expect(read({ nmae: 'a' })).rejects.toMatchObject({
      code: 'invalid',
      details: { errors: [{ field: 'nmae', message: 'unknown field "nmae"; did you mean name?' }] },
    });
  });

  it('lists its invalid fields beside the unknown ones', async () => {
    await expect(read({ name: 5, colour: 1 })).rejects.toMatchObject({ details: { errors: [{ field: 'name' }, { field: 'colour' }] } });
  });

  it.each([[{ name: 'a', include: 'id', exclude: 'name' }], [undefined], [Buffer.from('{"x":1}')]])('may be %j', async (value) => {
    await expect(read(value)).resolves.not.toThrow();
  });

  it('is stricter than a query, whose unknown parameters are ignored', async () => {
    await expect(read({ nmae: 'a' }, 'query')).resolves.toEqual({});
  });
});

it.each([
  ['nmae', 'name'],
  ['componentId', 'component_id'],
  ['component-code', 'component_code'],
  ['configured_prop', 'configured_props'],
  ['emitter', undefined],
  ['', undefined],
  ['x'.repeat(5000), undefined],
])('suggests for %j the field %j', (name, nearest) => {
  expect(nearestName(name, ['component_id', 'component_code', 'name', 'configured_props'])).toBe(nearest);
});
